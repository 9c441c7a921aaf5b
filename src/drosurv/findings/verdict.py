"""Findings and the verdict: statuses in the order of seriousness, and what to do next.

A finding is one row: status, question, attribute, group, time, value, low, high, p, text. Reports, tables and commands
show these rows. The rules are in docs/guide/verdict.md, and a test checks each row of that table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drosurv.findings.adjustment import Adjusted, Question, adjust, decided_by_one, total_weight
from drosurv.findings.questions import KINDS
from drosurv.findings.words import EVERYONE, SUBGROUP, sentence, subgroup_events, who
from drosurv.groups import MISSING_LABEL
from drosurv.presentation import as_sentence, listing, p_text, ratio_text

#: Statuses of problems, the most serious first.
PROBLEMS = ("data_problem", "miscalibrated", "harm", "dominated", "worse_for_some", "wrong_decisions")
#: Statuses without a problem.
OTHERS = ("too_few", "unclear", "no_groups", "clear")
STATUSES = (*PROBLEMS, *OTHERS)
#: If larger factors between observed and expected events are not excluded, there are too few patients: the first is for
#: all patients, the second for subgroups that were searched.
WIDE, WIDE_OF_SUBGROUPS = 1.5, 3.0
# Largest number of problems that the verdict's text, and of groups that a sentence, names.
_MOST_NAMED = 3
#: What to do about wrong probabilities that no correction mends.
NO_CORRECTION = (
    "No correction improved the predictions of held-out patients: refit the model with these columns, or collect more "
    "patients."
)
# Status and question of groups whose number of events is wrong.
_WRONG = ("miscalibrated", "level")


class FindingRow(NamedTuple):
    """One row of the findings: a question about a group, its number with interval and p-value, and a sentence."""

    status: str
    question: str
    attribute: str
    group: str
    time: float = np.nan
    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    text: str = ""

    @property
    def who(self) -> str:
        """Name of the group."""
        return who(self.attribute, self.group)


class Judgement(NamedTuple):
    """The verdict: its status and texts, the most serious first, all problems, and what to do next."""

    status: str
    texts: tuple[str, ...]
    problems: tuple[FindingRow, ...]
    steps: tuple[str, ...]

    @property
    def text(self) -> str:
        """The texts in one paragraph."""
        return " ".join(self.texts)


def findings(tests: Sequence[Question], level: float, further_tests: float = 0) -> list[FindingRow]:
    """Return a row for each test, adjusted for all of them and for `further_tests` that were made elsewhere.

    `further_tests` are as many tests of the number of events.
    """
    total = total_weight(tests) + further_tests
    adjusted = adjust(tests, level, total)
    better = any(
        one.test.question == "gain over reference" and one.value > 0 and one.p < 1 - level for one in adjusted
    )
    worse = "worse_for_some" if better else "dominated"
    return [_finding(one, level, worse, decided_by_one(one, level, total)) for one in adjusted]


def _finding(
    found: Adjusted, level: float, if_worse: str, by_one: tuple[str, float] | None = None
) -> FindingRow:
    test = found.test
    status = "clear"
    if test.estimate is None:
        status = "too_few"
    elif found.wrong:
        status = if_worse if test.question == "gain over reference" else test.status
    elif test.question == "gain" and not (found.value > 0 and found.p < 1 - level):
        status = "unclear"
    time = np.nan if test.estimate is None else test.estimate.time
    text = sentence(KINDS[test.question], status, found)
    if by_one is not None:
        row, p = by_one
        text += f" One patient decides this: without the patient in row {row}, adjusted {p_text(p)}."
    number = time, found.value, found.low, found.high, found.p
    return FindingRow(status, test.question, test.attribute, test.group, *number, text)


def data_problem(text: str) -> FindingRow:
    """Return a blocking problem of the data."""
    return FindingRow("data_problem", "data", EVERYONE, "all", text=as_sentence(text))


def subgroup_problem(
    worst: Mapping[str, Any], searched: int, after: str = "", others: str = "", unit: str = ""
) -> FindingRow:
    """Return the finding for the subgroup that differs most, given as a row of the significant subgroups.

    `after` and `others` are words for its sentence, `unit` is that of times.
    """
    text = (
        f"Of {searched:,} subgroups that were searched, the {worst['patients']:,.0f} patients with "
        f"{worst['group']} differ most{after}: {subgroup_events(worst, unit)}, "
        f"adjusted {p_text(worst['p'])}{others})."
    )
    about = ("miscalibrated", "subgroups", SUBGROUP, str(worst["group"]))
    return FindingRow(*about, value=worst["ratio"], p=worst["p"], text=text)


def to_frame(rows: Sequence[FindingRow]) -> pd.DataFrame:
    """Return findings as a table, the most serious first."""
    ordered: list[FindingRow] = sorted(rows, key=_place)
    return pd.DataFrame(ordered, columns=list(FindingRow._fields))


def from_frame(table: pd.DataFrame) -> list[FindingRow]:
    """Return the rows of a table of findings."""
    # Lists of columns, because pandas takes long to give rows.
    return [
        FindingRow(*row) for row in zip(*(table[name].tolist() for name in FindingRow._fields), strict=True)
    ]


def _place(row: FindingRow) -> tuple[int, bool, int, float]:
    """Order of rows: by seriousness, everybody before groups, by question, and problems by their p-values."""
    p = float(np.nan_to_num(row.p)) if row.status in PROBLEMS else 0.0
    return STATUSES.index(row.status), row.attribute != EVERYONE, [*KINDS].index(row.question), p


class Bounds(NamedTuple):
    """Least and most observed over expected events that a search cannot exclude for any subgroup."""

    least: float
    most: float


def problems_of(rows: Sequence[FindingRow]) -> tuple[FindingRow, ...]:
    """Return the rows that are problems, the most serious first."""
    return tuple(sorted((row for row in rows if row.status in PROBLEMS), key=_place))


def briefly(rows: Sequence[FindingRow], *, but: str = "") -> dict[tuple[str, str], str]:
    """Return the problems of each group in a few words, by attribute and group; those of one question are left out."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.status in PROBLEMS and row.question in KINDS and row.question != but:
            found.setdefault((row.attribute, row.group), []).append(KINDS[row.question].briefly)
    return {key: "; ".join(words) for key, words in found.items()}


