"""An evaluation in plain sentences: who is served worst, by how much, and whether that is noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv.evaluation.catalogue import label_of
from drosurv.evaluation.engine import EVERYONE
from drosurv.evaluation.rows import Row
from drosurv.presentation import p_text, percent, written

if TYPE_CHECKING:
    from drosurv.evaluation.result import EvaluationResult

# A disparity within this share of the shrunken reference's is the same.
_NEAR = 0.05
# A factor this near 1 is no shrinking.
_UNSHRUNK = 0.99


def sentences(result: EvaluationResult) -> list[str]:
    """The summary, one finding each."""
    found = [_overall(result)]
    for attribute in result.attributes:
        found.append(_gap_of_concordance(result, attribute))
        found.append(_imparity(result, attribute))
    found += _harm(result) + _calibration(result) + _shrinkage(result)
    small = {row.whose: row for row in result.rows if row.status == "small group"}
    found += [
        f"{who} is a small group ({row.n} patients, {row.events} events): its numbers say little."
        for who, row in small.items()
    ]
    if not result.settings.n_bootstrap:
        found.append("No intervals were computed (n_bootstrap=0), so noise cannot be told from difference.")
    return found + [note[0].upper() + note[1:] for note in result.notes]


def _overall(result: EvaluationResult) -> str:
    own = {row.metric: row for row in result.select(kind="overall")}
    first = own["concordance_index"]
    text = f"{first.n:,} patients, {first.events:,} events ({percent(first.censoring)} censored): c-index {first.text}"
    if "integrated_brier_score" in own:
        text += f", IBS {own['integrated_brier_score'].text}"
    return text + "."


def _gap_of_concordance(result: EvaluationResult, attribute: str) -> str:
    groups = _defined(result, attribute, "concordance_index")
    if len(groups) < 2:
        return f"{attribute}: fewer than two groups have a c-index, so there is no gap."
    worst, best = groups[0], groups[-1]
    gap = result.select(metric="concordance_index", attribute=attribute, kind="gap")[0]
    return (
        f"{attribute}: among themselves, {worst.group} are ordered least well (c-index {worst.text}), {best.group} "
        f"best ({best.text}); the gap is {gap.text}{_verdict(gap, result.settings.level)}."
    )


def _imparity(result: EvaluationResult, attribute: str) -> str:
    groups = _defined(result, attribute, "concordance_fraction")
    if len(groups) < 2:
        return (
            f"{attribute}: fewer than two groups have a comparable pair, so there is no concordance imparity."
        )
    gap = result.select(metric="concordance_imparity", attribute=attribute, kind="gap")[0]
    return (
        f"{attribute}: against all patients, {groups[0].group} are ordered least well; concordance imparity is "
        f"{gap.text}{_verdict(gap, result.settings.level)}."
    )


def _defined(result: EvaluationResult, attribute: str, metric: str) -> list[Row]:
    """An attribute's groups that have a value, the lowest first."""
    rows = result.select(metric=metric, attribute=attribute, kind="group")
    return sorted((row for row in rows if not np.isnan(row.value)), key=lambda row: row.value)


def _verdict(gap: Row, level: float) -> str:
    if np.isnan(gap.p_value):
        return ""
    by_chance = "which chance alone often gives" if gap.p_value > 1 - level else "more than chance gives"
    return f", {by_chance} ({gap.test} {p_text(gap.p_value)})"


def _harm(result: EvaluationResult) -> list[str]:
    groups = [row for row in result.select(metric="likelihood_gain", kind="group") if not np.isnan(row.value)]
    if not groups:
        return []
    harmed = [row for row in groups if row.value < 0]
    if not harmed:
        least = min(groups, key=lambda row: row.value)
        unsure = ", which does not rule harm out" if least.low < 0 else ""
        return [
            f"No group is seen to be worse served than by no model; {least.whose} gains least (likelihood gain per "
            f"patient {least.text}{unsure})."
        ]
    return [
        f"{row.whose} {'is' if row.verdict == 'harmed' else 'may be'} worse served than by no model: likelihood "
        f"gain per patient {row.text}."
        for row in harmed
    ]


def _calibration(result: EvaluationResult) -> list[str]:
    return [
        f"Predicted survival at {result.settings.horizon:g} is too {'high' if row.value > 0 else 'low'} for "
        f"{row.whose}, by {row.text}."
        for row in result.select(metric="calibration_difference")
        if row.kind != "gap" and (row.low > 0 or row.high < 0)
    ]


def _shrinkage(result: EvaluationResult) -> list[str]:
    control = result.control
    if control is None:
        return []
    (slope,) = result.select(metric="calibration_slope", kind="overall")
    found = [
        f"The model keeps {percent(result.value('share_of_gain'))} of {result.settings.reference}'s likelihood gain "
        f"over no model; its calibration slope is {slope.text} (1 is right, above 1 is shrunken)."
    ]
    if control.factor > _UNSHRUNK:
        return found
    lead = f"The scores of {result.settings.reference} times {control.factor:.2f} gain as much as the model"
    kinds: dict[str, list[dict[Any, Any]]] = {"smaller": [], "the same": [], "larger": []}
    for row in control.at_equal_gain.to_dict("records"):
        near = abs(row["model"] - row["shrunken"]) <= _NEAR * row["shrunken"]
        kind = "the same" if near else "smaller" if row["shrunken"] < row["model"] else "larger"
        kinds[kind].append(row)
    verdicts = {
        "smaller": "shrinking alone would do better",
        "the same": "there the model has only shrunk",
        "larger": "there the model does more than shrink",
    }
    found += [
        f"{lead}, with {kind} {_named(rows)}: {verdicts[kind]}." for kind, rows in kinds.items() if rows
    ]
    return found


def _named(disparities: list[dict[Any, Any]]) -> str:
    return ", ".join(
        label_of(row["metric"])
        + ("" if row["attribute"] == EVERYONE else f" of {row['attribute']}")
        + f" ({written(row['shrunken'])}, model {written(row['model'])})"
        for row in disparities
    )
