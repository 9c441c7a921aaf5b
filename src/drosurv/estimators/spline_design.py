"""Restricted cubic splines of numeric columns: knots, design columns, and their standardised form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numba
import numpy as np

from drosurv.metrics.calibration import write_spline
from drosurv.metrics.nonparametric import weighted_quantiles
from drosurv.patients.arrays import batches
from drosurv.patients.target import BoolArray, FloatArray, IntArray

# A numeric column needs more distinct values than this for a spline.
FEWEST_VALUES = 8
# Quantiles of the knots, by their number (Harrell, Regression Modeling Strategies, table 2.3).
HARRELL = {
    3: (0.10, 0.50, 0.90),
    4: (0.05, 0.35, 0.65, 0.95),
    5: (0.05, 0.275, 0.50, 0.725, 0.95),
    6: (0.05, 0.23, 0.41, 0.59, 0.77, 0.95),
    7: tuple(np.linspace(0.025, 0.975, 7).tolist()),
}
# A column whose standard deviation is at most this share of its largest value is constant up to rounding.
_ROUNDING = 1e-12
# Patients whose columns are computed together, in the cache.
_BLOCK = 256
# A column is a linear combination of earlier ones if they leave at most this share of its variance unexplained.
_DEPENDENT = 1e-10


def knots_for_events(n_events: float) -> int:
    """Return the number of knots: 3 for fewer than 100 events, 4 up to 300, else 5."""
    return 3 if n_events < 100 else 4 if n_events <= 300 else 5


def find_knots(X: FloatArray, weight: FloatArray | None, n_knots: int) -> tuple[FloatArray, ...]:
    """Return the knots of each column of X (n, d); none for a column with few distinct values, which stays linear.

    If many patients have the same value, several quantiles may be equal. If fewer than three distinct knots are left,
    the knots are quantiles of the distinct values.
    """
    q, found = HARRELL[n_knots], []
    for x, quantiles in zip(X.T, column_quantiles(X, weight, q), strict=True):
        knots = np.unique(quantiles)
        most = max(FEWEST_VALUES, n_knots)
        # Usually the first rows are enough to see that there are more values.
        if len(np.unique(x[:100])) <= most and len(np.unique(x)) <= most:
            knots = np.empty(0)
        elif len(knots) < 3:
            knots = np.unique(np.quantile(np.unique(x), q))
        found.append(knots if len(knots) >= 3 else np.empty(0))
    return tuple(found)


def column_quantiles(X: FloatArray, weight: FloatArray | None, q: Sequence[float]) -> FloatArray:
    """Return quantiles (d, m) of each column of X (n, d)."""
    return np.array([weighted_quantiles(np.ascontiguousarray(x), weight, q) for x in X.T])


@dataclass(frozen=True, eq=False)
class SplineDesign:
    """Design columns of a Cox model: each feature, followed by the nonlinear columns of its spline, if it has one.

    `knots` are the knots of each feature, empty if it is linear. `low` and `high` (d,) are the range of the features in
    training: values outside are set to the nearer end, because a patient far outside would get an extreme hazard that
    no training patient supports. `centre` are the training means (m,) of the m design columns of each feature, and
    `basis` (m, m) transforms the centred columns to standardised columns, which have variance one and are uncorrelated
    with each other. With a large penalty on the nonlinear columns, the fit is then the best straight line.
    """

    knots: tuple[FloatArray, ...]
    low: FloatArray
    high: FloatArray
    centre: tuple[FloatArray, ...] = ()
    basis: tuple[FloatArray, ...] = ()

    @classmethod
    def learn(
        cls, X: FloatArray, weight: FloatArray | None, n_knots: int, rows: IntArray | None = None
    ) -> SplineDesign:
        """Return the design for training patients, the `rows` (n,) of X (m, d), by default all, with weights (n,).

        With 0 knots every feature is linear. Columns are copied one after the other.
        """
        rows, d = np.arange(len(X)) if rows is None else rows, X.shape[1]
        knots = (np.empty(0),) * d
        if n_knots:
            knots = tuple(find_knots(X[rows, j, None], weight, n_knots)[0] for j in range(d))
        share = np.full(len(rows), 1.0 / len(rows)) if weight is None else weight / weight.sum()
        means, variances, low, high = _linear_moments(np.require(X, np.float64, ["C", "W"]), rows, share)
        scales = _inverse_spread(np.sqrt(variances), np.maximum(high, -low))
        centre = [np.array([mean]) for mean in means]
        basis = [np.array([[scale]]) for scale in scales]
        for j, t in enumerate(knots):
            if len(t):
                x = np.require(X[rows, j], np.float64, ["C", "W"])
                centre[j], covariance, largest = _spline_moments(x, t, share)
                basis[j] = _standard_basis(covariance, largest)
        return cls(knots, low, high, tuple(centre), tuple(basis))

    @property
    def feature(self) -> IntArray:
        """The feature (p,) from which each design column is made."""
        return np.repeat(np.arange(len(self.knots)), [1 + max(len(t) - 2, 0) for t in self.knots])

    @property
    def nonlinear(self) -> BoolArray:
        """Whether each design column (p,) is nonlinear."""
        return np.asarray(np.diff(self.feature, prepend=-1) == 0)

    def linear(self) -> SplineDesign:
        """Return the design of the linear columns only."""
        knots = (np.empty(0),) * len(self.knots)
        centre, basis = tuple(part[:1] for part in self.centre), tuple(part[:1, :1] for part in self.basis)
        return replace(self, knots=knots, centre=centre, basis=basis)

    @cached_property
    def layout(self) -> Any:
        """What :func:`_write_columns` needs from the design."""
        sizes = np.array([len(centre) for centre in self.centre])
        starts = np.append(0, np.cumsum(sizes))
        weights = np.zeros((starts[-1], sizes.max(initial=1)))
        for start, basis in zip(starts[:-1], self.basis, strict=True):
            weights[start : start + len(basis), : len(basis)] = basis.T
        knots, ends = np.concatenate([np.empty(0), *self.knots]), np.cumsum([0, *map(len, self.knots)])
        centre = np.concatenate([np.empty(0), *self.centre])
        return self.low, self.high, knots, ends, starts, centre, weights

    def standardised(self, X: FloatArray) -> FloatArray:
        """Return the standardised design columns (n, p) of X (n, d)."""
        return np.asarray(DesignRows(self, X))

    def in_units(self, coef: FloatArray) -> FloatArray:
        """Convert coefficients (p,) or (p, k) of the standardised columns to those of the design columns."""
        starts = np.cumsum([0, *map(len, self.centre)])
        parts = [
            basis @ coef[low : low + len(basis)] for basis, low in zip(self.basis, starts[:-1], strict=True)
        ]
        return np.concatenate(parts)

    def with_nonlinear_penalty(self, factor: float) -> SplineDesign:
        """Scale the nonlinear columns down, so that their ridge penalty is `factor` times as large."""
        basis = tuple(
            matrix / np.sqrt(np.where(np.arange(len(matrix)) > 0, factor, 1.0)) for matrix in self.basis
        )
        return replace(self, basis=basis)

    def names(self, features: Sequence[str]) -> list[str]:
        """Return the names of the design columns, such as age, age' and age''; none is used twice."""
        out, taken = [], set(features)
        for name, knots in zip(features, self.knots, strict=True):
            out.append(name)
            nonlinear = name
            for _ in knots[2:]:
                nonlinear += "'"
                while nonlinear in taken:
                    nonlinear += "'"
                taken.add(nonlinear)
                out.append(nonlinear)
        return out


