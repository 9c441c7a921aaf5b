"""A base model fitted without one or two folds of the patients, and what it predicts for the patients left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from drosurv.patients.observation import take
from drosurv.patients.target import BoolArray, FloatArray, IntArray, parse_target, y_field
from drosurv.predictions import as_predictions
from drosurv.predictions.any_model import fit_any
from drosurv.presentation.progress import ProgressCallback
from drosurv.repairs.expected import SMALLEST_EXPECTED, Expected, expected_of_fitted


@dataclass(frozen=True, eq=False)
class FoldFits:
    """Fits of a base model without some folds.

    `fitted` is the model fitted on all patients, near whose parameters searches begin; `y` has the fields that ``fit``
    takes, `folds` (n,) are numbered from 0. Log risks are taken at the `times`, and
    expected events are counted in the intervals between the `edges` too.
    """

    base: Any
    fitted: Any
    X: Any
    y: Any
    folds: IntArray
    times: FloatArray
    edges: FloatArray

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.folds.max()) + 1

    def out_of_fold(self, progress: ProgressCallback) -> list[Expected]:
        """Return the expected events of each fold's patients, by a model fitted without this fold."""
        found = []
        for fold in range(self.n_folds):
            progress(fold, "fitting the model in folds", self.n_folds)
            out = self.folds == fold
            found.append(self._predicted(self._fit(~out), out))
        return found

    def without_each_fold(
        self, alone: Sequence[Expected], progress: ProgressCallback
    ) -> list[list[Expected]]:
        """Return, for each fold k, the expected events of each fold's patients, from which fold k learns nothing.

        Patients of another fold j are predicted by a model fitted without the folds j and k, those of fold k by the
        model fitted without it (`alone`). With models fitted without j only, predictions for fold j would depend on
        the outcomes in fold k: a model of pure noise then has the same error in all folds, and its correction seems to
        be confirmed in each of them.
        """
        found = [list(alone) for _ in range(self.n_folds)]
        pairs = list(combinations(range(self.n_folds), 2))
        for step, (j, k) in enumerate(pairs):
            progress(step, "fitting the model without pairs of folds", len(pairs))
            model = self._fit(~np.isin(self.folds, [j, k]))
            found[k][j] = self._predicted(model, self.folds == j)
            found[j][k] = self._predicted(model, self.folds == k)
        return found

    def joined(self, parts: Sequence[Expected]) -> Expected:
        """Join the expected events of all folds, in the order of the patients, without outliers."""
        return Expected.joined(parts, self.folds).clipped(SMALLEST_EXPECTED, np.log(len(self.folds)) + 3)

    def _fit(self, rows: BoolArray) -> Any:
        return fit_any(self.base, take(self.X, rows), self.y[rows], similar=self.fitted)

    def _predicted(self, model: Any, rows: BoolArray) -> Expected:
        curves = as_predictions(model, take(self.X, rows), int(rows.sum())).survival_curves
        entry = y_field(self.y, "entry")
        entry = None if entry is None else entry[rows]
        target = parse_target(self.y[rows], require_event=False)
        return expected_of_fitted(curves, target, self.times, self.edges, entry)
