"""Choice of a ridge penalty, and of splines or straight lines, by cross-validated partial likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from drosurv.estimators.spline_design import DesignRows, SplineDesign, find_knots
from drosurv.losses.cox_partial import CoxPartial
from drosurv.patients.arrays import batches
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.solvers import TrainingData
from drosurv.solvers.networks import products
from drosurv.solvers.ridge_path import MODELS, Start, ridge_fits, ridge_path

# Penalties that are tried first unless others are given: three per decade from 1e-4 to 1.
L2S = tuple(float(f"{l2:.2g}") for l2 in np.geomspace(1e-4, 1.0, 13))
# Factors by which the penalty of nonlinear columns is larger than that of linear ones, to choose from.
NONLINEAR_PENALTIES = (3.0, 10.0)
# With the largest penalty a coefficient of a standardised column is at most this, so that hazard ratios are 1.
_PRACTICALLY_ZERO = 1e-3
# Penalties that are added above or below at a time: two decades, or one.
_MORE_ABOVE, _MORE_BELOW = 6, 3
# Smaller penalties are tried, down to the last, only if the smallest so far gains this much log likelihood over the
# next.
_STILL_GAINS, _LEAST = 0.1, 1e-5
# A gain in log likelihood over no model has a standard error of about the root of twice the gain. Below this gain it is
# smaller than its standard error; then the largest penalty is chosen that keeps this share of the gain.
_CLEAR_GAIN, _KEPT = 2.0, 0.75
# Models of this many rows and at most as many columns are fitted together, from one start.
MANY_ROWS, MOST_COLUMNS = 20_000, 400
# Penalties that are tried first on either side of one near the best.
_AROUND = 2


class CandidateModel(NamedTuple):
    """One of the models from which cross-validation chooses.

    `knots` is the number of knots, 0 for linear effects; `nonlinear_penalty` is the factor by which the penalty of
    nonlinear columns is larger than that of linear ones.
    """

    l2: float
    knots: int
    nonlinear_penalty: float


class Search:
    """Cross-validation of candidate models, to which larger or smaller penalties are added while the best is at an end.

    `folds` (n,) are numbered from 0. Splined candidates have `knots` knots, 0 for none; `linear` says whether linear
    effects are candidates, too. Log likelihoods are compared in units of one of `n_events` events, whatever their
    weights.
    """

    def __init__(
        self, training: TrainingData, folds: IntArray, ties: str, knots: int, linear: bool, n_events: int
    ) -> None:
        self.training, self.folds, self.ties = training, folds, ties
        self.unit = float(training.n_events) / n_events
        self.knots = knots if knots and any(map(len, find_knots(training.X, training.weight, knots))) else 0
        self.linear = linear or not self.knots
        self.choices: list[CandidateModel] = []
        self.scores = np.empty((0, int(folds.max()) + 1))
        self.null = null_likelihood(training, folds, ties)

    def first_penalties(self) -> Sequence[float]:
        """Return the penalties to try first: the usual ones or, with more columns than patients, the largest."""
        n, d = self.training.X.shape
        if d * max(self.knots - 1, 1) <= n:
            return L2S
        most = float(f"{self._most:.2g}")
        return [most, *_spaced(most, 1 - len(L2S))]

    def try_penalties(self, l2s: Sequence[float]) -> None:
        """Add the candidates with these penalties and their scores."""
        new = [CandidateModel(l2, 0, 1.0) for l2 in l2s if self.linear]
        for l2 in l2s if self.knots else ():
            new += [CandidateModel(l2, self.knots, p) for p in (NONLINEAR_PENALTIES if l2 > 0 else (1.0,))]
        self.choices += new
        found = cross_validated_likelihood(self.training, self.folds, new, self.ties)
        self.scores = np.concatenate([self.scores, found])

    def try_default_penalties(self, near: float | None = None) -> None:
        """Try the usual penalties, and further ones while the best is at an end.

        With many rows the score has one maximum along the path: then only penalties around one that is `near` the best
        are tried, unless the best of these is the first or last of them, or hardly gains.
        """
        first = sorted(self.first_penalties())
        if near in first and len(self.training.X) >= MANY_ROWS:
            at = first.index(near)
            some = first[max(at - _AROUND, 0) : at + _AROUND + 1]
            self.try_penalties(some)
            ends = (
                ({some[0], some[-1]} - {first[0], first[-1]})
                if self.gains.max() >= _CLEAR_GAIN
                else set(some)
            )
            first = [l2 for l2 in first if l2 not in some] if self.best.l2 in ends else []
        if first:
            self.try_penalties(first)
        self._extend()

    def _extend(self) -> None:
        """Add penalties while the best is the largest or the smallest, up to one that leaves practically no effect."""
        while self.best.l2 == max(self.choices).l2:
            more = [l2 for l2 in _spaced(self.best.l2, _MORE_ABOVE) if l2 < 2.0 * self._most]
            if not more:
                break
            self.try_penalties(more)
        while _LEAST < self.best.l2 == min(self.choices).l2 and self._gains_below():
            self.try_penalties(_spaced(self.best.l2, -_MORE_BELOW))

    @cached_property
    def _most(self) -> float:
        """The penalty with which every coefficient is practically zero: it is at most the gradient / l2."""
        training = self.training
        design = SplineDesign.learn(training.X, training.weight, self.knots)
        loss = training.cox_loss(self.ties)
        loss(np.zeros((1, len(training.X))))
        gradient = loss.pullback(training.mass[loss.rows][None])[0][0] @ design.standardised(training.X)
        return float(np.abs(gradient).max()) / _PRACTICALLY_ZERO

    def _gains_below(self) -> bool:
        """Whether the smallest penalty is clearly better than the next one of the same kind."""
        best = self.best
        same = [
            g for c, g in zip(self.choices, self.gains, strict=True) if c[1:] == best[1:] and c.l2 > best.l2
        ]
        return bool(self.gains.max() - max(same, default=np.inf) > _STILL_GAINS)

    @property
    def gains(self) -> FloatArray:
        """Cross-validated log partial likelihood of each candidate less that of no model, in units of one event."""
        gains: FloatArray = (self.scores - self.null).sum(axis=1) / self.unit
        return gains

    @property
    def order(self) -> IntArray:
        """Candidates from the best to the worst score; of those with equal scores the simplest is first."""
        l2, knots, factor = (np.array(column) for column in zip(*self.choices, strict=True))
        return np.lexsort((-factor, -l2, knots, -self.scores.sum(axis=1)))

    @property
    def best(self) -> CandidateModel:
        """The candidate with the best score or, if it hardly gains, the same with a larger penalty."""
        best, gains = self.choices[int(self.order[0])], self.gains
        if gains.max() >= _CLEAR_GAIN:
            return best
        least = min(_KEPT * gains.max(), gains.max())
        return max(c for c, g in zip(self.choices, gains, strict=True) if c[1:] == best[1:] and g >= least)

    def results(self) -> dict[str, Any]:
        """Return candidates and scores in the form of scikit-learn's ``cv_results_``."""
        table = {name: np.array([getattr(c, name) for c in self.choices]) for name in CandidateModel._fields}
        return {
            **table,
            **{f"split{k}_test_score": part for k, part in enumerate(self.scores.T)},
            "mean_test_score": self.scores.mean(axis=1),
            "std_test_score": self.scores.std(axis=1),
            "rank_test_score": np.argsort(self.order) + 1,
        }


