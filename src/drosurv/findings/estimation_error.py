"""What the estimation error of a fitted model adds to the variance of its residuals.

Where training patients are known, the expected events of a group have an error of their own. It comes from the
information matrix of a model of hazards with a column for each part of the follow-up and the columns of the features:
the training patients are taken to be like those judged, and there are as many of them as their events say. Of models
that are not linear, it is assumed that they estimate a group from the training patients of that group.

Of cross-fitted predictions, errors of the folds cancel instead of adding up: whoever has more events than predicted in
one fold raises the predictions of all others. So the same term is subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drosurv.findings.residuals import PatientResiduals
from drosurv.target import FloatArray, IntArray

# A part of the follow-up without training events counts as half an event.
_FEWEST_EVENTS = 0.5


@dataclass(frozen=True, eq=False)
class EstimationError:
    """Estimation error of a model that was fitted to `training_events` (J,) in each part of the follow-up.

    `columns` (n, p) are those of a linear model; None for others. `stratum` (n,) are strata with hazards of their own.
    With `cross_fitted`, the model was fitted to the other folds of the same patients.
    """

    residuals: PatientResiduals
    training_events: FloatArray
    columns: FloatArray | None = None
    stratum: IntArray | None = None
    cross_fitted: bool = False

    def covariance(self, w: FloatArray) -> FloatArray:
        """Return the covariance (J, J) to add to that of the sum of residuals with weights w (n,)."""
        columns = self.columns
        if columns is None:
            # Of cross-fitted models that are not linear it is not known which errors cancel.
            columns = np.empty((len(w), 0)) if self.cross_fitted else w[:, None]
        columns = columns / np.maximum(np.sqrt((columns**2).mean(axis=0)), 1e-12)
        expected = self.residuals.weight[:, None] * self.residuals.expected
        factor = np.ones(expected.shape[1])
        if not self.cross_fitted:
            events = np.maximum(self.training_events, _FEWEST_EVENTS)
            factor = events / np.maximum(expected.sum(axis=0), 1e-12)
        strata = np.zeros(len(w), np.intp) if self.stratum is None else self.stratum
        n_strata, J, p = int(strata.max()) + 1, expected.shape[1], columns.shape[1]
        information = np.zeros((J * n_strata + p, J * n_strata + p))
        gradient = np.zeros((J * n_strata + p, J))
        for j in range(J):
            of_part = slice(j * n_strata, (j + 1) * n_strata)
            mass = factor[j] * expected[:, j]
            by_stratum = [np.bincount(strata, mass * column, n_strata) for column in columns.T]
            information[of_part, of_part] = np.diag(np.bincount(strata, mass, n_strata))
            if by_stratum:
                information[of_part, J * n_strata :] = np.column_stack(by_stratum)
            information[J * n_strata :, J * n_strata :] += (columns * mass[:, None]).T @ columns
            gradient[of_part, j] = np.bincount(strata, w * expected[:, j], n_strata)
            gradient[J * n_strata :, j] = (w * expected[:, j]) @ columns
        information[J * n_strata :, : J * n_strata] = information[: J * n_strata, J * n_strata :].T
        found: FloatArray = gradient.T @ np.linalg.pinv(information, hermitian=True) @ gradient
        if not self.cross_fitted:
            return found
        # Terms of second order: the more coefficients, the more each fold's error differs.
        further = 2 * len(information) / max(float(expected.sum()), 1.0)
        return further * np.diag(w**2 @ expected) - found
