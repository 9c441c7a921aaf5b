"""What is predicted of patients from their scores and a baseline: curves, and times read off them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from drosurv.errors import ArgumentError, as_number, require
from drosurv.estimators.baseline import Curves, step_functions
from drosurv.metrics.survival_curves import CurveType
from drosurv.target import FloatArray

# Survival curves of this many numbers are held at a time.
_HELD = 4_000_000
# Patients whose own times are looked at together.
_TOGETHER = 256
# Points of Gauss and Legendre in (-1, 1), and their weights.
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(5)


class PredictedTimes:
    """Times read off a model's survival curves."""

    predict_cumulative_hazard_function: Callable[..., NDArray[Any]]

    @property
    @abstractmethod
    def unique_times_(self) -> FloatArray:
        """Times of the curves, (K,)."""

    @property
    def curve_type(self) -> CurveType:
        """Type of the survival curves: "step" if they change at ``unique_times_`` only, else "smooth"."""
        return "smooth"

    def predict_median(self, X: Any, **given: Any) -> FloatArray:
        """Times (n,) by which half of such patients have had the event; infinity where the curve ends above that.

        What else is given goes on to :meth:`predict_cumulative_hazard_function`, here and in the methods below, but for
        ``conditional_after``, the times that patients are known to have survived.

        Examples
        --------
        >>> from drosurv import CoxPH, datasets
        >>> data = datasets.make_hidden_minority(n_samples=500, random_state=0)
        >>> CoxPH().fit(data.X, data.y).predict_median(data.X).shape
        (500,)
        """
        return self.predict_quantile(X, 0.5, **given)

    def predict_quantile(self, X: Any, q: float, **given: Any) -> FloatArray:
        """Times (n,) by which the share q of such patients have had the event: the first t with S(t | x) <= 1 - q.

        Parameters
        ----------
        X : (n, d) array or DataFrame
        q : float
            Between 0 and 1. Infinity is returned for patients whose curve ends above 1 - q.
        """
        check_is_fitted(self)
        require(0 < as_number(q) < 1, "q", "lie between 0 and 1", q)
        # In hazards: survival of a patient at high risk is soon 0 to rounding.
        after = given.pop("conditional_after", None)
        reached = self._reached(X, self._spent(X, after, given) - np.log1p(-q), given)
        # What is left to spend may be lost beside a large hazard.
        return reached if after is None else np.maximum(reached, after)

    def _reached(self, X: Any, hazard: FloatArray, given: dict[str, Any]) -> FloatArray:
        """First times (n,) at which each patient has come to a cumulative hazard (n,); infinity for who never does."""
        times, found = self.unique_times_, np.empty(len(X))
        for part, rows, own in _in_parts(X, given, len(times)):
            curves = self.predict_cumulative_hazard_function(rows, times=times, **own)
            # A curve that should just reach it must not miss it by rounding.
            reached = curves >= hazard[part, None] * (1.0 - 1e-12)
            found[part] = np.where(reached.any(axis=1), times[reached.argmax(axis=1)], np.inf)
        return found

    def predict_expectation(self, X: Any, until: float | None = None, **given: Any) -> FloatArray:
        """Mean times (n,) up to a horizon: the area under S(t | x) from 0 to ``until``.

        Parameters
        ----------
        X : (n, d) array or DataFrame
        until : float, optional
            Horizon, the last event time if not given; after it nothing was learned of the curves.
        """
        times = self.unique_times_
        until = float(times[-1]) if until is None else until
        if not 0 < as_number(until) <= times[-1]:
            wanted = f"be above 0 and not after the last event time, {times[-1]}"
            raise ArgumentError.must("until", wanted, until)
        found, places = np.empty(len(X)), len(_POINTS) * len(times)
        after = given.pop("conditional_after", None)
        spent = self._spent(X, after, given)
        if np.ndim(after):
            # A time of each patient is one more place for all others: few patients together have few.
            places = max(places, _HELD // _TOGETHER)
        for part, rows, own in _in_parts(X, given, places):
            grid, widths = self._grid(until, _rows(after, part) if np.ndim(after) else after)
            hazard = self.predict_cumulative_hazard_function(rows, times=grid, **own)
            found[part] = np.exp(-np.maximum(hazard - spent[part, None], 0.0)) @ widths
        return found

    def _grid(self, until: float, after: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
        """Times (T,) and weights (T,) of an integral from zero to a horizon."""
        times = self.unique_times_
        # A smooth curve bends where the patient is known to have come to.
        bends = times if self.curve_type == "step" or after is None else np.append(times, after)
        edges = np.concatenate([[0.0], np.unique(bends[(bends > 0) & (bends < until)]), [until]])
        starts, widths = edges[:-1], np.diff(edges)
        if self.curve_type == "step":
            return starts, widths
        # It falls between its times, too, so that rectangles would be too large.
        grid = starts[:, None] + widths[:, None] * (1.0 + _POINTS) / 2.0
        return grid.ravel(), (widths[:, None] * _WEIGHTS / 2.0).ravel()

    def _spent(self, X: Any, after: ArrayLike | None, given: dict[str, Any]) -> FloatArray:
        """Cumulative hazard (n,) that each patient is known to have survived; none without a time."""
        if after is None:
            return np.zeros(len(X))
        known, spent = np.asarray(after, dtype=np.float64), np.empty(len(X))
        if known.shape not in ((), (len(X),)) or not (np.isfinite(known) & (known >= 0)).all():
            wanted = f"be a finite time >= 0, or one for each of {len(X)} patients"
            raise ArgumentError.must("conditional_after", wanted, after)
        known = np.broadcast_to(known, len(X))
        # Patients may all have times of their own.
        for part, rows, own in _in_parts(X, given, int(_HELD**0.5)):
            times, place = np.unique(known[part], return_inverse=True)
            hazard = self.predict_cumulative_hazard_function(rows, times=times, **own)
            spent[part] = hazard[np.arange(len(place)), place]
        return spent


def _in_parts(X: Any, given: dict[str, Any], width: int) -> Iterator[tuple[slice, Any, dict[str, Any]]]:
    """A few patients at a time and what is given of them, so that `width` numbers of each need little memory."""
    size = max(1, _HELD // width)
    for start in range(0, len(X), size):
        part = slice(start, start + size)
        own = {name: value if np.ndim(value) == 0 else _rows(value, part) for name, value in given.items()}
        yield part, _rows(X, part), own


def _rows(values: Any, part: slice) -> Any:
    return values.iloc[part] if hasattr(values, "iloc") else values[part]


class PredictedCurves(PredictedTimes):
    """What a model with scores and a baseline predicts over time."""

    _baseline: Curves
    predict: Callable[..., FloatArray]

    @property
    def unique_times_(self) -> FloatArray:
        """Times of the baseline, (K,)."""
        check_is_fitted(self)
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
        curves, labels = self._curves(curve(self._baseline.at_zero()), False), self._baseline.strata
        return dict(zip(labels, curves, strict=True)) if labels else curves[0]

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
            After the longest follow-up in training nothing was learned: curves stay as they were then, which is too
            good, but for those that follow a formula (:class:`drosurv.AcceleratedFailureTime`).
        strata : (n,) labels, optional
            Stratum of each patient, for a model that was fitted with strata.
        offset : (n,) array, optional
            As in :meth:`predict`.
        conditional_after : float or (n,) array, optional
            Time s up to which each patient is known to have had no event: the curve is S(t | x) / S(s | x), and one up
            to s.
        """
        hazard = self.predict_cumulative_hazard_function(X, True, times, strata=strata, offset=offset)
        if conditional_after is not None:
            spent = self._spent(X, conditional_after, {"strata": strata, "offset": offset})
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
        curves, scores = self._curves_and_scores(X, strata, offset)
        return self._curves(curves.cumulative_hazard(scores, times), return_array or times is not None)

    def _curves_and_scores(
        self, X: Any, strata: Any = None, offset: ArrayLike | None = None
    ) -> tuple[Curves, FloatArray]:
        scores = self._outputs(X, offset)
        return self._baseline.of_patients(strata, len(scores)), scores

    def _outputs(self, X: Any, offset: ArrayLike | None) -> FloatArray:
        """What the curves of patients are read by."""
        return self.predict(X, offset=offset)

    def _reached(self, X: Any, hazard: FloatArray, given: dict[str, Any]) -> FloatArray:
        curves, scores = self._curves_and_scores(X, **given)
        return curves.first_at(hazard, scores)

    def _curves(self, values: FloatArray, as_array: bool) -> NDArray[Any]:
        return values if as_array else step_functions(self.unique_times_, values)

    @property
    def curve_type(self) -> CurveType:
        """Type of the survival curves: "step" if they change at ``unique_times_`` only, else "smooth"."""
        return "step" if self._baseline.in_steps else "smooth"
