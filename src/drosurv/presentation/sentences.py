"""Sentences about groups: whom a model serves worst, by how much, whether it may be chance, and who is harmed.

It takes plain records, so that an evaluation, the report and the command line say the same words of the same numbers.
Where several numbers were looked at, the intervals and p-values of records allow for all of them. A sentence decides by
these, shows them, and names the p-value of a gap on its own beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal

from drosurv.presentation.wording import (
    attribute_name,
    counted,
    first_upper,
    group_name,
    headings,
    interval_text,
    label_name,
    listing,
    p_text,
    written,
)

# A model that keeps less than this share of the reference's likelihood gain says little about anybody.
LITTLE_KEPT = 0.5
# Above this share of the reference's scores, or of its information, shrinkage is too small to mention.
SHRUNK = 0.99
# A disparity within five percent of what shrinking gives is not called lower.
CLEARLY_LOWER = 0.95
# A smaller difference is not seen in three decimals. Two fits of one model differ by less, and always the same way:
# without this, plain Cox would be called worse than plain Cox, and a million patients off by nothing.
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
class GroupNumber:
    """What was measured of one group, and its interval, which allows for all numbers judged with it."""

    attribute: str
    group: str
    value: float
    low: float
    high: float
    metric: str = ""

    @property
    def who(self) -> str:
        """The group's name."""
        return group_name(self.attribute, self.group)

    @property
    def is_off(self) -> bool:
        """Whether it differs from 0 by more than chance, allowing for all numbers judged with it, and to the eye."""
        return (self.low > 0 or self.high < 0) and abs(self.value) >= LEAST_DIFFERENCE


