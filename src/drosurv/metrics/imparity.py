"""Concordance imparity: whether scores order the patients of every group equally well, with intervals and tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

import numpy as np

from drosurv.groups import Groups, Missing, ratio_by_group
from drosurv.metrics.inference.gaps import in_standard_errors
from drosurv.metrics.pair_order import PairCounts, PairOrder
from drosurv.metrics.scores import parse_grouped, warn_undefined
from drosurv.target import FloatArray


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
    undefined = [repr(label) for label, value in zip(parsed.labels, values, strict=True) if isnan(value)]
    if undefined:
        warn_undefined(
            f"the concordance fraction is undefined (NaN) for {', '.join(undefined)} of {parsed.name}: no "
            "comparable pair (too few patients or events); merge small groups."
        )
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
    biased upward: read it with its interval and permutation test (:func:`~drosurv.evaluate`).

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
