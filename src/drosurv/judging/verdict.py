"""Findings and the verdict: statuses in the order of seriousness, and what to do next.

A finding is one row: status, question, attribute, group, time, value, low, high, p, text. Reports, tables and commands
show these rows. The rules are in docs/guide/verdict.md, and a test checks each row of that table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drosurv.judging.adjustment import Adjusted, Question, adjust
from drosurv.judging.questions import KINDS
from drosurv.judging.words import NO_EVENT, SMALL, SUBGROUP, sentence, subgroup_events, who
from drosurv.patients.groups import EVERYONE, MISSING_LABEL
from drosurv.presentation import as_sentence, listing, p_text, ratio_text

#: Statuses of problems, the most serious first.
PROBLEMS = ("data_problem", "miscalibrated", "harm", "dominated", "worse_for_some", "wrong_decisions")
#: Statuses without a problem.
OTHERS = ("too_few", "unclear", "no_groups", "clear")
STATUSES = (*PROBLEMS, *OTHERS)
#: If an interval of observed over expected events includes 1 and this factor, or one over it, it cannot be told whether
#: predictions are right.
WIDE = 1.5
# Largest number of problems that the verdict's text, and of groups that a sentence, names.
_MOST_NAMED = 3
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

    @property
    def is_small(self) -> bool:
        """Whether a difference is significant, but too small to be a problem."""
        return self.status == "clear" and self.text.endswith(f"{SMALL}.")


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


def findings(tests: Sequence[Question], level: float, **how: Any) -> list[FindingRow]:
    """Return a row for each test, adjusted for all of them; `how` are arguments of :func:`adjust`."""
    return finding_rows(adjust(tests, level, **how), level)


def finding_rows(adjusted: Sequence[Adjusted], level: float) -> list[FindingRow]:
    """Return a row for each adjusted test."""
    over_reference = (one for one in adjusted if one.test.question == "gain over reference")
    better = any(one.value > 0 and one.p < 1 - level for one in over_reference)
    worse = "worse_for_some" if better else "dominated"
    return [_finding(one, level, worse) for one in adjusted]


def _finding(found: Adjusted, level: float, if_worse: str) -> FindingRow:
    test = found.test
    status = "clear"
    if test.estimate is None:
        status = "too_few"
    elif found.wrong:
        status = if_worse if test.question == "gain over reference" else test.kind.status
    elif _cannot_tell(found, level):
        status = "unclear"
    time = np.nan if test.estimate is None else test.estimate.time
    number = time, found.value, found.low, found.high, found.p
    return FindingRow(status, test.question, test.attribute, test.group, *number, sentence(status, found))


def _cannot_tell(found: Adjusted, level: float) -> bool:
    """Whether predictions are not shown to be better than one curve, or a wrong number of events is not excluded."""
    if found.test.question == "gain":
        return not (found.value > 0 and found.p < 1 - level)
    if found.test.question == "level":
        return _is_wide(found)
    return False


def _is_wide(found: Adjusted | FindingRow) -> bool:
    """Whether an interval of observed over expected events includes 1 and a ratio that must be told from it."""
    return found.low <= 1 <= found.high and (found.high >= WIDE or found.low <= 1 / WIDE)


def data_problem(text: str) -> FindingRow:
    """Return a blocking problem of the data."""
    return FindingRow("data_problem", "data", EVERYONE, "all", text=as_sentence(text))


def subgroup_problem(
    worst: Mapping[str, Any], searched: int, after: str = "", others: str = "", unit: str = ""
) -> FindingRow:
    """Return the finding for the subgroup that differs most; `after` and `others` are words for its sentence."""
    text = (
        f"Of {searched:,} subgroups that were searched, the {worst['patients']:,.0f} patients with "
        f"{worst['group']} differ most{after}: {subgroup_events(worst, unit)}, "
        f"adjusted {p_text(worst['p'])}{others})."
    )
    about = ("miscalibrated", "subgroups", SUBGROUP, str(worst["group"]))
    return FindingRow(*about, value=worst["ratio"], p=worst["p"], text=text)


def in_order(rows: Sequence[FindingRow]) -> tuple[FindingRow, ...]:
    """Return findings, the most serious first."""
    return tuple(sorted(rows, key=_place))


def to_frame(rows: Sequence[FindingRow]) -> pd.DataFrame:
    """Return findings as a table, the most serious first."""
    numbers = dict.fromkeys(("time", "value", "low", "high", "p"), float)
    return pd.DataFrame(in_order(rows), columns=list(FindingRow._fields)).astype(numbers)


def _place(row: FindingRow) -> tuple[int, bool, int, float]:
    """Order of rows: by seriousness, everybody before groups, by question, and problems by their p-values."""
    p = float(np.nan_to_num(row.p)) if row.status in PROBLEMS else 0.0
    return STATUSES.index(row.status), row.attribute != EVERYONE, [*KINDS].index(row.question), p


def problems_of(rows: Sequence[FindingRow]) -> tuple[FindingRow, ...]:
    """Return the rows that are problems, the most serious first."""
    return in_order([row for row in rows if row.status in PROBLEMS])


def briefly(rows: Sequence[FindingRow], *, but: str = "") -> dict[tuple[str, str], str]:
    """Return the problems of each group in a few words, by attribute and group; those of one question are left out.

    If the number of events is wrong, that of an earlier time is not named as well.
    """
    found: dict[tuple[str, str], list[str]] = {}
    again = _said_again(rows)
    for row in rows:
        if row.status in PROBLEMS and row.question in KINDS and row.question != but and row not in again:
            found.setdefault((row.attribute, row.group), []).append(KINDS[row.question].briefly)
    return {key: "; ".join(dict.fromkeys(words)) for key, words in found.items()}


def _said_again(rows: Sequence[FindingRow]) -> list[FindingRow]:
    """Return the rows about earlier times of groups whose number of events is wrong by the last time, too."""
    wrong = {(row.attribute, row.group) for row in rows if (row.status, row.question) == _WRONG}
    return [row for row in rows if row.question == "level by a time" and (row.attribute, row.group) in wrong]


def judge(
    rows: Sequence[FindingRow],
    *,
    searched: bool = False,
    corrected: Sequence[str] | None = None,
    refit: str = "",
    reference: str = "plain Cox",
) -> Judgement:
    """Return the verdict on a model from its findings.

    `searched` says whether subgroups were searched. `corrected` names the groups whose predictions
    a correction improves on held-out patients; None if no correction was tried. `refit` is what to do when the model is
    fitted again, as from :func:`refit_advice`.
    """
    problems = problems_of(rows)
    texts: Sequence[str]
    if problems:
        status = problems[0].status
        again = _said_again(problems)
        # Other groups are named before the earlier times of the same group.
        same = [row.text for row in sorted(problems, key=lambda row: row in again) if row.status == status]
        texts = _first(same, "of this kind")
    else:
        status, *texts = _without_problems(rows, searched)
    steps = _steps(status, problems, rows, corrected, refit, reference)
    return Judgement(status, tuple(texts), problems, tuple(steps))


def _first(texts: Sequence[str], what: str) -> list[str]:
    """Return the first texts, and the number of the others."""
    more = len(texts) - _MOST_NAMED
    return [*texts[:_MOST_NAMED], *([f"{more:,} more {what}: see below."] if more > 0 else ())]


def _without_problems(rows: Sequence[FindingRow], searched: bool) -> tuple[str, ...]:
    """Return status and sentences if there is no problem."""
    of = {question: [row for row in rows if row.question == question] for question in ("level", "gain")}
    everybody = next((row for row in of["level"] if row.attribute == EVERYONE), None)
    if everybody is None:
        judged = "Only ranking"
        if any(row.question == "slope" for row in rows):
            judged += " and the differences between patients"
        of_all = (row for row in rows if row.attribute == EVERYONE)
        texts = [row.text for row in of_all if row.question in ("ranking", "slope")]
        return "unclear", f"{judged} can be judged, since there are no survival probabilities.", *texts
    named = [row for row in of["level"] if row.attribute not in (EVERYONE, SUBGROUP)]
    earlier = [row for row in rows if row.question == "level by a time" and row.attribute == EVERYONE]
    if too_few := _too_few(everybody, earlier, named):
        return "too_few", too_few
    gains = [row for row in of["gain"] if row.status == "unclear"]
    if texts := [row.text for row in gains if row.attribute == EVERYONE]:
        return "unclear", texts[0]
    small = _first([row.text for row in rows if row.is_small], "small differences")
    wide = [row for row in (everybody, *named) if row.status == "unclear"]
    if not (named or searched or wide):
        return "no_groups", "No problem is shown for all patients together; no groups were named.", *small
    if wide or gains:
        return "unclear", "No problem is shown.", *_what_is_unclear(wide, gains), *small
    if small:
        return "clear", "No problem is shown.", *small
    return "clear", (
        "No problem is shown: events agree with the predictions, and predictions are better than one curve for "
        f"everybody, for all patients{' and in every group that can be judged' if named else ''}."
    )


def _what_is_unclear(wide: Sequence[FindingRow], gains: Sequence[FindingRow]) -> Iterator[str]:
    """Name the groups whose number of events cannot be told, and those whom one curve may predict as well."""
    if len(wide) == 1:
        yield wide[0].text
    elif wide:
        whom = listing([row.who for row in wide], _MOST_NAMED)
        low, high = min(row.low for row in wide), max(row.high for row in wide)
        yield (
            f"Cannot tell for {whom}: up to {ratio_text(high)} times, or down to {ratio_text(low)} times, the "
            "predicted events (adjusted) cannot be excluded."
        )
    if gains:
        yield (
            "The model predicts all patients together better than one curve for everybody; it is not yet shown to "
            f"predict {listing([row.who for row in gains], _MOST_NAMED)} better than one curve."
        )


def _too_few(everybody: FindingRow, earlier: Sequence[FindingRow], named: Sequence[FindingRow]) -> str:
    """Say why there are too few patients for a verdict; empty if there are enough, also by an `earlier` time only."""
    if NO_EVENT in everybody.text:
        return f"Cannot tell. {everybody.text}"
    start = "Cannot tell with so few patients"
    if everybody.status == "too_few":
        return f"{start}. {everybody.text}"
    if named and all(row.status == "too_few" for row in named):
        return f"{start}: no problem is shown for all patients together, and no group is large enough to be judged."
    if everybody.status == "unclear" and all(map(_is_wide, earlier)):
        return (
            f"{start}: no problem is shown, but all patients together may have {ratio_text(everybody.low)} to "
            f"{ratio_text(everybody.high)} times the predicted events (adjusted)."
        )
    return ""


def _steps(
    status: str,
    problems: Sequence[FindingRow],
    rows: Sequence[FindingRow],
    corrected: Sequence[str] | None,
    refit: str,
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
    elif whom["miscalibrated"] and not _has_probabilities(rows):
        slopes = [row.value for row in problems if row.question == "slope" and row.attribute == EVERYONE]
        if slopes and slopes[0] <= 0:
            yield "Check the sign of the scores: a higher score must mean a higher risk."
        else:
            by = f", such as by multiplying log hazard ratios by {ratio_text(slopes[0])}" if slopes else ""
            yield f"Recalibrate the scores for {whom['miscalibrated']}{by}."
    elif whom["miscalibrated"]:
        yield _repair(whom["miscalibrated"], corrected, refit)
    if whom["worse_for_some"]:
        yield f"Decide whether {reference} should predict {whom['worse_for_some']}, whom it predicts better."
    if whom["wrong_decisions"]:
        yield f"Reconsider the threshold, or decide otherwise, for {whom['wrong_decisions']}."
    if any(NO_EVENT in row.text for row in rows):
        yield "Check the coding of the event: no patient had one."
    elif not _has_probabilities(rows):
        yield "Audit predicted survival probabilities: risk scores alone do not say how many events they predict."
    elif few := _few(rows):
        whom_few = listing([row.who for row in few], _MOST_NAMED)
        yield f"Audit again with more patients, or a longer follow-up, of {whom_few}."
    elif any(row.status in ("too_few", "unclear") for row in rows) or status == "too_few":
        yield "Audit again with more patients."
    if status == "no_groups":
        yield "Name groups, such as sex and age, and audit again."
    yield "Audit again when the model, the patients or their care change."


def _has_probabilities(rows: Sequence[FindingRow]) -> bool:
    """Whether numbers of events were judged, which takes more than risk scores."""
    return any(row.question == "level" for row in rows)


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


def _repair(wrong: str, corrected: Sequence[str] | None, refit: str) -> str:
    """Say what to do about wrong probabilities; `corrected` and `refit` as in :func:`judge`."""
    if corrected is None:
        return f"Try drosurv repair: it tests on held-out patients whether a correction helps {wrong}."
    if not corrected:
        return no_correction(refit)
    whom = listing(list(corrected), _MOST_NAMED)
    other = f", or {refit}; then audit" if refit else ", then audit"
    return f"Correct the predictions for {whom} (drosurv repair){other} on other patients."


def no_correction(refit: str) -> str:
    """Say what to do about wrong probabilities that no correction mends."""
    advice = f"{refit or 'refit the model'}, or collect more patients"
    return f"No correction improved the predictions of held-out patients: {advice}."


def refit_advice(columns: Mapping[str, bool | None]) -> str:
    """Say how to fit a model again that is wrong for groups that columns define, in words that continue a sentence.

    `columns` says of each column whether it is in the model, or None where that is not known. A column of the model
    has another effect than the model says, such as one that changes over time; others may be added.

    >>> refit_advice({"age": True})
    'refit the model with strata of age, or with an effect of age that changes over time'
    >>> refit_advice({"hospital": False}), refit_advice({})
    ('add hospital to the model', '')
    """
    inside, outside, unknown = (
        [name for name in columns if columns[name] is known] for known in (True, False, None)
    )
    advice = []
    if outside:
        advice.append(f"add {listing(outside, _MOST_NAMED)} to the model")
    if inside:
        names = listing(inside, _MOST_NAMED)
        effect, changes = ("an effect", "changes") if len(inside) == 1 else ("effects", "change")
        strata = f"refit the model with strata of {names}"
        advice.append(f"{strata}, or with {effect} of {names} that {changes} over time")
    if unknown:
        advice.append(f"fit the model again with {listing(unknown, _MOST_NAMED)}")
    return ", or ".join(advice)