@dataclass(frozen=True)
class GroupGap:
    """The difference between the groups of an attribute that are served worst and best: label and value of each.

    Interval and p-value allow for all gaps tested together, as many as there were `looks`, the p-value alone does not;
    NaN where nothing was tested.
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


def gap_statements(gaps: Sequence[GroupGap], *, any_groups: bool) -> list[Statement]:
    """The largest gap first, which names the group served worst; values are shares of pairs ranked right."""
    if not gaps:
        text = (
            "No two groups are large enough to be compared."
            if any_groups
            else "There are no two groups to compare."
        )
        return [Statement("worst_group", text, any_groups)]
    gap, *others = sorted(gaps, key=lambda gap: -gap.size)
    if gap.size == 0:
        return [
            Statement("worst_group", "The model ranks the patients of no group better than those of another.")
        ]
    worst = (
        f"Served worst: {group_name(gap.attribute, gap.worst[0])}. Of the pairs of patients in this group, the model "
        f"ranks {written(gap.worst[1], 'share')} rightly, against {written(gap.best[1], 'share')} in "
        f"{group_name(gap.attribute, gap.best[0])}: a gap of {gap_text(gap)}. {chance_text(gap)}"
    )
    each = "Between groups of {attribute}, the gap is {gap}; lowest is {worst}."
    more = _each_or_together("gap", others, each, "The gaps between groups of")
    return [Statement("worst_group", worst, gap.beyond_chance), *more]


def imparity_statements(gaps: Sequence[GroupGap]) -> list[Statement]:
    """Concordance imparity by attribute: pairs with patients of any group."""
    each = "Against patients of all groups, {worst} is ranked least well: concordance imparity {gap}."
    together = "Against patients of all groups, the differences in ranking (concordance imparity) by"
    return _each_or_together("imparity", gaps, each, together)


def _each_or_together(code: str, gaps: Sequence[GroupGap], each: str, together: str) -> list[Statement]:
    """A sentence for each gap, but one for all that may be chance: they are no news one by one."""
    gaps = [gap for gap in gaps if gap.size > 0]
    calm = [gap for gap in gaps if not gap.beyond_chance and not isnan(gap.p_value)]
    calm = calm if len(calm) > 1 else []
    called = headings({gap.attribute: [gap.worst[0], gap.best[0]] for gap in gaps})
    found = []
    for gap in gaps:
        if gap not in calm:
            worst = group_name(gap.attribute, gap.worst[0])
            sentence = each.format(attribute=called[gap.attribute], worst=worst, gap=gap_text(gap))
            found.append(Statement(code, f"{sentence} {chance_text(gap)}", gap.beyond_chance))
    if calm:
        told = [
            f"{called[gap.attribute]} ({written(gap.size, 'points')} percentage points, {p_text(gap.p_value)})"
            for gap in calm
        ]
        text = (
            f"{together} {listing(told, MOST_NAMED)} may be chance, allowing for {calm[0].looks} attributes."
        )
        found.append(Statement(code, text))
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


def by_group(numbers: Iterable[GroupNumber]) -> dict[tuple[str, str], list[GroupNumber]]:
    """The numbers of each group, by attribute and label."""
    groups: dict[tuple[str, str], list[GroupNumber]] = {}
    for number in numbers:
        groups.setdefault((number.attribute, number.group), []).append(number)
    return groups


def against_nothing(numbers: Sequence[GroupNumber]) -> Literal["better", "not shown", "worse"]:
    """Return whether any gain of a group over no model is above or below 0 beyond chance."""
    ends = [number.high for number in numbers if number.is_off]
    return "not shown" if not ends else "worse" if min(ends) < 0 else "better"


def harm_statements(gains: Sequence[GroupNumber], *, some_small: bool) -> list[Statement]:
    """Who is worse served than by no model; numbers are gains over no model, below 0 is harm."""
    groups = by_group(gains)
    if not groups:
        return []
    harmed = [own for numbers in groups.values() if (own := [n for n in numbers if n.is_off and n.high < 0])]
    if harmed:
        named = listing([f"{own[0].who} ({', '.join(map(_loss, own))})" for own in harmed], MOST_NAMED)
        return [Statement("harm", f"Worse served than by no model at all: {named}.", True)]
    unclear = [key for key, numbers in groups.items() if against_nothing(numbers) == "not shown"]
    if unclear:
        # Those nearest to harm first, in units of their own uncertainty.
        unclear.sort(key=lambda key: min(n.value / max(n.high - n.low, 1e-12) for n in groups[key]))
        text = (
            "No group is shown to be served worse than by no model, but it cannot be ruled out for "
            f"{_names(unclear)}."
        )
        return [Statement("harm", text)]
    every = "Every group large enough to be judged" if some_small else "Every group"
    return [Statement("harm", f"{every} is better served than it would be without a model.")]


def calibration_statements(
    groups: Sequence[GroupNumber], everybody: GroupNumber | None, at: str
) -> list[Statement]:
    """Whose predicted survival is off; numbers are predicted less observed survival at the time `at`."""
    off = [number for number in groups if number.is_off]
    lead = f"At {at}, predicted survival"
    if not off and everybody is not None and everybody.is_off:
        alone = ", and in no group alone beyond chance" if groups else ""
        told = f"{lead} is {_off_by(everybody.value)} for all patients together{alone}."
        return [Statement("calibration", told, True)]
    if not groups:
        return []
    if not off:
        return [Statement("calibration", f"{lead} agrees with the observed in every group, within chance.")]
    off.sort(key=lambda number: -abs(number.value))
    parts = [f"{_off_by(number.value)} for {number.who}" for number in off[:MOST_WITH_NUMBERS]]
    if len(off) > MOST_WITH_NUMBERS:
        parts.append(f"and off for {len(off) - MOST_WITH_NUMBERS} more")
    return [Statement("calibration", f"{lead} is {', '.join(parts)}.", True)]


def _off_by(difference: float) -> str:
    return f"{written(abs(difference), 'points')} percentage points too {'high' if difference > 0 else 'low'}"


def shrinkage_statements(
    kept: float,
    slope: float,
    factor: float,
    compared: Sequence[tuple[float | None, float | None]],
    reference: str,
) -> list[Statement]:
    """Whether the model is fairer than its reference, or only says less.

    It keeps a share of the reference's likelihood gain. The factor is what the reference's scores are multiplied by to
    gain as much; compared are the model's disparities with those of the reference so shrunk.
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
    """Whom a model serves better and worse than another, beyond chance, with the number that shows each most surely.

    `known` says whether anything could be compared.
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
    """Everybody first, and who is meant above all."""
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


def small_group_statements(groups: Sequence[tuple[str, str]]) -> list[Statement]:
    """Who is too few to be judged; attribute and label of each group."""
    return [Statement("small_groups", f"Too small to be judged: {_names(list(groups))}.")] if groups else []


def _loss(number: GroupNumber) -> str:
    """By how much a group is worse served than by no model."""
    if number.metric == "brier_skill":
        return f"squared error {written(-number.value, 'share')} larger"
    return f"log likelihood {written(-number.value)} lower per patient"


def _names(groups: list[tuple[str, str]]) -> str:
    """The groups, each once, under their attributes."""
    each = list(dict.fromkeys(groups))
    under: dict[str, list[str]] = {}
    for attribute, group in each[:MOST_NAMED]:
        named = under.setdefault(attribute_name(attribute, group), [])
        # The first says whose group it is.
        named.append(label_name(attribute, group) if named else group_name(attribute, group))
    more = [f"and {len(each) - MOST_NAMED} more"] if len(each) > MOST_NAMED else []
    return "; ".join([*map(", ".join, under.values()), *more])
