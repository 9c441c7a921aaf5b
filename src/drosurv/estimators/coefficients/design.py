"""Checks of the features before a Cox model is fitted: constant, linearly dependent and separating columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drosurv.losses.loss import block_sums, constant_features
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

# A feature is a linear combination of others if they leave at most this share of its variance unexplained.
_DEPENDENT = 1e-10


@dataclass(frozen=True)
class DesignCheck:
    """Features whose coefficients the data do not determine.

    Attributes
    ----------
    constant : tuple of str
        Features that do not vary within risk sets.
    collinear : tuple of tuples of str
        Sets of linearly dependent features: the first of each set is a linear combination of the others.
    separating : tuple of str
        Features that are largest, or smallest, at every event among the patients at risk, so that the likelihood has
        no finite maximum. An example is a category in which no patient had the event.
    """

    constant: tuple[str, ...]
    collinear: tuple[tuple[str, ...], ...]
    separating: tuple[str, ...]

    @property
    def warnings(self) -> list[str]:
        """One sentence for each kind of problem, with the remedy; empty if there is none."""
        found = []
        if self.constant:
            found.append(
                f"{', '.join(self.constant)}: no coefficient can be estimated, because the feature does not vary "
                "within risk sets. Leave it out."
            )
        for first, *others in self.collinear:
            found.append(
                f"{first} is a linear combination of {', '.join(others)}, so that their coefficients have no standard "
                "errors. Leave one of them out; of nested categories, the wider one."
            )
        if self.separating:
            found.append(
                f"{', '.join(self.separating)}: the coefficient is infinite, because every event has the largest (or "
                "smallest) value among the patients at risk, as in a category without events. Leave it out, merge "
                "categories, or set l2 > 0."
            )
        return found


def check_design(X: FloatArray, target: Target, names: Sequence[str]) -> DesignCheck:
    """Find constant, linearly dependent and separating features.

    The check takes about as long as one Newton step of the fit. Separation by a combination of features is not found.

    Parameters
    ----------
    X : (n, d) float64
        Features without missing values.
    target : Target
        Events and times, with entry times and strata if there are any.
    names : sequence of str
        Names of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.estimators import check_design
    >>> from drosurv.patients.target import Target
    >>> X = np.array([[1.0, 5.0, 2.0], [2.0, 5.0, 4.0], [0.0, 5.0, 0.0], [1.0, 5.0, 2.0]])
    >>> target = Target(np.array([True, True, False, True]), np.array([3.0, 1.0, 4.0, 2.0]))
    >>> for sentence in check_design(X, target, ["dose", "site", "twice"]).warnings:
    ...     print(sentence.split(":")[0])
    site
    twice is a linear combination of dose, so that their coefficients have no standard errors. Leave one of them out; \
of nested categories, the wider one.
    dose, twice
    """
    compared = target.compared
    constant = constant_features(X, compared)
    separating = _separating(X, target) & ~constant
    varying = np.flatnonzero(~constant)
    sets = _dependent(_centred(X[:, varying], compared), varying)
    return DesignCheck(
        tuple(names[j] for j in np.flatnonzero(constant).tolist()),
        tuple(tuple(names[j] for j in members) for members in sets),
        tuple(names[j] for j in np.flatnonzero(separating).tolist()),
    )


def _centred(X: FloatArray, compared: IntArray) -> FloatArray:
    """Return the features of the patients at risk at any event, minus their means in each stratum."""
    inside = compared >= 0
    X, sets = X[inside], compared[inside]
    size = np.maximum(np.bincount(sets), 1)
    means = block_sums(np.ascontiguousarray(X.T), sets, len(size)).T / size[:, None]
    return X - means[sets]


def _dependent(X: FloatArray, index: IntArray) -> list[list[int]]:
    """Return sets of linearly dependent columns of X (m, d): a column, and the earlier columns that determine it."""
    scale = np.sqrt((X**2).sum(axis=0))
    scale[scale == 0] = 1.0
    gram = (X / scale).T @ (X / scale)
    kept: list[int] = []
    sets = []
    for j in range(len(gram)):
        weights = np.linalg.solve(gram[np.ix_(kept, kept)], gram[kept, j]) if kept else np.zeros(0)
        if gram[j, j] - weights @ gram[kept, j] > _DEPENDENT:
            kept.append(j)
            continue
        needed = [kept[i] for i in np.flatnonzero(np.abs(weights) > np.sqrt(_DEPENDENT))]
        sets.append([int(index[k]) for k in (j, *needed)])
    return sets


def _separating(X: FloatArray, target: Target) -> BoolArray:
    """Return which features (d,) are the largest of the risk set at every event, or the smallest at every event.

    Entry times are ignored, which only enlarges risk sets, so that every feature found is separating.
    """
    highest = np.ones(X.shape[1], dtype=np.bool_)
    lowest = highest.copy()
    strata = np.zeros(len(X), np.intp) if target.stratum is None else target.stratum
    for stratum in np.unique(strata[target.event]):
        rows = target.order[strata[target.order] == stratum]
        features, time = X[rows], target.time[rows]
        event = target.event[rows]
        # The risk set of an event begins at the first row with its time.
        first = np.searchsorted(time, time[event])
        for extreme, holds in ((np.maximum, highest), (np.minimum, lowest)):
            at_risk = extreme.accumulate(features[::-1], axis=0)[::-1][first]
            holds &= (features[event] == at_risk).all(axis=0)
    return highest | lowest
