"""The first screen: what the model does for whom, how sure that is, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Any

from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.audit.standing import EVERYBODY, WORST_FIRST, Standing, per_100, standings
from drosurv.evaluation import AgainstPlain
from drosurv.evaluation.against_plain import SLOPES
from drosurv.evaluation.summary import judged_calibration, judged_gaps
from drosurv.presentation import (
    Column,
    GroupGap,
    GroupNumber,
    Statement,
    Table,
    group_name,
    listing,
    plain,
    plain_rows,
    written,
)
from drosurv.presentation.sentences import chance_text, gap_text

# A calibration slope outside of these says that risks are too bold or too timid.
BOLD, TIMID = SLOPES
SERVED = {
    "worse": "in groups shown to be worse served",
    "not shown": "in groups where no difference is shown",
    "too few": "in groups too small to be judged",
    "better": "in groups shown to be better served",
}


def collect(evidence: Evidence) -> Part:
    """Verdict, natural frequencies, certainty and next steps."""
    result = evidence.audited
    level = result.settings.level
    groups = standings(evidence)
    everybody, named = groups[0], groups[1:]
    gap = next(iter(judged_gaps(result.rows, "concordance_index", level)), None)
    small = {(row.attribute, row.group) for row in result.rows if row.status == "small group"}
    off = [
        number
        for number in judged_calibration(result.calibration, small, result.settings.horizon, level)
        if number.low_adjusted > 0 or number.high_adjusted < 0
    ]
    status, headline = _verdict(evidence, everybody, named, gap, off)
    at = f"{written(result.settings.horizon, 'time')} {evidence.time_unit}"
    shares = {"no_model": per_100(evidence, groups, "no_model")}
    if evidence.against is not None:
        shares["reference"] = per_100(evidence, groups, "reference")
    statements = [
        Statement("verdict", headline, status not in ("clear", "unclear")),
        *_effects(evidence, everybody, at),
        *_certainty(evidence, named, gap),
        *(Statement("next_step", text) for text in _next_steps(evidence, everybody, named, gap, off, status)),
    ]
    return Part(
        statements=tuple(statements),
        tables=(_table(evidence, groups, at),),
        facts={
            "status": status,
            "per_100": shares,
            "groups": [_record(group) for group in groups],
            "gaps": [
                {**{name: plain(value) for name, value in vars(found).items()}, "size": plain(found.size)}
                for found in judged_gaps(result.rows, "concordance_index", level)
            ],
            "reference": evidence.reference,
            "horizon": plain(result.settings.horizon),
            "ranks_only": not len(result.calibration),
        },
    )


def _verdict(
    evidence: Evidence,
    everybody: Standing,
    named: list[Standing],
    gap: GroupGap | None,
    off: list[GroupNumber],
) -> tuple[str, str]:
    harmed = [group.name for group in named if group.no_model == "worse"]
    unclear = [group.name for group in named if group.no_model == "not shown"]
    lost = [group.name for group in (everybody, *named) if group.reference == "worse"]
    if not named:
        return "no_groups", "No groups were named, so this page cannot say whom the model serves."
    if everybody.no_model == "too few":
        return "untested", "No intervals were computed, so this page cannot tell a difference from noise."
    if everybody.no_model == "worse":
        return "harm", "Predictions are worse than giving every patient the same curve."
    if harmed:
        return "harm", (
            f"Not fit for {listing(harmed, 3)}: there, predictions are worse than giving every patient the same curve."
        )
    if evidence.against is not None and evidence.against.dominated:
        who = "patients as a whole are served worse"
        if everybody.reference != "worse":
            who = f"{listing(lost, 3)} {'is' if len(lost) == 1 else 'are'} served worse"
        better = f"{_first_upper(evidence.reference)} is the better choice"
        return "dominated", f"{better}: nobody is shown to gain from this model, and {who}."
    if gap is None:
        return "too_few", "Too few patients: no two groups are large enough to be compared."
    if gap.beyond_chance:
        return (
            "unequal",
            f"Not equally good for all: {group_name(gap.attribute, gap.worst[0])} is served worst.",
        )
    if off:
        return (
            "miscalibrated",
            f"The predicted probabilities are off for {_some([n.who for n in off], named)}.",
        )
    if unclear or everybody.no_model == "not shown":
        who = _some(unclear, named) if unclear else "all patients together"
        return "unclear", f"No harm is shown, but a benefit over no model is not shown either for {who}."
    return "clear", (
        "No group is seen to be badly served: every group that can be judged is better served than without a model, "
        "and no gap is beyond chance."
    )


def _effects(evidence: Evidence, everybody: Standing, at: str) -> list[Statement]:
    """What the model does on the whole, in numbers per 100."""
    theirs = everybody.reference_c_index
    reference = "" if isnan(theirs) else f"{evidence.reference} {_per_100(theirs)}, "
    ranked, low, high = everybody.c_index
    sure = "" if isnan(low) else f" ({_per_100(low)} to {_per_100(high)})"
    found = [
        Statement(
            "ranking",
            f"Of 100 pairs of patients, the model puts {_per_100(ranked)}{sure} in the right order ({reference}a coin "
            "50).",
        )
    ]
    if not isnan(everybody.expected) and not isnan(everybody.observed):
        found.append(
            Statement(
                "expectation",
                f"Of 100 patients, it expects {_per_100(everybody.expected)} to be free of the event at {at}; "
                f"{_per_100(everybody.observed)} were.",
            )
        )
    return found


def _certainty(evidence: Evidence, named: list[Standing], gap: GroupGap | None) -> list[Statement]:
    n, events = len(evidence.target), evidence.target.n_events
    judged = [group for group in named if group.no_model != "too few"]
    text = f"Judged on {n:,} patients with {events:,} events"
    if named:
        text += f"; {len(judged)} of {len(named)} groups are large enough to be judged"
    found = [Statement("size", f"{text}.")]
    if evidence.against is not None:
        found += [Statement("against", text) for text in _difference(evidence.against, evidence.reference)]
    if gap is not None:
        worst, best = (group_name(gap.attribute, label) for label, _ in (gap.worst, gap.best))
        told = f"{_first_upper(worst)} is ranked less well than {best} by {gap_text(gap)}. {chance_text(gap)}"
        found.append(Statement("gap", told, gap.beyond_chance))
    return found


def _difference(against: AgainstPlain, reference: str) -> Iterator[str]:
    """The model less the reference, all patients together: in likelihood, or in ranking where one has no curves."""
    rows = {row["metric"]: row for row in plain_rows(against.table) if row["attribute"] == EVERYBODY[0]}
    if row := rows.get("likelihood_gain"):
        what, size = "the log likelihood per patient", written(abs(row["difference"]))
    elif row := rows.get("concordance_index"):
        what, size = "the share of pairs ranked rightly", written(abs(row["difference"]), "share")
    else:
        return
    way = "higher" if row["difference"] > 0 else "lower"
    near, far = sorted((abs(row["low"]), abs(row["high"])))
    sure = f" ({written(near)} to {written(far)})" if row["verdict"] else ", which may be chance"
    yield f"Against {reference}, {what} is {size} {way}{sure}."


def _next_steps(
    evidence: Evidence,
    everybody: Standing,
    named: list[Standing],
    gap: GroupGap | None,
    off: list[GroupNumber],
    status: str,
) -> list[str]:
    harmed = [group.name for group in named if group.no_model == "worse"]
    unsure = [group.name for group in named if group.no_model in ("not shown", "too few")]
    found = []
    if harmed:
        found.append(
            f"Do not use the predictions for {listing(harmed, 3)} as they are. Correct the model there, then audit it "
            "again on other patients."
        )
    if status == "dominated":
        found.append(f"Use {evidence.reference}, or write down what this model is preferred for.")
    if off:
        found.append(
            f"Recalibrate before anybody is told a probability, above all for {_some([n.who for n in off], named)}."
        )
    (slope,) = evidence.audited.select(metric="calibration_slope", kind="overall") or (None,)
    if slope is not None and not BOLD <= slope.value <= TIMID and not isnan(slope.value):
        way = "bold" if slope.value < BOLD else "timid"
        found.append(
            f"Rescale the risk scores, which are too {way} on the whole (slope {written(slope.value)}; 1 is right)."
        )
    if gap is not None and gap.beyond_chance:
        found.append(
            f"Find out why {group_name(gap.attribute, gap.worst[0])} is ranked less well: what is not measured there, "
            "or measured otherwise?"
        )
    if unsure:
        found.append(f"Collect more patients of {_some(unsure, named)}: no benefit is shown for them yet.")
    if status == "no_groups":
        found.append("Name groups, such as sex and age, and audit again.")
    if status == "clear":
        found.append(
            "Nothing on this page speaks against use for these groups. It says nothing about other patients."
        )
    return [*found[:4], "Audit again when the model, the patients or their care change."]


def _table(evidence: Evidence, groups: list[Standing], at: str) -> Table:
    columns = [
        Column("group", "Group"),
        Column("of_100", "Of 100 patients", "count"),
        Column("ranked", "Pairs of 100 ranked rightly", "count"),
    ]
    if any(not isnan(group.reference_c_index) for group in groups):
        columns.append(Column("ranked_by_reference", f"by {evidence.reference}", "count"))
    if any(not isnan(group.expected) for group in groups):
        columns += [
            Column("expected", f"Of 100, free of the event at {at}: expected", "count"),
            Column("observed", "observed", "count"),
        ]
    columns.append(Column("no_model", "Against no model"))
    if evidence.against is not None:
        columns.append(Column("reference", f"Against {evidence.reference}"))
    rows = tuple(_row(group) for group in groups)
    return Table("verdict", "What the model does for whom", tuple(columns), rows)


def _row(group: Standing) -> dict[str, Any]:
    return {
        "group": group.name,
        "of_100": group.of_100,
        "ranked": plain(100 * group.c_index[0]),
        "ranked_by_reference": plain(100 * group.reference_c_index),
        "expected": plain(100 * group.expected),
        "observed": plain(100 * group.observed),
        "no_model": group.no_model,
        "reference": group.reference,
    }


def _record(group: Standing) -> dict[str, Any]:
    """A group for programs: every field of its standing, with its name."""
    return {"name": group.name, **{name: plain(value) for name, value in vars(group).items()}}


def _per_100(share: float) -> str:
    return written(100 * share, "count")


def _some(names: list[str], groups: list[Standing]) -> str:
    """The names, or in one word all groups."""
    return "every group" if len(names) == len(groups) > 1 else listing(names, 3)


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def draw(part: Part) -> dict[str, list[tuple[str, int, str]]]:
    """The bars: status, patients of 100, and what they are in."""
    return {
        name: [(status, shares[status], SERVED[status]) for status in reversed(WORST_FIRST) if shares[status]]
        for name, shares in part.facts["per_100"].items()
    }


SECTION = Section(
    key="verdict",
    heading="Verdict",
    place=10,
    collect=collect,
    draw=draw,
    template="""
<h2 id="verdict-heading" class="unseen">Verdict</h2>
<div class="body verdict-body">
{% set said = part.statements %}
{% for statement in said if statement.code == "verdict" %}
<p class="headline {{ part.facts.status }}">{{ statement.text }}</p>
{% endfor %}
<div class="answers">
  <div>
    <h3>What it does</h3>
    {% for statement in said if statement.code in ("ranking", "expectation") %}<p>{{ statement.text }}</p>{% endfor %}
    {{ m.of_100(drawn.no_model, "Against no model" if not part.facts.ranks_only else "Against ranking by chance") }}
    {% if drawn.get("reference") %}{{ m.of_100(drawn.reference, "Against " ~ part.facts.reference) }}{% endif %}
  </div>
  <div>
    <h3>How sure</h3>
    {% for statement in said if statement.code in ("size", "against", "gap") %}<p>{{ statement.text }}</p>{% endfor %}
    <h3>What to do next</h3>
    <ol class="steps">
    {% for statement in said if statement.code == "next_step" %}<li>{{ statement.text }}</li>{% endfor %}
    </ol>
  </div>
</div>
{{ m.plain_table(part.tables[0]) }}
</div>
""",
)
