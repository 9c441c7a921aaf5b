"""The questions that are asked about everybody and about each group; each is answered by a test.

To add a kind of finding, add one function here, with its sentences, and one row of the table in docs/guide/verdict.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logit

from drosurv.judging import residual_tests as tests
from drosurv.judging import words
from drosurv.judging.adjustment import Kind, Question
from drosurv.judging.few_times import ResidualsAtTimes
from drosurv.judging.judged import Judged
from drosurv.judging.own_curve import OwnCurve
from drosurv.judging.residual_tests import JudgedValue
from drosurv.judging.residuals import EstimationError, PatientResiduals, Sums
from drosurv.judging.words import percent
from drosurv.metrics.calibration_slope import slope_estimate
from drosurv.metrics.estimates import Estimates
from drosurv.patients.groups import ALL, EVERYONE
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

#: Groups with fewer patients, or fewer events both expected and observed, are not judged.
FEWEST_PATIENTS, FEWEST_EVENTS = 50, 10
#: A smaller distance of a ratio or slope from 1 is not visible in two decimals.
LEAST_RATIO = 0.005
# Two fits of the same model differ by less in gain, but in one direction: with a million patients, plain Cox would be
# significantly worse than itself.
_LEAST_GAIN = 5e-4

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

    @property
    def residuals(self) -> PatientResiduals:
        """The residuals with which the group is judged."""
        return self.judged.residuals.of_group(self.mask)

    @property
    def at_horizon(self) -> PatientResiduals:
        """Those until the horizon."""
        return self.judged.at_horizon.of_group(self.mask)


Ask = Callable[[JudgedGroup], JudgedValue | Sequence[JudgedValue] | None]


def question(name: str, **about: Any) -> Callable[[Ask], Ask]:
    """Ask the decorated function about everybody and every group; `about` are fields of :class:`Kind`."""

    def add(ask: Ask) -> Ask:
        usual: dict[str, Any] = {"status": "miscalibrated", "least": LEAST_RATIO}
        KINDS[name] = Kind(name=name, **usual | about, ask=ask)
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
    """Return all questions about groups, masks (n,) by attribute and group; one on a small group has only a reason."""
    details = {"unit": time_unit, "reference": reference, "trained": "yes" if judged.trained else ""}
    if threshold is not None:
        details["threshold"] = percent(threshold)
    found = []
    for key, mask in members.items():
        sums = group_sums(judged.residuals, mask, judged.error)
        why, few_events = _why_not(judged, mask, sums)
        if why or sums is None:
            found.append(Question(KINDS["level"], *key, None, why, few_events))
            continue
        group = JudgedGroup(judged, mask, sums, threshold)
        for kind in KINDS.values():
            asked = None if kind.ask is None else kind.ask(group)
            for value in [] if asked is None else [asked] if isinstance(asked, JudgedValue) else asked:
                each = None if kind.contributions is None else kind.contributions(group, value)
                found.append(Question(kind, *key, value, contributions=each, details=details))
    return found


def _why_not(judged: Judged, mask: BoolArray, sums: Sums | None) -> tuple[str, bool]:
    """Say why a group is not judged, empty if it is, and whether that is because of few events."""
    if not judged.cohort.target.event.any():
        return words.NO_EVENT, False
    if n_patients(judged, mask) < FEWEST_PATIENTS:
        return f"fewer than {FEWEST_PATIENTS} patients", False
    if sums is None:
        return "too few patients were observed until the first predicted time", False
    if max(sums.expected.sum(), sums.observed.sum()) < FEWEST_EVENTS:
        return f"fewer than {FEWEST_EVENTS} events, expected and observed", True
    return "", False


def _contributions(residuals: PatientResiduals, w: FloatArray, parts: FloatArray) -> FloatArray:
    """Return each row's term (n,) of a weighted sum of residuals, with weights `w` (n,) and `parts` (J,)."""
    return residuals.weight * w * ((residuals.observed - residuals.expected)[:, : len(parts)] @ parts)


def of_level(residuals: PatientResiduals, mask: BoolArray, part: int) -> FloatArray:
    """Return what each row (n,) contributes to the test of a group's number of events, by the end of a part if few."""
    if isinstance(residuals, ResidualsAtTimes):
        residuals = residuals.by(part)
    return _contributions(residuals, mask.astype(np.float64), np.ones(residuals.expected.shape[1]))


def of_timing(residuals: PatientResiduals, mask: BoolArray, sums: Sums, value: JudgedValue) -> FloatArray:
    """Return what each row (n,) contributes to the test of the part of the follow-up that differs most."""
    expected = sums.expected
    part = int(np.searchsorted(residuals.ends[: len(expected)], value.time))
    direction = np.full(len(expected), -expected[part] / expected.sum())
    direction[part] += 1.0
    return _contributions(residuals, mask.astype(np.float64), direction)


