"""Times in place of curves: medians and other quantiles, and restricted means."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from drosurv.errors import ArgumentError
from drosurv.target import FloatArray

# Survival curves of this many numbers are held at a time.
_HELD = 4_000_000


class PredictedTimes:
    """Times read off the survival curves of ``predict_survival_function``; ``given`` goes on to that method."""

    predict_survival_function: Callable[..., Any]
    # Whether between times of the curves the cumulative hazard grows evenly; else curves are steps.
    _hazard_grows_evenly = False

    @property
    @abstractmethod
    def unique_times_(self) -> FloatArray:
        """Times of the curves, (K,)."""

    def predict_median(self, X: Any, **given: Any) -> FloatArray:
        """Times (n,) by which half of such patients have had the event; infinity where the curve ends above that.

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
        if not 0 < q < 1:
            raise ArgumentError.must("q", "lie between 0 and 1", q)
        return self._quantile(X, q, given)

    def _quantile(self, X: Any, q: float, given: dict[str, Any]) -> FloatArray:
        times = self.unique_times_
        return np.concatenate([self._first(q, times, curves) for curves in self._in_parts(X, times, given)])

    def _first(self, q: float, times: FloatArray, curves: FloatArray) -> FloatArray:
        """First times (n,) at which curves (n, K) are at 1 - q or below."""
        # A curve that should just reach 1 - q must not miss it by rounding.
        reached = curves <= (1.0 - q) * (1.0 + 1e-12)
        ever, first = reached.any(axis=1), reached.argmax(axis=1)
        found: FloatArray = times[first]
        if self._hazard_grows_evenly:
            rows, before = np.arange(len(curves)), np.maximum(first - 1, 0)
            with np.errstate(divide="ignore", invalid="ignore"):
                low, high = -np.log(curves[rows, before]), -np.log(curves[rows, first])
                share = np.nan_to_num((-np.log1p(-q) - low) / (high - low), nan=1.0)
            found = times[before] + np.clip(share, 0.0, 1.0) * (found - times[before])
        return np.where(ever, found, np.inf)

    def predict_expectation(self, X: Any, until: float | None = None, **given: Any) -> FloatArray:
        """Mean times (n,) up to a horizon: the area under S(t | x) from 0 to ``until``.

        Parameters
        ----------
        X : (n, d) array or DataFrame
        until : float, optional
            Horizon, the last event time if not given; after it nothing was learned of the curves.
        """
        times = self.unique_times_
        until = float(times[-1]) if until is None else float(until)
        if not 0 < until <= times[-1]:
            wanted = f"be above 0 and not after the last event time, {times[-1]}"
            raise ArgumentError.must("until", wanted, until)
        inside = times[(times > 0) & (times < until)]
        grid = np.concatenate([[0.0], inside])
        steps = np.diff(np.append(grid, until))
        return np.concatenate([curves @ steps for curves in self._in_parts(X, grid, given)])

    def _in_parts(self, X: Any, times: FloatArray, given: dict[str, Any]) -> Iterator[FloatArray]:
        """Survival (rows, T) of a few patients at a time, so that many patients need little memory."""
        n = len(X)
        size = max(1, _HELD // len(times))
        for start in range(0, n, size):
            part = slice(start, start + size)
            rows = X.iloc[part] if hasattr(X, "iloc") else X[part]
            own = {
                name: value if value is None or np.ndim(value) == 0 else np.asarray(value)[part]
                for name, value in given.items()
            }
            yield self.predict_survival_function(rows, times=times, **own)
