"""What the estimation error of a fitted model adds to the variance of its residuals.

Where training patients are known, the expected events of a group have an error of their own. It comes from the
information matrix of a model of hazards with a column for each part of the follow-up and the columns of the features:
the training patients are taken to be like those judged, and there are as many of them as their events say. Of models
that are not linear, it is assumed that they estimate a group from the training patients of that group.

Of cross-fitted predictions, errors of the folds cancel instead of adding up: whoever has more events than predicted in
one fold raises the predictions of all others. So the same term is subtracted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from drosurv.judging.residuals import PatientResiduals
from drosurv.patients.target import FloatArray, IntArray

# A part of the follow-up without training events counts as half an event.
_FEWEST_EVENTS = 0.5


@dataclass(frozen=True, eq=False)
class EstimationError:
    """Estimation error of a model that was fitted to `training_events` (J,) in each part of the follow-up.

    `columns` (n, p) are the features of a linear model, None for other models. `stratum` (n,) are strata with separate
    hazards. With `folds` (n,), numbers from 0, each patient was predicted by a model that was fitted to the other
    folds. `nonparametric_baseline` says whether the baseline hazard is a step function, as in a Cox model, or has few
    parameters.
    """

    residuals: PatientResiduals
    training_events: FloatArray
    columns: FloatArray | None = None
    stratum: IntArray | None = None
    folds: IntArray | None = None
    nonparametric_baseline: bool = True

    def covariance(self, w: FloatArray) -> FloatArray:
        """Return the covariance (J, J) to add to that of the sum of residuals with weights w (n,)."""
        fit = self._fit(w[:, None]) if self.columns is None and self.folds is None else self._own_fit
        squares = np.diag(w**2 @ self._variances)[None]
        (found,) = self._added(fit, lambda mass: self._sums(w[:, None] * mass, fit.columns).T[None], squares)
        return np.asarray(found)

    def _added(
        self, fit: _Fit, of_parts: Callable[[FloatArray], FloatArray], squares: FloatArray
    ) -> FloatArray:
        """Return the covariances (G, J, J) to add to those of G weighted sums of residuals.

        `squares` (G, J, J) are the sums of squared weights times variances, on the diagonal. `of_parts` takes a mass
        (n, J) and returns its weighted sums in each part, by level and times columns, (G, J, J * strata + p).
        """
        total = of_parts(self._expected)
        if self.folds is None:
            # Each row is the influence of the training patients' residuals on the expected events of a part.
            influence = total @ fit.shared.T @ fit.inverse
            return np.asarray(influence @ fit.score_variance @ influence.transpose(0, 2, 1))
        found = self._further(fit) * squares
        for number in range(int(self.folds.max()) + 1):
            inside = (self.folds == number)[:, None].astype(np.float64)
            share = float((self._expected * inside).sum() / max(self._expected.sum(), 1e-12))
            score_variance = fit.shared @ self._products(self._variances * inside, fit.columns) @ fit.shared.T
            # The influence of a patient of this fold on the predictions of the others.
            others = total - of_parts(self._expected * inside)
            influence = others @ fit.shared.T @ fit.inverse / max(1 - share, 1e-12)
            both = influence @ fit.shared @ of_parts(self._variances * inside).transpose(0, 2, 1)
            found = (
                found
                + influence @ score_variance @ influence.transpose(0, 2, 1)
                - both
                - both.transpose(0, 2, 1)
            )
        return found

    def of_subgroups(self, sums: Callable[[int, Callable[[slice], FloatArray]], FloatArray]) -> FloatArray:
        """Return the covariances (G, J, J) to add to those of the residuals of G subgroups in J parts.

        `sums(k, values)` returns sums (G, k) over subgroups of what `values(rows)` returns for some rows, (m, k).
        """
        J = self._expected.shape[1]
        if self.columns is None and self.folds is None:
            of_parts_alone = sums(J, lambda rows: self._expected[rows] / self._factor)
            return np.asarray(of_parts_alone[:, :, None] * np.eye(J), np.float64)
        fit = self._own_fit
        strata, n_strata = self._strata
        p = fit.columns.shape[1]

        def of_parts(mass: FloatArray) -> FloatArray:
            def values(rows: slice) -> FloatArray:
                inside = (strata[rows, None] == np.arange(n_strata)).astype(np.float64)
                times = np.hstack([inside, fit.columns[rows]])
                found: FloatArray = mass[rows, :, None] * times[:, None, :]
                return found.reshape(len(times), -1)

            found = sums(J * (n_strata + p), values).reshape(-1, J, n_strata + p)
            levels = found[:, :, None, :n_strata] * np.eye(J)[:, :, None]
            return np.concatenate([levels.reshape(len(found), J, -1), found[:, :, n_strata:]], axis=2)

        squares = sums(J, lambda rows: self._variances[rows])[:, :, None] * np.eye(J)
        return self._added(fit, of_parts, squares)

    @cached_property
    def _expected(self) -> FloatArray:
        return self.residuals.weight[:, None] * self.residuals.expected

    @cached_property
    def _variances(self) -> FloatArray:
        return self.residuals.weight[:, None] * self.residuals.variances

    @property
    def _factor(self) -> FloatArray:
        """Training events over expected events in each part, (J,)."""
        if self.folds is not None:
            return np.ones(self._expected.shape[1])
        events = np.maximum(self.training_events, _FEWEST_EVENTS)
        found: FloatArray = events / np.maximum(self._expected.sum(axis=0), 1e-12)
        return found

    @property
    def _strata(self) -> tuple[IntArray, int]:
        if self.stratum is None:
            return np.zeros(len(self._expected), np.intp), 1
        return self.stratum, int(self.stratum.max()) + 1

    def _further(self, fit: _Fit) -> float:
        """Return the factor of terms of second order: errors of folds differ more with more coefficients."""
        return 2 * len(fit.inverse) / max(float(self._expected.sum()), 1.0)

    @cached_property
    def _own_fit(self) -> _Fit:
        """The fit on the model's columns; none if it is not linear, because it is not known which errors cancel."""
        return self._fit(np.empty((len(self._expected), 0)) if self.columns is None else self.columns)

    def _fit(self, columns: FloatArray) -> _Fit:
        columns = columns / np.maximum(np.sqrt((columns**2).mean(axis=0)), 1e-12)
        information, score_variance = (
            self._products(self._factor * mass, columns) for mass in (self._expected, self._variances)
        )
        shared = np.eye(len(information))
        if self.folds is not None and not self.nonparametric_baseline:
            # Errors cancel over the whole follow-up only: all parts share one level.
            J, p = self._expected.shape[1], columns.shape[1]
            n_strata = (len(information) - p) // J
            shared = block_diag(np.tile(np.eye(n_strata), J), np.eye(p))
        inverse = np.linalg.pinv(shared @ information @ shared.T, hermitian=True)
        return _Fit(columns, np.asarray(inverse, np.float64), shared @ score_variance @ shared.T, shared)

    def _sums(self, mass: FloatArray, columns: FloatArray) -> FloatArray:
        """Return sums of mass (n, J) by level, a stratum in a part, and times columns: (J * strata + p, J)."""
        strata, n_strata = self._strata
        levels = [np.bincount(strata, part, n_strata) for part in mass.T]
        return np.vstack([block_diag(*(level[:, None] for level in levels)), columns.T @ mass])

    def _products(self, mass: FloatArray, columns: FloatArray) -> FloatArray:
        """Return sums of products of levels and columns with mass (n, J): square, of size J * strata + p."""
        strata, n_strata = self._strata
        levels = np.concatenate([np.bincount(strata, part, n_strata) for part in mass.T])
        mixed = np.zeros((len(levels), columns.shape[1]))
        for j, part in enumerate(mass.T):
            for k, column in enumerate(columns.T):
                mixed[j * n_strata : (j + 1) * n_strata, k] = np.bincount(strata, part * column, n_strata)
        of_columns = (columns * mass.sum(axis=1)[:, None]).T @ columns
        return np.block([[np.diag(levels), mixed], [mixed.T, of_columns]])


class _Fit(NamedTuple):
    """Columns (n, p), inverse information and variance of the score (q, q), and which levels share a coefficient."""

    columns: FloatArray
    inverse: FloatArray
    score_variance: FloatArray
    shared: FloatArray
