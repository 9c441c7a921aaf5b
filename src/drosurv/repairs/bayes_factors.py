"""Bayes factors for the hypothesis that a model is wrong about the patients of a rule, in level or in effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import Any

import numba
import numpy as np

from drosurv.judging.rules import BLOCK, Atom, CodedTable, Codes, RuleSearch, sums_by_code
from drosurv.patients.arrays import batches
from drosurv.patients.target import BoolArray, FloatArray, IntArray

# Prior standard deviation of a log hazard ratio that differs, per standard deviation of its column.
TAU = 0.5


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of correlated rows: the `number` (n,) of each row's cluster and, if given, of its `patient`.

    Rows of one patient are disjoint intervals of his follow-up: their log likelihoods add up. Patients of one cluster
    may be correlated. If a model is right, the likelihood ratio of each patient has mean 1, and so the exponential of
    the mean of their logarithms has mean at most 1 (Hölder's inequality), however they are correlated; their product
    may have a larger mean. Clusters that are the rows of one patient each are called patients.
    """

    number: IntArray
    patient: IntArray | None = None
    of_patients: bool = False

    def __len__(self) -> int:
        """Return the number of clusters."""
        return int(self.number.max()) + 1

    @property
    def of_several(self) -> bool:
        """Whether a cluster has several rows."""
        return len(self) < len(self.number)

    @property
    def counted(self) -> str:
        """How many clusters there are, in words."""
        return f"{len(self):,} {'clusters' if self.of_several and not self.of_patients else 'patients'}"

    def n_patients(self, inside: BoolArray) -> int:
        """Return the number of patients, where they are known, or else of rows, in a mask (n,)."""
        return int(inside.sum()) if self.patient is None else len(np.unique(self.patient[inside]))

    @cached_property
    def share(self) -> FloatArray:
        """One over the number of patients in each row's cluster, (n,)."""
        if self.patient is None:
            return 1.0 / np.bincount(self.number)[self.number]
        first = np.unique(self.patient, return_index=True)[1]
        share: FloatArray = 1.0 / np.bincount(self.number[first])[self.number]
        return share


@dataclass(frozen=True, eq=False)
class OverTime:
    """Expected events (n, m) of patients in m intervals of time, and the `interval` (n,) in which follow-up ended.

    Intervals begin at the `edges` (m,). The effect of the log risk is 1 per `scale` of its column. Expected events are
    those of `unscaled` (n, m), an array or computed when rows are read, times a `factor` (n,) if there is one.
    """

    unscaled: Any
    interval: IntArray
    edges: FloatArray
    scale: float
    factor: FloatArray | None = None

    def times(self, factor: FloatArray) -> OverTime:
        """Return the same with expected events multiplied by a factor for each patient, (n,)."""
        return replace(self, factor=factor if self.factor is None else factor * self.factor)

    def periods(self, first: IntArray, rows: IntArray) -> tuple[IntArray, FloatArray]:
        """Return, for some rows, the period in which follow-up ended (m,), and the expected events in periods (m, k).

        Periods begin with the intervals `first` (k,).
        """
        expected = np.empty((len(rows), len(first)))
        for part in batches(len(rows), TOGETHER):
            np.add.reduceat(self.unscaled[rows[part]], first, axis=1, dtype=np.float64, out=expected[part])
        if self.factor is not None:
            expected *= self.factor[rows, None]
        return np.searchsorted(first, self.interval[rows], side="right") - 1, expected


