"""The first section: warnings, the verdict, the group table, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.result_views import named, times_tables
from drosurv.judging.group_picture import GroupPicture, PictureRow, beside_risk
from drosurv.judging.questions import KINDS
from drosurv.judging.verdict import PROBLEMS, Judgement, briefly
from drosurv.judging.words import CENSORED_BEFORE, compared_events, events_sentence, period, who
from drosurv.patients.groups import EVERYONE
from drosurv.patients.target import has_causes
from drosurv.presentation import (
    Column,
    Statement,
    Table,
    aligned,
    as_sentence,
    listing,
    moment,
    plain,
    plain_rows,
    with_interval,
)
from drosurv.report.charts import Picture, picture
from drosurv.report.evidence import PATIENTS, Evidence, Part, Section, judged_counts
from drosurv.tables.spellings import spellings

FOUND = "found by search"
# Largest number of subgroups from the search in the table.
_MOST_FOUND = 3
# The note explains ratios of events and of risks that differ by more, on the log scale.
_APART = 0.02
# Largest number of groups whose left out patients are named.
_MOST_LEFT_OUT = 4
# Largest number of problems besides those of the headline.
_MOST_PROBLEMS = 8


def collect(evidence: Evidence) -> Part:
    """Return warnings, verdict, numbers of all patients, next steps, and the group table."""
    found, result = evidence.verdict, evidence.audited
    counts = result.counts(evidence.time_unit)
    statements = (
        *(Statement("verdict", text, found.status in PROBLEMS) for text in found.texts),
        *([Statement("counts", counts)] if counts else ()),
        Statement("excluded", evidence.excluded),
        Statement("closing", evidence.closing),
        *_warnings(evidence),
        *_other_problems(found),
        *(Statement("next_step", step) for step in found.steps),
        *_all_patients(evidence),
    )
    rows = [*group_rows(result), *_found(evidence)]
    times = times_tables(result, evidence.time_unit) if len(result.times) else ()
    return Part(
        statements=statements,
        tables=(group_table(rows, evidence), *times),
        facts={
            "status": found.status,
            "problems": [{"who": row.who, **plain(row._asdict(), None)} for row in found.problems],
            "findings": [plain(row._asdict(), None) for row in evidence.findings],
            "warnings": [dict(warning) for warning in evidence.page.warnings],
            "note": _note(evidence, rows),
            "note_on_times": _note_on_times(evidence) if times else "",
            "times": plain_rows(result.times),
            "picture": [plain(row._asdict()) for row in picture_rows(result, rows, evidence.time_unit)],
        },
    )


def _other_problems(found: Judgement) -> Iterator[Statement]:
    """Yield the first problems that the headline does not name, and the number of all others."""
    others = [problem.text for problem in found.problems if problem.text not in found.texts]
    # One more is not counted, but named.
    shown = len(others) if len(others) <= _MOST_PROBLEMS + 1 else _MOST_PROBLEMS
    for text in others[:shown]:
        yield Statement("problem", text, concern=True)
    if len(others) > shown:
        more = f"{len(others) - shown:,} more problems of groups: see the group table."
        yield Statement("problem", more, concern=True)


def picture_rows(result: EvaluationResult, rows: list[dict[str, Any]], unit: str) -> tuple[PictureRow, ...]:
    """Return the rows of the picture: of the evaluation, and of the subgroups found, with their time or correction."""
    if rows[0]["expected"] is None:
        return ()
    named, subgroups, by = result.picture_by(unit), [], result.horizon_in_words(unit)
    for row in rows:
        if row["attribute"] == FOUND:
            shown = {key: row[key] for key in ("patients", "observed", "expected", "ratio", "note")}
            if named.by:
                events = compared_events(row["observed"], row["expected"])
                how = " ".join(filter(None, (row["when"], row["note"])))
                shown |= beside_risk(row["risk"], by) | {"note": f"{how}: {events}" if how else ""}
            subgroups.append(PictureRow(row["group"] if named.by else row["who"], "found", **shown))
    return (*named.rows, *subgroups)


def draw(part: Part) -> Picture | None:
    """Return the picture of the groups; None for a model without survival curves."""
    rows = part.facts.get("picture")
    return picture(GroupPicture.from_records(rows)) if rows else None


def _warnings(evidence: Evidence) -> Iterator[Statement]:
    """Yield the warnings of the top of the page, blocking ones first."""
    for severity in ("blocking", "note"):
        for warning in evidence.page.warnings:
            if warning["severity"] == severity:
                yield Statement(f"{severity}_warning", as_sentence(warning["text"]), severity == "blocking")


def _all_patients(evidence: Evidence) -> Iterator[Statement]:
    """State how well all patients together are predicted."""
    everybody, unit = plain_rows(evidence.audited.groups)[0], evidence.time_unit
    if everybody["c_index"] is not None:
        ranked = with_interval(*(everybody[f"c_index{end}"] for end in ("", "_low", "_high")))
        yield Statement("ranking", f"c-index {ranked}; 0.5 is chance.")
    for row in evidence.findings:
        if row.attribute == EVERYONE and row.question in ("level", "timing", "slope"):
            yield Statement(f"{row.question} of all", row.text)
    if everybody["expected"] is not None:
        until = evidence.audited.last_judged
        by = "" if until is None else moment(until, unit)
        text = events_sentence(everybody["observed"], everybody["expected"], by=by)
        if until is None and round(everybody["observed"]) < evidence.target.n_events:
            text = f"Within the time that the model predicts: {text}"
        yield Statement("events", f"{text} {evidence.audited.not_judged}".rstrip())


def group_rows(result: EvaluationResult) -> list[dict[str, Any]]:
    """Return the rows of the group table in words, with risks by the horizon; of groups not judged only their size."""
    rows, risks = [], result.by_horizon(result.times)
    order, problems = ["overall", *result.headings], briefly(result.found)
    known = [row for row in plain_rows(result.groups) if row["attribute"] in order]
    for row in sorted(known, key=lambda row: order.index(row["attribute"])):
        shown_as = named(row, result.headings)
        name = who(row["attribute"], row["group"])
        hidden = not row["judged"] and row["expected"] is not None
        kept = ("attribute", "group", "patients", "judged")
        shown = {key: None for key in row if key not in kept} if hidden else row
        under = {"heading": shown_as["attribute"], "label": shown_as["group"]}
        ends, own = ("predicted", "observed"), risks.get((row["attribute"], row["group"]), {})
        risk = {f"risk_{end}": None if hidden else own.get(end) for end in (*ends, "ratio")}
        finding = problems.get((row["attribute"], row["group"]), "")
        if not row["judged"]:
            # Of scores alone the slope is judged.
            unknown = "not judged" if row["slope"] is None else "number of events not judged"
            finding = "; ".join(filter(None, (finding, f"{unknown}: {row['why']}")))
        rows.append({**row, **shown, **risk, **under, "who": name, "finding": finding})
    return rows


def _found(evidence: Evidence) -> Iterator[dict[str, Any]]:
    """Yield rows of significant subgroups, with p-values adjusted for all subgroups that were searched."""
    rescaled = not isinstance(evidence.bounds, str) and evidence.bounds.rescaled is not None
    note = "after correction for everybody" if rescaled else ""
    # Columns of the group table that are not known of a subgroup are empty.
    empty = dict.fromkeys(evidence.audited.groups.columns)
    # Two rules of the same patients are shown once.
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in evidence.subgroups:
        same = (*(row[name] for name in ("question", "patients", "observed")), round(row["expected"], 6))
        found.setdefault(same, row)
    for row in list(found.values())[:_MOST_FOUND]:
        # Events of a part of the follow-up are named as such.
        when = period(row["since"], row["until"], evidence.time_unit)
        name = f"{row['group']}, {when}" if when else row["group"]
        risk = evidence.risks_of_subgroups.get(row["group"])
        ends = {
            f"risk_{end}": None if risk is None else risk[end] for end in ("predicted", "observed", "ratio")
        }
        yield {
            **empty,
            **row,
            **{"who": name, "label": name, "attribute": FOUND, "heading": FOUND, "when": when, "note": note},
            **{"ratio_p": row["p"], "risk": risk, **ends},
            "finding": f"{KINDS[row['question']].briefly} (found by search{note and f', {note}'})",
        }


def group_table(rows: list[dict[str, Any]], evidence: Evidence) -> Table:
    """Return the group table; columns without any value are left out."""
    at = moment(evidence.audited.settings.horizon, evidence.time_unit)
    when = "whole follow-up" if evidence.audited.last_judged is None else f"at {at}"
    columns = (
        Column("who", "Group"),
        PATIENTS,
        *judged_counts(evidence.audited, evidence.time_unit),
        Column.measured("ratio", "Observed / expected events", right=1.0),
        Column("ratio_p", "p, adjusted", "p"),
        Column.measured("slope", f"Calibration slope, {when}", right=1.0),
        Column("risk_predicted", f"Risk by {at}, predicted", "share"),
        Column("risk_observed", f"Risk by {at}, observed", "share"),
        Column.measured("c_index", "c-index"),
        Column.measured("gain", "Gain over no model"),
        Column.measured("gain_over_reference", f"Gain over {evidence.page.reference_name}"),
        Column("finding", "Finding"),
    )
    known = [column for column in columns if any(row.get(column.key) not in (None, "") for row in rows)]
    if not evidence.is_compared:
        known = [column for column in known if column.key != "gain_over_reference"]
    return Table("groups", "The group table", aligned(known, rows), tuple(rows))


def _note(evidence: Evidence, rows: list[dict[str, Any]]) -> str:
    """Explain the columns, and name groups that may be one."""
    has_curves, until = rows[0]["expected"] is not None, evidence.audited.last_judged
    expected = "predicted cumulative hazards, summed over the whole follow-up of each patient"
    if until is not None:
        when = moment(until, evidence.time_unit)
        expected = f"predicted probabilities by {when}, summed, against observed ones, {CENSORED_BEFORE}"
    sentences = [
        f"Expected events: {expected}. Slope: 1 is right; below 1, predicted risks differ too much. Gain: "
        "log likelihood per patient over giving everybody the same curve. Intervals and p-values of these are adjusted "
        f"for all {evidence.audited.settings.n_tests:,} tests of this report."
    ] * has_curves
    apart = [
        row["who"]
        for row in rows
        if row.get("risk_ratio")
        and row["ratio"]
        # Not where the events are those of a part of the follow-up, or after a correction.
        and not (row.get("when") or row.get("note"))
        and abs(math.log(row["ratio"] / row["risk_ratio"])) > _APART
    ]
    if apart:
        why = (
            "events are counted over the whole follow-up, in which patients who are followed long, and late times at "
            "which few are at risk, count more; risks count each patient once, by one time."
        )
        if until is not None:
            by = evidence.audited.horizon_in_words(evidence.time_unit)
            why = f"events are those by {moment(until, evidence.time_unit)}, risks those by {by}."
        sentences.append(
            f"Observed over expected events differ from observed over predicted risk for {listing(apart, 3)}: {why}"
        )
    used = "the verdict does not use it" if has_curves else "the verdict uses only that of all patients"
    about = "The c-index compares patients of the same group."
    sentences.append(f"{about} Its interval is not adjusted, and {used}.")
    if has_causes(evidence.y):
        sentences.append(f"The event is {evidence.event_name}.")
    spelled = [
        f"{evidence.audited.headings[attribute.name]} {'/'.join(family)}"
        for attribute in evidence.attributes
        for family in spellings(attribute.labels)
    ]
    if spelled:
        sentences.append(f"Check the table: {listing(spelled, 3)} may be one group in several spellings.")
    return " ".join(sentences)


def _note_on_times(evidence: Evidence) -> str:
    """Say what the observed risk is, and who is left out."""
    times, level = evidence.audited.times, f"{100 * evidence.level:g} %"
    how = "Kaplan-Meier" if evidence.cause is None else "Aalen-Johansen"
    found = (
        f"Observed: {how} within groups of like predicted risk, averaged over the same patients. {level} intervals "
        "of each number alone; the verdict adjusts for all tests."
    )
    left = [
        f"{row['left_out']:,} of {who(row['attribute'], row['group'])} by {moment(row['time'], evidence.time_unit)}"
        for row in plain_rows(times[times["left_out"] > 0])
    ]
    if left:
        named_first = listing(left, _MOST_LEFT_OUT)
        found += f" Left out, because patients of like risk were not followed until then: {named_first}."
    return found


SECTION = Section(
    key="verdict",
    heading="Verdict",
    place=10,
    collect=collect,
    draw=draw,
    template="""
{% set said = part.statements %}
{% for statement in said if statement.code == "blocking_warning" %}
<p class="warning blocking"><strong>Warning.</strong> {{ statement.text }}</p>
{% endfor %}
<div class="opening{% if not drawn %} without-picture{% endif %}">
<div>
<div class="headline {{ part.facts.status }}">
{% for statement in said if statement.code == "verdict" %}<p>{{ statement.text }}</p>{% endfor %}
</div>
{% for statement in said if statement.code == "counts" %}
<p class="excluded">{{ statement.text }}</p>
{% endfor %}
</div>
{% if drawn %}{{ m.picture(drawn) }}{% endif %}
<div>
{% for statement in said if statement.code in ("excluded", "closing") %}
<p class="excluded">{{ statement.text }}</p>
{% endfor %}
</div>
</div>
{% set notes = said | selectattr("code", "equalto", "note_warning") | list %}
{% if notes %}
<ul class="warning notes">
{% for statement in notes %}<li>{{ statement.text }}</li>{% endfor %}
</ul>
{% endif %}
<div class="answers">
  <div>
    <h3>All patients</h3>
    {% for statement in said if statement.code in
      ("ranking", "level of all", "timing of all", "slope of all", "events") %}
    <p>{{ statement.text }}</p>
    {% endfor %}
    {% set more = said | selectattr("code", "equalto", "problem") | list %}
    {% if more %}
    <h3>Also found</h3>
    {% for statement in more %}<p>{{ statement.text }}</p>{% endfor %}
    {% endif %}
  </div>
  <div>
    <h3>What to do next</h3>
    <ol class="steps">
    {% for statement in said if statement.code == "next_step" %}<li>{{ statement.text }}</li>{% endfor %}
    </ol>
  </div>
</div>
{% if part.table("of_100_patients") %}
{{ m.plain_table(part.table("of_100_patients"), below=false) }}
<p class="aside">{{ part.facts.note_on_times }}</p>
{{ m.folded(part.table("times"), below=true) }}
{% endif %}
{{ m.plain_table(part.tables[0], below=true, by_heading=true) }}
{% if part.facts.get("note") %}<p class="aside">{{ part.facts.note }}</p>{% endif %}
""",
)
