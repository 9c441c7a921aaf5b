"""The first screen: what the model does for whom, how sure that is, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isnan
from typing import Any

from drosurv.audit.evidence import Evidence
from drosurv.audit.judgement import Grounds, find_grounds, next_steps, verdict
from drosurv.audit.sections.section import Part, Section
from drosurv.audit.standing import Standing, per_100
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.statements import judged_gaps
from drosurv.presentation import (
    Column,
    Statement,
    Table,
    counted,
    first_upper,
    group_name,
    in_years,
    moment,
    plain,
    written,
)
from drosurv.presentation.sentences import chance_text, gap_text, small_group_statements

# As a cell of the table says it.
WORDS = {"not shown": "no difference shown", "too few": "too few to judge"}


def collect(evidence: Evidence) -> Part:
    """Verdict, natural frequencies, certainty and next steps."""
    result, found = evidence.audited, find_grounds(evidence)
    groups = [found.everybody, *found.named]
    status, headline = verdict(found)
    at = moment(result.settings.horizon, evidence.time_unit)
    statements = (
        Statement("verdict", headline, status not in ("clear", "unclear")),
        *_effects(evidence, found.everybody, at),
        *_certainty(evidence, found),
        *(Statement("next_step", text) for text in next_steps(found, status)),
    )
    compared = ("no_model",) if evidence.against is None else ("no_model", "reference")
    return Part(
        statements=statements,
        tables=(_table(evidence, groups, at, ranks_only=found.ranks_only),),
        facts={
            "status": status,
            "per_100": {of: per_100(evidence, groups, of) for of in compared},
            "groups": [{"name": group.name, **plain(vars(group))} for group in groups],
            # Version 1 of the summary says whether small groups were counted in: no longer.
            "gaps": [
                {**plain(vars(gap)), "size": plain(gap.size), "with_small": False}
                for gap in judged_gaps(result, "concordance_index")
            ],
            "reference": evidence.reference_name,
            "same": _same(evidence),
            "horizon": plain(result.settings.horizon),
            "ranks_only": found.ranks_only,
            "too_few": " ".join(statement.text for statement in small_group_statements(result.small_groups)),
            "note": _terms(evidence),
        },
    )


def _same(evidence: Evidence) -> bool:
    """Whether the audited model is the reference itself: one sentence says so, and nothing is to be compared."""
    return evidence.against is not None and evidence.against.same


def _terms(evidence: Evidence) -> str:
    """What the words of the first screen mean, for readers who meet them here."""
    told = ["No model: every patient is given the same curve."]
    if not len(evidence.audited.calibration):
        told = ["Ranking by chance: half of all pairs are put in the right order."]
    if "causes" in evidence.also:
        told.append("The event: one of any cause; Cause by cause tells them apart.")
    if evidence.against is not None and evidence.reference_name == "plain Cox":
        told.append("Plain Cox: the usual statistical model, trained on the same patients.")
    if evidence.against is not None:
        shown = " ".join(statement.text for statement in evidence.against.statements)
        named = [metric for metric in CATALOGUE.values() if f"({metric.label} " in shown]
        told += [f"{first_upper(metric.label)}: {metric.meaning}." for metric in named]
    return " ".join([*told, "Better and worse: by more than chance explains."])


def _effects(evidence: Evidence, everybody: Standing, at: str) -> Iterator[Statement]:
    """What the model does on the whole, in numbers per 100."""
    ranked, low, high = map(_per_100, everybody.c_index)
    sure = "" if isnan(everybody.c_index[1]) else f" ({low} to {high})"
    theirs = everybody.reference_c_index
    reference = "" if isnan(theirs) or _same(evidence) else f"{evidence.reference_name} {_per_100(theirs)}, "
    pairs = f"Of 100 pairs of patients, the model puts {ranked}{sure} in the right order"
    yield Statement("ranking", f"{pairs} ({reference}a coin 50).")
    if not isnan(everybody.expected) and not isnan(everybody.observed):
        years = in_years(evidence.audited.settings.horizon, evidence.time_unit)
        expected = f"it expects {_per_100(everybody.expected)} to be free of the event at {at}{years}"
        yield Statement("expectation", f"Of 100 patients, {expected}; {_per_100(everybody.observed)} were.")


def _certainty(evidence: Evidence, found: Grounds) -> Iterator[Statement]:
    target = evidence.target
    text = f"Judged on {counted(len(target), 'patient')} with {counted(target.n_events, 'event')}"
    if evidence.until is not None:
        text += f" up to {moment(evidence.until, evidence.time_unit)}, where the predictions end"
    if found.named and found.everybody.no_model != "not tested":
        judged = len(found.named) - len(found.stand("too few"))
        text += f"; {judged} of {len(found.named)} groups are large enough to be judged"
    yield Statement("size", f"{text}.")
    if found.against is not None:
        yield from found.against.statements
    if (gap := found.gap) is not None and gap.size:
        worst, best = (group_name(gap.attribute, label) for label, _ in (gap.worst, gap.best))
        # No sentence begins with a group: its name is a column's, which has no capital to begin with.
        told = f"The model ranks {worst} less well than {best}, by {gap_text(gap)}. {chance_text(gap)}"
        yield Statement("gap", told, gap.beyond_chance)


def _table(evidence: Evidence, groups: list[Standing], at: str, *, ranks_only: bool) -> Table:
    columns = [
        Column("group", "Group"),
        Column("of_100", "Of 100 patients", "count"),
        Column("ranked", "Pairs of 100 ranked rightly", "count"),
    ]
    same = _same(evidence)
    if not same and any(not isnan(group.reference_c_index) for group in groups):
        columns.append(Column("ranked_by_reference", f"The same by {evidence.reference_name}", "count"))
    if any(not isnan(group.expected) for group in groups):
        columns += [
            Column("expected", f"Of 100, expected free of the event at {at}", "count"),
            Column("observed", "Of 100, observed so", "count"),
        ]
    columns.append(Column("no_model", "Against chance" if ranks_only else "Against no model"))
    if evidence.against is not None and not same:
        columns.append(Column("reference", f"Against {evidence.reference_name}"))
    return Table("verdict", "What the model does for whom", tuple(columns), tuple(map(_row, groups)))


def _row(group: Standing) -> dict[str, Any]:
    """A group's numbers; those of a handful of patients are noise, and may tell what became of one of them."""
    shares = {
        "ranked": group.c_index[0],
        "ranked_by_reference": group.reference_c_index,
        "expected": group.expected,
        "observed": group.observed,
    }
    known = group.no_model != "too few"
    return {
        "group": group.name,
        "of_100": group.of_100,
        **{name: plain(100 * share) if known else None for name, share in shares.items()},
        "no_model": WORDS.get(group.no_model, group.no_model),
        "reference": WORDS.get(group.reference, group.reference),
    }


