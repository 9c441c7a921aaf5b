"""Neighbourhoods: averages of losses over patients with similar covariates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numba
import numpy as np
from numpy.typing import NDArray

from drosurv.errors import ArgumentError, InputError, arg, as_whole, require, row_number
from drosurv.patients.target import FloatArray, IntArray

Labels = NDArray[np.int32]
_NAME = "subgroup_features"
# Smallest number of columns of a tree; fewer columns are repeated.
LEAST_COLUMNS = 10


@runtime_checkable
class Neighborhoods(Protocol):
    """Averages over similar patients, W values, with a row-stochastic W (n, n) that depends only on covariates."""

    def average(self, values: FloatArray) -> FloatArray:
        """Return the averages W values, (..., n) -> (..., n)."""
        ...

    def adjoint(self, weights: FloatArray) -> FloatArray:
        """Return W' weights, (..., n) -> (..., n): the weights of patients, given weights of averages."""
        ...


@runtime_checkable
class TakesPatients(Neighborhoods, Protocol):
    """Neighbourhoods that are defined for a subset of the patients."""

    def take(self, rows: IntArray) -> Neighborhoods:
        """Return the averages among a subset of the patients."""
        ...


class MatrixAverages:
    """Averages with a stored row-stochastic matrix (n, n), dense or sparse."""

    def __init__(self, matrix: Any) -> None:
        self._matrix, self._transpose = matrix, matrix.T

    @classmethod
    def checked(cls, matrix: Any, n: int) -> MatrixAverages:
        """Check that a matrix is (n, n), with finite entries >= 0 and rows that sum to 1."""
        from scipy import sparse

        if sparse.issparse(matrix):
            matrix = sparse.csr_array(matrix, dtype=np.float64)
            entries = matrix.data
        else:
            try:
                matrix = np.asarray(matrix, dtype=np.float64)
            except (TypeError, ValueError):
                raise InputError(
                    "the kernel must return an object with average and adjoint, or a row-stochastic matrix; "
                    f"got {type(matrix).__name__}."
                ) from None
            entries = matrix
        if matrix.shape != (n, n):
            raise InputError(
                f"the kernel's matrix must be ({n}, {n}), one row per patient, got {matrix.shape}."
            )
        if not np.isfinite(entries).all() or (entries < 0).any():
            raise InputError(
                "the kernel's matrix holds negative, NaN or infinite weights; averages need >= 0."
            )
        sums = np.asarray(matrix.sum(axis=1)).ravel()
        if not np.allclose(sums, 1):
            row = int(np.argmax(abs(sums - 1)))
            raise InputError(
                f"the rows of the kernel's matrix must sum to 1; row {row_number(row)} sums to {sums[row]:.6g}. "
                "Divide each row by its sum."
            )
        return cls(matrix)

    def average(self, values: FloatArray) -> FloatArray:
        """Return the averages W values, (..., n) -> (..., n)."""
        return _apply(self._matrix, values)

    def adjoint(self, weights: FloatArray) -> FloatArray:
        """Return the weights of patients W' weights, (..., n) -> (..., n)."""
        return _apply(self._transpose, weights)


def _apply(matrix: Any, values: FloatArray) -> FloatArray:
    rows = values.reshape(-1, values.shape[-1])
    product: FloatArray = np.asarray(matrix @ rows.T)
    return np.ascontiguousarray(product.T).reshape(values.shape)


