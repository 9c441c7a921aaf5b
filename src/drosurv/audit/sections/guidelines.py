"""What reporting guidelines ask about groups, and where this page answers it: answered, partly, or left to the user.

The questions are in our words, not the guidelines'. A status is given by what the page shows, never by what the program
could have shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Literal, NamedTuple

from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.presentation import Column, Table

Status = Literal["answered", "partly", "to be filled in"]
TRIPOD = "TRIPOD+AI (2024)"
AI_ACT = "EU AI Act, Article 10"
FDA = "FDA draft guidance (January 2025), model card"


class Shown(NamedTuple):
    """What the page shows, as far as the guidelines ask."""

    groups: bool
    intervals: bool
    curves: bool
    rules: bool


class Asked(NamedTuple):
    """One thing that a guideline asks.

    Attributes
    ----------
    source, item : str
        Which guideline, and where in it.
    question : str
        What it asks, in our words.
    judge : callable
        What the page shows to the status and where to look or what to add.
    """

    source: str
    item: str
    question: str
    judge: Callable[[Shown], tuple[Status, str]]


def _user(what: str) -> Callable[[Shown], tuple[Status, str]]:
    return lambda shown: ("to be filled in", what)


def _performance(shown: Shown) -> tuple[Status, str]:
    if not shown.groups:
        return "to be filled in", "No groups were named."
    if not shown.intervals:
        return "partly", "By group shows the numbers; intervals were not computed."
    if not shown.curves:
        return (
            "partly",
            "By group shows ranking with intervals; without survival curves there is no calibration.",
        )
    return "answered", "By group, Do the predictions come true?, All numbers: each number with its interval."


def _who(shown: Shown) -> tuple[Status, str]:
    told = "By group gives patients and events of each group, " if shown.groups else ""
    more = "Method card those of all, with their follow-up; add dates, places, treatments and missing values by group."
    return "partly", told + more


def _biases(shown: Shown) -> tuple[Status, str]:
    if not shown.groups:
        return "to be filled in", "No groups were named."
    looked = "Verdict, By group and All numbers look for differences between the named groups"
    if shown.rules:
        looked += "; Who is worst off searches for groups that nobody named"
    return "partly", f"{looked}. How the data came to be is for you to examine."


def _gaps(shown: Shown) -> tuple[Status, str]:
    if not shown.groups:
        return "to be filled in", "No groups were named."
    return "partly", "Verdict names groups with too few patients. Say how you will close the gaps."


def _measures(shown: Shown) -> tuple[Status, str]:
    return "answered", "All numbers says what each measure means; Method card gives the settings."


def _limits(shown: Shown) -> tuple[Status, str]:
    return "partly", "Method card gives the limits of this audit; add those of the study."


ASKED = (
    Asked(
        TRIPOD, "3c", "Which health inequalities between groups are known?", _user("Name them, with sources.")
    ),
    Asked(TRIPOD, "7", "Were the data prepared alike in all groups?", _user("Describe it.")),
    Asked(TRIPOD, "8a", "Is the outcome assessed alike in all groups?", _user("Describe it.")),
    Asked(TRIPOD, "12", "Which measures of performance were used, and which models compared?", _measures),
    Asked(TRIPOD, "14", "What was done about fairness, and why?", _user("Describe it.")),
    Asked(TRIPOD, "20b", "Who are the patients, and how do groups differ?", _who),
    Asked(TRIPOD, "23a", "How well does the model perform in key subgroups, with intervals?", _performance),
    Asked(
        TRIPOD,
        "25",
        "What do the results mean, fairness included?",
        _user("The verdict is a start; interpret it."),
    ),
    Asked(TRIPOD, "26", "What are the limitations?", _limits),
    Asked(
        AI_ACT,
        "(2)(b)",
        "Where do the data come from, and what were they collected for?",
        _user("Describe it."),
    ),
    Asked(AI_ACT, "(2)(f)", "Were the data examined for biases that may harm or discriminate?", _biases),
    Asked(AI_ACT, "(2)(g)", "What is done to detect, prevent and reduce them?", _user("Describe it.")),
    Asked(AI_ACT, "(2)(h)", "Which gaps and shortcomings do the data have?", _gaps),
    Asked(
        AI_ACT,
        "(3)",
        "Do the data represent the people that the system is meant for?",
        _user("Compare the groups' shares with those of the people it is meant for."),
    ),
    Asked(AI_ACT, "(4)", "Do the data fit the place and setting of use?", _user("Describe it.")),
    Asked(FDA, "intended use", "For whom, by whom and for what is the model used?", _user("Describe it.")),
    Asked(
        FDA,
        "development data",
        "Who were the training patients?",
        _user("Method card gives their number at most; describe them by group."),
    ),
    Asked(
        FDA,
        "performance",
        "How well does it perform, overall and by subgroup, with uncertainty?",
        _performance,
    ),
    Asked(FDA, "limitations", "What are its known limitations?", _limits),
    Asked(
        FDA,
        "monitoring",
        "How is its performance watched once in use?",
        _user("Describe it."),
    ),
)


def collect(evidence: Evidence) -> Part:
    """One row for each thing asked."""
    result = evidence.audited
    shown = Shown(
        groups=bool(result.attributes),
        intervals=result.settings.n_bootstrap > 0,
        curves=len(result.calibration) > 0,
        rules=evidence.worst_off is not None,
    )
    rows = []
    for asked in ASKED:
        status, where = asked.judge(shown)
        rows.append(
            {
                "source": asked.source,
                "item": asked.item,
                "question": asked.question,
                "status": status,
                "where": where,
            }
        )
    columns = (
        Column("question", "Asked"),
        Column("source", "By"),
        Column("item", "Item"),
        Column("status", "Status"),
        Column("where", "Where, or what to add"),
    )
    caption = "What is asked about groups, and where it is answered"
    return Part(
        tables=(Table("guidelines", caption, columns, tuple(rows)),),
        facts={"counts": dict(Counter(row["status"] for row in rows))},
    )


SECTION = Section(
    key="guidelines",
    heading="Reporting guidelines",
    place=80,
    collect=collect,
    template="""
{% call m.section_head(section) %}
<p>What three guidelines ask about groups, in our words, and what this page answers. It is no proof of conformity.</p>
{% endcall %}
<div class="body">
{% set counts = part.facts.counts %}
<p>Of {{ part.tables[0] | length }} questions, this page answers {{ counts.get("answered", 0) }}, answers
{{ counts.get("partly", 0) }} partly, and leaves {{ counts.get("to be filled in", 0) }} to you.</p>
{{ m.folded(part.tables[0]) }}
</div>
""",
)
