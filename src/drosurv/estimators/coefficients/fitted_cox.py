"""A linear Cox model at its coefficients, with the data it was fitted to: what inference reads from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from drosurv.losses import CoxPartial
from drosurv.losses.late_entry import EventTimes, LateEntryRiskSets
from drosurv.losses.loss import constant_features
from drosurv.target import BoolArray, FloatArray, IntArray, Target

# Below this share of its own information, a feature's information given the others is rounding.
_DEPENDENT = 1e-11


@dataclass(frozen=True, eq=False)
class FittedCox:
    """Coefficients of a linear Cox model and its n training rows.

    The partial likelihood is a product of terms, one per event e: the risk of the one who had it over the risk S_e
    of those at risk. Among m tied events Efron's form takes the share k/m of their risk D out of the sum,
    S_e = S - k/m D, k = 0..m-1; Breslow's takes out nothing.

    The `likelihood` is the loss that was minimised, with the target, ties, case weights and offset; `l2` the ridge
    weight of the mean loss.
    """

    X: FloatArray
    likelihood: CoxPartial
    coef: FloatArray
    l2: float = 0.0

    @property
    def target(self) -> Target:
        """Events and times of the rows."""
        return self.likelihood.target

    @cached_property
    def scores(self) -> FloatArray:
        """Log risks (n,), shifted so that the highest is zero; a shift changes no likelihood and no residual."""
        scores = self.X @ self.coef
        if self.likelihood.offset is not None:
            scores = scores + self.likelihood.offset
        shifted: FloatArray = scores - scores.max()
        return shifted

    @cached_property
    def middle(self) -> FloatArray:
        """A point (d,) amid the features; taken from it they round less, and the likelihood is the same."""
        # A rough middle serves as well as the mean.
        middle: FloatArray = self.X[:: max(1, len(self.X) // 1024)].mean(axis=0)
        return middle

    @cached_property
    def centred(self) -> FloatArray:
        """Features (n, d) taken from their middle."""
        return self.X - self.middle

    @property
    def loss(self) -> CoxPartial:
        """The losses of the events, evaluated at the scores."""
        return self._evaluated[0]

    @property
    def log_likelihoods(self) -> tuple[float, float]:
        """Log partial likelihoods without the features, and with them."""
        return self._evaluated[1]

    @cached_property
    def _evaluated(self) -> tuple[CoxPartial, tuple[float, float]]:
        loss, offset = self.likelihood, self.likelihood.offset
        weight = self.case_weight[loss.rows]
        of_features = self.scores if offset is None else self.scores - offset
        # The loss remembers its last scores, which must be the fitted ones.
        scores = np.zeros(len(self.X)), of_features
        null, fitted = (-float(weight @ loss(own[None, :])[0]) for own in scores)
        return loss, (null, fitted)

    @cached_property
    def rows(self) -> IntArray:
        """The events (E,), by stratum and time."""
        return self.loss.rows

    @cached_property
    def case_weight(self) -> FloatArray:
        """Weights (n,), ones where none were given."""
        weight = self.likelihood.weight
        return np.ones(len(self.X)) if weight is None else weight

    @cached_property
    def term_weight(self) -> FloatArray:
        """Weight (E,) of each term: the mean weight of the tied events."""
        if self.likelihood.weight is None:
            return np.ones(len(self.rows))
        block, own = self.loss.block, self.case_weight[self.rows]
        count = np.bincount(block)
        return (np.bincount(block, own) / count)[block]

    @property
    def tie_share(self) -> FloatArray:
        """Share k/m (E,) of the tied events' risk that is out of each term."""
        return np.zeros(len(self.rows)) if self.loss.efron is None else self.loss.efron.step

    @cached_property
    def means(self) -> FloatArray:
        """Risk-weighted means (E, d) of the centred features among those at risk in each term."""
        plain, ties = self.loss.risk_sets.means(self.X) - self.middle, self.loss.efron
        return plain[self.loss.block] if ties is None else ties.terms(self.centred, plain)

    @cached_property
    def hazard(self) -> FloatArray:
        """Rise (E,) of the baseline hazard with each term, for a patient of (shifted) log risk zero."""
        log_sums = self.loss.risk_sets.log_sums(self.scores[None, :])[0]
        left = 1.0 if self.loss.efron is None else self.loss.efron.left
        hazard: FloatArray = self.term_weight * np.exp(-log_sums[self.loss.block]) / left
        return hazard

    @cached_property
    def windows(self) -> LateEntryRiskSets:
        """The event times at which each patient is at risk."""
        return LateEntryRiskSets(EventTimes.of(self.target))

    def by_block(self, values: FloatArray) -> FloatArray:
        """Sums (K, p) of values (E, p) over the tied events of each time."""
        return np.add.reduceat(values, np.flatnonzero(np.diff(self.loss.block, prepend=-1)), axis=0)

    @cached_property
    def observed_information(self) -> FloatArray:
        """Observed information (d, d): the terms' covariances of the features, weighted."""
        return self.information(np.ones(len(self.rows)))

    def information(self, factor: FloatArray) -> FloatArray:
        """The same with every term's covariance times a factor (E,)."""
        information = self.loss.hessian((self.term_weight * factor)[None, :], self.X, self.middle)
        # What is left of features that say nothing is rounding.
        silent = constant_features(self.X, self.loss.compared)
        information[silent, :] = information[:, silent] = 0.0
        return information

    @cached_property
    def covariance(self) -> FloatArray:
        """Inverse (d, d) of the observed information, the model's covariance of its coefficients.

        With a ridge, the information includes it. Features that depend on each other linearly, and constant ones, have
        no coefficient of their own: their rows and columns are NaN.
        """
        ridge = self.l2 * self.case_weight.sum() * np.eye(self.X.shape[1])
        return inverse(self.observed_information + ridge)

    @property
    def degrees(self) -> int:
        """Number of features that data tell apart: the rank of their information."""
        return int((_directions(self.observed_information)[2] > _DEPENDENT).sum())


def inverse(information: FloatArray) -> FloatArray:
    """Inverse of a symmetric matrix, NaN in the rows and columns of its null space."""
    known, size, values, vectors = _directions(information)
    flat = values <= _DEPENDENT
    turned = vectors[:, ~flat]
    part = (turned / values[~flat]) @ turned.T / np.outer(size, size)
    # Features of a direction without information cannot be told apart: their errors are not known.
    lost = (vectors[:, flat] ** 2).sum(axis=1) > 1e-12
    part[lost, :] = part[:, lost] = np.nan
    out = np.full_like(information, np.nan)
    out[np.ix_(known, known)] = part
    return out


def _directions(information: FloatArray) -> tuple[BoolArray, FloatArray, FloatArray, FloatArray]:
    """Features (d,) that have any information, its roots (m,), and what their scaled information is turned by."""
    size = np.sqrt(np.diag(information).clip(min=0.0))
    known = size > 0
    scaled = information[np.ix_(known, known)] / np.outer(size[known], size[known])
    values, vectors = np.linalg.eigh(scaled)
    return known, size[known], values, vectors