def _spaced(l2: float, count: int) -> list[float]:
    """Return penalties above (count > 0) or below one, three per decade."""
    steps = np.arange(1, abs(count) + 1) * np.sign(count)
    return [float(f"{value:.2g}") for value in l2 * 10.0 ** (steps / 3)]


def cross_validated_likelihood(
    training: TrainingData, folds: IntArray, choices: Sequence[CandidateModel], ties: str
) -> FloatArray:
    """Return the part of each fold in the cross-validated log partial likelihood, (choices, folds).

    With b the coefficients of a model fitted without the fold, it is the log partial likelihood of all patients at b
    minus that of the patients outside the fold. Knots, means and standard deviations are computed without the fold,
    too. The penalty of the summed loss is that of the fit to all patients, so that with fewer patients the penalty per
    patient is larger: the best penalty of a sum hardly depends on their number.
    """
    # In the order of times, losses read memory in order. Features of many rows are read in their own order instead,
    # because they take longer to read out of order, and too much memory for a copy.
    n = len(folds)
    order = training.target.order if n < MANY_ROWS else np.arange(n)
    of_all, folds = training.cox_loss(ties, order), folds[order]
    starts: dict[tuple[int, int], Start] = {}
    parts = [
        _likelihood_of_fold(training, of_all, order, folds == k, choices, starts)
        for k in range(folds.max() + 1)
    ]
    return np.stack(parts, axis=1)


