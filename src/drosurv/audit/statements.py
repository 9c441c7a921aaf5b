"""The summary in plain words: who is served worst, by how much, is it noise, is anybody harmed.

Shorter than the sentences of an evaluation, in the order of a reader's questions, and with codes for programs. What is
said of one group among many allows for how many were looked at.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from drosurv.audit.model_tables import SIGNIFICANT, adjusted_p_values, is_lower
from drosurv.audit.report import Statement
from drosurv.inference import widening
from drosurv.presentation import plain, plain_rows, written

if TYPE_CHECKING:
    from drosurv.evaluation import EvaluationResult
    from drosurv.evaluation.rows import Row

# Below this share of the reference's information, fairness was paid for with silence.
LITTLE_KEPT = 0.5
# Above this share of the reference's scores, or of its information, there is no shrinking to speak of.
SHRUNK = 0.99
MOST_WITH_NUMBERS = 3
MOST_NAMED = 8


def statements(result: EvaluationResult, reference: str) -> tuple[Statement, ...]:
    """The sentences of the summary, the most important first; `reference` is what the reference is called."""
    return (
        *_about_gaps(result),
        *_about_harm(result),
        *_about_calibration(result),
        *_about_shrinkage(result, reference),
        *_about_small_groups(result),
    )


class JudgedGap(NamedTuple):
    """The lowest and highest c-index of an attribute's groups that are large enough to be judged."""

    low: Row
    high: Row
    # Between all groups, small ones included: interval and test are of this one.
    tested: Row
    p_value: float

    @property
    def size(self) -> float:
        """The difference of the two."""
        return self.high.value - self.low.value

    @property
    def is_tested(self) -> bool:
        """Whether interval and test are of these two groups."""
        return abs(self.size - self.tested.value) < 1e-9


def judged_gaps(result: EvaluationResult) -> list[JudgedGap]:
    """Gaps of c-index by attribute, the largest first; its lower end is the group served worst.

    Groups are compared within their attribute, since ranking only the young is harder than ranking everybody, whatever
    the model. p-values allow for the number of attributes.
    """
    found = []
    p_values = adjusted_p_values(result, "concordance_index")
    for attribute in result.attributes:
        rows = result.select(metric="concordance_index", attribute=attribute, kind="group")
        groups = sorted((row for row in rows if row.status == "ok"), key=lambda row: row.value)
        if len(groups) > 1:
            (tested,) = result.select(metric="concordance_index", attribute=attribute, kind="gap")
            found.append(JudgedGap(groups[0], groups[-1], tested, p_values[attribute]))
    return sorted(found, key=lambda gap: -gap.size)


def _about_gaps(result: EvaluationResult) -> list[Statement]:
    found: list[Statement] = []
    tested = sum(not isnan(p) for p in adjusted_p_values(result, "concordance_index").values())
    for gap in judged_gaps(result):
        low, high = gap.low, gap.high
        size = f"{_points(gap.size)} percentage points"
        if gap.is_tested and not isnan(gap.tested.low):
            size += f" ({_points(gap.tested.low)} to {_points(gap.tested.high)})"
        if not found:
            text = (
                f"Served worst: {low.whose}. Of the pairs of patients in this group, the model ranks "
                f"{written(low.value, 'share')} rightly, against {written(high.value, 'share')} in {high.whose}: a gap "
                f"of {size}."
            )
        else:
            text = f"Between groups of {low.attribute}, the gap is {size}; lowest is {low.group}."
        code = "gap" if found else "worst_group"
        text = f"{text} {_chance(gap.p_value, tested, gap.is_tested)}"
        found.append(Statement(code, text, gap.p_value < SIGNIFICANT))
    if not found:
        named = (
            "No two groups are large enough to be compared." if result.attributes else "No groups were named."
        )
        found.append(Statement("worst_group", named, bool(result.attributes)))
    return found


def _chance(p_value: float, attributes: int, is_tested: bool) -> str:
    if isnan(p_value):
        return "Whether it is chance was not tested."
    shown = written(p_value, "p_value")
    tested = f"p {shown}" if shown.startswith("below") else f"p = {shown}"
    if attributes > 1:
        tested += f", allowing for {attributes} attributes"
    what = "That" if is_tested else "With the small groups counted too, the largest gap"
    if p_value < SIGNIFICANT:
        return f"{what} is more than chance would explain ({tested})."
    return f"{what} may be chance ({tested})."