def _per_100(share: float) -> str:
    return written(100 * share, "count")


def draw(part: Part) -> Table:
    """The groups that can be judged: rows of nothing but dashes would bury them."""
    table = part.tables[0]
    judged = tuple(row for row in table.rows if row.get("no_model") != WORDS["too few"])
    return replace(table, rows=judged)


SECTION = Section(
    key="verdict",
    heading="Verdict",
    place=10,
    collect=collect,
    draw=draw,
    template="""
{% set said = part.statements %}
{% for statement in said if statement.code == "verdict" %}
<p class="headline {{ part.facts.status }}">{{ statement.text }}</p>
{% endfor %}
<div class="answers">
  <div>
    <h3>What it does</h3>
    {% for statement in said if statement.code in ("ranking", "expectation") %}<p>{{ statement.text }}</p>{% endfor %}
    {% set shares = part.facts.per_100 %}
    {{ m.of_100(shares.no_model, "Against ranking by chance" if part.facts.ranks_only else "Against no model") }}
    {% if shares.get("reference") and not part.facts.same %}
    {{ m.of_100(shares.reference, "Against " ~ part.facts.reference) }}
    {% endif %}
  </div>
  <div>
    <h3>How sure</h3>
    {% for statement in said if statement.code not in ("verdict", "ranking", "expectation", "next_step") %}
    <p>{{ statement.text }}</p>
    {% endfor %}
    <h3>What to do next</h3>
    <ol class="steps">
    {% for statement in said if statement.code == "next_step" %}<li>{{ statement.text }}</li>{% endfor %}
    </ol>
  </div>
</div>
{{ m.plain_table(drawn) }}
{% if part.facts.get("too_few") %}<p class="aside">{{ part.facts.too_few }}</p>{% endif %}
{% if part.facts.get("note") %}<p class="aside">{{ part.facts.note }}</p>{% endif %}
""",
)