@dataclass(frozen=True, eq=False)
class Residuals:
    """Events of n patients, observed and expected, and the columns whose effects may differ.

    `events` (n,) are 1 if the event was observed; `expected` (n,) is the cumulative hazard at the patient's time, from
    a model that was fitted without the patient; `columns` (n, p) are ones, the model's log risk, and features, centred
    and scaled, maybe in single precision. `cluster` (n,) is the number of each row's cluster; without it, each row is a
    cluster. `over_time` has the expected events by interval of time, if they are known. `log_risk` (n,) is the log risk
    of this model if that of the columns is of another one: models share their columns, which take as much memory as the
    table.

    Rows of one cluster may be correlated. Their events and expected events are divided by the number of its patients
    (see :meth:`averaged`), so that a cluster has the mean log likelihood ratio of its patients.
    """

    events: FloatArray
    expected: FloatArray
    columns: FloatArray
    cluster: IntArray | None = None
    over_time: OverTime | None = None
    log_risk: FloatArray | None = None

    @property
    def risk(self) -> FloatArray:
        """The column (n,) of the log risk."""
        return self.columns[:, 1].astype(np.float64) if self.log_risk is None else self.log_risk

    def column(self, j: int) -> FloatArray:
        """Return column j (n,), in double precision."""
        return self.risk if j == 1 else self.columns[:, j].astype(np.float64)

    def columns_of(self, rows: IntArray) -> FloatArray:
        """Return the columns (m, p) of some rows, in double precision."""
        columns = self.columns[rows].astype(np.float64)
        if self.log_risk is not None:
            columns[:, 1] = self.log_risk[rows]
        return columns

    def averaged(self, clusters: Clusters) -> Residuals:
        """Return the residuals with the mean of the patients of each cluster in place of their sum."""
        share = clusters.share
        over_time = None if self.over_time is None else self.over_time.times(share)
        events, expected = share * self.events, share * self.expected
        return replace(self, events=events, expected=expected, cluster=clusters.number, over_time=over_time)

    def after(self, r: FloatArray) -> Residuals:
        """Return the residuals after hazards are multiplied by exp(r)."""
        if not r.any():
            return self
        factor = np.exp(r)
        over_time = None if self.over_time is None else self.over_time.times(factor)
        return replace(self, expected=self.expected * factor, over_time=over_time)

    @property
    def counts(self) -> FloatArray:
        """Share of each row in its cluster, (n,): the sum over a group counts clusters."""
        if self.cluster is None:
            return np.ones(len(self.events))
        return 1.0 / np.bincount(self.cluster)[self.cluster]

    @property
    def n_effects(self) -> int:
        """Number of columns besides the level."""
        return int(self.columns.shape[1]) - 1


@dataclass(frozen=True)
class Limits:
    """Smallest group and prior of a search.

    A group has at least `min_group` patients (or clusters) and `min_events` events, both observed and expected. `tau`
    is the prior standard deviation of effects that differ. With `level_only`, only the numbers of events are compared.
    `least_slope` is the smallest change of the effect of the model's log risk for everyone, per standard deviation.
    """

    min_group: int
    min_events: int
    tau: float = TAU
    level_only: bool = False
    least_slope: float = -np.inf

    def inclusion(self, n_effects: int) -> float:
        """Return the prior probability that an effect differs, which is smaller the more columns there are."""
        return min(0.25, 2.0 / max(n_effects, 1))


class ScoreEvidence:
    r"""Search criterion: log Bayes factor that level or effects differ from the model's, from score statistics.

    .. math:: U_0 = \sum M, \quad V_0 = \sum E, \quad
              U_j = \sum M z_j - \frac{\sum E z_j}{V_0} U_0, \quad
              V_j = \sum E z_j^2 - \frac{(\sum E z_j)^2}{V_0}

    .. math:: \log B = \frac{U^2}{2 (V + \tau^{-2})} - \tfrac12 \log(1 + \tau^2 V), \qquad
              \mathrm{score} = \log\bigl(\tfrac12 + \tfrac12 B_0\bigr) + \sum_j \log(1 - \pi + \pi B_j)

    where sums are over the rule's patients, M = d - E are the martingale residuals, and pi is the prior probability
    that an effect differs.
    """

    def __init__(self, residuals: Residuals, limits: Limits) -> None:
        self.residuals, self.limits = residuals, limits

    def sums_by_code(self, codes: Codes, inside: IntArray, n_codes: int) -> FloatArray:
        """Return sums (d, n_codes, 2 + 3 p) of counts and events, and for each column z of M z, E z and E z^2."""
        at, p = self.residuals, 1 if self.limits.level_only else self.residuals.n_effects + 1
        return _score_sums(codes, at.counts, at.events, at.expected, at.columns, at.risk, p, inside, n_codes)

    def scores(self, sums: FloatArray) -> FloatArray:
        """Return the score of each rule, (A,)."""
        limits = self.limits
        pi = limits.inclusion(self.residuals.n_effects)
        found: FloatArray = _scores(sums, limits.tau, pi, limits.min_group, limits.min_events)
        return found


