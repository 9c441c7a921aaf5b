"""The questions that are asked about everybody and about each group; each is answered by a test.

To add a kind of finding, add one function here, with its sentences, and one row of the table in docs/guide/verdict.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from drosurv.findings import residual_tests as tests
from drosurv.findings import words
from drosurv.findings.adjustment import Question, used_weight
from drosurv.findings.estimation_error import EstimationError
from drosurv.findings.judged import Judged
from drosurv.findings.own_curve import OwnCurve
from drosurv.findings.residual_tests import JudgedValue
from drosurv.findings.residuals import PatientResiduals, Sums
from drosurv.findings.words import ALL, EVERYONE, Kind, percent
from drosurv.presentation.sentences import LEAST_DIFFERENCE
from drosurv.target import BoolArray, FloatArray

#: Groups with fewer patients, or fewer events both expected and observed, are not judged.
FEWEST_PATIENTS, FEWEST_EVENTS = 50, 10
#: A smaller distance of a ratio or slope from 1 is not visible in two decimals.
LEAST_RATIO = 0.005

#: All kinds of questions by name, in the order of tables. Where a problem is rarer, or another question finds it too,
#: weights are smaller: they divide the error rate (see docs/guide/verdict.md).
KINDS: dict[str, Kind] = {}
# Attribute and group.
Key = tuple[str, str]


@dataclass(frozen=True, eq=False)
class JudgedGroup:
    """A group that is large enough to be judged: its members (n,), and its events in parts of the follow-up."""

    judged: Judged
    mask: BoolArray
    sums: Sums
    threshold: float | None = None


Ask = Callable[[JudgedGroup], JudgedValue | None]


def question(name: str, **about: Any) -> Callable[[Ask], Ask]:
    """Ask the decorated function about everybody and every group; `about` are fields of :class:`words.Kind`."""

    def add(ask: Ask) -> Ask:
        KINDS[name] = Kind(**{"status": "miscalibrated", "least": LEAST_RATIO, **about}, ask=ask)
        return ask

    return add


def questions(
    judged: Judged,
    members: Mapping[Key, BoolArray],
    *,
    threshold: float | None = None,
    reference: str = "plain Cox",
    time_unit: str = "",
) -> list[Question]:
    """Return all questions about groups of patients, masks (n,) by attribute and group.

    A question about a group that is too small has a reason in place of an estimate.
    """
    details = {"unit": time_unit, "reference": reference, "trained": "yes" if judged.trained else ""}
    if threshold is not None:
        details["threshold"] = percent(threshold)
    found = []
    for key, mask in members.items():
        sums = group_sums(judged.residuals, mask, judged.error)
        why, few_events = _why_not(judged, mask, sums)
        if why or sums is None:
            found.append(Question("level", *key, None, "miscalibrated", why=why, few_events=few_events))
            continue
        group = JudgedGroup(judged, mask, sums, threshold)
        for name, kind in KINDS.items():
            value = None if kind.ask is None else kind.ask(group)
            if value is not None:
                weight = kind.weight_of(key[0])
                asked = Question(
                    name, *key, value, kind.status, kind.least, kind.side, weight, details=details
                )
                if kind.contributions is not None:
                    asked = asked._replace(without_one=partial(_without_one, group, kind, value))
                found.append(asked)
    return found


def _without_one(group: JudgedGroup, kind: Kind, value: JudgedValue) -> tuple[str, JudgedValue | None]:
    """Return the label of the first row of the patient who contributes most, and the group's number without them."""
    assert kind.ask is not None
    assert kind.contributions is not None
    judged, mask = group.judged, group.mask
    contributed = np.sign(value.value - value.right) * kind.contributions(group, value)
    patients = judged.cohort.patients
    if patients is None:
        patients = np.arange(len(mask))
    one = patients == np.bincount(patients, contributed).argmax()
    sums = group_sums(judged.residuals, mask & ~one, judged.error)
    left = None if sums is None else kind.ask(replace(group, mask=mask & ~one, sums=sums))
    return judged.cohort.row_label(int(one.argmax())), left


def largest_weight() -> float:
    """Return the largest weight in the adjustment of all questions about a group."""
    return sum(used_weight(kind.weight, kind.side) for kind in KINDS.values() if kind.ask is not None)


