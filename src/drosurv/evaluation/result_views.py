"""Sentences and tables about an evaluation, and its Markdown document.

They are made from the table of numbers and the group table.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from drosurv.estimators import CoxPH
from drosurv.estimators.coefficients.proportional_hazards import UNTESTED, takes_long
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.evaluator import whose
from drosurv.evaluation.group_table import NO_CURVES, Row
from drosurv.evaluation.risks_by_time import MOST_LEFT_OUT
from drosurv.judging.group_picture import MANY_GROUPS
from drosurv.judging.words import of_hundred, who
from drosurv.paper.shrinkage import is_lower
from drosurv.patients.arrays import on_host
from drosurv.patients.groups import EVERYONE
from drosurv.patients.observation import Rows
from drosurv.patients.target import Surv, Target
from drosurv.predictions.any_model import final_step, prepared, unwrapped
from drosurv.presentation import (
    Column,
    Statement,
    Table,
    counted,
    counted_patients,
    first_upper,
    group_name,
    in_years,
    label_name,
    listing,
    literal,
    moment,
    plain,
    plain_rows,
    written,
)
from drosurv.tables.encoder import encode_features

# Largest number of groups that a sentence names.
_MOST_NAMED = 8
DECISIONS = {
    "sensitivity": "sensitivity",
    "specificity": "specificity",
    "ppv": "positive predictive value",
    "npv": "negative predictive value",
    "net_benefit": "net benefit",
}
_IN_SENTENCES = DECISIONS | {name: f"the {DECISIONS[name]}" for name in ("ppv", "npv")}
_OVERALL = ("concordance_index", "integrated_brier_score")


def statements(result: Any, reference: str) -> tuple[Statement, ...]:
    """Return statements on the findings and on ranking, then on groups and metrics that could not be judged."""
    overall = {row.metric: row for row in result.select(kind="overall")}
    counts, control, found = result.counts(result.settings.time_unit), result.control, result.verdict
    problems = [Statement(row.status, row.text, True) for row in found.problems]
    compared = control is not None and "share_of_gain" in overall
    return (
        *([Statement("counts", counts)] if counts else []),
        Statement("overall", _of_everybody(overall, result.settings)),
        *(problems or [Statement(found.status, found.text)]),
        *(() if result.decisions is None else unknown_decisions(result.decisions)),
        *(_ranking(result) if "concordance_index" in overall else ()),
        *(control.statements(overall["share_of_gain"].value, reference) if compared else ()),
        *_not_judged(result.groups),
    )


def _of_everybody(overall: Mapping[str, Row], settings: Any) -> str:
    """Say how many patients there are, and how well they are predicted; other causes are not censored."""
    first, others = next(iter(overall.values())), settings.other_events
    numbers = [f"{CATALOGUE[name].label} {overall[name].text}" for name in _OVERALL if name in overall]
    whole = max(settings.rows, first.patients)
    censored = written(1 - (first.events + others) / whole, "share") if whole else "–"
    who = counted_patients(first.patients, settings.rows, settings.clusters, settings.clusters_name)
    more = f", {counted(others, 'event')} of another cause" if others else ""
    how = f"{censored} of the rows censored" if settings.rows > first.patients else f"{censored} censored"
    return f"{who}, {counted(first.events, 'event')}{more} ({how}): {', '.join(numbers)}."


def unknown_decisions(table: pd.DataFrame) -> Iterator[Statement]:
    """State which measures of decisions cannot be estimated."""
    unknown = table[table["value"].isna() & (table["group"] != "gap")]
    for (attribute, group), part in unknown.groupby(["attribute", "group"], sort=False):
        names = ", ".join(_IN_SENTENCES[metric] for metric in part["metric"])
        whom, why = who(str(attribute), str(group)), part["reason"].iloc[0]
        yield Statement("decisions", first_upper(f"{names} of {whom} cannot be estimated: {why}."))


def _ranking(result: Any) -> list[Statement]:
    """State the lowest c-index of a group that is large enough, which the verdict does not use.

    Only groups of one attribute are compared with each other, because any model ranks young patients alone less well
    than patients of all ages.
    """
    found = []
    for attribute in result.attributes:
        groups = result.select(metric="concordance_index", attribute=attribute, kind="group")
        large = sorted((row for row in groups if row.status == "ok"), key=lambda row: row.value)
        if large and large[0].value < large[-1].value:
            found.append((large[0], large[-1]))
    if not found:
        alike = "No two groups that are large enough have different c-indices."
        groups = result.select(kind="group")
        return [Statement("worst_group", alike if groups else "There are no two groups to compare.")]
    worst, best = max(found, key=lambda pair: pair[1].value - pair[0].value)
    text = (
        f"Lowest c-index: {group_name(worst.attribute, worst.group)}, {written(worst.value)}, against "
        f"{written(best.value)} in {group_name(best.attribute, best.group)}. C-indices of groups whose risks or "
        "follow-up have different distributions are not comparable, so the verdict does not use them."
    )
    return [Statement("worst_group", text)]


def _not_judged(groups: pd.DataFrame) -> list[Statement]:
    """State which groups are not judged, and why."""
    # The notes already say that a model has no curves.
    shown = ~groups["judged"].astype(bool) & (groups["attribute"] != EVERYONE) & (groups["why"] != NO_CURVES)
    return [
        Statement("small_groups", f"Not judged ({why}): {listing(list(map(whose, *names)), _MOST_NAMED)}.")
        for why, part in groups[shown].groupby("why", sort=False)
        for names in [(part["attribute"], part["group"])]
    ]


def _untested(why: str) -> tuple[Statement, ...]:
    return (Statement("hazards_untested", f"{UNTESTED}{why}"),)


def hazards_statement(model: Any, X: Any, target: Target, rows: Rows, level: float) -> tuple[Statement, ...]:
    """State whether effects change with time, or why that was not tested; empty if the model is not a Cox model.

    Plain Cox is fitted to the test patients and tested on them. So the training data are not needed, and overfitting
    is not mistaken for effects that change with time. `rows` may have entry times, strata, offset and clusters.
    """
    final = final_step(model)
    is_cox = hasattr(final, "check_proportional_hazards") and not final.capabilities.own_curves
    if X is None or not is_cox or np.ndim(getattr(final, "coef_", 0)) != 1:
        return ()
    n, d, events = len(target), len(final.coef_), target.n_events
    if events < 10 * d:
        return _untested(f"{counted(events, 'event')} for {counted(d, 'feature')}, fewer than 10 each.")
    if takes_long(n, d):
        long = f"{n:,} patients and {d} features take long"
        return _untested(f"{long}. Use check_proportional_hazards() of the model.")
    with warnings.catch_warnings(action="ignore"):
        # On the CPU, because a fit of tensors keeps no residuals to test.
        features = on_host(encode_features(final, prepared(model, X)))
        if isinstance(features, np.ndarray) and hasattr(unwrapped(model), "steps"):
            # Most transformers return arrays, but know the names of their columns.
            with suppress(AttributeError, ValueError):
                features = pd.DataFrame(features, columns=unwrapped(model)[:-1].get_feature_names_out())
        y = Surv.from_arrays(target.event, target.time, entry=rows.entry, clusters=rows.cluster_codes)
        cox = CoxPH().fit(features, y, **rows.for_models)
        if not cox.converged_:
            return _untested("plain Cox did not converge on these patients.")
        test = cox.check_proportional_hazards()
    return (Statement("hazards", test.sentence(1 - level), concern=bool(test.changing(1 - level))),)


_ENDS = ("low", "high")
# Kaplan-Meier survival with its interval.
OBSERVED = Column("observed", "Observed", "share", _ENDS)
OBSERVED_RISK = Column("observed", "Observed risk", "share", _ENDS)
# What disparities of everybody compare.
BETWEEN = {
    "intersectional_disparity": "intersections of all groups",
    "individual_disparity": "patients, per pair",
}


def named(row: dict[str, Any], headings: Mapping[str, str]) -> dict[str, Any]:
    """Return a row with the names of attribute and group that readers see; everybody has an empty attribute."""
    attribute, group = row["attribute"], row["group"]
    if attribute == EVERYONE:
        return row | {"attribute": "", "group": "all patients"}
    return row | {"attribute": headings[attribute], "group": label_name(attribute, group)}


def time_column(key: str, unit: str) -> Column:
    """Return a column of times, with their unit if it is known."""
    return Column(key, f"Time ({unit})" if unit else "Time", "time")


def survival_columns(time: Column, *more: Column) -> tuple[Column, ...]:
    """Return columns of predicted and observed survival."""
    return (
        Column("group", "Group"),
        Column("attribute", "Attribute"),
        time,
        Column("predicted", "Predicted", "share"),
        OBSERVED,
        *more,
        Column("at_risk", "At risk", "count"),
    )


def in_many_groups(table: pd.DataFrame) -> pd.Series[bool]:
    """Return which rows, one per group, are of an attribute with many groups, such as hospitals."""
    return table["attribute"].map(table["attribute"].value_counts()) > MANY_GROUPS


def judged_groups(groups: pd.DataFrame) -> set[tuple[str, str]]:
    """Return attribute and label of everybody and of the judged groups of attributes with few groups."""
    kept = (groups["judged"].astype(bool) & ~in_many_groups(groups)) | (groups["attribute"] == EVERYONE)
    return set(zip(groups["attribute"][kept], groups["group"][kept], strict=True))


def times_tables(result: Any, unit: str = "") -> tuple[Table, Table]:
    """Return the table of times, of 100 patients with a column for each time, and with a row for each time.

    Only everybody and groups that are judged are shown, and attributes with few groups. Of 100 patients only times are
    shown until which nearly all were followed, and the horizon: the risk of the others alone may be lower than that by
    an earlier time.
    """
    shown = judged_groups(result.groups)
    rows = [row for row in plain_rows(result.times) if (row["attribute"], row["group"]) in shown]
    wide: dict[str, dict[str, Any]] = {}
    unknown = "not followed"
    for row in rows:
        row["who"] = whose(row["attribute"], row["group"], "all patients")
        cell, everybody = unknown, row["patients"] + row["left_out"]
        nearly_all = row["left_out"] <= MOST_LEFT_OUT * everybody or row["time"] == result.settings.horizon
        if row["observed"] is not None and nearly_all:
            ends = (np.nan if row[end] is None else row[end] for end in ("low", "high"))
            cell = "{}, {} expected".format(*of_hundred(row["observed"], row["predicted"], *ends))
        wide.setdefault(row["who"], {"who": row["who"]})[f"{row['time']:g}"] = cell
    times = [
        time
        for time in dict.fromkeys(row["time"] for row in rows)
        if time == result.settings.horizon or any(row[f"{time:g}"] != unknown for row in wide.values())
    ]
    level, group = f"{100 * result.settings.level:g} %", Column("who", "Group")
    by_time = (Column(f"{time:g}", f"By {moment(time, unit)}{in_years(time, unit)}") for time in times)
    columns = (
        group,
        time_column("time", unit),
        Column("patients", "Patients", "count"),
        Column("predicted", "Predicted risk", "share"),
        OBSERVED_RISK,
        Column.measured("ratio", "Observed / predicted", right=1.0),
    )
    of_100 = (
        f"Of 100 patients, how many had the event by each time, with {level} interval that is not adjusted, and how "
        "many the model expected"
    )
    caption = f"Predicted and observed risk by time, with {level} intervals that are not adjusted"
    return (
        Table("of_100_patients", of_100, (group, *by_time), tuple(wide.values())),
        Table("times", caption, columns, tuple(rows)),
    )


def shrinkage_table(result: Any, reference: str) -> Table:
    """Return disparities of the model, of the reference, and of the reference shrunk to the same likelihood gain."""
    factor = "" if result.control is None else f" x {result.control.factor:.2f}"
    columns = (
        Column("metric", "Disparity of risk"),
        Column("between", "Between"),
        Column("model", "This model", "value"),
        Column("reference", first_upper(reference), "value"),
        Column("shrunken", f"{first_upper(reference)}, log risks{factor}", "value"),
        Column("reading", "This model, at the same gain"),
    )
    rows = []
    for row in [] if result.control is None else plain_rows(result.control.at_equal_gain):
        scale, names = per_pair(row["metric"], result), ("model", "reference", "shrunken")
        between = BETWEEN.get(row["metric"]) or result.headings[row["attribute"]]
        reading = "lower" if is_lower(row["model"], row["shrunken"]) else "not lower"
        values = {name: None if row[name] is None else plain(scale * row[name]) for name in names}
        rows.append(
            {"metric": CATALOGUE[row["metric"]].label, "between": between, **values, "reading": reading}
        )
    caption = (
        f"Disparities of the model, of {reference}, and of {reference} with log risks multiplied so that both have "
        "the same likelihood gain"
    )
    return Table("shrinkage", caption, columns, tuple(rows))


def per_pair(metric: str, result: Any) -> float:
    """Return the factor that turns F_I, in the paper a sum over pairs, into a mean over pairs; 1 for other metrics."""
    n = result.rows[0].patients
    return 2 / float(n * (n - 1)) if metric == "individual_disparity" and n > 1 else 1.0


def document(result: Any, summary: Sequence[str]) -> str:
    """Return a Markdown document: the summary, then tables (overall, by attribute, risks by time, shrinkage)."""
    settings = result.settings
    parts = [
        f"# Evaluation of {literal(settings.model)}",
        "\n".join(f"- {literal(sentence)}" for sentence in summary),
        "## Overall",
        _overall(result),
    ]
    for attribute, called in result.headings.items():
        parts += [f"## By {literal(called)}", _groups(result, attribute), _gaps(result, attribute)]
    if len(result.times):
        parts += ["## Risks by time", times_tables(result, settings.time_unit)[1].to_markdown().rstrip()]
    if shrinkage := shrinkage_table(result, settings.reference):
        parts += ["## Shrinkage control", shrinkage.to_markdown().rstrip()]
    of_tests = "those of likelihood gains and calibration slopes for all tests"
    level = f"{100 * settings.level:g} % intervals"
    parts.append(f"_{level}. Adjusted are {of_tests}, those of gaps for all attributes._")
    return "\n\n".join(parts) + "\n"


def _overall(result: Any) -> str:
    rows = [row._asdict() | {"metric": CATALOGUE[row.metric].label} for row in result.select(kind="overall")]
    return _table([Column("metric", "metric"), Column("value", "value", "value", _ENDS)], rows)


def _groups(result: Any, attribute: str) -> str:
    records = [record for record in result.group_records() if record["attribute"] == attribute]
    rows = [record | {"group": label_name(attribute, record["group"])} for record in records]
    columns = [
        Column("group", "group"),
        Column("patients", "n", "count"),
        Column("events", "events", "count"),
        Column("censoring", "censored", "share"),
        *(Column.measured(name, metric.label) for name, metric in CATALOGUE.items() if name in rows[0]),
    ]
    return _table(columns, rows)


def _gaps(result: Any, attribute: str) -> str:
    rows = [
        row._asdict() | {"metric": CATALOGUE[row.metric].label, "group": label_name(attribute, row.group)}
        for row in result.select(attribute=attribute, kind="gap")
    ]
    columns = [
        Column("metric", "gap"),
        Column("group", "between"),
        Column("value", "size", "value", _ENDS),
        Column("p", "adjusted p", "p"),
    ]
    return _table(columns, rows)


def _table(columns: Sequence[Column], rows: Sequence[dict[str, Any]]) -> str:
    return Table("table", "", tuple(columns), tuple(rows)).to_markdown().rstrip()
