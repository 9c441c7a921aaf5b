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
from scipy.linalg import block_diag

from drosurv.findings.residuals import PatientResiduals
from drosurv.target import FloatArray, IntArray

# A part of the follow-up without training events counts as half an event.
_FEWEST_EVENTS = 0.5


@dataclass(frozen=True, eq=False)
class EstimationError:
    """Estimation error of a model that was fitted to `training_events` (J,) in each part of the follow-up.

    `columns` (n, p) are those of a linear model; None for others. `stratum` (n,) are strata with hazards of their own.
    With `cross_fitted`, the model was fitted to the other folds of the same patients. `any_shape` says whether the
    hazard of the model may have any shape in time, as a Cox model's, and not that of a few parameters.
    """

    residuals: PatientResiduals
    training_events: FloatArray
    columns: FloatArray | None = None
    stratum: IntArray | None = None
    cross_fitted: bool = False
    any_shape: bool = True

    def covariance(self, w: FloatArray) -> FloatArray:
        """Return the covariance (J, J) to add to that of the sum of residuals with weights w (n,)."""
        columns = self.columns
        if columns is None:
            # Of cross-fitted models that are not linear it is not known which errors cancel.
            columns = np.empty((len(w), 0)) if self.cross_fitted else w[:, None]
        columns = columns / np.maximum(np.sqrt((columns**2).mean(axis=0)), 1e-12)
        copies = self.residuals.weight[:, None]
        expected, variances = copies * self.residuals.expected, copies * self.residuals.variances
        factor = np.ones(expected.shape[1])
        if not self.cross_fitted:
            events = np.maximum(self.training_events, _FEWEST_EVENTS)
            factor = events / np.maximum(expected.sum(axis=0), 1e-12)
        information, spread = (
            self._products(factor * expected, columns),
            self._products(factor * variances, columns),
        )
        gradient = self._sums(w[:, None] * expected, columns)
        if self.cross_fitted and not self.any_shape:
            # Errors cancel over the whole follow-up only: all parts share one level.
            J, p = expected.shape[1], columns.shape[1]
            levels = len(information) - p
            shared = np.zeros((levels // J + p, len(information)))
            shared[: levels // J, :levels] = np.tile(np.eye(levels // J), J)
            shared[levels // J :, levels:] = np.eye(p)
            information, spread = (shared @ part @ shared.T for part in (information, spread))
            gradient = shared @ gradient
        else:
            shared = np.eye(len(information))
        # Each column is the influence of the training patients' residuals on the expected events of a part.
        influence = np.linalg.pinv(information, hermitian=True) @ gradient
        found: FloatArray = influence.T @ spread @ influence
        if not self.cross_fitted:
            return found
        # The variance of w less that influence on the other folds' predictions.
        both = influence.T @ shared @ self._sums(w[:, None] * variances, columns)
        # Terms of second order: the more coefficients, the more each fold's error differs.
        further = 2 * len(information) / max(float(expected.sum()), 1.0)
        return further * np.diag(w**2 @ variances) + found - both - both.T

    def _strata(self, n: int) -> tuple[IntArray, int]:
        if self.stratum is None:
            return np.zeros(n, np.intp), 1
        return self.stratum, int(self.stratum.max()) + 1

    def _sums(self, mass: FloatArray, columns: FloatArray) -> FloatArray:
        """Return sums of mass (n, J) by level, a stratum in a part, and times columns: (J * strata + p, J)."""
        strata, n_strata = self._strata(len(mass))
        levels = [np.bincount(strata, part, n_strata) for part in mass.T]
        return np.vstack([block_diag(*(level[:, None] for level in levels)), columns.T @ mass])

    def _products(self, mass: FloatArray, columns: FloatArray) -> FloatArray:
        """Return sums of products of levels and columns with mass (n, J): square, of size J * strata + p."""
        strata, n_strata = self._strata(len(mass))
        levels = np.concatenate([np.bincount(strata, part, n_strata) for part in mass.T])
        mixed = np.vstack(
            [
                np.column_stack([np.bincount(strata, part * column, n_strata) for column in columns.T])
                if columns.shape[1]
                else np.empty((n_strata, 0))
                for part in mass.T
            ]
        )
        of_columns = (columns * mass.sum(axis=1)[:, None]).T @ columns
        return np.block([[np.diag(levels), mixed], [mixed.T, of_columns]])
