"""The tables of one model, from its evaluation."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from drosurv.audit.wording import ACCURACY, BETWEEN, BETWEEN_GROUPS, BETWEEN_PATIENTS, Wording
from drosurv.inference import holm
from drosurv.presentation import Column, GroupGap, Table, is_lower, plain, plain_rows

if TYPE_CHECKING:
    from drosurv.audit.observed_survival import Bands
    from drosurv.evaluation import EvaluationResult
    from drosurv.evaluation.rows import Row

EVERYONE = "all patients"
ENDS = ("low", "high")
SIGNIFICANT = 0.05
BY_GROUP = (
    "concordance_index",
    "uno_concordance",
    "dynamic_auc",
    "concordance_fraction",
    "integrated_brier_score",
    "brier_skill",
    "likelihood_gain",
    "calibration_slope",
    "calibration_difference",
    "integrated_calibration_index",
    "d_calibration_p",
)
_GROUP = (Column("group", "Group"), Column("attribute", "Attribute"))
_SHARES = (Column("predicted", "Predicted", "share"), Column("observed", "Observed", "share", ENDS))


def accuracy_table(result: EvaluationResult) -> Table:
    """Every metric of all patients."""
    columns = (
        Column("metric", "Measure"),
        Column("meaning", "Meaning"),
        Column("value", "Estimate", "value", ENDS),
    )
    rows = tuple(
        _worded(words, row)
        for metric, words in ACCURACY.items()
        for row in result.select(metric=metric, kind="overall")
    )
    return Table("accuracy", "How well the model predicts, all patients together", columns, rows)


def fairness_table(result: EvaluationResult) -> Table:
    """Gaps between groups with their tests, then disparities between intersections and between patients."""
    rows = []
    for metric, words in BETWEEN_GROUPS.items():
        p_values = adjusted_p_values(result, metric)
        rows += [
            _worded(words, replace(row, p_value=p_values[row.attribute]), between=_sides(row))
            for row in result.select(metric=metric, kind="gap")
        ]
    rows += [
        _worded(words, row, scale=per_pair(metric, row.n), between=BETWEEN[metric])
        for metric, words in BETWEEN_PATIENTS.items()
        for row in result.select(metric=metric, kind="overall")
    ]
    columns = (
        Column("metric", "Measure"),
        Column("between", "Between"),
        Column("value", "Estimate", "value", ENDS),
        Column("p_value", "p (no gap)", "p_value"),
        Column("reading", "Reading"),
    )
    return Table(
        "fairness", "Differences between groups and between patients; 0 is none", columns, tuple(rows)
    )


def adjusted_p_values(result: EvaluationResult, metric: str) -> dict[str, float]:
    """Attribute to the p-value of its gap, which allows for the number of attributes."""
    rows = result.select(metric=metric, kind="gap")
    return dict(zip((row.attribute for row in rows), holm([row.p_value for row in rows]), strict=True))


def _sides(row: Row) -> str:
    """Between whom a gap is."""
    return row.attribute if row.group == "all" else f"{row.attribute}: {row.group}"


def group_table(result: EvaluationResult, worst: GroupGap | None) -> Table:
    """Every metric of every group; the strips show ranking, and the error that the model saves the group."""
    rows = []
    told = [row for row in result.rows if row.kind != "gap"]
    for (attribute, group), members in groupby(told, key=lambda row: (row.attribute, row.group)):
        own = [row for row in members if row.metric in BY_GROUP]
        everyone = own[0].kind == "overall"
        found: dict[str, Any] = {
            "attribute": "" if everyone else attribute,
            "group": EVERYONE if everyone else group,
            "patients": own[0].n,
            "events": own[0].events,
            "worst": worst is not None and (attribute, group) == (worst.attribute, worst.worst[0]),
            "note": _note({row.status for row in own}),
        }
        for row in own:
            found[row.metric] = plain(row.value)
            found |= {f"{row.metric}_low": plain(row.low), f"{row.metric}_high": plain(row.high)}
        rows.append(found)
    columns = [
        *_GROUP,
        Column("patients", "Patients", "count"),
        Column("events", "Events", "count"),
        Column("concordance_index", "c-index", "value", ("concordance_index_low", "concordance_index_high")),
    ]
    if result.select(metric="brier_skill", kind="overall"):
        ends = ("brier_skill_low", "brier_skill_high")
        columns.append(Column("brier_skill", "Error saved against no model", "share", ends))
    return Table("by_group", "How well each group is served", tuple(columns), tuple(rows))


def calibration_table(result: EvaluationResult, time_title: str) -> Table:
    """Predicted against observed survival at the horizons."""
    columns = (
        *_GROUP,
        Column("horizon", time_title, "time"),
        *_SHARES,
        Column("at_risk", "At risk", "count"),
    )
    rows = tuple(_with_everyone(row) for row in plain_rows(result.calibration))
    caption = (
        "Predicted less observed survival, in percentage points, at the quartiles of training event times "
        f"({time_title})"
    )
    return Table("calibration", caption, columns, rows)


def survival_table(result: EvaluationResult, bands: Bands) -> Table:
    """Mean predicted survival and Kaplan-Meier over time, with the band of each group's observed curve."""
    rows = []
    for key, curve in groupby(plain_rows(result.survival), key=lambda row: (row["attribute"], row["group"])):
        for row, band in zip(curve, plain_rows(bands[key]), strict=True):
            rows.append(_with_everyone({**row, "low": band["low"], "high": band["high"]}))
    columns = (*_GROUP, Column("time", "Time", "time"), *_SHARES)
    return Table("survival", "Mean predicted survival and Kaplan-Meier over time", columns, tuple(rows))