def _of_slope(group: JudgedGroup, _: JudgedValue) -> FloatArray:
    judged, mask = group.judged, group.mask
    residuals = group.at_horizon if judged.few_times else group.residuals
    expected = residuals.weight * mask * residuals.expected.sum(axis=1)
    w = mask * (judged.score - np.average(judged.score, weights=expected))
    return _contributions(residuals, w, np.ones(residuals.expected.shape[1]))


def _of_gain(values: FloatArray | None, group: JudgedGroup) -> FloatArray:
    assert values is not None
    return group.mask * (values - float(values[group.mask].mean()))


# Found elsewhere: before patients are judged, by a search for subgroups, and for risk scores alone.
KINDS["data"] = Kind("data", "data_problem", "data problem", "")


_LEVEL = {
    "wrong": "The number of events is wrong for {name}: {times} the predicted events{until} ({p}).",
    "clear": "Events agree with the predictions for {name}{until}: observed/expected {number}.",
    "small": "{difference} events than expected{until} for {name} (observed/expected {number})",
}


@question(
    "level",
    briefly="wrong number of events",
    **_LEVEL,
    contributions=lambda group, _: of_level(group.residuals, group.mask, len(group.sums.observed) - 1),
)
def _level(group: JudgedGroup) -> JudgedValue | None:
    if not group.judged.few_times:
        return tests.level(group.sums)
    return _level_by(group, len(group.sums.observed) - 1)


@question(
    "level by a time",
    briefly="wrong number of events by an earlier time",
    **_LEVEL,
    contributions=lambda group, value: of_level(
        group.residuals, group.mask, int(np.searchsorted(group.residuals.ends, value.time))
    ),
)
def _earlier_levels(group: JudgedGroup) -> list[JudgedValue]:
    """Return the level by each predicted time before the last, of predictions at few times."""
    if not group.judged.few_times:
        return []
    found = (_level_by(group, part) for part in range(len(group.sums.observed) - 1))
    return [value for value in found if value is not None]


def _level_by(group: JudgedGroup, part: int) -> JudgedValue | None:
    """Return observed over expected events by one of few predicted times; None of earlier ones with few events."""
    residuals, w = group.residuals, group.mask.astype(np.float64)
    assert isinstance(residuals, ResidualsAtTimes)
    error, last = group.judged.error, part == len(group.sums.observed) - 1
    added = None if error is None else error.covariance(w)[: part + 1, : part + 1].sum(keepdims=True)
    sums = residuals.by(part).sums(w, added)
    if not last and max(float(sums.expected[0]), float(sums.observed[0])) < FEWEST_EVENTS:
        return None
    return replace(tests.level(sums), time=float(residuals.ends[part]))


KINDS["subgroups"] = Kind("subgroups", "miscalibrated", "wrong number of events", "")


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
    small=(
        "{when}, {name} had {difference} events than the predictions and the rest of the follow-up imply (observed/"
        "expected {number})"
    ),
    contributions=lambda group, value: of_timing(group.residuals, group.mask, group.sums, value),
)
def _timing(group: JudgedGroup) -> JudgedValue | None:
    return tests.timing(group.sums, group.judged.residuals.ends)


@question(
    "slope",
    group_weight=0.5,
    briefly="wrong differences between patients",
    wrong=words.slope,
    clear="Differences between patients agree with the predictions for {name}: calibration slope {number}.",
    small="predicted risks of {name} differ slightly too {much} (calibration slope {number})",
    contributions=_of_slope,
)
def _slope(group: JudgedGroup) -> JudgedValue | None:
    judged = group.judged
    residuals, error = group.residuals, judged.error
    if judged.few_times:
        residuals, error = group.at_horizon, judged.error_at_horizon
        if residuals.known_parts == 0:
            return None
    return tests.slope(residuals, judged.score, group.mask, None if error is None else error.covariance)


KINDS["ranking"] = Kind(
    "ranking",
    "harm",
    "ranked worse than by chance",
    "Patients are ranked worse than by chance: c-index {number}.",
    "Patients are ranked no worse than by chance: c-index {number}.",
    "patients are ranked worse than by chance (c-index {number})",
    side=-1,
)


