"""The checked training data of one fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight

from drosurv.errors import ArgumentError
from drosurv.estimators.coefficients.summary import Findings
from drosurv.groups import parse_groups
from drosurv.losses import CoxPartial
from drosurv.metrics import FollowUp
from drosurv.observation import Observation, ends_of_patients, parse_observation
from drosurv.target import FloatArray, IntArray, Target

# All arguments of fit about the rows.
EVERYTHING = ("entry", "strata", "clusters", "offset", "id")


@dataclass(frozen=True, eq=False)
class Training:
    """The checked training data of one fit.

    `mass` (n,) are the patients' shares, summing to one, `weight` (n,) their weights inside risk sets, None when all
    are one. `kept` (n,) says which of the caller's `n_rows` rows these are: patients of weight zero are left out.
    `names` are the features', where they have any; `codes` (n,) the groups, where fit was given any. The `seed` is of
    everything random in this fit, drawn once: a split or a start asked for twice is the same. The `observation` holds
    entry times, strata, clusters, offset and patients of the rows, as far as fit was told.
    """

    X: FloatArray
    target: Target
    mass: FloatArray
    weight: FloatArray | None
    kept: IntArray
    n_rows: int
    names: list[str] | None = None
    codes: IntArray | None = None
    n_groups: int = 0
    seed: int = 0
    observation: Observation = field(default_factory=Observation)

    @classmethod
    def of(cls, X: Any, target: Target, sample_weight: ArrayLike | None, **known: Any) -> Training:
        """The rows that fit was given, checked, but for those of weight zero; `known` are names and seed."""
        n = len(X)
        if len(target) != n:
            raise ArgumentError("X", f"X and y must have the same number of rows, got {n} and {len(target)}.")
        weight, kept = None, np.arange(n)
        if sample_weight is not None:
            given = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            kept = np.flatnonzero(given > 0)
            if len(kept) < n:
                X, target = X[kept], target.take(kept)
            weight = given[kept]
            if not target.event.any():
                raise ArgumentError(
                    "sample_weight",
                    "sample_weight leaves no patient with an event; every event has weight 0.",
                )
            if (weight == 1.0).all():
                weight = None
        if np.ptp(target.time) == 0:
            raise ArgumentError(
                "y",
                f"y has a single time, {target.time[0]}, for every patient: there is no order to learn from.",
            )
        mass = np.full(len(X), 1.0 / len(X)) if weight is None else weight / weight.sum()
        return cls(X, target, mass, weight, kept, n, **known)

    def observed(self, target: Target, given: dict[str, Any], *, name: str, robust: bool) -> Training:
        """The data with the given arguments of fit about the rows; the target is of all rows the caller gave.

        `name` is the estimator's, for messages; `robust` tells whether patients are weighted by their losses, so that
        each may have only one.
        """
        observation, mass = parse_observation(target, **given).take(self.kept), self.mass
        patient = observation.patient
        if patient is not None:
            events = np.bincount(patient, self.target.event)
            if events.max() <= 1:
                # Patients are counted, not rows: all of a patient's mass is on the row of the event, or the last. Only
                # events have a partial likelihood, so this is the same as summing a patient's losses.
                last = ends_of_patients(patient, self.target)[1]
                mass = np.zeros(len(self.target))
                mass[last] = 1.0 if self.weight is None else self.weight[last]
                mass /= mass.sum()
            elif robust:
                raise ArgumentError(
                    "id",
                    f"{name} weighs patients by their loss, and one id has {int(events.max())} events: "
                    "give one event per id, or train the plain model.",
                )
        return replace(self, target=observation.observe(self.target), mass=mass, observation=observation)

    def likelihood(self, ties: str = "breslow") -> CoxPartial:
        """Cox's loss of these patients, with whatever is known of the rows."""
        return CoxPartial(self.target, ties, self.weight, self.observation.offset)

    @property
    def n_patients(self) -> int | float:
        """Number of patients; one of weight 2 counts as two."""
        weight, patient = self._patient_weight, self.observation.patient
        if weight is not None:
            return _whole(float(weight.sum()))
        return len(self.target) if patient is None else len(np.unique(patient))

    @property
    def _patient_weight(self) -> FloatArray | None:
        """Weights of the patients; of several rows, that of the row in which the patient's observation ends."""
        patient = self.observation.patient
        if self.weight is None or patient is None:
            return self.weight
        return self.weight[ends_of_patients(patient, self.target)[1]]

    @property
    def n_events(self) -> int | float:
        """Number of events, counted likewise."""
        return self.target.n_events if self.weight is None else _whole(float(self.weight @ self.target.event))

    @property
    def together(self) -> IntArray:
        """Number (n,) of the cluster of each row, from 0, every number in use; rows alone where there are none."""
        clusters = self.observation.clusters
        return np.arange(len(self.X)) if clusters is None else np.unique(clusters, return_inverse=True)[1]

    @cached_property
    def follow_up(self) -> FollowUp:
        """How long the patients were observed; models trained together share it."""
        seen = self.observation.patients(self.target)
        return FollowUp.of(seen, self._patient_weight, entry=seen.entry)

    def findings(self) -> Findings:
        """What is known of any model's coefficients: how many patients, events, rows and clusters there are."""
        told = self.observation.clusters is not None
        n_rows, n_clusters = (len(self.X), int(self.together.max()) + 1) if told else (0, 0)
        return Findings(
            float(self.n_patients), float(self.n_events), {}, n_rows=n_rows, n_clusters=n_clusters
        )

    def with_groups(self, sensitive_features: Any) -> Training:
        """The data with the groups of the caller's rows; several columns define them by their combinations."""
        groups = parse_groups(sensitive_features, self.n_rows, name="sensitive_features", at_least=1)
        _, codes = np.unique(groups.codes[self.kept], return_inverse=True)
        return replace(self, codes=codes.astype(np.intp), n_groups=int(codes.max()) + 1)

    def spread(self, values: FloatArray) -> FloatArray:
        """Values of the kept patients put back among all rows, zero elsewhere."""
        if len(values) == self.n_rows:
            return values
        out = np.zeros(self.n_rows)
        out[self.kept] = values
        return out

    def in_double(self) -> Training:
        """The data in double precision, for what is computed on the processor."""
        return self if self.X.dtype == np.float64 else replace(self, X=self.X.astype(np.float64))

    def part(self, rows: IntArray) -> Training:
        """The data of the given rows only."""
        mass = self.mass[rows]
        codes = None if self.codes is None else np.unique(self.codes[rows], return_inverse=True)[1]
        return replace(
            self,
            X=self.X[rows],
            target=self.target.take(rows),
            mass=mass / mass.sum(),
            weight=None if self.weight is None else self.weight[rows],
            kept=self.kept[rows],
            codes=codes,
            n_groups=0 if codes is None else int(codes.max()) + 1,
            observation=self.observation.take(rows),
        )

    def drawn(self, counts: FloatArray) -> Training:
        """The data with each row drawn so many times (n,)."""
        rows = np.flatnonzero(counts)
        part, times = self.part(rows), counts[rows]
        if not part.target.event.any():
            raise ValueError("none of the patients drawn had an event.")
        mass = part.mass * times
        weight = times if part.weight is None else part.weight * times
        return replace(part, mass=mass / mass.sum(), weight=weight)


def _whole(count: float) -> int | float:
    """A count as a whole number where it is one."""
    return round(count) if abs(count - round(count)) < 1e-9 * count else count
