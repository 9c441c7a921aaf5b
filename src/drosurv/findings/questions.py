"""The questions that are asked about everybody and about each group, each one a test of the judged patients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from drosurv.findings import residual_tests as tests
from drosurv.findings.adjustment import Question
from drosurv.findings.estimation_error import EstimationError
from drosurv.findings.judged import Judged
from drosurv.findings.residual_tests import JudgedValue
from drosurv.findings.residuals import PatientResiduals, Sums
from drosurv.findings.verdict import FEWEST_EVENTS, FEWEST_PATIENTS
from drosurv.findings.words import ALL, EVERYONE, percent
from drosurv.presentation import moment
from drosurv.presentation.sentences import LEAST_DIFFERENCE
from drosurv.target import BoolArray, FloatArray

#: A smaller distance of a ratio or slope from 1 is not visible in two decimals.
LEAST_RATIO = 0.005
#: Largest number of questions about a group.
MOST_QUESTIONS = 7

# Attribute and group.
Key = tuple[str, str]


def questions(
    judged: Judged,
    members: Mapping[Key, BoolArray],
    *,
    threshold: float | None = None,
    reference: str = "plain Cox",
    time_unit: str = "",
    min_group: int = FEWEST_PATIENTS,
    min_events: int = FEWEST_EVENTS,
) -> list[Question]:
    """Return all questions about groups of patients, masks (n,) by attribute and group.

    A question of a group with fewer than `min_group` patients, or fewer than `min_events` events both expected and
    observed, has no estimate but the reason.
    """
    ask = _Asker(judged, threshold, reference, time_unit, min_group, min_events)
    return [question for key, mask in members.items() for question in ask.about(key, mask)]


class _Asker:
    """Makes the questions about one group after the other."""

    def __init__(
        self,
        judged: Judged,
        threshold: float | None,
        reference: str,
        time_unit: str,
        min_group: int,
        min_events: int,
    ) -> None:
        self.judged, self.threshold, self.reference, self.unit = judged, threshold, reference, time_unit
        self.min_group, self.min_events = min_group, min_events

    def about(self, key: Key, mask: BoolArray) -> Iterator[Question]:
        """Yield the questions about one group."""
        judged = self.judged
        sums = group_sums(judged.residuals, mask, judged.error)
        why = self._why_not(mask, sums)
        if why or sums is None:
            yield Question("level", *key, None, "miscalibrated", why=why)
            return
        end = float(judged.residuals.ends[len(sums.observed) - 1])
        until = {"until": f" by {moment(end, self.unit)}"} if judged.few_times else {}
        level = tests.level(sums)
        yield self._ratio("level", key, level, until, time=end if judged.few_times else np.nan)
        yield from self._shape(key, sums)
        yield from self._spread(key, mask)
        for name, values in (("gain", judged.gains), ("gain over reference", judged.over_reference)):
            yield from self._gain(name, key, mask, values)
        if self.threshold is not None:
            yield from self._decisions(key, mask)

    def _why_not(self, mask: BoolArray, sums: Sums | None) -> str:
        """Say why a group is not judged; empty if it is."""
        if n_patients(self.judged, mask) < self.min_group:
            return f"fewer than {self.min_group:,} patients"
        if sums is None:
            return "too few patients were observed until the first predicted time"
        if max(sums.expected.sum(), sums.observed.sum()) < self.min_events:
            return f"fewer than {self.min_events:,} events, expected and observed"
        return ""

    def _ratio(
        self, name: str, key: Key, found: JudgedValue, details: dict[str, str], *, time: float = np.nan
    ) -> Question:
        value = (
            found
            if np.isnan(time)
            else JudgedValue(found.value, found.root, freedom=found.freedom, time=time)
        )
        return Question(name, *key, value, "miscalibrated", LEAST_RATIO, details=details)

    def _shape(self, key: Key, sums: Sums) -> Iterator[Question]:
        found = tests.shape(sums, self.judged.residuals.ends)
        if found is not None:
            since, end = (moment(at, self.unit) for at in (found.since, found.time))
            when = f"from {since} to {end}" if found.since > 0 else f"until {end}"
            yield Question("shape in time", *key, found, "miscalibrated", LEAST_RATIO, details={"when": when})

    def _spread(self, key: Key, mask: BoolArray) -> Iterator[Question]:
        judged = self.judged
        residuals, error = judged.residuals, judged.error
        if judged.few_times:
            residuals, error = judged.at_horizon, judged.error_at_horizon
            if residuals.known_parts(mask) == 0:
                return
        found = tests.spread(residuals, judged.score, mask, None if error is None else error.covariance)
        if found is not None:
            details = {"trained": "yes"} if judged.trained else {}
            yield Question("spread", *key, found, "miscalibrated", LEAST_RATIO, details=details)

    def _gain(self, name: str, key: Key, mask: BoolArray, values: FloatArray | None) -> Iterator[Question]:
        if values is None:
            return
        cohort = self.judged.cohort
        clusters = None if cohort.clusters is None else cohort.clusters[mask]
        found = tests.mean(values[mask], cohort.copies[mask], clusters)
        if found is not None:
            details = {"reference": self.reference}
            status = "harm" if name == "gain" else "dominated"
            yield Question(name, *key, found, status, LEAST_DIFFERENCE, side=-1, details=details)

    def _decisions(self, key: Key, mask: BoolArray) -> Iterator[Question]:
        judged = self.judged
        assert self.threshold is not None
        above = judged.risk >= self.threshold
        details = {"threshold": percent(self.threshold), "by": f" by {moment(judged.horizon, self.unit)}"}
        for name, side in (("above threshold", mask & above), ("below threshold", mask & ~above)):
            sums = group_sums(judged.at_horizon, side, judged.error_at_horizon)
            if self._why_not(side, sums) or sums is None:
                continue
            found = tests.level(sums)
            found = JudgedValue(found.value, found.root, freedom=found.freedom, time=judged.horizon)
            yield Question(name, *key, found, "wrong_decisions", LEAST_RATIO, details=details)


def ranking(c_index: float, error: float) -> Question:
    """Return the question whether risk scores alone rank all patients worse than chance, from a standard error."""
    key = EVERYONE, ALL
    if not error > 0:
        return Question("ranking", *key, None, "harm", why="no interval of the c-index was computed")
    found = JudgedValue(c_index, lambda value: (c_index - value) / error, 0.5, on_log_scale=False)
    return Question("ranking", *key, found, "harm", side=-1)


def group_sums(residuals: PatientResiduals, mask: BoolArray, error: EstimationError | None) -> Sums | None:
    """Return observed and expected events of a group in the parts that it is observed in; None if there is none."""
    parts = residuals.known_parts(mask)
    if parts == 0 or not mask.any():
        return None
    w = mask.astype(np.float64)
    return residuals.sums(w, None if error is None else error.covariance(w)).first(parts)


def n_patients(judged: Judged, mask: BoolArray) -> float:
    """Return the number of patients of a group: by their ids where these are known, else copies."""
    cohort = judged.cohort
    if cohort.patients is not None:
        return float(len(np.unique(cohort.patients[mask])))
    return float(cohort.copies[mask].sum())
