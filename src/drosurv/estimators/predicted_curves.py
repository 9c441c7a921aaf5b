"""Survival curves and cumulative hazards of patients, from their scores and a baseline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drosurv.errors import Argument, ArgumentError
from drosurv.estimators.baseline import Curves, StratifiedBaseline, step_functions
from drosurv.estimators.predicted_times import PredictedTimes
from drosurv.target import FloatArray


def cumulative_hazards(
    baseline: Curves, scores: FloatArray, times: ArrayLike | None, strata: Any = None
) -> FloatArray:
    """Cumulative hazards (n, T) of patients; their strata are given where the model was fitted with strata."""
    if isinstance(baseline, StratifiedBaseline):
        return baseline.cumulative_hazard(scores, times, baseline.codes(strata, len(scores)))
    if strata is not None:
        raise ArgumentError("the model was fitted without strata; leave ", Argument("strata"), " out.")
    return baseline.cumulative_hazard(scores, times)


class PredictedCurves(PredictedTimes):
    """What a model with scores and a baseline predicts over time."""

    _baseline: Curves
    predict: Callable[..., FloatArray]

    @property
    def unique_times_(self) -> FloatArray:
        """Times of the baseline, (K,)."""
        return self._baseline.times

    @property
    def cum_baseline_hazard_(self) -> Any:
        """Cumulative baseline hazard, a step function; for a model with strata, one for each label."""
        return self._of_baseline(lambda hazard: hazard)

    @property
    def baseline_survival_(self) -> Any:
        """Survival of a patient of log risk zero, a step function; for a model with strata, one for each label."""
        return self._of_baseline(lambda hazard: np.exp(-hazard))

    def _of_baseline(self, curve: Callable[[FloatArray], FloatArray]) -> Any:
        if isinstance(self._baseline, StratifiedBaseline):
            labels = self._baseline.strata
            hazard = self._baseline.cumulative_hazard(np.zeros(len(labels)), stratum=np.arange(len(labels)))
            return dict(zip(labels, step_functions(self.unique_times_, curve(hazard)), strict=True))
        return step_functions(self.unique_times_, curve(self._baseline.cumulative_hazard(np.zeros(1))))[0]

    def predict_survival_function(
        self,
        X: Any,
        return_array: bool = False,
        times: ArrayLike | None = None,
        *,
        strata: Any = None,
        offset: ArrayLike | None = None,
        conditional_after: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Survival curves S(t | x).

        Parameters
        ----------
        X : (n, d) array or DataFrame
        return_array : bool
            False: (n,) step functions. True: (n, T) values.
        times : (T,) array, optional
            Times of the values; ``unique_times_`` if not given. Giving them implies ``return_array=True``.
        strata : (n,) labels, optional
            Stratum of each patient, for a model that was fitted with strata.
        offset : (n,) array, optional
            As in :meth:`predict`.
        conditional_after : float or (n,) array, optional
            Time s up to which each patient is known to have had no event: the curve is S(t | x) / S(s | x), and one up
            to s.
        """
        hazard = self._hazard(X, times, strata, offset)
        if conditional_after is not None:
            after = np.broadcast_to(np.asarray(conditional_after, dtype=np.float64), (len(hazard),))
            known, place = np.unique(after, return_inverse=True)
            spent = self._hazard(X, known, strata, offset)[np.arange(len(hazard)), place]
            hazard = np.maximum(hazard - spent[:, None], 0.0)
        return self._curves(np.exp(-hazard), return_array or times is not None)

    def predict_cumulative_hazard_function(
        self,
        X: Any,
        return_array: bool = False,
        times: ArrayLike | None = None,
        *,
        strata: Any = None,
        offset: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Cumulative hazards H(t | x); parameters as in :meth:`predict_survival_function`."""
        return self._curves(self._hazard(X, times, strata, offset), return_array or times is not None)

    def _hazard(
        self, X: Any, times: ArrayLike | None, strata: Any = None, offset: ArrayLike | None = None
    ) -> FloatArray:
        scores = self.predict(X) if offset is None else self.predict(X, offset=offset)
        return cumulative_hazards(self._baseline, scores, times, strata)

    def _curves(self, values: FloatArray, as_array: bool) -> NDArray[Any]:
        return values if as_array else step_functions(self.unique_times_, values)