def _likelihood_of_fold(
    training: TrainingData,
    of_all: CoxPartial,
    order: IntArray,
    in_fold: BoolArray,
    choices: Sequence[CandidateModel],
    starts: dict[tuple[int, int], Start],
) -> FloatArray:
    """Return the part (choices,) of a fold in the cross-validated log partial likelihood; `in_fold` (n,) is in order.

    `starts` holds the first fit of the fold before, by the size of its design; fits of this fold start there and
    replace it.
    """
    l2, knots, factor = (np.array(column) for column in zip(*choices, strict=True))
    inside, out = order[~in_fold], np.empty(len(choices))
    mass = training.mass[inside]
    per_patient = l2 / mass.sum()
    mass /= mass.sum()
    loss = training.cox_loss(of_all.ties, inside)
    splined = SplineDesign.learn(training.X, loss.weight, int(knots.max()), inside)
    for n_knots in np.unique(knots):
        # The linear design consists of the linear columns of the design with knots.
        design = splined if n_knots else splined.linear()
        X: Any = DesignRows(design, training.X, inside)
        path = np.flatnonzero(knots == n_knots)
        # Each fit starts from the last, so successive penalties should be similar: for the first factor l2
        # decreases, for the second it increases, and so on; l2 = 0 is last.
        ridge, by = l2[path], factor[path]
        increases = np.searchsorted(np.unique(by[ridge > 0]), by) % 2 == 1
        path = path[np.lexsort((np.where(increases, ridge, -ridge), by, ridge == 0))]
        ridges = per_patient[path, None] * np.where(design.nonlinear, factor[path, None], 1.0)
        if len(X) < MANY_ROWS or X.shape[1] > MOST_COLUMNS:
            X = np.asarray(X)
            coef = ridge_path(X, loss, mass, ridges)[0]
        else:
            size = (int(n_knots), X.shape[1])
            coef, starts[size] = ridge_fits(X, loss, mass, ridges, starts.get(size))
        for some in batches(len(path), MODELS):
            held_out = products(coef[some], DesignRows(design, training.X, order[in_fold]))
            out[path[some]] = _gains(of_all, loss, in_fold, products(coef[some], X), held_out)
            # Not in memory beside those of the next models.
            del held_out
    return out


def _gains(
    of_all: CoxPartial, loss: CoxPartial, in_fold: BoolArray, own: FloatArray, held_out: FloatArray
) -> FloatArray:
    """Return the log partial likelihood of all patients minus that of the patients outside the fold, (K,).

    Scores are those `own` (K, m) of the latter, and `held_out` (K, n - m).
    """
    scores, out = np.empty(len(in_fold)), np.empty(len(own))
    for k in range(len(own)):
        scores[~in_fold], scores[in_fold] = own[k], held_out[k]
        # A copy, because the loss stores its scores, with the array that they are part of.
        out[k] = _log_likelihood(of_all, scores) - _log_likelihood(loss, own[k].copy())
    return out


def null_likelihood(training: TrainingData, folds: IntArray, ties: str) -> FloatArray:
    """Return the part of each fold (K,) in the log partial likelihood of the model without effects."""
    of_all, zero = training.cox_loss(ties), np.zeros(len(training.X))
    whole, parts = _log_likelihood(of_all, zero), []
    for k in range(int(folds.max()) + 1):
        rows = np.flatnonzero(folds != k)
        parts.append(whole - _log_likelihood(of_all.take(rows), zero[rows]))
    return np.array(parts)


def _log_likelihood(loss: CoxPartial, scores: FloatArray) -> float:
    """Return the log partial likelihood of scores (n,)."""
    losses = loss(scores[None])[0]
    return -float(losses.sum() if loss.weight is None else losses @ loss.weight[loss.rows])