def judge(
    rows: Sequence[FindingRow],
    *,
    bounds: Bounds | None = None,
    corrected: Sequence[str] | None = None,
    reference: str = "plain Cox",
) -> Judgement:
    """Return the verdict on a model from its findings.

    `bounds` are those of a search for subgroups, None if there was none. `corrected` names the groups whose predictions
    a correction improves on held-out patients; None if no correction was tried.
    """
    problems = problems_of(rows)
    texts: Sequence[str]
    if problems:
        status = problems[0].status
        same = [row.text for row in problems if row.status == status]
        more = len(same) - _MOST_NAMED
        texts = (*same[:_MOST_NAMED], *([f"{more:,} more of this kind: see below."] if more > 0 else ()))
    else:
        status, *texts = _without_problems(rows, bounds)
    return Judgement(
        status, tuple(texts), problems, tuple(_steps(status, problems, rows, corrected, reference))
    )


def _without_problems(rows: Sequence[FindingRow], bounds: Bounds | None) -> tuple[str, str]:
    """Return status and sentence if there is no problem."""
    of = {question: [row for row in rows if row.question == question] for question in ("level", "gain")}
    everybody = next((row for row in of["level"] if row.attribute == EVERYONE), None)
    if everybody is None:
        ranking = next((row.text for row in rows if row.question == "ranking"), "")
        text = f"Only ranking can be judged, since there are no survival probabilities. {ranking}"
        return "unclear", text.rstrip()
    named = [row for row in of["level"] if row.attribute not in (EVERYONE, SUBGROUP)]
    if too_few := _too_few(everybody, named, bounds):
        return "too_few", too_few
    unclear = [row for row in of["gain"] if row.status == "unclear"]
    if any(row.attribute == EVERYONE for row in unclear):
        return "unclear", next(row.text for row in unclear if row.attribute == EVERYONE)
    if not named and bounds is None:
        return "no_groups", "No problem is shown for all patients together; no groups were named."
    if unclear:
        whom = listing([row.who for row in unclear], _MOST_NAMED)
        return "unclear", (
            "No problem is shown. The model predicts all patients together better than one curve for everybody; it is "
            f"not yet shown to predict {whom} better than one curve."
        )
    return "clear", (
        "No problem is shown: events agree with the predictions, and predictions are better than one curve for "
        f"everybody, for all patients{' and in every group that can be judged' if named else ''}."
    )