def shrinkage_table(result: EvaluationResult, reference: str) -> Table:
    """The model's disparities beside the reference's, as it is and shrunk to the same information."""
    columns = (
        Column("metric", "Disparity of risk"),
        Column("between", "Between"),
        Column("model", "This model", "value"),
        Column("reference", reference[:1].upper() + reference[1:], "value"),
        Column("shrunken", "The same, shrunk", "value"),
        Column("reading", "Reading"),
    )
    n = result.rows[0].n
    rows = []
    for row in [] if result.control is None else plain_rows(result.control.at_equal_gain):
        scale = per_pair(row["metric"], n)
        words = {**BETWEEN_GROUPS, **BETWEEN_PATIENTS}[row["metric"]]
        lower = is_lower(row["model"], row["shrunken"])
        rows.append(
            {
                "metric": words.label,
                "between": BETWEEN.get(row["metric"], row["attribute"]),
                **{name: _scaled(row[name], scale) for name in ("model", "reference", "shrunken")},
                "reading": f"{'lower' if lower else 'no lower'} than by shrinking alone",
            }
        )
    caption = f"Would {reference} look as fair, had it only shrunk its scores until it says as little?"
    return Table("shrinkage", caption, columns, tuple(rows))


def per_pair(metric: str, n: int) -> float:
    """What F_I, printed as a sum, is multiplied by: only those who know how many pairs there are can read a sum."""
    return 2 / (n * (n - 1)) if metric == "individual_disparity" and n > 1 else 1.0


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else plain(scale * value)


def _worded(words: Wording, row: Row, *, scale: float = 1.0, between: str = "") -> dict[str, Any]:
    values = {name: plain(scale * getattr(row, name)) for name in ("value", *ENDS)}
    found = {"metric": words.label, "meaning": words.meaning, **values}
    if not between:
        return found
    p_value = plain(row.p_value)
    reading = "" if p_value is None else "beyond chance" if p_value < SIGNIFICANT else "may be chance"
    return found | {"between": between, "p_value": p_value, "reading": reading}


def _note(statuses: set[str]) -> str:
    """What a reader must know before trusting a group's numbers."""
    if "small group" in statuses:
        return "small group: read with care"
    return "some measures are undefined here" if "undefined" in statuses else ""


def _with_everyone(row: dict[str, Any]) -> dict[str, Any]:
    """The row, with the words that readers see where it is of all patients."""
    return {**row, "attribute": "", "group": EVERYONE} if row["attribute"] == "overall" else row