def _why_not(judged: Judged, mask: BoolArray, sums: Sums | None) -> tuple[str, bool]:
    """Say why a group is not judged, empty if it is, and whether that is because of few events."""
    if n_patients(judged, mask) < FEWEST_PATIENTS:
        return f"fewer than {FEWEST_PATIENTS} patients", False
    if sums is None:
        return "too few patients were observed until the first predicted time", False
    if max(sums.expected.sum(), sums.observed.sum()) < FEWEST_EVENTS:
        return f"fewer than {FEWEST_EVENTS} events, expected and observed", True
    return "", False


def _contributions(residuals: PatientResiduals, w: FloatArray, parts: FloatArray) -> FloatArray:
    """Return each row's term (n,) of a weighted sum of residuals, with weights `w` (n,) and `parts` (J,)."""
    found: FloatArray = (
        residuals.weight * w * ((residuals.observed - residuals.expected)[:, : len(parts)] @ parts)
    )
    return found


def _of_level(group: JudgedGroup, _: JudgedValue) -> FloatArray:
    w = group.mask.astype(np.float64)
    return _contributions(group.judged.residuals, w, np.ones(len(group.sums.observed)))


def _of_timing(group: JudgedGroup, value: JudgedValue) -> FloatArray:
    residuals, expected = group.judged.residuals, group.sums.expected
    part = int(np.searchsorted(residuals.ends[: len(expected)], value.time))
    direction = np.full(len(expected), -expected[part] / expected.sum())
    direction[part] += 1.0
    return _contributions(residuals, group.mask.astype(np.float64), direction)


def _of_slope(group: JudgedGroup, _: JudgedValue) -> FloatArray:
    judged, mask = group.judged, group.mask
    residuals = judged.at_horizon if judged.few_times else judged.residuals
    expected = residuals.weight * mask * residuals.expected.sum(axis=1)
    w = mask * (judged.score - np.average(judged.score, weights=expected))
    return _contributions(residuals, w, np.ones(residuals.expected.shape[1]))


def _of_gain(values: FloatArray | None, group: JudgedGroup) -> FloatArray:
    assert values is not None
    found: FloatArray = values * group.mask * group.judged.cohort.copies
    return found


def _by_horizon_of(group: JudgedGroup, side: BoolArray) -> FloatArray:
    residuals = group.judged.at_horizon
    w = (group.mask & side).astype(np.float64)
    return _contributions(residuals, w, np.ones(residuals.expected.shape[1]))


# Found elsewhere: before patients are judged, by a search for subgroups, and for risk scores alone.
KINDS["data"] = Kind("data_problem", "data problem", "")


@question(
    "level",
    briefly="wrong number of events",
    wrong="The number of events is wrong for {name}: {times} the predicted events{until} ({p}).",
    clear="Events agree with the predictions for {name}: observed/expected {number}.",
    contributions=_of_level,
)
def _level(group: JudgedGroup) -> JudgedValue | None:
    judged, found = group.judged, tests.level(group.sums)
    if not judged.few_times:
        return found
    return replace(found, time=float(judged.residuals.ends[len(group.sums.observed) - 1]))


KINDS["subgroups"] = Kind("miscalibrated", "wrong number of events", "")


@question(
    "timing",
    weight=0.25,
    briefly="wrong timing of events",
    wrong=(
        "The timing of events is wrong for {name}: {when} there were {times} as many events as the predictions and the "
        "rest of the follow-up imply ({p})."
    ),
    clear=(
        "The timing of events agrees with the predictions for {name}: {when}, where it fits least, there were {times} "
        "as many events as the predictions and the rest of the follow-up imply."
    ),
    contributions=_of_timing,
)
def _timing(group: JudgedGroup) -> JudgedValue | None:
    return tests.timing(group.sums, group.judged.residuals.ends)


@question(
    "slope",
    group_weight=0.5,
    briefly="wrong differences between patients",
    wrong=words.slope,
    clear="Differences between patients agree with the predictions for {name}: calibration slope {number}.",
    contributions=_of_slope,
)
def _slope(group: JudgedGroup) -> JudgedValue | None:
    judged = group.judged
    residuals, error = judged.residuals, judged.error
    if judged.few_times:
        residuals, error = judged.at_horizon, judged.error_at_horizon
        if residuals.known_parts(group.mask) == 0:
            return None
    return tests.slope(residuals, judged.score, group.mask, None if error is None else error.covariance)


