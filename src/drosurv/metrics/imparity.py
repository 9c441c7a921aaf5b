"""Concordance imparity: whether scores order the patients of every group equally well, with intervals and tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy.special import expit

from drosurv.groups import Groups, Missing, ratio_by_group
from drosurv.metrics.calibration import RIDGE, standardised_splines
from drosurv.metrics.inference.gaps import (
    in_standard_errors,
)
from drosurv.metrics.pair_order import PairCounts, PairOrder
from drosurv.metrics.partial_likelihood import CoxRows, fit_cox
from drosurv.metrics.scores import ScoredTarget, parse_grouped, warn_undefined
from drosurv.target import FloatArray, IntArray

# A test over all pairs uses at most so many patients, drawn at random, and so many pairs at a time.
_MOST_PATIENTS = 10_000
_PAIRS_AT_A_TIME = 2_000_000


def concordance_fractions(
    y: Any,
    risk: Any,
    groups: Any,
    *,
    sample_weight: Any = None,
    missing: Missing = "group",
    labels: Sequence[Any] | None = None,
) -> dict[Any, float]:
    r"""Concordance fraction of every group: how well the scores order its patients against everybody.

    .. math:: CF(a) = \frac{\sum_{i: A_i = a} N_i}{\sum_{i: A_i = a} D_i}

    with the numerators and denominators of Algorithm B.1 (:func:`concordance_counts`).

    Parameters
    ----------
    y, risk, sample_weight
        As in :func:`concordance_index`.
    groups : (n,) labels, or (n, J) for intersections
        Group of each patient.
    missing : "group" or "drop"
        Patients without a label: a group of their own, or left out altogether.
    labels : sequence, optional
        All allowed labels. Other labels raise an error; a label without patients gets NaN.

    Returns
    -------
    dict
        Label to fraction, between 0 and 1; NaN, with a warning that names the group, if the group has no
        comparable pair.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> concordance_fractions(y, [4.0, 1.0, 3.0, 2.0], ["a", "b", "a", "b"])
    {'a': 0.8333333333333334, 'b': 0.5}
    """
    scored, parsed = parse_grouped(
        y, risk, groups, sample_weight=sample_weight, missing=missing, labels=labels
    )
    counts = PairOrder.for_imparity(scored.target, scored.risk).counts(scored.weight)
    values = ratio_by_group(parsed, *counts).tolist()
    warn_of_groups_without_pairs(parsed, values)
    return dict(zip(parsed.labels, values, strict=True))


def concordance_imparity(
    y: Any,
    risk: Any,
    groups: Any,
    *,
    sample_weight: Any = None,
    missing: Missing = "group",
    labels: Sequence[Any] | None = None,
) -> float:
    r"""Concordance imparity: the largest difference of concordance fractions between two groups.

    .. math:: CI = \max_{a, a'} |CF(a) - CF(a')|

    (Algorithm B.1 of the paper), as a fraction, not in percent. As a maximum over noisy fractions it is
    biased upward: read it with its interval and permutation test
    (:func:`~drosurv.metrics.concordance_imparity_intervals`, :func:`~drosurv.metrics.permutation_test`).

    Parameters as in :func:`concordance_fractions`.

    Returns
    -------
    float
        At least 0. A group without a comparable pair is left out, with a warning that names it; NaN if fewer
        than two groups are left.

    References
    ----------
    Zhang, Weiss (2022), Longitudinal fairness with censorship, AAAI.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> round(concordance_imparity(y, [4.0, 1.0, 3.0, 2.0], ["a", "b", "a", "b"]), 4)
    0.3333
    """
    fractions = concordance_fractions(
        y, risk, groups, sample_weight=sample_weight, missing=missing, labels=labels
    )
    defined = [value for value in fractions.values() if not isnan(value)]
    return max(defined) - min(defined) if len(defined) > 1 else float("nan")


def warn_of_groups_without_pairs(groups: Groups, values: Iterable[float]) -> None:
    """Warn, with their names, of the groups whose concordance fraction in `values` (n_groups,) is NaN."""
    undefined = [repr(label) for label, value in zip(groups.labels, values, strict=True) if isnan(value)]
    if undefined:
        warn_undefined(
            f"the concordance fraction is undefined (NaN) for {', '.join(undefined)} of {groups.name}: no "
            "comparable pair (too few patients or events); merge small groups."
        )


def imparity_influence(order: PairOrder, counts: PairCounts, groups: Groups) -> tuple[FloatArray, FloatArray]:
    r"""Concordance fractions of groups (k,) and their derivatives with respect to every patient's weight (n, k).

    A patient influences CF(a) as a member of a and as the partner of a's members:

    .. math:: \psi_k(a) = \frac{1[A_k = a] (N_k - CF(a) D_k) + N_k^a - CF(a) D_k^a}{D(a)}

    with :math:`N_k^a, D_k^a` the counts of k against members of a only. `counts` are those of unit weights. The sum
    over patients of the square of :math:`\psi_k(a) - \psi_k(b)` estimates the variance of CF(a) - CF(b). The fraction
    of a group without a comparable pair is NaN.
    """
    fractions = ratio_by_group(groups, *counts)
    totals = groups.sums(counts.denominator)
    influence = np.empty((len(groups.codes), len(groups)))
    ones = np.ones(len(groups.codes))
    for k in range(len(groups)):
        member = (groups.codes == k).astype(np.float64)
        against = order.counts(ones, partner_weight=member)
        among_members = member * (counts.numerator - fractions[k] * counts.denominator)
        with np.errstate(invalid="ignore", divide="ignore"):
            influence[:, k] = (
                among_members + against.numerator - fractions[k] * against.denominator
            ) / totals[k]
    return fractions, influence


@dataclass(frozen=True)
class CaseMixTest:
    """Groups' shares of rightly ranked pairs, the shares that their scores imply, and the test of the difference.

    `fractions` are the concordance fractions by label, `implied` those of a right model with the same scores. The
    `p` is of the largest difference between two groups in (fraction - implied), adjusted for the pairs of groups.
    """

    fractions: dict[Any, float]
    implied: dict[Any, float]
    p: float

    @property
    def worst(self) -> Any:
        """Label of the group that is ranked worst, compared with what its scores imply."""
        return min(self._excess, key=self._excess.__getitem__)

    @property
    def best(self) -> Any:
        """Label of the group that is ranked best, compared with what its scores imply."""
        return max(self._excess, key=self._excess.__getitem__)

    @property
    def _excess(self) -> dict[Any, float]:
        known = {label: value for label, value in self.fractions.items() if not isnan(value)}
        return {label: value - self.implied[label] for label, value in known.items()}


def concordance_case_mix_test(
    y: Any,
    risk: Any,
    groups: Any,
    *,
    compared: Collection[Any] | None = None,
    missing: Missing = "group",
    random_state: Any = 0,
) -> CaseMixTest:
    r"""Test whether groups are ranked differently from what their scores imply.

    A right model has different concordance fractions in groups whose risks differ or spread differently (case mix):
    patients who are alike are hard to rank. Under proportional hazards the patient with the higher score has the event
    first, of a pair in which one has it while both are at risk, with the probability

    .. math:: \frac{e^{g(f_i)}}{e^{g(f_i)} + e^{g(f_j)}}, \qquad f_i > f_j

    with the log hazard g, a restricted cubic spline of the score that is fitted to all these patients. The test
    compares the rightly ranked pairs of every group with the sum of these probabilities. Errors of both patients of a
    pair are allowed for, those of g are not. Of more than 10,000 patients, 10,000 are drawn at random for the test.

    Parameters
    ----------
    y, risk, groups, missing
        As in :func:`~drosurv.metrics.concordance_imparity`.
    compared : collection of labels, optional
        Groups to compare; pairs with patients of other groups count too. By default all.
    random_state : int, Generator or None
        Seed of the draw of patients.

    Examples
    --------
    The hazards are right, but the older patients are more alike:

    >>> import numpy as np
    >>> from drosurv import Surv
    >>> rng = np.random.default_rng(0)
    >>> old = rng.random(2000) < 0.5
    >>> risk = np.where(old, 1 + 0.2 * rng.normal(size=2000), rng.normal(size=2000))
    >>> y = Surv.from_arrays(rng.random(2000) < 0.7, rng.exponential(np.exp(-risk)))
    >>> concordance_imparity_test(y, risk, old, permutations=99, random_state=0).p
    0.01
    >>> concordance_case_mix_test(y, risk, old).p > 0.05
    True
    """
    scored, parsed = parse_grouped(y, risk, groups, missing=missing)
    fractions = ratio_by_group(
        parsed, *PairOrder.for_imparity(scored.target, scored.risk).counts(scored.weight)
    )
    drawn = np.arange(len(scored))
    if len(scored) > _MOST_PATIENTS:
        drawn = np.sort(np.random.default_rng(random_state).permutation(len(scored))[:_MOST_PATIENTS])
    excess, influence = _excess_over_implied(scored.take(drawn), parsed.codes[drawn], len(parsed))
    kept = [k for k, label in enumerate(parsed.labels) if compared is None or label in compared]
    largest = in_standard_errors(excess[kept], influence[:, kept].T @ influence[:, kept])
    pairs = len(kept) * (len(kept) - 1) / 2
    return CaseMixTest(
        {parsed.labels[k]: float(fractions[k]) for k in kept},
        {parsed.labels[k]: float(fractions[k] - excess[k]) for k in kept},
        min(1.0, 2 * pairs * NormalDist().cdf(-largest)) if not isnan(largest) else largest,
    )


def _excess_over_implied(scored: ScoredTarget, codes: IntArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Groups' shares of rightly ranked pairs less the implied ones (k,), and patients' influence on them (n, k)."""
    order = scored.target.order
    rows, codes = CoxRows.of(scored), codes[order]
    n, time, event, risk = len(codes), rows.time, rows.event, rows.score
    basis = standardised_splines(risk, rows.weight)
    log_hazard = (
        basis @ fit_cox(rows, basis, RIDGE, 1e-5)[0] if basis.shape[1] and event.any() else np.zeros(n)
    )
    member = np.eye(k)[codes]
    # Sums over a patient's pairs with the members of each group (n, k).
    excess, pairs = np.zeros((2, n, k))
    events = np.flatnonzero(event)
    at_a_time = max(1, _PAIRS_AT_A_TIME // max(n, 1))
    for start in range(0, len(events), at_a_time):
        first = events[start : start + at_a_time]
        # Others are in the order of time: nobody before the first of these events had a longer time.
        others = slice(np.searchsorted(time, time[first[0]]), n)
        pair = (time[others] > time[first, None]) | ((time[others] == time[first, None]) & ~event[others])
        sign = np.sign(risk[first, None] - risk[others])
        implied = expit(sign * (log_hazard[first, None] - log_hazard[others]))
        more, counted = np.where(pair, (1 + sign) / 2 - implied, 0.0), pair.astype(np.float64)
        for sums, values in ((excess, more), (pairs, counted)):
            sums[first] += values @ member[others]
            sums[others] += values.T @ member[first]
    own, own_pairs = excess.sum(axis=1), pairs.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        totals = own_pairs @ member
        ratio = own @ member / totals
        influence = (member * (own[:, None] - ratio * own_pairs[:, None]) + excess - ratio * pairs) / totals
    return ratio, influence


def studentized_imparity(order: PairOrder) -> Callable[[Groups], float]:
    """Largest difference of concordance fractions in standard errors; `order` is that for imparity."""
    counts = order.counts(np.ones(len(order.rows)))

    def statistic(groups: Groups) -> float:
        fractions, influence = imparity_influence(order, counts, groups)
        return in_standard_errors(fractions, influence.T @ influence)

    return statistic


def studentized_concordance(order: PairOrder) -> Callable[[Groups], float]:
    """Largest difference of the groups' c-indices in standard errors; `order` is that for Harrell's pairs."""

    def statistic(groups: Groups) -> float:
        values, variances = np.full((2, len(groups)), np.nan)
        for k in range(len(groups)):
            counts = order.counts((groups.codes == k).astype(np.float64))
            # Every pair is counted twice, once for each patient.
            pairs = counts.denominator.sum() / 2
            if pairs > 0:
                values[k] = counts.numerator.sum() / 2 / pairs
                influence = (counts.numerator - values[k] * counts.denominator) / pairs
                variances[k] = influence @ influence
        return in_standard_errors(values, np.diag(variances))

    return statistic
