"""What guidelines and laws ask about groups, and whether and where the report answers it.

The questions are in our words. The status depends on what this report shows: answered, partly, or to be filled in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from drosurv.presentation import Column, Table
from drosurv.report.evidence import Evidence
from drosurv.report.section import Part, Section
from drosurv.report.sections.patients import TrainingPatients

LEFT = "to be filled in"
# By source: item, question, and the key of the answer below or what the user has to add.
_QUESTIONS = """
TRIPOD+AI (2024)
  3c | Which health inequalities between groups are known? | Name them, with sources.
  5a | Where do the data come from, and whom do they represent? | Describe it.
  7 | Were the data prepared alike in all groups? | Describe it.
  8a | Is the outcome assessed alike in all groups? | Describe it.
  8b | If the outcome is a matter of judgement, who judged it, from which groups? | Describe it.
  9c | If predictors are a matter of judgement, who judged them, from which groups? | Describe it.
  12d, 23b | How does performance differ between clusters, such as hospitals? | clusters
  12e | Which measures and plots were used, why, and which models compared? | measures
  12f | Was the model updated, overall or for groups? | updating
  14 | What was done about fairness, and why? | Describe it.
  20b | Who are the patients, and how do groups differ? | who
  20c | How do the audited patients differ from the training patients? | training patients
  23a | How well does the model perform in key subgroups, with intervals? | performance
  24 | What did updating change, and how does the updated model perform? | updated
  25 | What do the results mean, fairness included? | interpretation
  26 | What are the limitations? | limits
PROBAST+AI (24 March 2025)
  evaluation, participants and data sources | Do the patients represent those of the intended use? | represent
  evaluation, predictors | Were predictors defined, assessed and available alike for all patients? | Describe it.
  evaluation, outcome | Was the outcome defined and assessed alike for all patients? | Describe it.
  evaluation, analysis | Are there enough patients with the event? | enough
  evaluation, analysis | Were censoring, competing events and missing values handled appropriately? | censoring
  evaluation, analysis | Were discrimination, calibration and clinical utility evaluated, in groups too? | utility
  development, analysis | Were overfitting and optimism in development accounted for? | other patients
EU AI Act (Regulation 2024/1689)
  Article 10(2)(b) | Where do the data sets come from, and what were they collected for? | Describe it.
  Article 10(2)(f), (g) | Were the data sets examined for biases, and what was done? | data sets
  Article 10(2)(h) | Which gaps and shortcomings do the data sets have? | gaps
  Article 10(3), (4) | Do the data sets represent the people and the setting of use? | represent
  Article 13(3)(b)(v) | How does the system perform for the groups it is meant for? | performance
  Article 15(3) | Which levels of accuracy and which measures are declared to users? | accuracy
  Annex IV(2)(g) | How was it tested, on which data, by which measures, for discrimination too? | testing
  Annex IV(3) | What are its capabilities and limits, and its accuracy for groups? | capabilities
  Annex IV(4) | Why are these measures of performance appropriate? | measures
FDA draft guidance on AI-enabled devices (January 2025)
  VI.B | What are users told of performance, by subgroup, and of limitations? | labelling
  X.A | How does it perform by demographic subgroup, with uncertainty? | performance
  X.A | Where demographic analyses are missing, how was that risk controlled? | missed
  XI | How is performance monitored once in use? | monitoring
  Appendix E | Model card: sensitivity, specificity and predictive values, by subgroup? | decisions
FDA guidance on predetermined change control plans (December 2024, reissued 18 August 2025)
  description of modifications | Which changes of the model are planned? | updating
  modification protocol | How will a changed model be evaluated, by subgroup, and against which criteria? | protocol
  impact assessment | Which benefits and risks do the changes have, for whom? | updated
ONC HTI-1, 45 CFR 170.315(b)(11)
  source attributes | Purpose, development data, fairness, validation, performance, maintenance? | attributes