KINDS["ranking"] = Kind(
    "harm",
    "ranked worse than by chance",
    "Patients are ranked worse than by chance: c-index {number}.",
    "Patients are ranked no worse than by chance: c-index {number}.",
    side=-1,
)


def ranking(c_index: float, error: float) -> Question:
    """Return the question whether risk scores alone rank all patients worse than chance, from a standard error."""
    key = EVERYONE, ALL
    if not error > 0:
        return Question("ranking", *key, None, "harm", why="no interval of the c-index was computed")
    found = JudgedValue(c_index, lambda value: (c_index - value) / error, 0.5, on_log_scale=False)
    return Question("ranking", *key, found, "harm", side=-1)


@question(
    "gain",
    status="harm",
    least=LEAST_DIFFERENCE,
    side=-1,
    briefly="worse than one curve for everybody",
    wrong="For {name}, predictions are worse than one curve for everybody: gain {number} per patient.",
    clear="The model predicts {name} better than one curve: gain per patient {number}.",
    contributions=lambda group, _: _of_gain(group.judged.gains, group),
)
def _gain(group: JudgedGroup) -> JudgedValue | None:
    return _mean(group, group.judged.gains, group.judged.own_curve)


@question(
    "gain over reference",
    status="dominated",
    least=LEAST_DIFFERENCE,
    side=-1,
    briefly="predicted better by the other model",
    wrong="{reference} predicts {name} better: gain of this model over it {number} per patient.",
    clear="The other model is not shown to predict {name} better: gain over it per patient {number}.",
    contributions=lambda group, _: _of_gain(group.judged.over_reference, group),
)
def _gain_over_reference(group: JudgedGroup) -> JudgedValue | None:
    values = group.judged.over_reference
    return None if values is None else _mean(group, values)


def _mean(group: JudgedGroup, values: FloatArray, own_curve: OwnCurve | None = None) -> JudgedValue | None:
    cohort = group.judged.cohort
    return tests.mean(values, group.mask & group.judged.inside, cohort.copies, cohort.clusters, own_curve)


@question(
    "above threshold",
    status="wrong_decisions",
    weight=0.5,
    briefly="wrong number of events above the threshold",
    wrong=(
        "{patients} with a predicted risk of at least {threshold}{until} had {times} the predicted events ({p})."
    ),
    clear="Events above the threshold agree with the predictions for {name}: observed/expected {number}.",
    contributions=lambda group, _: _by_horizon_of(group, group.judged.risk >= group.threshold),
)
def _above_threshold(group: JudgedGroup) -> JudgedValue | None:
    threshold = group.threshold
    return None if threshold is None else _by_horizon(group, group.judged.risk >= threshold)


@question(
    "below threshold",
    status="wrong_decisions",
    weight=0.5,
    briefly="wrong number of events below the threshold",
    wrong="{patients} with a predicted risk of below {threshold}{until} had {times} the predicted events ({p}).",
    clear="Events below the threshold agree with the predictions for {name}: observed/expected {number}.",
    contributions=lambda group, _: _by_horizon_of(group, group.judged.risk < group.threshold),
)
def _below_threshold(group: JudgedGroup) -> JudgedValue | None:
    threshold = group.threshold
    return None if threshold is None else _by_horizon(group, group.judged.risk < threshold)


def _by_horizon(group: JudgedGroup, side: BoolArray) -> JudgedValue | None:
    """Return observed over expected events by the horizon of those on a side of the threshold."""
    judged, mask = group.judged, group.mask & side
    sums = group_sums(judged.at_horizon, mask, judged.error_at_horizon)
    if sums is None or _why_not(judged, mask, sums)[0]:
        return None
    return replace(tests.level(sums), time=judged.horizon)


def group_sums(residuals: PatientResiduals, mask: BoolArray, error: EstimationError | None) -> Sums | None:
    """Return observed and expected events of a group in the parts that it is observed in; None if there is none."""
    parts = residuals.known_parts(mask)
    if parts == 0 or not mask.any():
        return None
    w = mask.astype(np.float64)
    return residuals.sums(w, None if error is None else error.covariance(w)).first(parts)


def n_patients(judged: Judged, mask: BoolArray) -> float:
    """Return the number of judged patients of a group: by their ids where these are known, else copies."""
    cohort, mask = judged.cohort, mask & judged.inside
    if cohort.patients is not None:
        return float(len(np.unique(cohort.patients[mask])))
    return float(cohort.copies[mask].sum())
