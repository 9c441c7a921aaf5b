"""Many looks at the same patients: p-values and intervals that allow for their number."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from statistics import NormalDist


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: all tests together err with the stated probability; NaN is no test.

    Examples
    --------
    >>> [round(p, 3) for p in holm([0.04, 0.03, float("nan")])]
    [0.06, 0.06, nan]
    """
    adjusted = list(p_values)
    known = sorted((p, place) for place, p in enumerate(p_values) if not isnan(p))
    least = 0.0
    for rank, (p, place) in enumerate(known):
        least = min(max(least, p * (len(known) - rank)), 1.0)
        adjusted[place] = least
    return adjusted


def is_beyond_chance(p_adjusted: float, level: float) -> bool:
    """Whether a finding is more than chance explains, all that was looked at allowed for; False without a test.

    Examples
    --------
    >>> is_beyond_chance(0.04, 0.95), is_beyond_chance(float("nan"), 0.95)
    (True, False)
    """
    return bool(p_adjusted < 1 - level)


def widening(level: float, looks: int) -> float:
    """How many times wider an interval must be for so many of its kind to hold together (Bonferroni).

    Examples
    --------
    >>> widening(0.95, 1), round(widening(0.95, 10), 2)
    (1.0, 1.43)
    """
    normal = NormalDist()
    doubt = (1 - level) / 2
    return normal.inv_cdf(1 - doubt / max(looks, 1)) / normal.inv_cdf(1 - doubt)


def shared_level(level: float, looks: int) -> float:
    """Level at which each of so many intervals must be taken for all to hold together (Bonferroni).

    Examples
    --------
    >>> round(shared_level(0.95, 5), 4)
    0.99
    """
    return 1 - (1 - level) / max(looks, 1)