def _about_harm(result: EvaluationResult) -> list[Statement]:
    rows = [
        row
        for metric in ("brier_skill", "likelihood_gain")
        for row in result.select(metric=metric, kind="group")
        if row.status == "ok" and not isnan(row.low)
    ]
    if not rows:
        return []
    wider = widening(result.settings.level, len(rows))
    harmed = [row for row in rows if row.value + wider * (row.high - row.value) < 0]
    if harmed:
        named = [f"{row.whose} ({_loss(row)})" for row in harmed[:MOST_NAMED]]
        named += [f"and {len(harmed) - MOST_NAMED} more"] if len(harmed) > MOST_NAMED else []
        return [Statement("harm", f"Worse served than by no model at all: {', '.join(named)}.", True)]
    # Those nearest to harm first, in units of their own uncertainty.
    rows.sort(key=lambda row: row.value / max(row.high - row.low, 1e-12))
    unclear = _names([row for row in rows if row.verdict != "served"])
    if unclear:
        text = f"No group is shown to be served worse than by no model, but it cannot be ruled out for {unclear}."
        return [Statement("harm", text)]
    every = "Every group large enough to be judged" if _small(result) else "Every group"
    return [Statement("harm", f"{every} is better served than it would be without a model.")]


def _loss(row: Row) -> str:
    """By how much a group is worse served than by no model."""
    if row.metric == "brier_skill":
        return f"squared error {written(-row.value, 'share')} larger"
    return f"log likelihood {written(-row.value)} lower per patient"


def _about_calibration(result: EvaluationResult) -> list[Statement]:
    """From the intervals of the calibration table, which readers have before them."""
    small = {(row.attribute, row.group) for row in _small(result)}
    judged = [
        row
        for row in plain_rows(result.calibration)
        if row["horizon"] == plain(result.settings.horizon)
        and row["attribute"] != "overall"
        and (row["attribute"], row["group"]) not in small
        and row["low"] is not None
        # Before a group's first event its observed survival is 1 without an interval.
        and row["low"] < row["high"]
    ]
    wider = widening(result.settings.level, len(judged))
    off = [row for row in judged if _is_off(row, wider)]
    at = f"At time {written(result.settings.horizon, 'time')}, predicted survival"
    if not judged:
        return []
    if not off:
        return [Statement("calibration", f"{at} agrees with the observed in every group, within chance.")]
    off.sort(key=lambda row: -abs(row["difference"]))
    parts = [
        f"{_points(abs(row['difference']))} percentage points too {'high' if row['difference'] > 0 else 'low'} for "
        f"{row['attribute']} {row['group']}"
        for row in off[:MOST_WITH_NUMBERS]
    ]
    if len(off) > MOST_WITH_NUMBERS:
        parts.append(f"and off for {len(off) - MOST_WITH_NUMBERS} more")
    return [Statement("calibration", f"{at} is {', '.join(parts)}.", True)]


def _is_off(row: dict[str, Any], wider: float) -> bool:
    end = row["high"] if row["difference"] > 0 else row["low"]
    return bool(abs(row["difference"]) > wider * abs(end - row["observed"]))


def _about_shrinkage(result: EvaluationResult, reference: str) -> list[Statement]:
    kept, slope = (
        result.select(metric="share_of_gain"),
        result.select(metric="calibration_slope", kind="overall"),
    )
    if result.control is None or not kept or isnan(kept[0].value):
        return []
    text = (
        f"The model keeps {written(kept[0].value, 'share')} of {reference}'s information (calibration slope "
        f"{written(slope[0].value)}, where 1 is right)"
    )
    if result.control.factor < SHRUNK and kept[0].value < SHRUNK:
        compared = plain_rows(result.control.at_equal_gain)
        n_lower = sum(map(is_lower, compared))
        which = {0: "its disparities of risk are no", len(compared): "its disparities of risk are"}.get(
            n_lower, f"{n_lower} of its {len(compared)} disparities of risk {'is' if n_lower == 1 else 'are'}"
        )
        them = "it" if n_lower == 1 < len(compared) else "them"
        text += f"; {which} lower than shrinking {reference} to the same information would make {them}"
    return [Statement("shrinkage", f"{text}.", kept[0].value < LITTLE_KEPT)]


def _about_small_groups(result: EvaluationResult) -> list[Statement]:
    small = _names(_small(result))
    return [Statement("small_groups", f"Too small to be judged: {small}.")] if small else []


def _small(result: EvaluationResult) -> list[Row]:
    return [row for row in result.rows if row.kind == "group" and row.status == "small group"]


def _names(rows: list[Row]) -> str:
    """The groups that the rows are of, each once, under their attributes."""
    groups = list(dict.fromkeys((row.attribute, row.group) for row in rows))
    under: dict[str, list[str]] = {}
    for attribute, group in groups[:MOST_NAMED]:
        under.setdefault(attribute, []).append(group)
    more = [f"and {len(groups) - MOST_NAMED} more"] if len(groups) > MOST_NAMED else []
    return "; ".join([*(f"{attribute} {', '.join(named)}" for attribute, named in under.items()), *more])


def _points(value: float) -> str:
    return written(100 * value, "points")
