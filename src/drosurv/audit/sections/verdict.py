"""The first screen: what the model does for whom, how sure that is, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.audit.standing import WORST_FIRST, Standing, per_100, standings
from drosurv.evaluation.against_plain import is_far_from_1
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.rows import Row
from drosurv.evaluation.summary import judged_calibration, judged_gaps
from drosurv.presentation import (
    Column,
    GroupGap,
    GroupNumber,
    Statement,
    Table,
    first_upper,
    group_name,
    listing,
    moment,
    plain,
    written,
)
from drosurv.presentation.sentences import chance_text, gap_text

if TYPE_CHECKING:
    from drosurv.evaluation import AgainstPlain
    from drosurv.insight import Rule

SERVED = {
    "worse": "in groups shown to be worse served",
    "not shown": "in groups where no difference is shown",
    "too few": "in groups too small to be judged",
    "better": "in groups shown to be better served",
}
# As a cell of the table says it.
WORDS = {"not shown": "no difference shown", "too few": "too few to judge"}


class Grounds(NamedTuple):
    """What the verdict is reached from: how all patients stand, and each group.

    The gap is the largest between two groups. Groups are `off` whose predicted survival is so beyond chance. The
    slope is there only where it is far from 1 beyond chance. `against` is the model beside the reference. Rules are of
    groups that nobody named, found and confirmed to be served worse than by no model.
    """

    everybody: Standing
    named: list[Standing]
    gap: GroupGap | None = None
    off: Sequence[GroupNumber] = ()
    slope: Row | None = None
    against: AgainstPlain | None = None
    rules: Sequence[Rule] = ()

    @property
    def harmed(self) -> list[str]:
        """Who is shown to be served worse than by no model, also where nobody named them."""
        return [*self.stand("worse"), *(f"patients with {rule}" for rule in self.rules)]

    def stand(self, status: str) -> list[str]:
        """Names of the groups that stand so against no model."""
        return [group.name for group in self.named if group.no_model == status]


def find(evidence: Evidence) -> Grounds:
    """Read the findings off the evidence."""
    result = evidence.audited
    everybody, *named = standings(evidence)
    judged = judged_calibration(result)
    slopes = result.select(metric="calibration_slope", kind="overall")
    return Grounds(
        everybody,
        named,
        next(iter(judged_gaps(result, "concordance_index")), None),
        [number for number in judged if number.low_adjusted > 0 or number.high_adjusted < 0],
        next((row for row in slopes if is_far_from_1(row.value, row.low, row.high)), None),
        evidence.against,
        [] if evidence.worst_off is None else [group.rule for group in evidence.worst_off.groups],
    )


def collect(evidence: Evidence) -> Part:
    """Verdict, natural frequencies, certainty and next steps."""
    result, found = evidence.audited, find(evidence)
    groups = [found.everybody, *found.named]
    status, headline = verdict(found)
    at = moment(result.settings.horizon, evidence.time_unit)
    statements = (
        Statement("verdict", headline, status not in ("clear", "unclear")),
        *_effects(evidence, found.everybody, at),
        *_certainty(evidence, found),
        *(Statement("next_step", text) for text in _next_steps(found, status)),
    )
    stands: tuple[Literal["no_model", "reference"], ...] = ("no_model", "reference")
    return Part(
        statements=statements,
        tables=(_table(evidence, groups, at),),
        facts={
            "status": status,
            "per_100": {
                of: per_100(evidence, groups, of) for of in stands[: 1 + (evidence.against is not None)]
            },
            "groups": [_record(group) for group in groups],
            "gaps": [
                {**{name: plain(value) for name, value in vars(gap).items()}, "size": plain(gap.size)}
                for gap in judged_gaps(result, "concordance_index")
            ],
            "reference": evidence.reference_name,
            "horizon": plain(result.settings.horizon),
            "ranks_only": not len(result.calibration),
            "note": _terms(evidence),
        },
    )


def _terms(evidence: Evidence) -> str:
    """What the words of the first screen mean, for readers who meet them here."""
    told = ["No model: every patient is given the same curve."]
    if not len(evidence.audited.calibration):
        told = ["Ranking by chance: half of all pairs are put in the right order."]
    if evidence.against is not None and evidence.reference_name == "plain Cox":
        told.append("Plain Cox: the usual statistical model, trained on the same patients.")
    if evidence.against is not None:
        shown = " ".join(statement.text for statement in evidence.against.statements)
        named = [metric for metric in CATALOGUE.values() if f"({metric.label} " in shown]
        told += [f"{first_upper(metric.label)}: {metric.meaning}." for metric in named]
    return " ".join([*told, "Better and worse: by more than chance explains."])


def verdict(found: Grounds) -> tuple[str, str]:
    """The gravest finding: its code, and what it says."""
    everybody, named, against = found.everybody, found.named, found.against
    if named and everybody.no_model == "too few":
        return "untested", "No intervals were computed, so this page cannot tell a difference from noise."
    if everybody.no_model == "worse":
        return "harm", "Predictions are worse than giving every patient the same curve."
    if found.harmed:
        whom = listing(found.harmed, 3)
        return (
            "harm",
            f"Not fit for {whom}: there, predictions are worse than giving every patient the same curve.",
        )
    if against is not None and against.dominated:
        lost = [group.name for group in named if group.reference == "worse"]
        who = f"{listing(lost, 3)} {'is' if len(lost) == 1 else 'are'}"
        if everybody.reference == "worse":
            who = "patients as a whole are"
        better = f"{first_upper(against.reference)} is the better choice"
        return "dominated", f"{better}: nobody is shown to gain from this model, and {who} served worse."
    if not named:
        return "no_groups", "No groups were named, so this page cannot say whom the model serves."
    if found.gap is None:
        return "too_few", "Too few patients: no two groups are large enough to be compared."
    if found.gap.beyond_chance:
        worst = group_name(found.gap.attribute, found.gap.worst[0])
        return "unequal", f"Not equally good for all: {worst} is served worst."
    if found.slope is not None:
        return "miscalibrated", (
            f"The predicted probabilities are too {_way(found.slope)} for patients as a whole: differences between "
            f"patients are {'over' if found.slope.value < 1 else 'under'}stated."
        )
    if found.off:
        whom = _some([number.who for number in found.off], named)
        return "miscalibrated", f"The predicted probabilities are off for {whom}."
    unclear = found.stand("not shown")
    if unclear or everybody.no_model == "not shown":
        whom = _some(unclear, named) if unclear else "all patients together"
        return "unclear", f"No harm is shown, but a benefit over no model is not shown either for {whom}."
    return "clear", (
        "No group is seen to be badly served: every group that can be judged is better served than without a model, "
        "and no gap is beyond chance."
    )


def _effects(evidence: Evidence, everybody: Standing, at: str) -> list[Statement]:
    """What the model does on the whole, in numbers per 100."""
    theirs = everybody.reference_c_index
    reference = "" if isnan(theirs) else f"{evidence.reference_name} {_per_100(theirs)}, "
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


def _certainty(evidence: Evidence, found: Grounds) -> list[Statement]:
    text = f"Judged on {len(evidence.target):,} patients with {evidence.target.n_events:,} events"
    if found.named:
        judged = len(found.named) - len(found.stand("too few"))
        text += f"; {judged} of {len(found.named)} groups are large enough to be judged"
    said = [Statement("size", f"{text}.")]
    if found.against is not None:
        said += found.against.statements
    if (gap := found.gap) is not None:
        worst, best = (group_name(gap.attribute, label) for label, _ in (gap.worst, gap.best))
        told = f"{first_upper(worst)} is ranked less well than {best} by {gap_text(gap)}. {chance_text(gap)}"
        said.append(Statement("gap", told, gap.beyond_chance))
    return said


def _next_steps(found: Grounds, status: str) -> list[str]:
    steps = []
    if found.harmed:
        steps.append(
            f"Do not use the predictions for {listing(found.harmed, 3)} as they are. Correct the model there, then "
            "audit it again on other patients."
        )
    if status == "dominated" and found.against is not None:
        steps.append(f"Use {found.against.reference}, or write down what this model is preferred for.")
    if found.off:
        whom = _some([number.who for number in found.off], found.named)
        steps.append(f"Recalibrate before anybody is told a probability, above all for {whom}.")
    if found.slope is not None:
        steps.append(
            f"Rescale the risk scores, which are too {_way(found.slope)} on the whole (slope "
            f"{written(found.slope.value)}; 1 is right)."
        )
    if found.gap is not None and found.gap.beyond_chance:
        worst = group_name(found.gap.attribute, found.gap.worst[0])
        steps.append(
            f"Find out why {worst} is ranked less well: what is not measured there, or measured otherwise?"
        )
    unsure = [group.name for group in found.named if group.no_model in ("not shown", "too few")]
    if unsure:
        whom = _some(unsure, found.named)
        steps.append(f"Collect more patients of {whom}: no benefit is shown for them yet.")
    if status == "no_groups":
        steps.append("Name groups, such as sex and age, and audit again.")
    if status == "clear":
        steps.append(
            "Nothing on this page speaks against use for these groups. It says nothing about other patients."
        )
    return [*steps[:4], "Audit again when the model, the patients or their care change."]


def _table(evidence: Evidence, groups: list[Standing], at: str) -> Table:
    columns = [
        Column("group", "Group"),
        Column("of_100", "Of 100 patients", "count"),
        Column("ranked", "Pairs of 100 ranked rightly", "count"),
    ]
    if any(not isnan(group.reference_c_index) for group in groups):
        columns.append(Column("ranked_by_reference", f"The same by {evidence.reference_name}", "count"))
    if any(not isnan(group.expected) for group in groups):
        columns += [
            Column("expected", f"Of 100, expected free of the event at {at}", "count"),
            Column("observed", "Of 100, observed free of it", "count"),
        ]
    columns.append(Column("no_model", "Against no model"))
    if evidence.against is not None:
        columns.append(Column("reference", f"Against {evidence.reference_name}"))
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
        "no_model": WORDS.get(group.no_model, group.no_model),
        "reference": WORDS.get(group.reference, group.reference),
    }


def _record(group: Standing) -> dict[str, Any]:
    """A group for programs: every field of its standing, with its name."""
    return {"name": group.name, **{name: plain(value) for name, value in vars(group).items()}}


def _per_100(share: float) -> str:
    return written(100 * share, "count")


def _way(slope: Row) -> str:
    """Of a slope far from 1."""
    return "bold" if slope.value < 1 else "timid"


def _some(names: list[str], groups: list[Standing]) -> str:
    """The names, or in one word all groups."""
    return "every group" if len(names) == len(groups) > 1 else listing(names, 3)


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
    {% for statement in said if statement.code not in ("verdict", "ranking", "expectation", "next_step") %}
    <p>{{ statement.text }}</p>
    {% endfor %}
    <h3>What to do next</h3>
    <ol class="steps">
    {% for statement in said if statement.code == "next_step" %}<li>{{ statement.text }}</li>{% endfor %}
    </ol>
  </div>
</div>
{{ m.plain_table(part.tables[0]) }}
{% if part.facts.get("note") %}<p class="aside">{{ part.facts.note }}</p>{% endif %}
</div>
""",
)
