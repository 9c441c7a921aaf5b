"""What the numbers amount to: the gravest finding, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from drosurv.audit.evidence import Evidence
from drosurv.audit.standing import Standing, standings
from drosurv.evaluation import AgainstPlain
from drosurv.evaluation.attributes import EVERYONE, whose
from drosurv.evaluation.by_cause import judged_by_cause
from drosurv.evaluation.compare import is_far_from_1
from drosurv.evaluation.engine import Row
from drosurv.evaluation.statements import judged_calibration, judged_gaps
from drosurv.groups import MISSING_LABEL
from drosurv.insight import Rule
from drosurv.presentation import (
    GroupGap,
    GroupNumber,
    counted,
    first_upper,
    group_name,
    listing,
    written,
)
from drosurv.tables.problems import spellings

EVERY_GROUP = "every group"
TOGETHER = "patients as a whole"
LAST_STEPS = {
    "untested": "Audit again with bootstrap replicates, which tell a difference from noise.",
    "too_few": "Audit again with more patients.",
    "no_groups": "Name groups, such as sex and age, and audit again.",
    "clear": "Nothing on this page speaks against use for these groups. It says nothing about other patients.",
}


class Grounds(NamedTuple):
    """What the verdict is reached from: how all patients stand, and each group.

    The gap is the largest between two groups. Groups are `off` whose predicted survival is so beyond chance, or
    everybody, where it is so only of all together. The slope is given only where it is far from 1 beyond chance.
    `against` is the model beside the reference. Rules describe groups that nobody named and that are confirmed to be
    served worse than by no model. Repaired are those for whom a repair passed. Labels that may be spellings of one are
    `alike`. Without survival curves only ranks are judged. Of competing `causes`, those are named whose predicted
    incidence is off.
    """

    everybody: Standing
    named: list[Standing]
    gap: GroupGap | None = None
    off: Sequence[GroupNumber] = ()
    slope: Row | None = None
    against: AgainstPlain | None = None
    rules: Sequence[Rule] = ()
    repaired: Sequence[str] = ()
    alike: Sequence[str] = ()
    ranks_only: bool = False
    causes: Sequence[str] = ()

    @property
    def better(self) -> str:
        """What patients are who gain from the model."""
        return "ranked better than by chance" if self.ranks_only else "better served than without a model"

    @property
    def worse(self) -> str:
        """What is so of patients who are harmed."""
        if self.ranks_only:
            return "patients are ranked worse than by chance"
        return "predictions are worse than giving every patient the same curve"

    @property
    def harmed(self) -> list[str]:
        """Who is shown to be served worse than by no model, also where nobody named them."""
        return [*self.stand("worse"), *(f"patients with {rule}" for rule in self.rules)]

    @property
    def lost(self) -> list[str]:
        """Names of the groups that are shown to be served worse than by the reference."""
        return [group.name for group in self.named if group.reference == "worse"]

    @property
    def mistaken(self) -> str:
        """Whose predicted survival is off; "" if nobody's."""
        if any(number.attribute == EVERYONE or self._off_alike(number.attribute) for number in self.off):
            return TOGETHER
        return _some([number.who for number in self.off], self.named) if self.off else ""

    def _off_alike(self, attribute: str) -> bool:
        """Whether every group of an attribute is off, all in one direction: then it is no matter of that attribute."""
        high = {number.group: number.value > 0 for number in self.off if number.attribute == attribute}
        groups = [g.group for g in self.named if g.attribute == attribute and g.group != MISSING_LABEL]
        return set(groups) <= set(high) and len(set(high.values())) == 1

    def stand(self, status: str) -> list[str]:
        """Names of the groups that stand so against no model."""
        return [group.name for group in self.named if group.no_model == status]


def find_grounds(evidence: Evidence) -> Grounds:
    """Read the findings off the evidence; rules and repairs only where they were searched."""
    result = evidence.audited
    everybody, *named = standings(evidence)
    groups, together = judged_calibration(result)
    off = [number for number in groups if number.is_off]
    if not off and together is not None and together.is_off:
        off = [together]
    searched = None if isinstance(evidence.worst_off, str) else evidence.worst_off
    repairs = [] if searched is None or evidence.repaired is None else evidence.repaired.repairs_
    repaired = [TOGETHER if r.rule is None else f"patients with {r.rule}" for r in repairs]
    ranks_only = not len(result.calibration)
    # A score of points has no scale on which a slope could be right.
    slopes = [] if ranks_only else result.select(metric="calibration_slope", kind="overall")
    return Grounds(
        everybody,
        named,
        next(iter(judged_gaps(result, "concordance_index")), None),
        off,
        next((r for r in slopes if r.status == "ok" and is_far_from_1(r.value, r.low, r.high)), None),
        evidence.against,
        [] if searched is None else [group.rule for group in searched.groups],
        list(dict.fromkeys(repaired)),
        [
            f"{result.headings[attribute.name]} {'/'.join(family)}"
            for attribute in evidence.attributes
            for family in spellings(attribute.labels)
        ],
        ranks_only,
        _off_by_cause(evidence),
    )


def _off_by_cause(evidence: Evidence) -> list[str]:
    table = evidence.also.get("causes")
    if table is None:
        return []
    judged = judged_by_cause(table, evidence.level)
    return [
        f"{whose(attribute, group, TOGETHER)} (cause {cause})"
        for attribute, group, cause in judged.loc[judged["off"], ["attribute", "group", "cause"]].to_numpy()
    ]


