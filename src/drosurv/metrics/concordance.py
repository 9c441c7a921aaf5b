"""Concordance: how often the patient with the higher score has the event first, overall, per patient, between groups.

Harrell's index depends on how the test patients were censored; Uno's does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, arg
from drosurv.metrics.estimates import Estimate
from drosurv.metrics.follow_up import FollowUp
from drosurv.metrics.nonparametric import Incidence
from drosurv.metrics.pair_order import PairOrder
from drosurv.metrics.scores import ScoredTarget, parse_grouped, parse_scored, warn_undefined
from drosurv.patients.groups import Missing
from drosurv.patients.observation import label_codes
from drosurv.patients.target import BoolArray, FloatArray, Target


def concordance_index(y: Any, risk: Any, sample_weight: Any = None, *, strata: Any = None) -> float:
    r"""Harrell's concordance index: the share of comparable pairs that the scores order correctly.

    .. math:: C = \frac{\sum_{(i,j)} w_i w_j \left( 1[f_i > f_j] + \tfrac12 1[f_i \approx f_j] \right)}
                       {\sum_{(i,j)} w_i w_j}

    over the pairs in which patient i had an event and patient j was observed longer. Two events at the same time
    are not a pair; an event comes before a censoring at the same time; scores within 1e-8 are tied. The index equals
    scikit-survival's ``concordance_index_censored``, in O(n log n) instead of O(n^2). With strata, only patients of the
    same stratum are a pair; with entry times, patient j must have entered before the event of i, as in R's
    ``concordance``.

    Parameters
    ----------
    y : structured array, (n,)
        Event flags and times; the fields ``entry`` (left truncation) and ``weight`` are used.
    risk : (n,) array
        Risk scores; higher means an earlier event.
    sample_weight : (n,) array, optional
        Patient weights; the weight of a pair is the product of its patients' weights.
    strata : (n,) array, optional
        Stratum labels; only patients of the same stratum are compared.

    Returns
    -------
    float
        Between 0 and 1; NaN, with a warning, if no pair is comparable.

    References
    ----------
    Harrell, Lee, Mark (1996), Multivariable prognostic models, Statistics in Medicine 15.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, False], [1.0, 2.0, 3.0])
    >>> concordance_index(y, [2.0, 0.0, 1.0])
    0.6666666666666666
    """
    scored = parse_scored(y, risk, sample_weight, late_entry=True)
    since = scored.target.entry
    if strata is None:
        numerator, denominator = _pairs(scored, since)
    else:
        codes, labels = label_codes("strata", strata, len(scored))
        parts = [np.flatnonzero(codes == k) for k in range(len(labels))]
        sums = [_pairs(scored.take(rows), None if since is None else since[rows]) for rows in parts]
        numerator, denominator = np.sum(sums, axis=0).tolist()
    if denominator == 0:
        warn_undefined(
            f"the concordance index is undefined (NaN): no pair of the {len(scored)} patients is comparable "
            f"({scored.target.n_events} events)."
        )
        return float("nan")
    return numerator / denominator


def _pairs(scored: ScoredTarget, entry: FloatArray | None) -> tuple[float, float]:
    """Summed weights of the concordant and of the comparable pairs."""
    target, risk, weight = scored.target, scored.risk, scored.weight
    concordant, comparable = PairOrder.for_harrell(target, risk).harrell_sums(weight)
    if entry is None:
        return concordant, comparable
    # A patient who entered at or after an event is not compared with it: subtract these pairs.
    order, events, entries = _not_entered(scored, entry)
    not_entered = order.harrell_sums(events, entries)
    numerator, denominator = concordant - not_entered[0], comparable - not_entered[1]
    # Where no two patients were under observation together, the difference is a rounding error.
    return (numerator, denominator) if denominator > 1e-12 * comparable else (0.0, 0.0)


def _not_entered(scored: ScoredTarget, entry: FloatArray) -> tuple[PairOrder, FloatArray, FloatArray]:
    """Return the order of 2n rows, events and then entries of patients, and the weights (2n,) of either.

    Pairs of an event and an entry by Harrell's rule are those of patients who entered at or after the event.
    """
    target, zeros = scored.target, np.zeros(len(scored))
    rows = Target(
        np.repeat([True, False], len(scored)) & np.tile(target.event, 2), np.concatenate([target.time, entry])
    )
    order = PairOrder.for_harrell(rows, np.tile(scored.risk, 2))
    return order, np.concatenate([scored.weight, zeros]), np.concatenate([zeros, scored.weight])


def concordance_estimate(
    target: Target, risk: FloatArray, weight: FloatArray | None = None, *, order: PairOrder | None = None
) -> Estimate:
    """Harrell's index as :func:`concordance_index` defines it, with the influence of each patient; NaN without pairs.

    The entry times are those of the target; `order` is that of Harrell's pairs if it is known.
    """
    n, weight = len(target), np.ones(len(target)) if weight is None else weight
    order = PairOrder.for_harrell(target, risk) if order is None else order
    sums = np.array(order.counts(weight))
    comparable = sums[1].sum()
    if target.entry is not None:
        not_entered, events, entries = _not_entered(ScoredTarget(target, risk, weight), target.entry)
        first, other = not_entered.harrell_sides(events, entries)
        sums = sums - np.array(first)[:, :n] - np.array(other)[:, n:]
    return _share_of_pairs(target, weight, *sums, least=1e-12 * comparable)


def _share_of_pairs(
    target: Target,
    weight: FloatArray,
    concordant: FloatArray,
    comparable: FloatArray,
    *,
    counted: BoolArray | None = None,
    least: float = 0.0,
    censoring: Callable[[float], FloatArray] | None = None,
) -> Estimate:
    """Return concordant over comparable pairs, from the sums (n,) of each patient, which count each pair twice.

    Events in `counted` (n,), by default all, determine the degrees of freedom. `censoring` returns the influences (n,)
    through the censoring weights, given the index.
    """
    total = float(comparable.sum())
    if not total > least:
        return Estimate.undefined(len(target))
    value = float(concordant.sum()) / total
    influence = (concordant - value * comparable) / (total / 2)
    if censoring is not None:
        influence = influence + censoring(value) / (total / 2)
    events = target.event & (weight > 0)
    number = np.count_nonzero(events if counted is None else events & counted)
    return Estimate(value, influence, "logit", number - 1.0)


def uno_estimate(
    target: Target,
    risk: FloatArray,
    weight: FloatArray | None = None,
    until: float | None = None,
    *,
    order: PairOrder | None = None,
) -> Estimate:
    """Uno's index as :func:`uno_concordance` defines it, with the influence of each patient; NaN without pairs.

    The censoring distribution is that of these patients, and influences include that on its estimate. Only events
    before the time `until` count as the earlier event of a pair. `order` is that of Harrell's pairs if it is known.
    """
    weight = np.ones(len(target)) if weight is None else weight
    censoring = Incidence.of_censoring(target, weight)
    observed = censoring.free_at(target.time)
    counted = target.ended & (censoring.free_at(np.nextafter(target.time, np.inf)) > 0)
    if until is not None:
        counted &= target.time < until
    inverse = np.divide(1.0, observed, out=np.zeros(len(target)), where=counted)
    first, other, weighted = UnoPairs.of(target, risk, order).sides(weight, inverse)

    def through_censoring(value: float) -> FloatArray:
        terms = weighted[0] - value * weighted[1]
        return weight * censoring.derivative_of_inverse(target.time, terms)

    return _share_of_pairs(target, weight, *(first + other), counted=counted, censoring=through_censoring)


def cross_group_concordance(
    y: Any, risk: Any, groups: Any, *, sample_weight: Any = None, missing: Missing = "group"
) -> pd.DataFrame:
    r"""Concordance of the pairs whose earlier event is in group a and whose other patient is in group b.

    .. math:: xCI(a, b) = \Pr(f_i > f_j \mid i \in a \text{ had the event before } j \in b)

    by Harrell's rule; the diagonal is the concordance index within each group. A low xCI(a, b) and a high
    xCI(b, a) mean that the scores rank events of group a too low against group b, which the indices within groups
    cannot show.

    Parameters as in :func:`drosurv.paper.concordance_fractions`.

    Returns
    -------
    DataFrame, (n_groups, n_groups)
        Rows a, columns b; NaN, with a warning, where no pair is comparable.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> cross_group_concordance(y, [4.0, 1.0, 3.0, 2.0], ["a", "b", "a", "b"]).loc["b", "a"]
    np.float64(0.0)
    """
    scored, parsed = parse_grouped(y, risk, groups, sample_weight=sample_weight, missing=missing)
    order = PairOrder.for_harrell(scored.target, scored.risk)
    sums = order.harrell_between(parsed.codes, len(parsed), scored.weight)
    if not sums.denominator.all():
        empty = [
            f"{parsed.labels[a]!r} before {parsed.labels[b]!r}"
            for a, b in np.argwhere(sums.denominator == 0).tolist()
        ]
        warn_undefined(
            f"cross-group concordance is undefined (NaN) without a comparable pair: {', '.join(empty)}."
        )
    with np.errstate(invalid="ignore"):
        values = sums.numerator / sums.denominator
    index = pd.Index(list(parsed.labels), tupleize_cols=False)
    return pd.DataFrame(values, index=index.rename("event first"), columns=index.rename("other"))


class UnoPairs(NamedTuple):
    """Patients sorted for Uno's concordance.

    In `order`, patients with an event of another cause come after everybody. With such patients, `other` (n,), all are
    also sorted by their `observed` times.
    """

    order: PairOrder
    observed: PairOrder | None = None
    other: BoolArray | None = None

    @staticmethod
    def of(target: Target, risk: FloatArray, order: PairOrder | None = None) -> UnoPairs:
        """Sort patients; `order` is Harrell's if it is known."""
        order = PairOrder.for_harrell(target, risk) if order is None else order
        if target.other is None or not target.other.any():
            return UnoPairs(order)
        return UnoPairs(order, PairOrder.for_harrell(replace(target, other=None), risk), target.other)

    def sides(self, weight: FloatArray, inverse: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return three sums (2, n) of the weights of each patient's concordant and comparable pairs.

        The first is over pairs in which the patient had the first event, the second over those in which the patient is
        the other one. The third counts a pair as often as the patient's `inverse` (n,), one over the probability of
        having been observed, is a factor of its weight. The other factors are the patients' weights (n,).
        """
        order = self.order if self.observed is None else self.observed
        first, other = map(np.array, order.harrell_sides(weight * inverse**2, weight))
        weighted = 2 * first
        if self.observed is None or self.other is None:
            return first, other, weighted
        # Pairs in which the other patient had an event of another cause before: all pairs with such patients, less
        # those in which it came later.
        free = weight * inverse * self.other
        every, later = (
            np.array(each.harrell_sides(weight * inverse, free)) for each in (self.order, self.observed)
        )
        more = every - later
        return first + more[0], other + more[1], weighted + more.sum(axis=0)


def uno_concordance(
    y_train: Any, y_test: Any, risk: Any, *, tau: float | None = None, sample_weight: Any = None
) -> float:
    r"""Concordance with each pair weighted by the inverse probability of having been observed.

    .. math:: C_\tau = \frac{\sum_{(i,j): Y_i < \tau} \hat G(Y_i)^{-2} \left( 1[f_i > f_j]
                             + \tfrac12 1[f_i \approx f_j] \right)}{\sum_{(i,j): Y_i < \tau} \hat G(Y_i)^{-2}}

    over Harrell's pairs, with G the training patients' chance of still being observed. Of one of several causes, a
    patient j with another one at Y_j stays in pairs with later events: their weight is 1 / (G(Y_i-) G(Y_j-)).

    Parameters
    ----------
    y_train : structured array or FollowUp
        Training targets, for the censoring distribution.
    y_test, risk, sample_weight
        Target, scores and weights of the test patients, as in :func:`concordance_index`.
    tau : float, optional
        Only events before tau count as the earlier event of a pair. By default all events within the training
        follow-up do, since later ones have no censoring weight.

    Returns
    -------
    float
        Equal to scikit-survival's ``concordance_index_ipcw`` where that raises no error and no event and censoring have
        the same time; NaN, with a warning, if no pair is comparable.

    References
    ----------
    Uno, Cai, Pencina, D'Agostino, Wei (2011), On the C-statistics for evaluating overall adequacy of risk
    prediction procedures with censored survival data, Statistics in Medicine 30. Wolbers, Blanche, Koller, Witteman,
    Gerds (2014), Concordance for prognostic models with competing risks, Biostatistics 15.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, False], [1.0, 2.0, 3.0])
    >>> uno_concordance(y, y, [2.0, 0.0, 1.0])
    0.6666666666666666
    """
    follow_up = FollowUp.parse(y_train)
    scored = parse_scored(y_test, risk, sample_weight)
    if tau is not None and tau > follow_up.end:
        raise ArgumentError(
            "tau",
            f"{arg('tau', tau)} lies beyond the training follow-up, which ends at {follow_up.end:g}: choose "
            f"tau up to there, or leave {arg('tau', text='None')}.",
        )
    target = scored.target
    counted = follow_up.censoring_at(target.time) > 0
    if tau is not None:
        counted &= target.time < tau
    inverse = np.where(counted, follow_up.inverse_probability(target), 0.0)
    first, *_ = UnoPairs.of(target, scored.risk).sides(scored.weight, inverse)
    concordant, comparable = first.sum(axis=1)
    if not comparable > 0:
        warn_undefined(
            f"Uno's concordance is undefined (NaN): no pair of the {len(scored)} patients is comparable "
            f"before {follow_up.end if tau is None else tau:g}."
        )
        return float("nan")
    return float(concordant / comparable)
