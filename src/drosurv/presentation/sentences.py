"""Sentences about the numbers of a model: all patients, gaps between groups, shrinkage, and another model beside it.

Where several gaps are tested, their intervals and p-values are adjusted for all of them, and the sentences show these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from drosurv.presentation.wording import (
    counted,
    first_upper,
    group_name,
    headings,
    interval_text,
    listing,
    p_text,
    written,
)

# A model that keeps less than this share of the reference's likelihood gain is a concern.
LITTLE_KEPT = 0.5
# Above this share of the reference's scores, or of its information, shrinkage is too small to mention.
SHRUNK = 0.99
# A disparity within five percent of what shrinking gives is not called lower.
CLEARLY_LOWER = 0.95
# A smaller difference does not show in three decimals. Two fits of one model differ by less, always in one direction:
# with a million patients, plain Cox would be called significantly worse than itself.
LEAST_DIFFERENCE = 5e-4
MOST_WITH_NUMBERS = 3
MOST_NAMED = 8
MOST_SERVED = 4


@dataclass(frozen=True)
class Statement:
    """One sentence of a summary, and whether a reader should act on it.

    The code says what it is about, for programs, and stays the same from version to version.
    """

    code: str
    text: str
    concern: bool = False


@dataclass(frozen=True)
class GroupGap:
    """The difference between the groups of an attribute with the worst and the best value: label and value of each.

    Interval and `p_value` are adjusted for all gaps tested together, as many as `looks` says; `p_alone` is not.
    They are NaN where nothing was tested.
    """

    attribute: str
    worst: tuple[str, float]
    best: tuple[str, float]
    low: float
    high: float
    p_value: float
    p_alone: float
    looks: int
    beyond_chance: bool

    @property
    def size(self) -> float:
        """The difference."""
        return abs(self.best[1] - self.worst[1])


def overall_statement(patients: int, events: int, numbers: Sequence[tuple[str, str]]) -> Statement:
    """How many patients, and how well they are predicted together; numbers are written already."""
    told = ", ".join(f"{name} {text}" for name, text in numbers)
    censored = written(1 - events / patients, "share") if patients else "–"
    who = f"{counted(patients, 'patient')}, {counted(events, 'event')}"
    return Statement("overall", f"{who} ({censored} censored): {told}.")


def imparity_statements(gaps: Sequence[GroupGap]) -> list[Statement]:
    """Concordance imparity by attribute: a sentence for each significant one, and one for all others together."""
    gaps = [gap for gap in gaps if gap.size > 0]
    others = [gap for gap in gaps if not gap.beyond_chance and not isnan(gap.p_value)]
    others = others if len(others) > 1 else []
    found = []
    for gap in gaps:
        if gap not in others:
            worst = group_name(gap.attribute, gap.worst[0])
            text = f"Against patients of all groups, {worst} is ranked least well: concordance imparity "
            found.append(
                Statement("imparity", f"{text}{gap_text(gap)}. {chance_text(gap)}", gap.beyond_chance)
            )
    if others:
        called = headings({gap.attribute: [gap.worst[0], gap.best[0]] for gap in gaps})
        sizes = [
            f"{called[gap.attribute]} ({written(gap.size, 'points')} percentage points, {p_text(gap.p_value)})"
            for gap in others
        ]
        text = (
            "Against patients of all groups, the differences in ranking (concordance imparity) by "
            f"{listing(sizes, MOST_NAMED)} may be chance, allowing for {others[0].looks} attributes."
        )
        found.append(Statement("imparity", text))
    return found


def gap_text(gap: GroupGap) -> str:
    """The size of a gap in percentage points, with its interval."""
    shown = f"{written(gap.size, 'points')} percentage points"
    interval = interval_text(gap.low, gap.high, "points")
    return f"{shown} ({interval})" if interval else shown


def chance_text(gap: GroupGap) -> str:
    """Whether a gap may be chance, by the p-value that allows for all gaps looked at."""
    if isnan(gap.p_value):
        return "Whether it is chance was not tested."
    tested = p_text(gap.p_value)
    if gap.looks > 1:
        tested += f", adjusted for {gap.looks} attributes"
    verdict = "is more than chance would explain" if gap.beyond_chance else "may be chance"
    return f"That {verdict} ({tested})."


def shrinkage_statements(
    kept: float,
    slope: float,
    factor: float,
    compared: Sequence[tuple[float | None, float | None]],
    reference: str,
) -> list[Statement]:
    """Whether lower disparities than those of a reference come from smaller differences between scores alone.

    The model keeps the share `kept` of the reference's likelihood gain. Multiplied by `factor`, the reference's scores
    gain as much; `compared` are the model's disparities with those of the reference so multiplied.
    """
    if isnan(kept):
        return []
    text = (
        f"The model keeps {written(kept, 'share')} of {reference}'s information (calibration slope {written(slope)}, "
        "where 1 is right)"
    )
    if factor < SHRUNK and kept < SHRUNK and compared:
        lower, of = sum(is_lower(*pair) for pair in compared), len(compared)
        which = {0: "its disparities of risk are no", of: "its disparities of risk are"}.get(
            lower, f"{lower} of its {of} disparities of risk {'is' if lower == 1 else 'are'}"
        )
        them = "it" if lower == 1 < of else "them"
        text += f"; {which} lower than shrinking {reference} to the same information would make {them}"
    return [Statement("shrinkage", f"{text}.", kept < LITTLE_KEPT)]


def is_lower(model: float | None, shrunken: float | None) -> bool:
    """Whether a model's disparity is clearly below that of the reference shrunk to the same information."""
    return model is not None and shrunken is not None and bool(model < CLEARLY_LOWER * shrunken)