@numba.njit(cache=True, nogil=True)
def _score_sums(
    codes: Codes,
    counts: FloatArray,
    events: FloatArray,
    expected: FloatArray,
    columns: FloatArray,
    risk: FloatArray,
    p: int,
    inside: IntArray,
    n_codes: int,
) -> FloatArray:
    """Kernel of :meth:`ScoreEvidence.sums_by_code`; the products are not stored, which would take three tables.

    Of the columns (n, q) the first p are used, with `risk` (n,) in place of the second.
    """
    d = codes.shape[0]
    k = 2 + 3 * p
    sums, values = np.zeros((d, n_codes, k)), np.empty((BLOCK, k))
    for start in range(0, len(inside), BLOCK):
        size = min(BLOCK, len(inside) - start)
        for position in range(size):
            i = inside[start + position]
            mean, row = expected[i], values[position]
            row[0], row[1] = counts[i], events[i]
            for j in range(p):
                z = risk[i] if j == 1 else columns[i, j]
                row[2 + j] = (events[i] - mean) * z
                row[2 + p + j] = mean * z
                row[2 + 2 * p + j] = mean * z * z
        for column in range(d):
            for position in range(size):
                cell = sums[column, codes[column, inside[start + position]]]
                for j in range(k):
                    cell[j] += values[position, j]
    return sums


def log_bayes_factor(score: FloatArray, information: FloatArray, tau: float) -> FloatArray:
    """Return the log Bayes factor of an effect drawn from N(0, tau^2) against none, from its score and information."""
    return score**2 / (2 * (information + tau**-2)) - 0.5 * np.log1p(tau**2 * information)


@numba.njit(cache=True, nogil=True)
def _scores(sums: FloatArray, tau: float, pi: float, min_group: int, min_events: int) -> FloatArray:
    """Return log Bayes factors (m,) of m groups from their sums: of a level, times those of p - 1 effects.

    A row of `sums` has the number of patients and of events, the scores u (p,) of level and effects, the information v
    of the level and its covariances with the effects, (p,), and the information of the effects, (p,). Effects are
    those beside the level. The level is there with probability 1/2, each effect with probability `pi`. Groups with too
    few patients or events have minus infinity.
    """
    p = (sums.shape[1] - 2) // 3
    out = np.full(len(sums), -np.inf)
    for a in range(len(sums)):
        n, events, u0, v0 = sums[a, 0], sums[a, 1], sums[a, 2], sums[a, 2 + p]
        # Differences of sums are whole numbers only up to rounding.
        if n < min_group - 1e-6 or events < min_events - 1e-6 or v0 < min_events:
            continue
        total, product = 0.0, 1.0
        for j in range(p):
            if j == 0:
                u, v, share = u0, v0, 0.5
            else:
                e = sums[a, 2 + p + j]
                u = sums[a, 2 + j] - e / v0 * u0
                v = max(sums[a, 2 + 2 * p + j] - e * e / v0, 0.0)
                share = pi
            exponent = 0.5 * u * u / (v + 1.0 / (tau * tau))
            # Products, because sums of logarithms would take most of the search's time.
            if exponent < 50.0:
                product *= 1.0 - share + share * np.exp(exponent) / np.sqrt(1.0 + tau * tau * v)
            else:
                total += np.log(share) + exponent - 0.5 * np.log(1.0 + tau * tau * v)
            if product > 1e100 or product < 1e-100:
                total += np.log(product)
                product = 1.0
        out[a] = total + np.log(product)
    return out


# Linear predictors are clipped here; larger ones occur only in Newton steps that will be halved.
LARGEST = 20.0
MOST_STEPS = 30
# Patients whose columns are multiplied at a time, in the cache.
TOGETHER = 4096


def likelihood_gains_of(r: FloatArray, events: FloatArray, expected: FloatArray) -> FloatArray:
    """Return each patient's gain in log likelihood if the hazard is multiplied by exp(r), (..., n)."""
    return events * r - np.expm1(r) * expected


# Columns (p, m), observed events (m,) and expected events (m,) of some patients.
Block = tuple[FloatArray, FloatArray, FloatArray]


def in_blocks(Z: FloatArray, events: FloatArray, expected: FloatArray) -> Callable[[], Iterator[Block]]:
    """Return a function that yields a few patients at a time, given columns Z (n, p) and events (n,)."""

    def blocks() -> Iterator[Block]:
        for part in batches(len(events), TOGETHER):
            # Products with each patient's number are twice as fast with one row of memory per column.
            yield np.ascontiguousarray(Z[part].T), events[part], expected[part]

    return blocks


