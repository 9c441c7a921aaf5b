"""What reporting guidelines ask about groups, and where this page answers it: answered, partly, or left to the user.

The questions are in our words, not the guidelines'. A status is given by what the page shows, never by what the program
could have shown. Items of TRIPOD+AI and points of Article 10 are numbered as in the published texts; FDA's draft has
topics, not numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.presentation import Column, Table

TRIPOD = "TRIPOD+AI (2024)"
AI_ACT = "EU AI Act, Article 10"
FDA = "FDA draft guidance (January 2025), model card"
LEFT = "to be filled in"


class Shown(NamedTuple):
    """What the page shows, as far as the guidelines ask."""

    groups: bool
    intervals: bool
    curves: bool
    rules: bool


def _performance(shown: Shown) -> tuple[str, str]:
    if not shown.groups:
        return LEFT, "No groups were named."
    if not shown.intervals:
        return "partly", "By group shows the numbers; intervals were not computed."
    if not shown.curves:
        return (
            "partly",
            "By group shows ranking with intervals; without survival curves there is no calibration.",
        )
    return "answered", "By group, Do the predictions come true?, All numbers: each number with its interval."


def _who(shown: Shown) -> tuple[str, str]:
    told = "By group gives patients and events of each group, " if shown.groups else ""
    more = "Method card those of all, with their follow-up; add dates, places, treatments and missing values by group."
    return "partly", told + more


def _biases(shown: Shown) -> tuple[str, str]:
    if not shown.groups:
        return LEFT, "No groups were named."
    looked = "Verdict, By group and All numbers look for differences between the named groups"
    if shown.rules:
        looked += "; Who is worst off searches for groups that nobody named"
    return "partly", f"{looked}. How the data came to be is for you to examine."


def _gaps(shown: Shown) -> tuple[str, str]:
    if not shown.groups:
        return LEFT, "No groups were named."
    return "partly", "Verdict names groups with too few patients. Say how you will close the gaps."


def _measures(shown: Shown) -> tuple[str, str]:
    return "answered", "All numbers says what each measure means; Method card gives the settings."


def _limits(shown: Shown) -> tuple[str, str]:
    return "partly", "Method card gives the limits of this audit; add those of the study."


DESCRIBE = "Describe it."
COMPARE = "Compare the groups' shares with those of the people it is meant for."
NUMBER = "Method card gives their number at most; describe them by group."
# Who asks, where, what; and how the page answers, or what it leaves to the user.
Asked = tuple[str, str, str, str | Callable[[Shown], tuple[str, str]]]
ASKED: tuple[Asked, ...] = (
    (TRIPOD, "3c", "Which health inequalities between groups are known?", "Name them, with sources."),
    (TRIPOD, "7", "Were the data prepared alike in all groups?", DESCRIBE),
    (TRIPOD, "8a", "Is the outcome assessed alike in all groups?", DESCRIBE),
    (TRIPOD, "12e", "Which measures of performance were used, and which models compared?", _measures),
    (TRIPOD, "14", "What was done about fairness, and why?", DESCRIBE),
    (TRIPOD, "20b", "Who are the patients, and how do groups differ?", _who),
    (TRIPOD, "23a", "How well does the model perform in key subgroups, with intervals?", _performance),
    (TRIPOD, "25", "What do the results mean, fairness included?", "The verdict is a start; interpret it."),
    (TRIPOD, "26", "What are the limitations?", _limits),
    (AI_ACT, "(2)(b)", "Where do the data come from, and what were they collected for?", DESCRIBE),
    (AI_ACT, "(2)(f)", "Were the data examined for biases that may harm or discriminate?", _biases),
    (AI_ACT, "(2)(g)", "What is done to detect, prevent and reduce them?", DESCRIBE),
    (AI_ACT, "(2)(h)", "Which gaps and shortcomings do the data have?", _gaps),
    (AI_ACT, "(3)", "Do the data represent the people that the system is meant for?", COMPARE),
    (AI_ACT, "(4)", "Do the data fit the place and setting of use?", DESCRIBE),
    (FDA, "intended use", "For whom, by whom and for what is the model used?", DESCRIBE),
    (FDA, "development data", "Who were the training patients?", NUMBER),
    (
        FDA,
        "performance",
        "How well does it perform, overall and by subgroup, with uncertainty?",
        _performance,
    ),
    (FDA, "limitations", "What are its known limitations?", _limits),
    (FDA, "monitoring", "How is its performance watched once in use?", DESCRIBE),
)
COLUMNS = (
    Column("question", "Asked"),
    Column("source", "By"),
    Column("item", "Item"),
    Column("status", "Status"),
    Column("where", "Where, or what to add"),
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
    for source, item, question, answer in ASKED:
        status, where = (LEFT, answer) if isinstance(answer, str) else answer(shown)
        rows.append({"source": source, "item": item, "question": question, "status": status, "where": where})
    caption = "What is asked about groups, and where it is answered"
    return Part(
        tables=(Table("guidelines", caption, COLUMNS, tuple(rows)),),
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
