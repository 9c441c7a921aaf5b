"""Concordance imparity: whether the scores order the patients of every group equally well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from drosurv.errors import ArgumentError
from drosurv.groups import Groups, Missing, ratio_by_group
from drosurv.metrics.pair_order import PairOrder
from drosurv.metrics.scores import parse_grouped, parse_scored, warn_undefined
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
    r"""Concordance fraction of every group: how well its patients are ordered against everybody.

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
        The labels that may occur; any other is an error, and one without patients gets NaN.

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

    (Algorithm B.1 of the paper), as a fraction, not percent. Being a maximum over noisy fractions it is
    biased upward: read it beside its interval and permutation test
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


@dataclass(frozen=True, eq=False)
class CutPointGaps:
    """Concordance imparity of every way to cut a continuous attribute in two.

    `gap` is the largest, at `cut`: patients at or below it against those above, with the concordance fractions `below`
    and `above`. `cuts` (m,) are all cut points, ascending, with their `gaps`; NaN where a side has no comparable pair.
    """

    gap: float
    cut: float
    below: float
    above: float
    cuts: FloatArray
    gaps: FloatArray


def concordance_imparity_over_cuts(
    y: Any, risk: Any, attribute: Any, *, min_group: int = 1, sample_weight: Any = None
) -> CutPointGaps:
    r"""Largest concordance imparity over all cut points of a continuous attribute.

    .. math:: \max_c |CF(\{i: a_i \le c\}) - CF(\{i: a_i > c\})|

    Parameters
    ----------
    y, risk, sample_weight
        As in :func:`concordance_index`.
    attribute : (n,) numbers
        For example age; patients whose value is missing are left out altogether.
    min_group : int
        Fewest patients on either side of a cut. Fractions of a handful of patients are noisy, so that with
        the default, every cut, the largest gap tends to lie at the ends.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> concordance_imparity_over_cuts(y, [4.0, 1.0, 3.0, 2.0], [50, 61, 64, 70]).cut
    50.0
    """
    scored = parse_scored(y, risk, sample_weight)
    values = np.asarray(attribute, dtype=np.float64)
    if values.shape != (len(scored),):
        raise ArgumentError(
            "attribute",
            f"attribute must hold one number per patient, got shape {values.shape} for {len(scored)}.",
        )
    known = ~np.isnan(values)
    scored, values = scored.take(known), values[known]
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    last_of_value = np.flatnonzero(ascending[1:] != ascending[:-1])
    sides = np.minimum(last_of_value + 1, len(values) - last_of_value - 1)
    last_of_value = last_of_value[sides >= min_group]
    if len(last_of_value) == 0:
        raise ArgumentError(
            "attribute",
            f"attribute has no cut point with at least min_group={min_group} of its {len(values)} known "
            "values on either side: lower min_group, or give an attribute that varies.",
        )
    counts = PairOrder.for_imparity(scored.target, scored.risk).counts(scored.weight)
    numerator, denominator = counts.numerator[order], counts.denominator[order]

    def either_side(values: FloatArray) -> tuple[FloatArray, FloatArray]:
        # Each side is added up on its own: a difference of sums would leave rounding where there is no pair.
        return np.cumsum(values)[last_of_value], np.cumsum(values[::-1])[::-1][last_of_value + 1]

    with np.errstate(invalid="ignore"):
        below, above = (
            pair[0] / pair[1] for pair in zip(either_side(numerator), either_side(denominator), strict=True)
        )
    cuts, gaps = ascending[last_of_value], np.abs(below - above)
    if np.isnan(gaps).all():
        warn_undefined(
            "concordance imparity is undefined (NaN): no cut leaves a comparable pair on both sides."
        )
        return CutPointGaps(np.nan, np.nan, np.nan, np.nan, cuts, gaps)
    best = int(np.nanargmax(gaps))
    return CutPointGaps(
        float(gaps[best]), float(cuts[best]), float(below[best]), float(above[best]), cuts, gaps
    )


def warn_of_groups_without_pairs(groups: Groups, values: Iterable[float]) -> None:
    """Name the groups whose concordance fraction, one of `values` (n_groups,), is NaN."""
    undefined = [repr(label) for label, value in zip(groups.labels, values, strict=True) if isnan(value)]
    if undefined:
        warn_undefined(
            f"the concordance fraction is undefined (NaN) for {', '.join(undefined)} of {groups.name}: no "
            "comparable pair (too few patients or events); merge small groups."
        )