"""
# Answers of the report by key: where they are, or what to add.
_LEFT = {
    "monitoring": "`drosurv monitor` shows events by group over time; say who looks at it, and what follows an alarm.",
    "clusters": "Name hospitals or regions among the groups, and audit again.",
    "training patients": "Compare the two tables column by column.",
    "decisions": "Give a risk threshold and a horizon, and audit again.",
    "missed": "Search for subgroups, and audit again.",
    "updating": "Describe any recalibration or repair.",
    "updated": "Describe the updated model, and audit it.",
    "data sets": "This page examines predictions; examine how the data came to be.",
    "gaps": "Name them, and how you will close them.",
    "represent": "Compare the groups' shares with those of the people it is meant for.",
    **dict.fromkeys(
        ("performance", "utility", "labelling", "capabilities"), "There are no two groups to compare."
    ),
}
_PARTLY = {
    "measures": "By group says what each measure means; say why these were chosen.",
    "accuracy": "By group has the measures with intervals; declare those that users need.",
    "testing": "Method card and By group give data, settings and measures; add test logs, dates and signatures.",
    "limits": "Method card gives the limits of this audit; add those of the study.",
    "interpretation": "Verdict is a start; interpret it for the intended use.",
    "attributes": "This page has measures of validity and fairness in test data; add the other source attributes.",
    "enough": "Verdict says which errors these patients and events exclude; say whether that is enough.",
    "censoring": "Method card says how censored patients count; describe how missing values were handled.",
    "other patients": "Method card says whether these patients were used in training.",
    "protocol": "Audit each changed model like this one; set the criteria before.",
    "who": "Patients gives events, follow-up, columns and missing values by group; add dates, places and treatments.",
}
_OF_GROUPS = {
    "utility": "By group has discrimination; without probabilities there is no utility.",
    "labelling": "By group and Method card have performance and limits; write down what users are told of them.",
    "capabilities": "By group and Method card have accuracy and limits; add the intended use and foreseeable risks.",
    "gaps": "Verdict names groups with too few patients. Say how you will close the gaps.",
}
COLUMNS = (
    Column("question", "Asked"),
    Column("source", "By"),
    Column("item", "Item"),
    Column("status", "Status"),
    Column("where", "Where, or what to add"),
)


def questions() -> Iterator[tuple[str, ...]]:
    """Yield source, item and question, and the key of the answer or what the user has to add."""
    source = ""
    for line in _QUESTIONS.strip().splitlines():
        if line.startswith("  "):
            yield (source, *map(str.strip, line.split("|")))
        else:
            source = line


def collect(evidence: Evidence) -> Part:
    """Return one row for each question."""
    answers, rows = _answers(evidence), []
    for source, item, question, answer in questions():
        status, where = answers.get(answer, (LEFT, answer))
        rows.append({"source": source, "item": item, "question": question, "status": status, "where": where})
    caption = "What is asked about groups, and where it is answered"
    return Part(
        tables=(Table("guidelines", caption, COLUMNS, tuple(rows)),),
        facts={"counts": dict(Counter(row["status"] for row in rows))},
    )


def _answers(evidence: Evidence) -> dict[str, tuple[str, str]]:
    """Return the answers of the report by key: a status, and where they are or what to add."""
    result, partly, answered = evidence.audited, dict(_PARTLY), {}
    if result.attributes:
        partly |= _OF_GROUPS
        if not result.settings.n_bootstrap:
            partly["performance"] = "By group shows the numbers; intervals were not computed."
        elif result.calibration.empty:
            partly["performance"] = (
                "By group shows ranking with intervals; without survival curves there is no calibration."
            )
        else:
            answered["performance"] = (
                "By group, Do the predictions come true?: each number with its interval."
            )
        if len(result.decision_curves):
            judged = answered if "performance" in answered else partly
            judged["utility"] = "By group, Do the predictions come true?, Would treating by the model help?"
        if result.decisions is not None:
            partly["decisions"] = "Decisions has them at one threshold; say why this threshold."
    if len(result.shrunken):
        partly["clusters"] = (
            "Many groups, such as hospitals: observed over expected events of each group; discuss the differences."
        )
    if TrainingPatients.of(evidence).columns:
        answered["training patients"] = "Patients shows the training patients beside the audited ones."
    if not isinstance(evidence.bounds, str):
        partly["missed"] = "What could have been missed tests all subgroups that one or two columns define."
    if "Repairs" in evidence.model:
        partly["updating"] = "Method card says for whom the model was repaired; describe why and how."
        partly["updated"] = "Method card has the repairs, By group how the repaired model performs."
    elif evidence.repaired is not None and evidence.repaired.repairs_:
        partly["updating"] = "Remedy proposes repairs, with their gain; describe what you adopt."
    by_status = {LEFT: _LEFT, "partly": partly, "answered": answered}
    return {key: (status, text) for status, texts in by_status.items() for key, text in texts.items()}


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