def as_neighborhoods(kernel: Any, n: int) -> Neighborhoods:
    """Check the result of a user's kernel for n patients, and turn a row-stochastic matrix into averages."""
    if not isinstance(kernel, Neighborhoods):
        return MatrixAverages.checked(kernel, n)
    # Random vectors reveal a wrong operator without computing n x n numbers.
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=n), rng.random(n)
    averages, shares = np.asarray(kernel.average(values)), np.asarray(kernel.adjoint(weights))
    if averages.shape != (n,) or shares.shape != (n,):
        raise InputError(
            f"the kernel's average and adjoint must keep the shape ({n},), "
            f"got {averages.shape} and {shares.shape}."
        )
    if not np.allclose(kernel.average(np.ones(n)), 1):
        raise InputError("the kernel's averages of a constant must be that constant: its rows must sum to 1.")
    for row in rng.permutation(n)[:8]:
        if np.min(kernel.adjoint(np.eye(1, n, row)[0])) < 0:
            raise InputError(
                f"row {row_number(row)} of the kernel holds negative weights; averages need weights >= 0."
            )
    if not np.isclose(weights @ averages, shares @ values, rtol=1e-6, atol=1e-9 * n):
        raise InputError(
            "the kernel's adjoint is not the transpose of its average: sum(q * average(r)) must equal "
            "sum(adjoint(q) * r)."
        )
    return kernel


class Partitions:
    """Mean over the patients in the same cell, averaged over T partitions.

    .. math:: (W r)_i = 1/T sum_t  sum_{j in cell_t(i)} w_j r_j / sum_{j in cell_t(i)} w_j

    The matrix W is never computed: `average` and `adjoint` sum over cells, in O(nT) time and O(n) memory besides the
    labels. The mean of a cell whose patients all have weight 0 is 0.

    `labels` (T, n) are the cells of each patient in each partition, `sample_weight` (n,) the weights w_j >= 0.
    """

    def __init__(self, labels: NDArray[Any], sample_weight: FloatArray | None = None) -> None:
        # Cells are numbered from 0 without gaps, so that arrays of cells are as short as possible.
        compact = [np.unique(row, return_inverse=True)[1] for row in labels]
        self.labels: Labels = np.array(compact, dtype=np.int32)
        self._weight = np.ones(labels.shape[1]) if sample_weight is None else sample_weight
        mass = np.array([np.bincount(row, self._weight, self.labels.max() + 1) for row in self.labels])
        self._scale = np.divide(1 / len(mass), mass, out=np.zeros_like(mass), where=mass > 0)

    def take(self, rows: NDArray[Any]) -> Partitions:
        """Return the same partitions of a subset of the patients."""
        return Partitions(self.labels[:, rows], self._weight[rows])

    def average(self, values: FloatArray) -> FloatArray:
        """Return the cell means W values, (..., n) -> (..., n)."""
        return self._sum_cells(values * self._weight)

    def adjoint(self, weights: FloatArray) -> FloatArray:
        """Return the weights of patients W' weights, (..., n) -> (..., n)."""
        return self._sum_cells(np.asarray(weights, dtype=np.float64)) * self._weight

    def _sum_cells(self, values: FloatArray) -> FloatArray:
        """Return for each patient the scaled sum of values over the patient's cells: a symmetric operator."""
        rows = values.reshape(-1, values.shape[-1])
        if len(rows) == 1:
            out = _cell_sums(np.ascontiguousarray(rows[0]), self.labels, self._scale)
        else:
            out = _cell_sums_of_many(np.ascontiguousarray(rows.T), self.labels, self._scale).T
        return out.reshape(values.shape)


@numba.njit(cache=True, nogil=True)
def _cell_sums(values: FloatArray, labels: Labels, scale: FloatArray) -> FloatArray:
    """Return for each of n values the sums over its cells, one in each partition of `labels`, times their scale."""
    out = np.zeros_like(values)
    for t in range(len(labels)):
        sums = np.zeros(scale.shape[1])
        for i in range(len(values)):
            sums[labels[t, i]] += values[i]
        sums *= scale[t]
        for i in range(len(values)):
            out[i] += sums[labels[t, i]]
    return out


@numba.njit(cache=True, nogil=True)
def _cell_sums_of_many(values: FloatArray, labels: Labels, scale: FloatArray) -> FloatArray:
    """The same for B values (n, B) of each patient; each label is read once."""
    out = np.zeros_like(values)
    for t in range(len(labels)):
        sums = np.zeros((scale.shape[1], values.shape[1]))
        for i in range(len(values)):
            # A variable, because the compiler would read the label again for each addition.
            cell = labels[t, i]
            for b in range(values.shape[1]):
                sums[cell, b] += values[i, b]
        sums *= scale[t].reshape(-1, 1)
        for i in range(len(values)):
            cell = labels[t, i]
            for b in range(values.shape[1]):
                out[i, b] += sums[cell, b]
    return out


