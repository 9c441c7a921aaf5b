"""What guidelines and laws ask about groups, and whether and where the report answers it.

The questions are in our words. The status depends on what this report shows: answered, partly, or to be filled in.
"""

from __future__ import annotations

from collections import Counter

from drosurv.presentation import Column, Table
from drosurv.report.evidence import Evidence
from drosurv.report.section import Part, Section
from drosurv.report.sections.patients import TrainingPatients

TRIPOD = "TRIPOD+AI (2024)"
PROBAST = "PROBAST+AI (24 March 2025)"
AI_ACT = "EU AI Act (Regulation 2024/1689)"
FDA = "FDA draft guidance on AI-enabled devices (January 2025)"
CHANGES = "FDA guidance on predetermined change control plans (December 2024, reissued 18 August 2025)"
ONC = "ONC HTI-1, 45 CFR 170.315(b)(11)"
LEFT = "to be filled in"
DESCRIBE = "Describe it."
# Source, item and question; and the key of the answer in `_answers`, or what the user has to add.
ASKED = (
    (TRIPOD, "3c", "Which health inequalities between groups are known?", "Name them, with sources."),
    (TRIPOD, "5a", "Where do the data come from, and whom do they represent?", DESCRIBE),
    (TRIPOD, "7", "Were the data prepared alike in all groups?", DESCRIBE),
    (TRIPOD, "8a", "Is the outcome assessed alike in all groups?", DESCRIBE),
    (TRIPOD, "8b", "If the outcome is a matter of judgement, who judged it, from which groups?", DESCRIBE),
    (TRIPOD, "9c", "If predictors are a matter of judgement, who judged them, from which groups?", DESCRIBE),
    (TRIPOD, "12d, 23b", "How does performance differ between clusters, such as hospitals?", "clusters"),
    (TRIPOD, "12e", "Which measures and plots were used, why, and which models compared?", "measures"),
    (TRIPOD, "12f", "Was the model updated, overall or for groups?", "updating"),
    (TRIPOD, "14", "What was done about fairness, and why?", DESCRIBE),
    (TRIPOD, "20b", "Who are the patients, and how do groups differ?", "who"),
    (TRIPOD, "20c", "How do the audited patients differ from the training patients?", "training patients"),
    (TRIPOD, "23a", "How well does the model perform in key subgroups, with intervals?", "performance"),
    (TRIPOD, "24", "What did updating change, and how does the updated model perform?", "updated"),
    (TRIPOD, "25", "What do the results mean, fairness included?", "interpretation"),
    (TRIPOD, "26", "What are the limitations?", "limits"),
    (
        PROBAST,
        "evaluation, participants and data sources",
        "Do the patients represent those of the intended use?",
        "represent",
    ),
    (
        PROBAST,
        "evaluation, predictors",
        "Were predictors defined, assessed and available alike for all patients?",
        DESCRIBE,
    ),
    (
        PROBAST,
        "evaluation, outcome",
        "Was the outcome defined and assessed alike for all patients?",
        DESCRIBE,
    ),
    (PROBAST, "evaluation, analysis", "Are there enough patients with the event?", "enough"),
    (
        PROBAST,
        "evaluation, analysis",
        "Were censoring, competing events and missing values handled appropriately?",
        "censoring",
    ),
    (
        PROBAST,
        "evaluation, analysis",
        "Were discrimination, calibration and clinical utility evaluated, in groups too?",
        "utility",
    ),
    (
        PROBAST,
        "development, analysis",
        "Were overfitting and optimism in development accounted for?",
        "other patients",
    ),
    (
        AI_ACT,
        "Article 10(2)(b)",
        "Where do the data sets come from, and what were they collected for?",
        DESCRIBE,
    ),
    (
        AI_ACT,
        "Article 10(2)(f), (g)",
        "Were the data sets examined for biases, and what was done?",
        "data sets",
    ),
    (AI_ACT, "Article 10(2)(h)", "Which gaps and shortcomings do the data sets have?", "gaps"),
    (
        AI_ACT,
        "Article 10(3), (4)",
        "Do the data sets represent the people and the setting of use?",
        "represent",
    ),
    (
        AI_ACT,
        "Article 13(3)(b)(v)",
        "How does the system perform for the groups it is meant for?",
        "performance",
    ),
    (
        AI_ACT,
        "Article 15(3)",
        "Which levels of accuracy and which measures are declared to users?",
        "accuracy",
    ),
    (
        AI_ACT,
        "Annex IV(2)(g)",
        "How was it tested, on which data, by which measures, for discrimination too?",
        "testing",
    ),
    (
        AI_ACT,
        "Annex IV(3)",
        "What are its capabilities and limits, and its accuracy for groups?",
        "capabilities",
    ),
    (AI_ACT, "Annex IV(4)", "Why are these measures of performance appropriate?", "measures"),
    (FDA, "VI.B", "What are users told of performance, by subgroup, and of limitations?", "labelling"),
    (FDA, "X.A", "How does it perform by demographic subgroup, with uncertainty?", "performance"),
    (FDA, "X.A", "Where demographic analyses are missing, how was that risk controlled?", "missed"),
    (FDA, "XI", "How is performance monitored once in use?", "monitoring"),
    (
        FDA,
        "Appendix E",
        "Model card: sensitivity, specificity and predictive values, by subgroup?",
        "decisions",
    ),
    (CHANGES, "description of modifications", "Which changes of the model are planned?", "updating"),
    (
        CHANGES,
        "modification protocol",
        "How will a changed model be evaluated, by subgroup, and against which criteria?",
        "protocol",
    ),
    (CHANGES, "impact assessment", "Which benefits and risks do the changes have, for whom?", "updated"),
    (
        ONC,
        "source attributes",
        "Purpose, development data, fairness, validation, performance, maintenance?",
        "attributes",
    ),
)
COLUMNS = (
    Column("question", "Asked"),
    Column("source", "By"),
    Column("item", "Item"),
    Column("status", "Status"),
    Column("where", "Where, or what to add"),
)


