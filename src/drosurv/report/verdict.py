"""The verdict: the most serious problem that the group table, the subgroup bounds and the warnings show.

The rules are in docs/guide/verdict.md, and a test checks each row of that table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from drosurv.evaluation.attributes import EVERYONE, whose
from drosurv.groups import MISSING_LABEL
from drosurv.presentation import counted, first_upper, listing, p_text, plain_rows, with_interval

if TYPE_CHECKING:
    from drosurv.repairs.subgroup_bounds import SubgroupBounds

# Statuses of problems, the most serious first. Without a problem: too_few, unclear, no_groups or clear.
PROBLEMS = (
    "data_problem",
    "miscalibrated",
    "harm",
    "dominated",
    "worse_for_some",
    "wrong_decisions",
    "unequal",
)
ALL_PATIENTS = "all patients"
CHANCE = 0.5
# The search for subgroups, whose p-values are adjusted for all subgroups, counts as so many tests.
SEARCH_TESTS = 10
# Largest number of groups that a sentence names.
_MOST_NAMED = 3


class Concern(NamedTuple):
    """A problem: its status, the patients it concerns, and a sentence about it."""

    status: str
    who: str
    text: str


class Verdict(NamedTuple):
    """The verdict: status and text, what can be `excluded` for subgroups, all problems, and what to do next."""

    status: str
    text: str
    excluded: str
    problems: tuple[Concern, ...]
    steps: tuple[str, ...]


def judge(
    groups: pd.DataFrame,
    *,
    warnings: Sequence[Mapping[str, str]] = (),
    bounds: SubgroupBounds | str = "it was not asked for",
    tests: pd.DataFrame | None = None,
    n_tests: int = 0,
    level: float = 0.95,
    reference: str = "plain Cox",
) -> Verdict:
    """Judge a model by its group table, the bounds on subgroups and the warnings.

    `groups` is the group table of :func:`drosurv.evaluate`, and `bounds` are those of :func:`drosurv.certify`, both
    with p-values adjusted for all `n_tests`; or `bounds` is the reason why subgroups were not searched. `tests` are
    further tests, not adjusted yet: ``status``, ``who``, ``text`` and ``p``. `warnings` have a ``severity``,
    "blocking" or "note", and a ``text``.
    """
    rows = plain_rows(groups)
    found = [
        *_data_problems(warnings),
        *_calibration(rows, bounds),
        *_harm(rows),
        *_against_reference(rows, reference),
        *_further(tests, n_tests, level),
    ]
    found.sort(key=lambda problem: PROBLEMS.index(problem.status))
    status, text = _without_problems(rows, searched=not isinstance(bounds, str))
    if found:
        status = found[0].status
        same = [problem.text for problem in found if problem.status == status]
        more = len(same) - _MOST_NAMED
        text = " ".join(same[:_MOST_NAMED]) + (f" {more:,} more of this kind: see below." if more > 0 else "")
    steps = tuple(_steps(status, found, rows, reference))
    return Verdict(status, text, _excluded(bounds), tuple(found), steps)


def _data_problems(warnings: Sequence[Mapping[str, str]]) -> Iterator[Concern]:
    for warning in warnings:
        if warning["severity"] == "blocking":
            yield Concern("data_problem", "", f"{first_upper(warning['text']).rstrip('.')}.")


def _calibration(rows: list[dict[str, Any]], bounds: SubgroupBounds | str) -> Iterator[Concern]:
    """Report wrong numbers of events: of everybody or named groups, then of subgroups that were found."""
    wrong = [row for row in rows if row["concern"] == "calibration"]
    if wrong:
        shown = wrong[:1] if wrong[0]["attribute"] == EVERYONE else wrong[:_MOST_NAMED]
        said = [
            f"{_name(row)} had {row['ratio']:.2f} ({row['ratio_low']:.2f} to {row['ratio_high']:.2f}) times"
            for row in shown
        ]
        more = len(wrong) - len(shown)
        also = f"; they are wrong for {counted(more, 'other group')} too" if more else ""
        text = f"The predicted probabilities are wrong: {listing(said)} the predicted events{also}."
        yield Concern("miscalibrated", listing([_name(row) for row in shown]), text)
    if isinstance(bounds, str):
        return
    significant = plain_rows(bounds.significant if bounds.rescaled is None else bounds.rescaled)
    if significant:
        worst = significant[0]
        after = "" if bounds.rescaled is None else ", also after that is corrected for everybody"
        # Cumulative hazards may exceed the number of patients.
        of = "cumulative hazards of " if worst["expected"] > worst["patients"] else ""
        more = len(significant) - 1
        others = f"; also significant: {counted(more, 'other subgroup')}" if more else ""
        text = (
            f"Of {bounds.n_subgroups:,} subgroups that were searched, the {worst['patients']:,.0f} patients with "
            f"{worst['group']} differ most{after}: {worst['observed']:,.0f} events where {of}{worst['expected']:,.0f} "
            f"were predicted ({worst['ratio']:.2f} times, adjusted {p_text(worst['p'])}{others})."
        )
        yield Concern("miscalibrated", f"patients with {worst['group']}", text)


def _harm(rows: list[dict[str, Any]]) -> Iterator[Concern]:
    """Report groups whose predictions are worse than one curve for everybody."""
    harmed = [row for row in rows if row["judged"] and row["gain_p"] is not None and row["gain_high"] < 0]
    worse = "predictions are worse than one curve for everybody"
    for row in harmed[:_MOST_NAMED]:
        yield Concern("harm", _name(row), f"For {_name(row)}, {worse}: {_gain(row)} per patient.")
    everybody = rows[0]
    if everybody["expected"] is None and (everybody["c_index_high"] or 1.0) < CHANCE:
        yield Concern("harm", ALL_PATIENTS, "Patients are ranked worse than by chance.")


def _against_reference(rows: list[dict[str, Any]], reference: str) -> Iterator[Concern]:
    """Report groups that the reference predicts better; the model is dominated if it predicts no group better."""
    tested = [row for row in rows if row["gain_over_reference_p"] is not None]
    worse = [row for row in tested if row["gain_over_reference_high"] < 0]
    better = any(row["gain_over_reference_low"] > 0 for row in tested)
    for row in worse[:_MOST_NAMED]:
        gain = with_interval(
            row["gain_over_reference"], row["gain_over_reference_low"], row["gain_over_reference_high"]
        )
        text = f"{first_upper(reference)} predicts {_name(row)} better: gain of this model over it {gain} per patient."
        yield Concern("worse_for_some" if better else "dominated", _name(row), text)


def _further(tests: pd.DataFrame | None, n_tests: int, level: float) -> Iterator[Concern]:
    """Report further tests that are significant after adjustment."""
    if tests is None:
        return
    for row, adjusted in zip(plain_rows(tests), adjusted_p_values(tests, n_tests), strict=True):
        if adjusted < 1 - level:
            yield Concern(row["status"], row["who"], f"{row['text']} (adjusted {p_text(adjusted)}).")


def adjusted_p_values(tests: pd.DataFrame, n_tests: int) -> list[float]:
    """Return Bonferroni-adjusted p-values; 1 if a test could not be made."""
    return [1.0 if isnan(p) else min(p * max(n_tests, 1), 1.0) for p in tests["p"].astype(float)]


def _without_problems(rows: list[dict[str, Any]], *, searched: bool) -> tuple[str, str]:
    """Return status and sentence if there is no problem."""
    everybody, *named = rows
    if everybody["expected"] is None:
        ranked = with_interval(*(everybody[f"c_index{end}"] for end in ("", "_low", "_high")))
        return "unclear", f"Only ranking can be judged, since there are no survival curves: c-index {ranked}."
    if not everybody["judged"]:
        return "too_few", f"Too few patients to judge a model by: {everybody['why']}."
    if everybody["gain_low"] is None or everybody["gain_low"] <= 0:
        return "unclear", (
            "No problem is shown, but predictions are not shown to be better than one curve for everybody: "
            f"{_gain(everybody)} per patient, adjusted for all tests."
        )
    judged = [row for row in named if row["judged"]]
    if not judged and not searched:
        why = "no group is large enough to be judged" if named else "no groups were named"
        return "too_few" if named else "no_groups", f"No problem is shown for all patients together; {why}."
    if unclear := [_name(row) for row in judged if row["gain_low"] is None or row["gain_low"] <= 0]:
        whom = "any group alone" if len(unclear) == len(judged) > 1 else listing(unclear, _MOST_NAMED)
        return "unclear", (
            "No problem is shown. For all patients together, predictions are better than one curve for everybody; "
            f"for {whom} this is not shown."
        )
    return "clear", (
        "No problem is shown: events agree with the predictions, and predictions are better than one curve for "
        f"everybody, for all patients{' and in every group that can be judged' if judged else ''}."
    )


def _excluded(bounds: SubgroupBounds | str) -> str:
    """Say what can be excluded for all subgroups that columns define."""
    if isinstance(bounds, str):
        return f"Subgroups were not searched: {bounds}."
    most, least = (bounds.rounded[f"observed/expected, {end}"] for end in ("most", "least"))
    return (
        f"With {100 * bounds.level:g} % confidence, no subgroup of {bounds.sizes} "
        f"that one or two columns define has more than {most:.2f} times"
        f"{f', or fewer than {least:.2f} times,' if least > 0 else ''} the predicted events."
    )


def _steps(
    status: str, problems: Sequence[Concern], rows: list[dict[str, Any]], reference: str
) -> Iterator[str]:
    """Say what to do next, the most urgent first; one step for each kind of problem."""
    who = {kind: list(dict.fromkeys(p.who for p in problems if p.status == kind)) for kind in PROBLEMS}
    whom = {kind: listing(groups, _MOST_NAMED) for kind, groups in who.items()}
    if who["data_problem"]:
        yield "Solve the data problem, then audit again; until then the other numbers may be too good."
    if who["harm"]:
        yield f"Do not use the predictions for {whom['harm']}."
    if who["dominated"]:
        yield f"Use {reference} instead, or write down what this model is preferred for."
    elif ALL_PATIENTS in who["miscalibrated"]:
        yield "Correct the predicted probabilities of all patients (drosurv repair), then audit on other patients."
    elif who["miscalibrated"]:
        yield f"Correct the model for {whom['miscalibrated']} (drosurv repair), then audit it on other patients."
    if who["worse_for_some"]:
        yield f"Decide whether {reference} should predict {whom['worse_for_some']}, whom it predicts better."
    if who["wrong_decisions"]:
        yield f"Reconsider the threshold, or decide otherwise, for {whom['wrong_decisions']}."
    if who["unequal"]:
        yield f"Find out why the ranking of {whom['unequal']} is worse than the predictions imply."
    if rows[0]["expected"] is None:
        yield "Audit predicted survival probabilities: risk scores alone show only how patients are ranked."
    known = [row for row in rows[1:] if row["group"] != MISSING_LABEL and row["expected"] is not None]
    unclear = [row for row in known if not (row["gain_low"] or 0) > 0]
    enough = {row["attribute"] for row in known if row not in unclear}
    if unclear and {row["attribute"] for row in unclear} <= enough:
        more = listing([_name(row) for row in unclear], _MOST_NAMED)
        yield f"Collect more patients of {more}, for whom no benefit is shown yet."
    elif unclear or (status in ("too_few", "unclear") and rows[0]["expected"] is not None):
        yield "Audit again with more patients."
    if status == "no_groups":
        yield "Name groups, such as sex and age, and audit again."
    yield "Audit again when the model, the patients or their care change."


def _gain(row: Mapping[str, Any]) -> str:
    return f"gain {with_interval(row['gain'], row['gain_low'], row['gain_high'])}"


def _name(row: Mapping[str, Any]) -> str:
    return whose(row["attribute"], row["group"], ALL_PATIENTS)
