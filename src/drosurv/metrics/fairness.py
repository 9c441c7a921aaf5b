"""Differences of predicted hazards between patients and groups: F_I, F_G, F_cap and the censoring-aware ones.

None of them looks at what is true of the patients, only at the spread of ``h = exp(risk)``. All of them
fall when every score is multiplied by a number below 1, so read them beside
:mod:`drosurv.metrics.shrinkage`.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from drosurv.disparities.censoring_aware import (
    censored_event_hinge_sum,
    censored_event_hinge_sum_within_groups,
)
from drosurv.disparities.group import group_gap
from drosurv.disparities.individual import pairwise_hinge_sum, unit_rows
from drosurv.disparities.intersectional import log_ratio_gap
from drosurv.groups import Groups, Missing, parse_groups
from drosurv.metrics.scores import parse_risk, warn_undefined
from drosurv.target import FloatArray, parse_target

Convention = Literal["paper", "table"]


def individual_disparity(
    risk: Any,
    X: Any,
    *,
    scale: float = 0.01,
    convention: Convention = "paper",
    device: str | None = None,
) -> float:
    r"""Individual disparity F_I: hazards of similar patients that differ by more than their features do.

    .. math:: F_I = \sum_{i < j} \left[ |h_i - h_j| - \gamma \|x_i - x_j\| \right]_+, \qquad h_i = e^{f_i}

    Exact, without an n x n array.

    Parameters
    ----------
    risk : (n,) array
        Risk scores f.
    X : (n, d) array
        Features, already standardised by the training mean and standard deviation.
    scale : float
        The factor gamma between distances of features and of hazards.
    convention : "paper" or "table"
        "paper" is the printed definition above. "table", behind the published tables, scales each row of X to
        length 1 (rows of zeros stay) and divides the sum by N(N-1), N the number of patients.
    device : str, optional
        A torch device, such as ``"cuda"``, to do the pairwise work on in tiles; by default the processor, by
        sorting.

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
    hazard = _hazards(risk)
    rows = _parse_features(X, len(hazard))
    scale = _parse_scale(scale)
    table = _is_table(convention)
    if table and len(hazard) < 2:
        warn_undefined("F_I in the tables' convention is undefined (NaN) for a single patient.")
        return float("nan")
    if table:
        rows = unit_rows(rows)
    else:
        # The sum reads rows of length 1 at most; only the product of their length and scale matters.
        rows = rows - rows.mean(axis=0)
        longest = float(np.linalg.norm(rows, axis=1).max())
        rows, scale = (rows / longest, scale * longest) if longest > 0 else (rows, scale)
    total = (
        pairwise_hinge_sum(hazard, rows, scale) if device is None else _tiled_sum(hazard, rows, scale, device)
    )
    return total / (len(hazard) * (len(hazard) - 1)) if table else total


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

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> round(group_disparity(np.log([1.0, 3.0, 5.0]), ["a", "a", "b"]), 4)
    2.0
    """
    smooth = _is_table(convention)
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
    risk : (n,) array
        Risk scores f.
    attributes : DataFrame or (n, J) labels
        One column per sensitive attribute.
    convention : "paper" or "table"
        "paper" is the printed definition above; "table", behind the published tables, smooths the means to
        (sum h + 0.5) / (n_s + 1).
    missing : "group" or "drop"
        Patients without a label in some column: intersections of their own, or left out altogether.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> attributes = [["m", "old"], ["m", "young"], ["f", "old"]]
    >>> round(intersectional_disparity(np.log([1.0, 2.0, 4.0]), np.array(attributes)), 4)
    1.3863
    """
    smooth = _is_table(convention)
    hazard, parsed = _grouped_hazards(risk, attributes, "attributes", missing)
    if not smooth and not (parsed.sums(hazard) > 0).all():
        lowest = parsed.labels[int(parsed.sums(hazard).argmin())]
        raise ValueError(
            f"risk is so low for {lowest!r} of attributes that the hazards exp(risk) are 0: their ratio to others "
            "has no logarithm; check the model's convergence, or add a constant to all scores."
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

    Returns
    -------
    float

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


def censored_individual_disparity(y: Any, risk: Any, X: Any, *, scale: float = 0.01) -> float:
    r"""Censoring-aware individual disparity: censored patients against those whose event came no earlier.

    .. math:: \frac{1}{n_c n_e} \sum_{i: \delta_i = 0} \; \sum_{j: \delta_j = 1, Y_j \ge Y_i}
              \left[ |h_i - h_j| - \gamma \|u_i - u_j\| \right]_+

    with u the rows of X scaled to length 1, n_c censored patients and n_e events.

    Parameters
    ----------
    y : structured array, (n,)
        Event flags and times.
    risk : (n,) array
        Risk scores f; h = exp f.
    X : (n, d) array
        Features, already standardised.
    scale : float
        The factor gamma between distances of features and of hazards.

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
    return _censoring_aware(y, risk, X, None, scale)


def censored_group_disparity(y: Any, risk: Any, X: Any, groups: Any, *, scale: float = 0.01) -> float:
    """Censoring-aware group disparity: as :func:`censored_individual_disparity`, over pairs inside one group.

    The sum over the pairs of every group keeps the denominator of all pairs. Patients without a label form
    a group of their own.

    Parameters
    ----------
    y, risk, X, scale
        As in :func:`censored_individual_disparity`.
    groups : (n,) labels, or (n, J) for intersections
        Group of each patient.

    Returns
    -------
    float
        NaN, with a warning, if nobody was censored or nobody had the event.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([False, True, True], [1.0, 2.0, 3.0])
    >>> censored_group_disparity(y, [0.0, 1.0, 9.0], [[1.0], [1.0], [1.0]], ["a", "a", "b"])
    0.8591409142295225
    """
    return _censoring_aware(y, risk, X, groups, scale)


def _censoring_aware(y: Any, risk: Any, X: Any, groups: Any, scale: float) -> float:
    target = parse_target(y, require_event=False)
    hazard = _hazards(risk, len(target))
    rows = unit_rows(_parse_features(X, len(target)))
    scale = _parse_scale(scale)
    n_pairs = target.n_events * (len(target) - target.n_events)
    codes = None if groups is None else parse_groups(groups, len(target)).codes
    if n_pairs == 0:
        missing = "event" if target.n_events == 0 else "censored patient"
        warn_undefined(f"the censoring-aware disparity is undefined (NaN): no {missing} in y.")
        return float("nan")
    scene = (hazard, rows, target.event, target.time)
    if codes is None:
        return censored_event_hinge_sum(*scene, scale) / n_pairs
    return censored_event_hinge_sum_within_groups(*scene, codes, scale) / n_pairs


def _is_table(convention: Convention) -> bool:
    if convention not in ("paper", "table"):
        raise ValueError(f"convention must be 'paper' or 'table', got {convention!r}.")
    return convention == "table"


def _parse_scale(scale: float) -> float:
    if not (np.isfinite(scale) and scale >= 0):
        raise ValueError(f"scale must be a finite number >= 0, got {scale}.")
    return float(scale)


def _hazards(risk: Any, n: int | None = None) -> FloatArray:
    scores = parse_risk(risk, n)
    largest = float(scores.max(initial=-np.inf))
    if largest > np.log(np.finfo(np.float64).max):
        raise ValueError(
            f"risk holds a score of {largest:g}, whose hazard exp({largest:g}) overflows: they have no "
            "disparity of hazards; check the model's convergence."
        )
    return np.exp(scores)


def _grouped_hazards(risk: Any, groups: Any, name: str, missing: Missing) -> tuple[FloatArray, Groups]:
    hazard = _hazards(risk)
    parsed = parse_groups(groups, len(hazard), name=name, missing=missing)
    kept = parsed.kept
    return hazard[kept], Groups(parsed.codes[kept], parsed.labels, name)


def _parse_features(X: Any, n: int) -> FloatArray:
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != n:
        raise ValueError(
            f"X must hold one row of features for each of the {n} patients, got shape {rows.shape}."
        )
    if not np.isfinite(rows).all():
        row = int(np.argwhere(~np.isfinite(rows))[0][0])
        raise ValueError(
            f"X contains NaN or infinite features (first in row {row}): fill or drop them first."
        )
    return rows


def _tiled_sum(hazard: FloatArray, rows: FloatArray, scale: float, device: str) -> float:
    import torch

    from drosurv.disparities.pair_tiles import PairTiles, Side

    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device!r}: torch sees no CUDA device here; leave device=None.")
    patient = np.arange(len(hazard))[None]
    one_group = np.zeros_like(patient)
    # A pair is a first patient whose key is at most the second's: i <= j - 1, each pair once.
    tiles = PairTiles(
        Side(patient, rows[None], patient, one_group),
        Side(patient, rows[None], patient - 1, one_group),
        scale,
    )
    on_device = torch.as_tensor(hazard, dtype=torch.float64, device=device)
    return float(tiles.value_and_gradient(on_device[None, None])[0])