def collect(evidence: Evidence) -> Part:
    """Return one row for each question."""
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
    """Return the answers of the report by key: a status, and where they are or what to add."""
    result = evidence.audited
    searched = not isinstance(evidence.bounds, str)
    answers = {
        "measures": ("partly", "By group says what each measure means; say why these were chosen."),
        "accuracy": ("partly", "By group has the measures with intervals; declare those that users need."),
        "testing": (
            "partly",
            "Method card and By group give data, settings and measures; add test logs, dates and signatures.",
        ),
        "limits": ("partly", "Method card gives the limits of this audit; add those of the study."),
        "interpretation": ("partly", "Verdict is a start; interpret it for the intended use."),
        "attributes": (
            "partly",
            "This page has measures of validity and fairness in test data; add the other source attributes.",
        ),
        "enough": (
            "partly",
            "Verdict says which errors these patients and events exclude; say whether that is enough.",
        ),
        "censoring": (
            "partly",
            "Method card says how censored patients count; describe how missing values were handled.",
        ),
        "other patients": ("partly", "Method card says whether these patients were used in training."),
        "monitoring": (
            LEFT,
            "`drosurv monitor` shows events by group over time; say who looks at it, and what follows an alarm.",
        ),
        "protocol": ("partly", "Audit each changed model like this one; set the criteria before."),
        "clusters": (LEFT, "Name hospitals or regions among the groups, and audit again."),
        "who": (
            "partly",
            "Patients gives events, follow-up, columns and missing values by group; add dates, places and treatments.",
        ),
        "training patients": (LEFT, "Compare the two tables column by column."),
        "decisions": (LEFT, "Give a risk threshold and a horizon, and audit again."),
        "missed": (LEFT, "Search for subgroups, and audit again."),
        "updating": (LEFT, "Describe any recalibration or repair."),
        "updated": (LEFT, "Describe the updated model, and audit it."),
        "performance": (LEFT, "There are no two groups to compare."),
        "utility": (LEFT, "There are no two groups to compare."),
        "labelling": (LEFT, "There are no two groups to compare."),
        "capabilities": (LEFT, "There are no two groups to compare."),
        "data sets": (LEFT, "This page examines predictions; examine how the data came to be."),
        "gaps": (LEFT, "Name them, and how you will close them."),
        "represent": (LEFT, "Compare the groups' shares with those of the people it is meant for."),
    }
    if result.attributes:
        answers["performance"] = (
            "answered",
            "By group, Do the predictions come true?: each number with its interval.",
        )
        if result.calibration.empty:
            answers["performance"] = (
                "partly",
                "By group shows ranking with intervals; without survival curves there is no calibration.",
            )
        if not result.settings.n_bootstrap:
            answers["performance"] = "partly", "By group shows the numbers; intervals were not computed."
        answers["utility"] = (
            "partly",
            "By group has discrimination; without probabilities there is no utility.",
        )
        if len(result.decision_curves):
            answers["utility"] = (
                answers["performance"][0],
                "By group, Do the predictions come true?, Would treating by the model help?",
            )
        answers["labelling"] = (
            "partly",
            "By group and Method card have performance and limits; write down what users are told of them.",
        )
        answers["capabilities"] = (
            "partly",
            "By group and Method card have accuracy and limits; add the intended use and foreseeable risks.",
        )
        answers["gaps"] = (
            "partly",
            "Verdict names groups with too few patients. Say how you will close the gaps.",
        )
        if result.decisions is not None:
            answers["decisions"] = "partly", "Decisions has them at one threshold; say why this threshold."
    if len(result.shrunken):
        answers["clusters"] = (
            "partly",
            "Many groups, such as hospitals has observed over expected events of each; discuss the differences.",
        )
    if TrainingPatients.of(evidence).columns:
        answers["training patients"] = (
            "answered",
            "Patients shows the training patients beside the audited ones.",
        )
    if searched:
        answers["missed"] = (
            "partly",
            "What could have been missed tests all subgroups that one or two columns define.",
        )
    if "Repairs" in evidence.model:
        answers["updating"] = (
            "partly",
            "Method card says for whom the model was repaired; describe why and how.",
        )
        answers["updated"] = (
            "partly",
            "Method card has the repairs, By group how the repaired model performs.",
        )
    elif evidence.repaired is not None and evidence.repaired.repairs_:
        answers["updating"] = "partly", "Remedy proposes repairs, with their gain; describe what you adopt."
    return answers


SECTION = Section(
    key="guidelines",
    heading="Guidelines and laws",
    place=80,
    collect=collect,
    intro="""
<p>What guidelines and laws ask about groups, in our words, and what this page answers. It is no proof of
conformity. As of November 2026: the high-risk rules of the EU AI Act apply from 2 December 2027 to systems of Annex III
and from 2 August 2028 to products of Annex I, such as medical devices. HTI-1 is in force; HTI-5, which would remove
its source attributes, is only proposed.</p>
""",
    template="""
{% set counts = part.facts.counts %}
<p>Of {{ part.tables[0] | length }} questions, this page answers {{ counts.get("answered", 0) }}, answers
{{ counts.get("partly", 0) }} partly, and leaves {{ counts.get("to be filled in", 0) }} to you.</p>
{{ m.folded(part.tables[0]) }}
""",
)