def ranking(c_index: float, error: float, events: int, clusters: IntArray | None = None) -> Question:
    """Return the question whether risk scores alone rank all patients worse than chance, from a standard error.

    Alone it has the interval of the c-index: on the logit scale, with as many degrees of freedom as events, or numbered
    `clusters` (n,), less one.
    """
    freedom = (events if clusters is None else min(events, int(clusters.max()) + 1)) - 1.0
    if not (error > 0 and freedom >= 1):
        why = "no interval of the c-index was computed" if events else words.NO_EVENT
        return Question(KINDS["ranking"], EVERYONE, ALL, None, why)
    of_logit = error / (c_index * (1 - c_index))

    def root(value: float) -> float:
        return float((logit(c_index) - logit(np.clip(value, 1e-12, 1 - 1e-12))) / of_logit)

    found = JudgedValue(c_index, root, 0.5, freedom=freedom, on_log_scale=False)
    return Question(KINDS["ranking"], EVERYONE, ALL, found)


def slopes_of_scores(
    target: Target, risk: FloatArray, members: Mapping[Key, BoolArray], clusters: IntArray | None = None
) -> list[Question]:
    """Return the questions whether log hazard ratios (n,) alone are too extreme, for groups that are large enough."""
    found = []
    for key, mask in members.items():
        if mask.sum() < FEWEST_PATIENTS or target.event[mask].sum() < FEWEST_EVENTS:
            continue
        slope = slope_estimate(target, risk, mask.astype(np.float64))
        error = float(Estimates([slope], clusters).standard_errors[0])
        if not error > 0:
            continue

        def root(at: float, value: float = slope.value, error: float = error) -> float:
            return (value - at) / error

        judged = JudgedValue(slope.value, root, on_log_scale=False, freedom=slope.freedom)
        found.append(Question(KINDS["slope"], *key, judged, contributions=slope.influence))
    return found


@question(
    "gain",
    status="harm",
    least=_LEAST_GAIN,
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
    least=_LEAST_GAIN,
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
    return tests.mean(values, group.mask & group.judged.inside, cohort.clusters, own_curve)


@question(
    "above threshold",
    status="wrong_decisions",
    weight=0.5,
    briefly="wrong number of events above the threshold",
    wrong=(
        "{patients} with a predicted risk of at least {threshold}{until} had {times} the predicted events ({p})."
    ),
    clear="Events above the threshold agree with the predictions for {name}: observed/expected {number}.",
    small="{difference} events than expected above the threshold for {name} (observed/expected {number})",
    contributions=lambda group, _: _by_horizon_of(group, group.judged.risk >= group.threshold),
)
def _above_threshold(group: JudgedGroup) -> JudgedValue | None:
    return None if group.threshold is None else _by_horizon(group, group.judged.risk >= group.threshold)


@question(
    "below threshold",
    status="wrong_decisions",
    weight=0.5,
    briefly="wrong number of events below the threshold",
    wrong="{patients} with a predicted risk of below {threshold}{until} had {times} the predicted events ({p}).",
    clear="Events below the threshold agree with the predictions for {name}: observed/expected {number}.",
    small="{difference} events than expected below the threshold for {name} (observed/expected {number})",
    contributions=lambda group, _: _by_horizon_of(group, group.judged.risk < group.threshold),
)
def _below_threshold(group: JudgedGroup) -> JudgedValue | None:
    return None if group.threshold is None else _by_horizon(group, group.judged.risk < group.threshold)


def _by_horizon_of(group: JudgedGroup, side: BoolArray) -> FloatArray:
    member = group.mask & side
    return of_level(group.judged.at_horizon.of_group(member), member, 0)


def _by_horizon(group: JudgedGroup, side: BoolArray) -> JudgedValue | None:
    """Return observed over expected events by the horizon of those on a side of the threshold."""
    judged, mask = group.judged, group.mask & side
    sums = group_sums(judged.at_horizon, mask, judged.error_at_horizon)
    if sums is None or _why_not(judged, mask, sums)[0]:
        return None
    return replace(tests.level(sums), time=judged.horizon)


def group_sums(residuals: PatientResiduals, mask: BoolArray, error: EstimationError | None) -> Sums | None:
    """Return observed and expected events of a group in the parts that it is observed in; None if there is none."""
    residuals = residuals.of_group(mask)
    parts = residuals.known_parts
    if parts == 0 or not mask.any():
        return None
    w = mask.astype(np.float64)
    return residuals.sums(w, None if error is None else error.covariance(w)).first(parts)


def n_patients(judged: Judged, mask: BoolArray) -> float:
    """Return the number of judged patients of a group: by their ids where these are known."""
    cohort, mask = judged.cohort, mask & judged.inside
    if cohort.patients is not None:
        return float(len(np.unique(cohort.patients[mask])))
    return float(np.count_nonzero(mask))
