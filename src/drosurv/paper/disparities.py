"""Differences of predicted hazards between patients (F_I, censoring-aware) and between groups (F_G, F_cap, F_A).

They measure the spread of ``h = exp(risk)``, not its accuracy, and need scores that are log hazards. All of
them fall when every score is multiplied by a number below 1: read them beside
:func:`~drosurv.metrics.share_of_gain`. Sums over pairs are exact up to 10,000 patients; with
more, random pairs are sampled unless ``pairs="all"``.

Concordance imparity says whether scores order the patients of every group equally well.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any, Literal

import numpy as np

from drosurv.errors import ArgumentError, arg, as_number, require, row_number
from drosurv.metrics.pair_order import PairOrder
from drosurv.metrics.scores import metric_target, parse_grouped, parse_risk, warn_undefined
from drosurv.paper.penalties.censoring_aware import pairs_within
from drosurv.paper.penalties.group import group_gap, log_ratio_gap
from drosurv.paper.penalties.pairs import AllPairs, unit_rows
from drosurv.paper.sampled_pairs import (
    SAMPLED,
    Pairs,
    excess_over_censored_pairs,
    excess_over_pairs,
    sampled_number,
)
from drosurv.patients.groups import Groups, Missing, parse_groups, ratio_by_group
from drosurv.patients.target import FloatArray

Convention = Literal["paper", "table"]


def individual_disparity(
    risk: Any, X: Any, *, scale: float = 0.01, convention: Convention = "paper", pairs: Pairs = "auto"
) -> float:
    r"""Individual disparity F_I: the excess of differences in hazards over distances between features.

    .. math:: F_I = \sum_{i < j} \left[ |h_i - h_j| - \gamma \|x_i - x_j\| \right]_+, \qquad h_i = e^{f_i}

    Parameters
    ----------
    risk : (n,) array
        Risk scores f.
    X : (n, d) array
        Features, already standardised by the training mean and standard deviation.
    scale : float
        The factor gamma: the difference of hazards that is allowed per unit of distance between features.
    convention : "paper" or "table"
        "paper" is the printed definition above. "table", behind the published tables, scales each row of X to
        length 1 (rows of zeros stay) and divides the sum by N(N-1), N the number of patients.
    pairs : "auto", "all" or int
        Number of pairs. "all" is exact, takes time of order n squared and makes no n x n array. "auto" is exact up to
        10,000 patients; for more it samples 5,000,000 random pairs, with a standard error of about a thousandth
        (:func:`sampled_individual_disparity` returns it).

    Returns
    -------
    float
        NaN, with a warning, for "table" and a single patient.

    References
    ----------
    Keya, Islam, Pan, Stockwell, Foulds (2021), Equitable allocation of healthcare resources with fair
    survival models, SDM.

    Examples
    --------
    >>> round(individual_disparity([0.0, 0.0, 1.0], [[1.0], [2.0], [1.0]]), 4)
    3.4266
    """
    hazard = hazards_of(risk)
    rows = _parse_features(X, len(hazard))
    scale = _parse_scale(scale)
    table = is_table(convention)
    number = sampled_number(pairs, len(hazard))
    if number is not None and len(hazard) > 1:
        found = sampled_individual_disparity(risk, X, scale=scale, convention=convention, pairs=number)
        return found[0]
    if table and len(hazard) < 2:
        warn_undefined("F_I in the tables' convention is undefined (NaN) for a single patient.")
        return float("nan")
    if table:
        rows = unit_rows(rows)
    else:
        # AllPairs needs rows of length 1 at most; only the product of their length and scale matters.
        rows = rows - rows.mean(axis=0)
        longest = float(np.linalg.norm(rows, axis=1).max())
        rows, scale = (rows / longest, scale * longest) if longest > 0 else (rows, scale)
    total, _ = AllPairs.of(rows).evaluate(hazard, scale)
    return total / (len(hazard) * (len(hazard) - 1)) if table else total


def sampled_individual_disparity(
    risk: Any, X: Any, *, scale: float = 0.01, convention: Convention = "paper", pairs: int = SAMPLED
) -> tuple[float, float]:
    """F_I estimated from at least so many random pairs of at least two patients, and its standard error.

    Calls with equally many patients use the same pairs, so that different scores can be compared.
    """
    hazard = hazards_of(risk)
    rows = _parse_features(X, len(hazard))
    n, table = len(hazard), is_table(convention)
    rows = unit_rows(rows) if table else rows
    require(n > 1, "risk", "hold the scores of at least two patients", n)
    found = excess_over_pairs(hazard, rows, _parse_scale(scale), sampled_number(pairs, n) or SAMPLED)
    # The tables divide the sum over pairs i < j by n (n - 1): half of the mean.
    times = 0.5 if table else n * (n - 1) / 2
    return times * found.mean, times * found.standard_error


def censored_individual_disparity(
    y: Any, risk: Any, X: Any, *, scale: float = 0.01, pairs: Pairs = "auto"
) -> float:
    r"""Censoring-aware individual disparity: over pairs of a censored patient and a patient with a later event.

    .. math:: \frac{1}{n_c n_e} \sum_{i: \delta_i = 0} \; \sum_{j: \delta_j = 1, Y_j \ge Y_i}
              \left[ |h_i - h_j| - \gamma \|u_i - u_j\| \right]_+

    with u the rows of X scaled to length 1, n_c the number of censored patients and n_e the number of events.

    Parameters
    ----------
    y : structured array, (n,)
        Event flags and times.
    risk, X, scale, pairs
        As in :func:`individual_disparity`.

    Returns
    -------
    float
        NaN, with a warning, if nobody was censored or nobody had the event.

    References
    ----------
    Rahman, Purushotham (2022), Fair and interpretable models for survival analysis, KDD.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([False, True], [1.0, 2.0])
    >>> censored_individual_disparity(y, [0.0, 1.0], [[1.0], [1.0]])
    1.718281828459045
    """
    return censoring_aware_disparity(y, risk, X, None, scale=scale, pairs=pairs)


def censored_group_disparity(
    y: Any, risk: Any, X: Any, groups: Any, *, scale: float = 0.01, pairs: Pairs = "auto"
) -> float:
    """Censoring-aware group disparity: as :func:`censored_individual_disparity`, over pairs of the same group.

    The denominator stays the number of all pairs. Patients without a label form a group of their own.

    Parameters
    ----------
    y, risk, X, scale, pairs
        As in :func:`censored_individual_disparity`.
    groups : (n,) labels, or (n, J) for intersections
        Group of each patient.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([False, True, True], [1.0, 2.0, 3.0])
    >>> censored_group_disparity(y, [0.0, 1.0, 9.0], [[1.0], [1.0], [1.0]], ["a", "a", "b"])
    0.8591409142295225
    """
    return censoring_aware_disparity(y, risk, X, groups, scale=scale, pairs=pairs)


def censoring_aware_disparity(
    y: Any, risk: Any, X: Any, groups: Any, *, scale: float = 0.01, pairs: Pairs
) -> float:
    """Censoring-aware disparity over pairs of the same group, or, if groups is None, over all pairs."""
    target = metric_target(y)
    hazard = hazards_of(risk, len(target))
    rows = unit_rows(_parse_features(X, len(target)))
    scale = _parse_scale(scale)
    n_pairs = target.n_events * (len(target) - target.n_events)
    codes = np.zeros(len(target), dtype=np.intp)
    if groups is not None:
        codes = parse_groups(groups, len(target)).codes
    if n_pairs == 0:
        missing = "event" if target.n_events == 0 else "censored patient"
        warn_undefined(f"the censoring-aware disparity is undefined (NaN): no {missing} in y.")
        return float("nan")
    number = sampled_number(pairs, len(target))
    if number is not None:
        return excess_over_censored_pairs(hazard, rows, scale, target.event, target.time, codes, number)
    sets = pairs_within(rows, target.event, target.time, codes)
    return sum(pairs.evaluate(hazard[pairs.patient], scale)[0] for pairs in sets) / n_pairs


def is_table(convention: Convention) -> bool:
    """Whether the convention is that of the published tables."""
    require(convention in ("paper", "table"), "convention", "be 'paper' or 'table'", convention)
    return convention == "table"


def _parse_scale(scale: float) -> float:
    require(0 <= as_number(scale) < np.inf, "scale", "be a finite number >= 0", scale)
    return float(scale)


def hazards_of(risk: Any, n: int | None = None) -> FloatArray:
    """Check risk scores and return the hazards exp(risk); raise if one overflows."""
    scores = parse_risk(risk, n)
    largest = float(scores.max(initial=-np.inf))
    if largest > np.log(np.finfo(np.float64).max):
        raise ArgumentError(
            "risk",
            f"{arg('risk')} holds a score of {largest:g}, whose hazard exp({largest:g}) overflows: disparities of "
            "hazards "
            "cannot be computed; check the model's convergence.",
        )
    return np.exp(scores)


def _parse_features(X: Any, n: int) -> FloatArray:
    rows = np.asarray(X, dtype=np.float64)
    matches = rows.ndim == 2 and len(rows) == n
    require(matches, "X", f"hold one row of features for each of the {n} patients", rows.shape)
    if not np.isfinite(rows).all():
        row = row_number(np.argwhere(~np.isfinite(rows))[0][0], X)
        raise ArgumentError(
            "X", f"X contains NaN or infinite features (first in row {row}): fill or drop them first."
        )
    return rows


def group_disparity(
    risk: Any, groups: Any, *, convention: Convention = "paper", missing: Missing = "group"
) -> float:
    r"""Group disparity F_G: the largest distance of a group's mean hazard from the overall mean.

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
            f"{arg('risk')} is so low for {lowest!r} of attributes that the hazards exp(risk) are 0: the log ratio "
            "is undefined; check the model's convergence, or add a constant to all scores.",
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
    :func:`intersectional_disparity`. The three have different units, so their mean is useful only to compare with the
    published tables.

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

    with the numerators and denominators of Algorithm B.1 (:class:`~drosurv.metrics.pair_order.PairOrder`).

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