def _too_few(everybody: FindingRow, named: Sequence[FindingRow], bounds: Bounds | None) -> str:
    """Say why there are too few patients for a verdict; empty if there are enough."""
    start = "Cannot tell with so few patients"
    if everybody.status == "too_few":
        return f"{start}. {everybody.text}"
    if named and all(row.status == "too_few" for row in named):
        return f"{start}: no problem is shown for all patients together, and no group is large enough to be judged."
    if max(everybody.high, 1 / max(everybody.low, 1e-9)) > WIDE:
        return (
            f"{start}: no problem is shown, but all patients together may have {ratio_text(everybody.low)} to "
            f"{ratio_text(everybody.high)} times the predicted events."
        )
    if bounds is not None and max(bounds.most, 1 / max(bounds.least, 1e-9)) > WIDE_OF_SUBGROUPS:
        return (
            f"{start}: no problem is shown, but subgroups may have {ratio_text(bounds.least)} to "
            f"{ratio_text(bounds.most)} times the predicted events."
        )
    return ""


def _steps(
    status: str,
    problems: Sequence[FindingRow],
    rows: Sequence[FindingRow],
    corrected: Sequence[str] | None,
    reference: str,
) -> Iterator[str]:
    """Say what to do next, the most urgent first; one step for each kind of problem."""
    whom: Mapping[str, str] = {
        kind: listing(list(dict.fromkeys(row.who for row in problems if row.status == kind)), _MOST_NAMED)
        for kind in PROBLEMS
    }
    if whom["data_problem"]:
        yield "Solve the data problem, then audit again; until then the other numbers may be too good."
    if whom["harm"]:
        yield f"Do not use the predictions for {whom['harm']}."
    if whom["dominated"]:
        yield f"Use {reference} instead, or write down what this model is preferred for."
    elif whom["miscalibrated"]:
        yield _repair(whom["miscalibrated"], corrected)
    if whom["worse_for_some"]:
        yield f"Decide whether {reference} should predict {whom['worse_for_some']}, whom it predicts better."
    if whom["wrong_decisions"]:
        yield f"Reconsider the threshold, or decide otherwise, for {whom['wrong_decisions']}."
    if not any(row.question == "level" for row in rows):
        yield "Audit predicted survival probabilities: risk scores alone show only how patients are ranked."
    elif few := _few(rows):
        whom_few = listing([row.who for row in few], _MOST_NAMED)
        yield f"Audit again with more patients, or a longer follow-up, of {whom_few}."
    elif any(row.status in ("too_few", "unclear") for row in rows) or status == "too_few":
        yield "Audit again with more patients."
    if status == "no_groups":
        yield "Name groups, such as sex and age, and audit again."
    yield "Audit again when the model, the patients or their care change."


def _few(rows: Sequence[FindingRow]) -> list[FindingRow]:
    """Return a row of each group with too few patients or events; empty if every group of an attribute has too few."""
    named = [row for row in rows if row.attribute not in (EVERYONE, SUBGROUP) and row.group != MISSING_LABEL]
    wrong = {(row.attribute, row.group) for row in named if (row.status, row.question) == _WRONG}
    few = {
        (row.attribute, row.group): row
        for row in named
        if row.status in ("too_few", "unclear") and (row.attribute, row.group) not in wrong
    }
    enough = {row.attribute for row in named if (row.attribute, row.group) not in few}
    return list(few.values()) if {attribute for attribute, _ in few} <= enough else []


def _repair(wrong: str, corrected: Sequence[str] | None) -> str:
    """Say what to do about wrong probabilities; `corrected` as in :func:`judge`."""
    if corrected is None:
        return f"Try drosurv repair: it tests on held-out patients whether a correction helps {wrong}."
    if corrected:
        whom = listing(list(corrected), _MOST_NAMED)
        return f"Correct the predictions for {whom} (drosurv repair), then audit on other patients."
    return NO_CORRECTION
