"""Restricted cubic splines of numeric columns: knots, design columns, and their standardised form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from drosurv.metrics.nonparametric import weighted_quantiles
from drosurv.metrics.splines import spline_columns
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
    for x, quantiles in zip(np.ascontiguousarray(X.T), column_quantiles(X, weight, q), strict=True):
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
    if weight is None:
        return np.asarray(np.quantile(X, q, axis=0).T)
    return np.array([weighted_quantiles(x, weight, q) for x in np.ascontiguousarray(X.T)])


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
    def learn(cls, X: FloatArray, weight: FloatArray | None, n_knots: int) -> SplineDesign:
        """Return the design for training rows (n, d); with 0 knots every feature is linear."""
        knots = find_knots(X, weight, n_knots) if n_knots else (np.empty(0),) * X.shape[1]
        share = np.full(len(X), 1.0 / len(X)) if weight is None else weight / weight.sum()
        means = share @ X
        scales = _inverse_spread(np.sqrt(share @ (X - means) ** 2), np.abs(X).max(axis=0))
        centre = [np.array([mean]) for mean in means]
        basis = [np.array([[scale]]) for scale in scales]
        for j, t in enumerate(knots):
            if len(t):
                part = spline_columns(X[:, j], t)
                centre[j] = part @ share
                basis[j] = _standard_basis(part, centre[j], share)
        return cls(knots, X.min(axis=0), X.max(axis=0), tuple(centre), tuple(basis))

    @property
    def feature(self) -> IntArray:
        """The feature (p,) from which each design column is made."""
        return np.repeat(np.arange(len(self.knots)), [1 + max(len(t) - 2, 0) for t in self.knots])

    @property
    def nonlinear(self) -> BoolArray:
        """Whether each design column (p,) is nonlinear."""
        return np.asarray(np.diff(self.feature, prepend=-1) == 0)

    def standardised(self, X: FloatArray) -> FloatArray:
        """Return the standardised design columns (n, p) of rows (n, d)."""
        out, inside = np.empty((len(self.feature), len(X))), np.clip(X, self.low, self.high).T
        sizes = np.array([len(centre) for centre in self.centre])
        starts, linear = np.cumsum(sizes) - sizes, np.flatnonzero(sizes == 1)
        if len(linear):
            means = np.array([self.centre[j] for j in linear])
            scales = np.array([self.basis[j][0] for j in linear])
            out[starts[linear]] = (inside[linear] - means) * scales
        for j in np.flatnonzero(sizes > 1):
            columns = spline_columns(inside[j], self.knots[j]) - self.centre[j][:, None]
            np.matmul(self.basis[j].T, columns, out=out[starts[j] : starts[j] + sizes[j]])
        return np.ascontiguousarray(out.T)

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


def _standard_basis(columns: FloatArray, centre: FloatArray, share: FloatArray) -> FloatArray:
    """Return the upper triangular matrix (m, m) that makes centred columns uncorrelated with variance one.

    The columns are given as rows (m, n). One that is constant, or a linear combination of earlier ones, becomes zero.
    """
    centred = columns - centre[:, None]
    inverse = _inverse_spread(np.sqrt(centred**2 @ share), np.abs(columns).max(axis=1))
    scaled = centred * inverse[:, None]
    correlation = (scaled * share) @ scaled.T
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