class DesignRows:
    """The standardised design columns (n, p) of X (m, d), or of its rows in `order` (n,), computed when rows are read.

    They take several times the memory of X: ``self[rows]`` are those of a few rows, ``np.asarray(self)`` of all.
    """

    def __init__(self, design: SplineDesign, X: FloatArray, order: IntArray | None = None) -> None:
        # numba would compile the loops again for arrays stored otherwise.
        self.X, self.layout = np.require(X, np.float64, ["C", "W"]), design.layout
        self.order = order
        self.shape = (len(X if order is None else order), len(self.layout[-1]))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: slice | IntArray) -> FloatArray:
        X = self.X[part if self.order is None else self.order[part]]
        out = np.empty((self.shape[1], len(X)))
        low, high, knots, ends, starts, centre, weights = self.layout
        _write_columns(X, low, high, knots, ends, starts, centre, weights, out)
        return out.T

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        out = np.empty(self.shape)
        for part in batches(len(self), min(_BLOCK, max(16, 65536 // (self.shape[1] + 1)))):
            out[part] = self[part]
        return out


def _standard_basis(covariance: FloatArray, largest: FloatArray) -> FloatArray:
    """Return the upper triangular matrix (m, m) that makes centred columns uncorrelated with variance one.

    The columns are given by their covariances (m, m) and largest absolute values (m,). One that is constant, or a
    linear combination of earlier ones, becomes zero.
    """
    inverse = _inverse_spread(np.sqrt(covariance.diagonal()), largest)
    correlation = covariance * inverse * inverse[:, None]
    basis = np.zeros_like(correlation)
    for j in np.flatnonzero(inverse):
        # Gram-Schmidt: subtract the projection of column j on earlier columns, and divide by the standard deviation.
        rest = np.eye(len(basis))[j] - basis @ (basis.T @ correlation[j])
        variance = float(rest @ correlation @ rest)
        if variance > _DEPENDENT:
            basis[:, j] = rest / np.sqrt(variance)
    return basis * inverse[:, None]


def _inverse_spread(spread: FloatArray, largest: FloatArray) -> FloatArray:
    """Return 1 / standard deviation (m,) of columns, 0 for those that are constant up to rounding."""
    constant = spread <= _ROUNDING * largest
    return np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, spread))


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _linear_moments(
    X: FloatArray, rows: IntArray, share: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return means, variances, minima and maxima (d,) of the columns of some rows (n,) of X (m, d)."""
    n, d = len(rows), X.shape[1]
    means, variances, low, high = np.zeros(d), np.zeros(d), X[rows[0]].copy(), X[rows[0]].copy()
    for i in range(n):
        for j in range(d):
            value = X[rows[i], j]
            means[j] += share[i] * value
            low[j] = value if value < low[j] else low[j]
            high[j] = value if value > high[j] else high[j]
    for i in range(n):
        for j in range(d):
            apart = X[rows[i], j] - means[j]
            variances[j] += share[i] * apart * apart
    return means, variances, low, high


@numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _spline_moments(
    x: FloatArray, knots: FloatArray, share: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return means (m,), covariances (m, m) and largest absolute values (m,) of the columns of a spline of x (n,)."""
    n, m = x.shape[0], knots.shape[0] - 1
    means, covariance, largest = np.zeros(m), np.zeros((m, m)), np.zeros(m)
    columns = np.empty((m, _BLOCK))
    for centred in (False, True):
        for start in range(0, n, _BLOCK):
            part, w = x[start : start + _BLOCK], share[start : start + _BLOCK]
            # In a loop: that an array is assigned takes numba three seconds more to compile.
            for i in range(part.shape[0]):
                columns[0, i] = part[i]
            write_spline(part, knots, columns)
            for j in range(m):
                column = columns[j]
                if not centred:
                    total, most = 0.0, largest[j]
                    for i in range(part.shape[0]):
                        total += w[i] * column[i]
                        most = max(most, abs(column[i]))
                    means[j] += total
                    largest[j] = most
                    continue
                for i in range(part.shape[0]):
                    column[i] -= means[j]
                for k in range(j + 1):
                    other, total = columns[k], 0.0
                    for i in range(part.shape[0]):
                        total += w[i] * column[i] * other[i]
                    covariance[j, k] += total
    for j in range(m):
        for k in range(j):
            covariance[k, j] = covariance[j, k]
    return means, covariance, largest


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _write_columns(
    X: FloatArray,
    low: FloatArray,
    high: FloatArray,
    knots: FloatArray,
    ends: IntArray,
    starts: IntArray,
    centre: FloatArray,
    weights: FloatArray,
    out: FloatArray,
) -> None:
    """Write the design columns (p, n) of the features X (n, d), clipped to [low, high].

    Feature j has knots[ends[j] : ends[j + 1]] and the columns from starts[j] to starts[j + 1]; each is a weighted sum
    of the feature's centred spline columns, with a row of the weights (p, m).
    """
    n, d = X.shape
    columns = np.empty((weights.shape[1], n))
    for j in range(d):
        first, m, least, most = starts[j], starts[j + 1] - starts[j], low[j], high[j]
        for i in range(n):
            value = X[i, j]
            value = value if value > least else least
            columns[0, i] = value if value < most else most
        if m > 1:
            write_spline(columns[0], knots[ends[j] : ends[j + 1]], columns)
        for k in range(m):
            column, mean = columns[k], centre[first + k]
            for i in range(n):
                column[i] -= mean
        for k in range(m):
            # A column consists of the spline columns up to its own.
            total, column, weight = out[first + k], columns[0], weights[first + k, 0]
            for i in range(n):
                total[i] = weight * column[i]
            for part in range(1, k + 1):
                column, weight = columns[part], weights[first + k, part]
                for i in range(n):
                    total[i] += weight * column[i]