def comparison_statement(
    better: Sequence[str], worse: Sequence[str], surest: Mapping[str, str], other: str, *, known: bool
) -> Statement:
    """Whom a model serves better and worse than another, beyond chance.

    `surest` is the most significant number for "better" and for "worse"; `known` says whether anything could be
    compared.
    """
    if not known:
        text = f"The model cannot be compared with {other}: these patients have no comparable pair."
        return Statement("against_plain", text)
    if worse and not better:
        text = (
            f"{first_upper(other)} serves {_whom(worse)} better than this model "
            f"({surest['worse']}), and nobody worse: use {other}."
        )
        return Statement("dominated", text, True)
    if better:
        but = f", and {_whom(worse)} worse ({surest['worse']})" if worse else ""
        text = f"The model serves {_whom(better)} better than {other} ({surest['better']}){but}."
        return Statement("against_plain", text, bool(worse))
    return Statement("against_plain", f"The model and {other} serve every group alike, within chance.")


def _whom(names: Sequence[str]) -> str:
    """Names in a row; "everybody" comes first, with some of the groups in brackets."""
    if names[0] == "everybody" and len(names) > 1:
        return f"everybody ({listing(names[1:], MOST_SERVED - 1)} among them)"
    return listing(names, MOST_SERVED)


def slope_statement(
    slope: float,
    interval: tuple[float, float],
    other_slope: float,
    other: str,
    *,
    recalibrated: bool = False,
    can_recalibrate: bool = True,
) -> Statement:
    """What a calibration slope far from 1 means, beside that of another model, and what can be done about it."""
    text = (
        f"Its calibration slope is {written(slope)} ({interval_text(*interval)}; {other}: {written(other_slope)}; 1 is "
        f"right): differences between patients are {'under' if slope > 1 else 'over'}stated, so do not read its "
        "survival curves as probabilities"
    )
    if not recalibrated:
        return Statement("slope", f"{text}{' without recalibrating' if can_recalibrate else ''}.", True)
    remedy = "more patients" if slope > 1 else "more patients, fewer columns or a penalty"
    why = (
        "It was recalibrated in training already. Either too few events there could tell the right spread "
        f"({remedy} would help), or these patients differ from those (recalibrate on patients like these)."
    )
    return Statement("slope", f"{text}. {why}", True)
