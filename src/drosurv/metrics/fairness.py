"""Differences of predicted hazards between groups: F_G, F_cap and their mean with F_I.

None of them looks at what is true of the patients, only at the spread of ``h = exp(risk)``. All of them
fall when every score is multiplied by a number below 1, so read them beside
:func:`~drosurv.metrics.share_of_gain`.
"""

from __future__ import annotations

from typing import Any

from drosurv.disparities.group import group_gap, log_ratio_gap
from drosurv.errors import ArgumentError
from drosurv.groups import Groups, Missing, parse_groups
from drosurv.metrics.pair_disparities import Convention, hazards_of, individual_disparity, is_table
from drosurv.target import FloatArray


def group_disparity(
    risk: Any, groups: Any, *, convention: Convention = "paper", missing: Missing = "group"
) -> float:
    r"""Group disparity F_G: the largest distance of a group's mean hazard from the mean of all.

    .. math:: F_G = \max_g |\bar h_g - \bar h|, \qquad h_i = e^{f_i}

    Parameters
    ----------
    risk : (n,) array
        Risk scores f.
    groups : (n,) labels, or (n, J) for intersections
        Group of each patient.
    convention : "paper" or "table"
        "paper" is the printed definition above; "table", behind the published tables, smooths group means to
        (sum h + 0.5) / (n_g + 1).
    missing : "group" or "drop"
        Patients without a label: a group of their own, or left out altogether.

    Examples
    --------
    >>> import numpy as np
    >>> round(group_disparity(np.log([1.0, 3.0, 5.0]), ["a", "a", "b"]), 4)
    2.0
    """
    smooth = is_table(convention)
    hazard, parsed = _grouped_hazards(risk, groups, "groups", missing)
    return group_gap(hazard, parsed.codes, len(parsed), smooth)


def intersectional_disparity(
    risk: Any, attributes: Any, *, convention: Convention = "paper", missing: Missing = "group"
) -> float:
    r"""Intersectional disparity F_cap: the largest log ratio of mean hazards between two intersections.

    .. math:: F_\cap = \max_{s, s'} \left| \log \frac{\bar h_s}{\bar h_{s'}} \right|, \qquad h_i = e^{f_i}

    over all intersections of the attributes that hold at least one patient.

    Parameters
    ----------
    risk, convention, missing
        As in :func:`group_disparity`.
    attributes : DataFrame or (n, J) labels
        One column per sensitive attribute.

    Examples
    --------
    >>> import numpy as np
    >>> attributes = [["m", "old"], ["m", "young"], ["f", "old"]]
    >>> round(intersectional_disparity(np.log([1.0, 2.0, 4.0]), np.array(attributes)), 4)
    1.3863
    """
    smooth = is_table(convention)
    hazard, parsed = _grouped_hazards(risk, attributes, "attributes", missing)
    if not smooth and not (parsed.sums(hazard) > 0).all():
        lowest = parsed.labels[int(parsed.sums(hazard).argmin())]
        raise ArgumentError(
            "risk",
            f"risk is so low for {lowest!r} of attributes that the hazards exp(risk) are 0: their ratio "
            "to others has no logarithm; check the model's convergence, or add a constant to all scores.",
        )
    return log_ratio_gap(hazard, parsed.codes, len(parsed), smooth)


def average_disparity(
    risk: Any,
    X: Any,
    groups: Any,
    attributes: Any,
    *,
    scale: float = 0.01,
    convention: Convention = "paper",
    missing: Missing = "group",
) -> float:
    """Average disparity F_A = (F_I + F_G + F_cap) / 3.

    Parameters as in :func:`individual_disparity`, :func:`group_disparity` and
    :func:`intersectional_disparity`. The three have different units, so their mean says little beyond the
    published tables that report it.

    Examples
    --------
    >>> average_disparity([0.0, 0.0], [[1.0], [2.0]], ["a", "b"], ["a", "b"])
    0.0
    """
    parts = (
        individual_disparity(risk, X, scale=scale, convention=convention),
        group_disparity(risk, groups, convention=convention, missing=missing),
        intersectional_disparity(risk, attributes, convention=convention, missing=missing),
    )
    return sum(parts) / 3


def _grouped_hazards(risk: Any, groups: Any, name: str, missing: Missing) -> tuple[FloatArray, Groups]:
    hazard = hazards_of(risk)
    parsed = parse_groups(groups, len(hazard), name=name, missing=missing)
    return hazard[parsed.kept], parsed.of_kept()
