"""A repaired model of competing causes: the hazards of one cause are corrected, those of the others are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from drosurv.curve_values import SumValues, TableValues
from drosurv.curves import CompetingCurves, StepCurves
from drosurv.errors import ArgumentError
from drosurv.estimators.baseline import checked_times, step_functions
from drosurv.predictions import Predictions, as_predictions, final_step
from drosurv.repairs.repaired_cox import RepairedCox
from drosurv.target import FloatArray


@dataclass(eq=False, repr=False)
class RepairedCause(RepairedCox):
    """A model of competing causes, or predicted incidences, with the hazards of one cause repaired.

    Made by :func:`drosurv.repair` with a `cause`; parameters and attributes are those of
    :class:`drosurv.RepairedCox`. Events are those of the cause, and expected events its summed hazard.
    """

    cause: int = 1

    _several_causes = True

    @property
    def _cause(self) -> int:  # type: ignore[override]
        return self.cause

    @property
    def n_causes_(self) -> int:
        """Number of causes."""
        check_is_fitted(self)
        return self._n_causes

    @property
    def cause_names_(self) -> tuple[str, ...]:
        """What causes 1, 2, ... are called by the repaired model; empty if they have numbers only."""
        check_is_fitted(self)
        return tuple(getattr(final_step(self.base_), "cause_names_", ()))

    def predict(self, X: Any, features: Any = None, cause: int | None = None) -> FloatArray:  # type: ignore[override]
        """Predict the log risk (n,) of one cause, by default the repaired one."""
        if cause is None or cause == self.cause:
            return super().predict(X, features)
        X, _ = self._known(X, features)
        return as_predictions(self.base_, X, len(X), cause=cause).risk

    def curves_by_cause(self, X: Any, *, features: Any = None) -> CompetingCurves:
        """Return the curves of every cause and of any cause."""
        X, features = self._known(X, features)
        base = as_predictions(self.base_, X, len(X)).competing
        assert base is not None
        times = base.any_cause.times
        assert times is not None
        survival = super().predict_survival_function(X, times=times, features=features)
        causes = list(base.causes)
        own = causes[self.cause - 1]
        causes[self.cause - 1] = replace(own, values=TableValues(times, survival), times=times, rows=None)
        total = replace(base.any_cause, values=SumValues(tuple(curves.values for curves in causes)))
        return CompetingCurves(tuple(causes), total)

    def predict_cumulative_incidence(
        self, X: Any, times: ArrayLike | None = None, cause: int | None = None, *, features: Any = None
    ) -> FloatArray:
        """Return the cumulative incidence (n, T) of one cause, by default the repaired one."""
        at = self._curve_times if times is None else checked_times(times)
        return self.curves_by_cause(X, features=features).incidence(cause or self.cause, at)

    def predict_survival_function(  # type: ignore[override]
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None, *, features: Any = None
    ) -> NDArray[Any]:
        """Return the probability of no event of any cause; parameters as in :meth:`drosurv.RepairedCox.fit`."""
        at = self._curve_times if times is None else checked_times(times)
        found = self.curves_by_cause(X, features=features).any_cause.survival(at)
        return found if return_array or times is not None else step_functions(at, found)

    def predict_cumulative_hazard_function(  # type: ignore[override]
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None, *, features: Any = None
    ) -> NDArray[Any]:
        """Return the cumulative hazard of an event of any cause."""
        at = self._curve_times if times is None else checked_times(times)
        hazard = self.curves_by_cause(X, features=features).any_cause.cumulative_hazard(at)
        return hazard if return_array or times is not None else step_functions(at, hazard)

    def correct(self, predictions: Any, X: Any, features: Any = None) -> Predictions:  # type: ignore[override]
        """Repair predicted incidences of all causes at m times; return those of all causes.

        The incidences of the other causes change too, because more or fewer patients are left to have them.
        """
        given = as_predictions(predictions, None, len(X), name="predictions")
        if given.given is None or given.competing is None:
            raise ArgumentError.must("predictions", "hold incidences of all causes at times", predictions)
        times = np.asarray(given.given.times, dtype=np.float64)
        survival = super().correct(predictions, X, features)
        assert given.given.incidence is not None
        tables = {k: np.asarray(F, dtype=np.float64) for k, F in given.given.incidence.items()}
        causes = list(CompetingCurves.of_incidences(times, tables, between=True).causes)
        causes[self.cause - 1] = replace(causes[self.cause - 1], values=TableValues(times, survival))
        total = StepCurves(
            SumValues(tuple(curves.values for curves in causes)), times, times[-1], own_hazard=True
        )
        together = CompetingCurves(tuple(causes), total)
        found = {k: together.incidence(k, times) for k in tables}
        return replace(given.given, risk=None, incidence=found, survival=total.survival(times))
