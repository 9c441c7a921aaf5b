"""Concordance imparity: whether scores order the patients of every group equally well, with intervals and tests."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

from drosurv.metrics.pair_order import PairOrder
from drosurv.metrics.scores import parse_grouped, warn_undefined
from drosurv.patients.groups import Missing, ratio_by_group


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
    biased upward.

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
