"""What reporting guidelines ask about groups, and where this page answers it: answered, partly, or left to the user.

The questions are in our words, not the guidelines'. A status is given by what the page shows, never by what the program
could have shown. Items of TRIPOD+AI and points of Article 10 are numbered as in the published texts; FDA's draft has
topics, not numbers.
"""

from __future__ import annotations

from collections import Counter

from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.presentation import Column, Table

TRIPOD = "TRIPOD+AI (2024)"
AI_ACT = "EU AI Act, Article 10"
FDA = "FDA draft guidance (January 2025), model card"
LEFT = "to be filled in"
DESCRIBE = "Describe it."
COMPARE = "Compare the groups' shares with those of the people it is meant for."
NUMBER = "Method card gives their number at most; describe them by group."
# Who asks, where, what; and the name of the page's answer, or what is left to the user.
ASKED = (
    (TRIPOD, "3c", "Which health inequalities between groups are known?", "Name them, with sources."),
    (TRIPOD, "7", "Were the data prepared alike in all groups?", DESCRIBE),
    (TRIPOD, "8a", "Is the outcome assessed alike in all groups?", DESCRIBE),
    (TRIPOD, "12e", "Which measures of performance were used, and which models compared?", "measures"),
    (TRIPOD, "14", "What was done about fairness, and why?", DESCRIBE),
    (TRIPOD, "20b", "Who are the patients, and how do groups differ?", "who"),
    (TRIPOD, "23a", "How well does the model perform in key subgroups, with intervals?", "performance"),
    (TRIPOD, "25", "What do the results mean, fairness included?", "The verdict is a start; interpret it."),
    (TRIPOD, "26", "What are the limitations?", "limits"),
    (AI_ACT, "(2)(b)", "Where do the data come from, and what were they collected for?", DESCRIBE),
    (AI_ACT, "(2)(f)", "Were the data examined for biases that may harm or discriminate?", "biases"),
    (AI_ACT, "(2)(g)", "What is done to detect, prevent and reduce them?", DESCRIBE),
    (AI_ACT, "(2)(h)", "Which gaps and shortcomings do the data have?", "gaps"),
    (AI_ACT, "(3)", "Do the data represent the people that the system is meant for?", COMPARE),
    (AI_ACT, "(4)", "Do the data fit the place and setting of use?", DESCRIBE),
    (FDA, "intended use", "For whom, by whom and for what is the model used?", DESCRIBE),
    (FDA, "development data", "Who were the training patients?", NUMBER),
    (
        FDA,
        "performance",
        "How well does it perform, overall and by subgroup, with uncertainty?",
        "performance",
    ),
    (FDA, "limitations", "What are its known limitations?", "limits"),
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
    answers, rows = _answers(evidence), []
    for source, item, question, answer in ASKED:
        status, where = answers.get(answer, (LEFT, answer))
        rows.append({"source": source, "item": item, "question": question, "status": status, "where": where})
    caption = "What is asked about groups, and where it is answered"
    return Part(
        tables=(Table("guidelines", caption, COLUMNS, tuple(rows)),),
        facts={"counts": dict(Counter(row["status"] for row in rows))},
    )


def _answers(evidence: Evidence) -> dict[str, tuple[str, str]]:
    """What the page answers, by name: the status, and where."""
    result = evidence.audited
    who = "By group gives patients and events of each group, " if result.attributes else ""
    searched = "; Who is worst off searches for groups that nobody named"
    if isinstance(evidence.worst_off, str):
        searched = ""
    performance = (
        "answered",
        "By group, Do the predictions come true?, All numbers: each number with its interval.",
    )
    if result.calibration.empty:
        performance = (
            "partly",
            "By group shows ranking with intervals; without survival curves there is no calibration.",
        )
    if not result.settings.n_bootstrap:
        performance = "partly", "By group shows the numbers; intervals were not computed."
    answers = {
        "measures": ("answered", "All numbers says what each measure means; Method card gives the settings."),
        "limits": ("partly", "Method card gives the limits of this audit; add those of the study."),
        "who": (
            "partly",
            f"{who}Method card those of all, with their follow-up; add dates, places, treatments and missing values by "
            "group.",
        ),
        "performance": performance,
        "biases": (
            "partly",
            f"Verdict, By group and All numbers look for differences between the named groups{searched}. How the data "
            "came to be is for you to examine.",
        ),
        "gaps": ("partly", "Verdict names groups with too few patients. Say how you will close the gaps."),
    }
    if not result.attributes:
        answers |= dict.fromkeys(
            ("performance", "biases", "gaps"), (LEFT, "There are no two groups to compare.")
        )
    return answers


SECTION = Section(
    key="guidelines",
    heading="Reporting guidelines",
    place=80,
    collect=collect,
    intro="""
<p>What three guidelines ask about groups, in our words, and what this page answers. It is no proof of conformity.</p>
""",
    template="""
{% set counts = part.facts.counts %}
<p>Of {{ part.tables[0] | length }} questions, this page answers {{ counts.get("answered", 0) }}, answers
{{ counts.get("partly", 0) }} partly, and leaves {{ counts.get("to be filled in", 0) }} to you.</p>
{{ m.folded(part.tables[0]) }}
""",
)