def forest(
    X: FloatArray,
    regret: FloatArray,
    *,
    min_group: int = 50,
    n_trees: int = 30,
    cross_fit: bool = False,
    sample_weight: FloatArray | None = None,
    random_state: int | np.random.Generator | None = None,
    order: IntArray | None = None,
) -> Partitions:
    """Averages over the leaves of extremely randomised trees that predict the regret (n,) from X (n, d).

    .. math:: W_ij = 1/T sum_t 1[j in leaf_t(i)] / |leaf_t(i)|

    Each tree is fitted to a random half of the patients, with at least `min_group` of them in a leaf; averages are over
    all patients in the leaf. With `cross_fit` each half of the patients gets its leaves from a tree fitted to the other
    half (two trees per partition), so that a patient's regret does not influence the patient's leaf; averages are then
    within halves. The weights (n,) apply in the trees and in the averages. Halves are drawn for the patients
    in the given `order` (n,).
    """
    n = len(X)
    if n // 2 < 2 * min_group:
        raise ArgumentError(
            "min_group",
            f"{arg('min_group', min_group)} allows no split: a tree is fitted to half of the {n} patients, "
            f"and each leaf needs {min_group} of them. Use {arg('min_group', max(n // 4, 1))} or less, or more "
            "patients.",
        )
    rng = np.random.default_rng(random_state)
    # Trees use float32, so columns are standardised to make units and origins irrelevant. In each leaf a tree tries one
    # random threshold per column, and stops if none gives a valid split: repeating few columns gives more thresholds.
    (scaled,) = standardise(X)
    x = np.tile(scaled.astype(np.float32), -(-LEAST_COLUMNS // X.shape[1]))
    # Rounding to float32 keeps rounding errors from deciding between equally good thresholds.
    regret = np.asarray(regret, dtype=np.float32).astype(np.float64)
    labels = np.empty((n_trees, n), dtype=np.int32)
    for row in labels:
        drawn = rng.permutation(n) if order is None else order[rng.permutation(n)]
        first, second = drawn[: n // 2], drawn[n // 2 :]
        if cross_fit:
            row[second] = _leaves(x, regret, first, second, min_group, sample_weight, rng)
            row[first] = -_leaves(x, regret, second, first, min_group, sample_weight, rng)
        else:
            row[:] = _leaves(x, regret, first, slice(None), min_group, sample_weight, rng)
    return Partitions(labels, sample_weight)


def _leaves(
    x: NDArray[np.float32],
    regret: FloatArray,
    grown_on: IntArray,
    placed: IntArray | slice,
    min_group: int,
    sample_weight: FloatArray | None,
    rng: np.random.Generator,
) -> NDArray[np.integer]:
    """Fit a tree to the patients `grown_on`, and return the leaves, numbered from 1, of the patients `placed`."""
    from sklearn.tree import ExtraTreeRegressor

    tree = ExtraTreeRegressor(min_samples_leaf=min_group, random_state=int(rng.integers(2**31)))
    weight = None if sample_weight is None else sample_weight[grown_on]
    # The features are checked; checking them again takes longer than growing a small tree.
    tree.fit(x[grown_on], regret[grown_on], weight, check_input=False)
    leaves: NDArray[np.integer] = tree.tree_.apply(x[placed]) + 1
    return leaves


def nearest_neighbors(
    X: FloatArray, *, n_neighbors: int = 50, sample_weight: FloatArray | None = None
) -> MatrixAverages:
    """Averages over each patient and the k - 1 nearest patients, with distances in standard deviations of X (n, d).

    .. math:: W_ij = w_j 1[j in N_k(i)] / sum_{l in N_k(i)} w_l
    """
    from scipy import sparse
    from sklearn.neighbors import NearestNeighbors

    n = len(X)
    wanted = f"be a whole number from 1 to the {n} patients"
    require(1 <= as_whole(n_neighbors) <= n, "n_neighbors", wanted, n_neighbors)
    (z,) = standardise(X)
    # Without columns all patients are equally near; the search needs at least one column.
    z = z if z.shape[1] else np.zeros((n, 1))
    near = NearestNeighbors(n_neighbors=n_neighbors).fit(z).kneighbors(return_distance=False, X=z)
    weight = np.ones(n) if sample_weight is None else sample_weight
    entries = weight[near]
    mass = entries.sum(axis=1, keepdims=True)
    entries = np.divide(entries, mass, out=np.full_like(entries, 1 / n_neighbors), where=mass > 0)
    starts = np.arange(0, n * n_neighbors + 1, n_neighbors)
    return MatrixAverages(sparse.csr_array((entries.ravel(), near.ravel(), starts), shape=(n, n)))


def chosen_columns(
    X: FloatArray, subgroup_features: Sequence[str | int] | None = None, names: Sequence[str] | None = None
) -> FloatArray:
    """Return the columns (n, d') of X (n, d) that may define subgroups, by name or position; all by default."""
    if subgroup_features is None:
        return X
    if isinstance(subgroup_features, (str, int, np.integer)):
        raise ArgumentError.must(_NAME, "list columns", subgroup_features, f"write [{subgroup_features!r}]")
    return X[:, [_position(feature, X.shape[1], names) for feature in subgroup_features]]


def subgroup_columns(
    X: FloatArray, subgroup_features: Sequence[str | int] | None = None, names: Sequence[str] | None = None
) -> FloatArray:
    """Return the columns of `chosen_columns` that vary between patients; raise if there are none."""
    columns = chosen_columns(X, subgroup_features, names)
    varying = columns[:, np.ptp(columns, axis=0) > 0] if columns.size else columns
    if varying.shape[1] == 0:
        which = "X" if subgroup_features is None else f"subgroup_features={list(subgroup_features)}"
        raise InputError(
            f"{which} has no column that varies between patients, so it defines no subgroup. "
            "Add a column that varies, or use CoxPH."
        )
    return varying


def _position(feature: Any, n_columns: int, names: Sequence[str] | None) -> int:
    """Return the position of a column that is given by its name or its position."""
    if isinstance(feature, str):
        if names is None:
            raise ArgumentError(
                _NAME,
                f"{_NAME} names {feature!r}, but X has no column names: pass a DataFrame, or positions.",
            )
        if feature not in names:
            raise ArgumentError(_NAME, f"{_NAME} names {feature!r}, which is not in X; it has {list(names)}.")
        return list(names).index(feature)
    if isinstance(feature, bool) or not isinstance(feature, (int, np.integer)):
        raise ArgumentError.must(_NAME, "list names or positions of columns", feature)
    if not -n_columns <= feature < n_columns:
        raise ArgumentError(_NAME, f"{_NAME} holds position {feature}, but X has {n_columns} columns.")
    return int(feature)


def standardise(
    X_train: FloatArray, *others: FloatArray, weight: FloatArray | None = None
) -> tuple[FloatArray, ...]:
    """Scale features to mean 0 and standard deviation 1 in the training patients; constant features become 0.

    Return the training features (..., m, d), whose patients may have weights (m,), and then the others (..., n, d),
    scaled in the same way.
    """
    centre = np.average(X_train, axis=-2, weights=weight, keepdims=True)
    spread = np.sqrt(np.average((X_train - centre) ** 2, axis=-2, weights=weight, keepdims=True))
    # A feature that varies only by rounding counts as constant, so that the rounding errors are not scaled up.
    constant = spread <= 1e-12 * np.maximum(np.abs(centre), 1.0)
    spread = np.where(constant, 1.0, spread)
    return tuple(np.where(constant, 0.0, (X - centre) / spread) for X in (X_train, *others))