def verdict(found: Grounds) -> tuple[str, str]:
    """The gravest finding: its code, and what it says."""
    everybody, named, against = found.everybody, found.named, found.against
    if named and everybody.no_model == "not tested":
        return "untested", "No intervals were computed, so this page cannot tell a difference from noise."
    if everybody.no_model == "too few":
        seen = f"{counted(everybody.patients, 'patient')} with {counted(everybody.events, 'event')}"
        return "too_few", f"Too few to judge a model by: {seen}."
    if everybody.no_model == "worse":
        return "harm", f"{first_upper(found.worse)}."
    if found.harmed:
        return "harm", f"Not fit for {listing(found.harmed, 3)}: there, {found.worse}."
    if against is not None and against.dominated:
        who = f"{listing(found.lost, 3)} {'is' if len(found.lost) == 1 else 'are'}"
        if everybody.reference == "worse":
            who = "patients as a whole are"
        better = f"{first_upper(against.reference)} is the better choice"
        return "dominated", f"{better}: nobody is shown to gain from this model, and {who} served worse."
    if not named:
        return (
            "no_groups",
            "There are no two groups to compare, so this page cannot say whom the model serves.",
        )
    if found.gap is None:
        return "too_few", "Too few patients: no two groups are large enough to be compared."
    if found.gap.beyond_chance:
        worst = group_name(found.gap.attribute, found.gap.worst[0])
        return "unequal", f"Not equally good for all: {worst} is served worst."
    if found.lost and against is not None:
        whom = listing(found.lost, 3)
        return "unequal", f"Not equally good for all: {against.reference} would serve {whom} better."
    if found.slope is not None:
        return "miscalibrated", (
            f"The predicted probabilities are too {_way(found.slope)} for patients as a whole: differences between "
            f"patients are {'over' if found.slope.value < 1 else 'under'}stated."
        )
    if off := list(dict.fromkeys(filter(None, [found.mistaken, *found.causes, *found.repaired]))):
        return "miscalibrated", f"The predicted probabilities are off for {listing(off, 3)}."
    if everybody.no_model == "not shown":
        return "unclear", f"No harm is shown, but patients as a whole are not shown to be {found.better}."
    if unclear := found.stand("not shown"):
        judged = len(named) - len(found.stand("too few"))
        whom = "any single group" if len(unclear) == judged > 1 else listing(unclear, 3)
        return "unclear", (
            f"No harm is shown, and patients as a whole are {found.better}; that is not shown for {whom}."
        )
    return "clear", (
        f"No group is seen to be badly served: every group that can be judged is {found.better}, and no gap between "
        "their c-indices is beyond chance."
    )


def next_steps(found: Grounds, status: str) -> list[str]:
    """At most four things to do, and to audit again."""
    return [
        *islice(_steps(found, status), 4),
        "Audit again when the model, the patients or their care change.",
    ]


def _steps(found: Grounds, status: str) -> Iterator[str]:
    """What could be done, the most urgent first."""
    against, lost = found.against, listing(found.lost, 3)
    if found.alike:
        each = "each " if len(found.alike) > 1 else ""
        yield f"Check the table: {listing(found.alike, 3)} may {each}be one group in several spellings."
    if found.harmed:
        yield (
            f"Do not use the predictions for {listing(found.harmed, 3)} as they are. Correct the model there, then "
            "audit it again on other patients."
        )
    if against is not None and against.dominated:
        yield f"Use {against.reference}, or write down what this model is preferred for."
    elif against is not None and lost:
        yield f"Decide whether {lost} may be served worse than by {against.reference} for what others gain."
    if found.repaired:
        whom = listing(found.repaired, 3)
        yield f"Repair the model for {whom} (see Remedy): patients not used for that gain by it."
    if whom := found.mistaken:
        most = "" if whom in (EVERY_GROUP, TOGETHER) else f", above all for {whom}"
        yield f"Recalibrate before anybody is told a probability{most}."
    if found.causes:
        yield f"Look at Cause by cause: predicted incidence is off for {listing(found.causes, 3)}."
    if found.slope is not None:
        slope = f"(slope {written(found.slope.value)}; 1 is right)"
        yield f"Rescale the risk scores, which are too {_way(found.slope)} on the whole {slope}."
    if found.gap is not None and found.gap.beyond_chance:
        worst = group_name(found.gap.attribute, found.gap.worst[0])
        yield f"Find out why {worst} is ranked less well: what is not measured there, or measured otherwise?"
    if against is not None and against.only_alike:
        yield (
            f"Prefer {against.reference}, which does as well for every group, unless something else speaks for this "
            "model."
        )
    # More patients whose attribute is missing are no remedy.
    unsure = [
        group.name
        for group in found.named
        if group.no_model in ("not shown", "too few") and group.group != MISSING_LABEL
    ]
    if unsure:
        yield f"Collect more patients of {_some(unsure, found.named)}: no benefit is shown for them yet."
    if status in LAST_STEPS:
        yield LAST_STEPS[status]


def _way(slope: Row) -> str:
    """Of a slope far from 1."""
    return "bold" if slope.value < 1 else "timid"


def _some(names: list[str], groups: list[Standing]) -> str:
    """The names, or in one word all groups of whom something is known."""
    known = [group for group in groups if group.group != MISSING_LABEL]
    return EVERY_GROUP if len(names) >= len(known) > 1 else listing(names, 3)