def poisson_ridge(
    blocks: Callable[[], Iterable[Block]], penalty: FloatArray, start: FloatArray | None = None
) -> FloatArray:
    r"""Return the effects theta (p,) that maximise the penalised gain in log likelihood, by Newton's method.

    .. math:: \sum_i d_i r_i - (e^{r_i} - 1) E_i - \tfrac12 \sum_j \lambda_j \theta_j^2, \quad r = Z \theta

    with columns Z (n, p), observed events d and expected events E (n,), which `blocks` yields for some patients at a
    time, and penalties lambda (p,) of at least 0.
    """
    theta = np.zeros(len(penalty)) if start is None else start

    def at(theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the penalised gain, its gradient and minus its second derivatives."""
        gain, gradient, curvature = 0.0, -penalty * theta, np.diag(penalty)
        for columns, events, expected in blocks():
            r = theta @ columns
            gained, mean = float(events @ r), np.clip(r, -LARGEST, LARGEST, out=r)
            np.exp(mean, out=mean)
            mean *= expected
            gain += gained - float(mean.sum() - expected.sum())
            gradient += columns @ (events - mean)
            curvature = curvature + (columns * mean) @ columns.T
        return gain - 0.5 * float((penalty * theta) @ theta), gradient, curvature

    value, gradient, curvature = at(theta)
    for _ in range(MOST_STEPS):
        # Without a penalty columns may depend on each other; with one, the faster solution is the same.
        if penalty.all():
            step = np.linalg.solve(curvature, gradient)
        else:
            step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        scale, after = 1.0, at(theta + step)
        # The objective is concave, so a short enough Newton step increases it.
        while not after[0] >= value and scale > 2e-4:
            scale /= 2
            after = at(theta + scale * step)
        if not after[0] > value + 1e-9 * (1.0 + abs(value)):
            break
        theta, (value, gradient, curvature) = theta + scale * step, after
    return theta


def fit_above(
    blocks: Callable[[], Iterable[Block]], penalty: FloatArray, bounded: int | None, least: float
) -> FloatArray:
    """Return the effects of a Poisson ridge regression, one of which (`bounded`) is at least `least`."""
    theta = poisson_ridge(blocks, penalty)
    if bounded is None or theta[bounded] >= least:
        return theta
    others = np.arange(len(theta)) != bounded

    def at_bound() -> Iterator[Block]:
        for columns, events, expected in blocks():
            yield columns[others], events, expected * np.exp(least * columns[bounded])

    theta[bounded] = least
    theta[others] = poisson_ridge(at_bound, penalty[others])
    return theta


BEAM = 8
# Number of rules of each length that are refined.
REFINED = 2
MOST_REFINEMENTS = 4
MOST_EFFECTS = 12
# The prior of a first condition is 1 / (4 d) for d columns, because neighbouring thresholds make nearly the same group.
FIRST_CONDITION = 4
# Log hazard ratios are clipped here in the search for a rule.
LARGEST_WHILE_CHOOSING = 3.0


@dataclass(frozen=True, eq=False)
class GroupEffects:
    """Effects that differ among the patients of a group.

    `chosen` (s,) are the columns whose effects differ, the level (0) first, and `effects` (s,) their log hazard
    ratios. `inclusion` (p,) are the posterior probabilities that the effect of each column differs. `log_evidence` are
    the log posterior odds that the chosen effects differ, without the prior of the rule.
    """

    chosen: IntArray
    effects: FloatArray
    inclusion: FloatArray
    log_evidence: float


@dataclass(frozen=True, eq=False)
class Proposal:
    """A rule, the effects that differ in its group, and the log posterior odds that the model is wrong there."""

    atoms: tuple[Atom, ...]
    group: GroupEffects
    log_odds: float


def group_effects(residuals: Residuals, inside: BoolArray, limits: Limits) -> GroupEffects:
    """Choose the effects that differ in a group, one after the other while their posterior odds exceed 1."""
    rows = np.flatnonzero(inside)
    events, expected = residuals.events[rows], residuals.expected[rows]
    tau, p = limits.tau, residuals.n_effects + 1
    pi = limits.inclusion(p - 1)
    prior = np.log(pi) - np.log1p(-pi)
    chosen, effects = [0], np.zeros(1)
    while True:
        Z = np.stack([residuals.column(j)[rows] for j in chosen], axis=1)
        penalty = np.full(len(chosen), tau**-2)
        effects = poisson_ridge(in_blocks(Z, events, expected), penalty, effects)
        r = np.clip(Z @ effects, -LARGEST, LARGEST)
        mean = np.exp(r) * expected
        weighted = Z * mean[:, None]
        if limits.level_only:
            log_bf = np.full(p, -np.inf)
            break
        information, shared = weighted.T @ Z, np.zeros((len(chosen), p))
        squares, score = np.zeros(p), np.zeros(p)
        for part in batches(len(rows), TOGETHER):
            z = residuals.columns_of(rows[part])
            shared += weighted[part].T @ z
            squares += mean[part] @ z**2
            score += (events[part] - mean[part]) @ z
        left = squares - (shared * np.linalg.solve(information + np.diag(penalty), shared)).sum(axis=0)
        log_bf = log_bayes_factor(score, np.maximum(left, 0.0), tau)
        log_bf[chosen] = -np.inf
        best = int(log_bf.argmax())
        if prior + log_bf[best] <= 0 or len(chosen) == min(p, MOST_EFFECTS):
            break
        chosen.append(best)
        effects = np.append(effects, 0.0)
    inclusion = 1 / (1 + np.exp(-np.clip(prior + log_bf, -50, 50)))
    inclusion[chosen] = 1.0
    if limits.level_only:
        inclusion[1:] = 0.0
    gain = float(likelihood_gains_of(r, events, expected).sum())
    # Laplace approximation of the evidence against no difference.
    spread = np.linalg.slogdet(np.eye(len(chosen)) + tau**2 * (weighted.T @ Z))[1]
    log_evidence = gain - 0.5 * float((penalty * effects**2).sum() + spread)
    log_evidence += prior * (len(chosen) - 1) - np.log(2.0)
    return GroupEffects(np.array(chosen, dtype=np.intp), effects, inclusion, log_evidence)


class SummedGain:
    """Search criterion: gain in log likelihood of given log hazard ratios, summed over a rule's patients."""

    def __init__(self, residuals: Residuals, r: FloatArray, limits: Limits) -> None:
        gains = likelihood_gains_of(r, residuals.events, residuals.expected)
        self.values = np.column_stack([residuals.counts, residuals.events, residuals.expected, gains])
        # Differences of sums are whole numbers only up to rounding.
        self.min_group, self.min_events = limits.min_group - 1e-6, limits.min_events - 1e-6

    def sums_by_code(self, codes: Codes, inside: IntArray, n_codes: int) -> FloatArray:
        """Return sums (d, n_codes, 4) of counts, events, expected events and gains."""
        return sums_by_code(codes, self.values, inside, n_codes)

    def scores(self, sums: FloatArray) -> FloatArray:
        """Return the gain of each rule, (A,)."""
        count, events, expected, gain = sums.T
        enough = (count >= self.min_group) & (events >= self.min_events) & (expected >= self.min_events)
        return np.where(enough, gain, -np.inf)


def propose(
    table: CodedTable, residuals: Residuals, counted: BoolArray, limits: Limits, max_conditions: int
) -> Proposal | None:
    """Return the rule with the largest posterior odds that the model is wrong there; None if no rule is allowed.

    Score statistics give the few best rules of each length among the counted patients. Each is then refined in turns:
    choose the effects that differ given the rule, then the rule with the largest gain given these effects.
    """
    found: dict[frozenset[Atom], Proposal] = {}

    def proposal_for(atoms: tuple[Atom, ...]) -> Proposal:
        key = frozenset(atoms)
        if key not in found:
            group = group_effects(residuals, counted & table.covers(atoms), limits)
            found[key] = Proposal(atoms, group, group.log_evidence - minus_log_prior(table, len(atoms)))
        return found[key]

    def best_rule_for(group: GroupEffects) -> tuple[Atom, ...] | None:
        """Return the rule with the largest gain in log likelihood plus log prior, if it had these effects."""
        r = np.zeros(len(residuals.events))
        for j, effect in zip(group.chosen, group.effects, strict=True):
            r += effect * residuals.column(j)
        r = np.clip(r, -LARGEST_WHILE_CHOOSING, LARGEST_WHILE_CHOOSING)
        search = RuleSearch(table, SummedGain(residuals, r, limits), counted, BEAM)
        leaders = [ranked[0] for ranked in search.by_length(max_conditions)]
        best = max(
            leaders, key=lambda rule: rule.score - minus_log_prior(table, len(rule.atoms)), default=None
        )
        return None if best is None else best.atoms

    search = RuleSearch(table, ScoreEvidence(residuals, limits), counted, BEAM)
    starts = [c.atoms for ranked in search.by_length(max_conditions) for c in ranked[:REFINED]]
    for atoms in starts:
        current = proposal_for(atoms)
        for _ in range(MOST_REFINEMENTS):
            following = best_rule_for(current.group)
            if following is None or frozenset(following) in found:
                break
            current = proposal_for(following)
    return max(found.values(), key=lambda proposal: proposal.log_odds) if found else None


def minus_log_prior(table: CodedTable, n_conditions: int) -> float:
    """Return minus the log prior of a rule: about the log of the number of rules of its length."""
    n_usable = len({atom.column for atom in table.listed})
    return log(FIRST_CONDITION * n_usable) + (n_conditions - 1) * log(len(table.atoms))
