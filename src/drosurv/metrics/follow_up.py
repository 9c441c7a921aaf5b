"""What evaluation needs of the training targets: two Kaplan-Meier curves, and no rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drosurv.metrics.nonparametric import KaplanMeier, step_function
from drosurv.metrics.scores import parse_weights
from drosurv.target import FloatArray, Target, parse_target


@dataclass(frozen=True, eq=False)
class FollowUp:
    """How long training patients were observed, and how long they lived.

    Wherever a metric takes ``y_train`` it also takes a `FollowUp`, so that a fitted model can carry what
    censoring weights and the null model need without carrying its patients: the distinct training times (m,),
    ascending, the probabilities of still being under observation and of being free of the event after each (m,), both
    by Kaplan-Meier, and the percentiles 0 to 100 of the event times (101,). It `stands_in` where they are the scored
    patients themselves, because nothing is known of those that the model was trained on. Curves step at `other_times`
    for each patient where they belong to strata or count from entry, and not at these.
    """

    times: FloatArray
    censoring: FloatArray
    survival: FloatArray
    event_percentiles: FloatArray
    stands_in: bool = False
    other_times: bool = False

    @classmethod
    def standing_in(cls, target: Target) -> FollowUp:
        """That of the scored patients, for the training patients'."""
        return replace(cls.of(target), stands_in=True)

    @classmethod
    def parse(cls, y_train: Any, sample_weight: Any = None) -> FollowUp:
        """From the structured target of the training patients; a `FollowUp` is returned as it is."""
        if isinstance(y_train, FollowUp):
            return y_train
        target = parse_target(y_train, name="y_train")
        return cls.of(target, None if sample_weight is None else parse_weights(sample_weight, len(target)))

    @classmethod
    def of(
        cls, target: Target, weight: FloatArray | None = None, *, entry: FloatArray | None = None
    ) -> FollowUp:
        """From a target with patient weights (n,), where a whole number counts copies, and entry times (n,)."""
        events, censoring = KaplanMeier.both(target, weight, entry=entry)
        times = target.time[target.event]
        at = percentiles(times, None if weight is None else weight[target.event])
        return cls(events.times, censoring.survival, events.survival, at)

    @property
    def start(self) -> float:
        """The shortest training time."""
        return float(self.times[0])

    @property
    def end(self) -> float:
        """Where the Kaplan-Meier curve of censoring reaches 0, or else the last time: later, it says nothing."""
        gone = np.flatnonzero(self.censoring == 0)
        return float(self.times[gone[0]] if len(gone) else self.times[-1])

    def censoring_at(self, time: FloatArray) -> FloatArray:
        """Probability of being under observation after each time; 1 before the first training time."""
        return step_function(self.times, self.censoring, time, before=1.0)

    def survival_at(self, time: FloatArray) -> FloatArray:
        """Kaplan-Meier survival after each time; 1 before the first training time, the last value held."""
        return step_function(self.times, self.survival, time, before=1.0)

    def cumulative_hazard_at(self, time: FloatArray) -> FloatArray:
        """Nelson-Aalen cumulative hazard at each time.

        It stays finite where the Kaplan-Meier curve reaches 0 because the last patient had the event.
        """
        previous = np.concatenate(([1.0], self.survival[:-1]))
        hazard = 1.0 - np.divide(self.survival, previous, out=np.ones_like(previous), where=previous > 0)
        return step_function(self.times, np.cumsum(hazard), time, before=0.0)

    def inverse_probability(self, target: Target) -> FloatArray:
        """Inverse probability of having been observed, at each event, (n,).

        It is 0 for the censored, and for events beyond the training follow-up, where nobody knows it.
        """
        observed = self.censoring_at(target.time)
        known = target.event & (observed > 0) & (target.time <= self.times[-1])
        return np.divide(1.0, observed, out=np.zeros(len(target)), where=known)

    def censor_at_end(self, target: Target) -> Target:
        """The target with everybody observed to `end` or longer censored at `end`.

        No score at a time before `end` changes: it only asks who had the event by then and who was still
        observed. What it spares is censoring weights beyond the training follow-up, which nobody knows.
        """
        inside = target.time < self.end
        return Target(target.event & inside, np.where(inside, target.time, self.end))


def percentiles(values: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Percentiles 0 to 100 of values as often as their weights say, (101,)."""
    if weight is None:
        return np.percentile(values, np.arange(101))
    order = np.argsort(values, kind="stable")
    values, weight = values[order], weight[order]
    if not (weight == np.round(weight)).all():
        # Weights that are not whole numbers are no copies: only their ratios matter.
        weight = weight / weight.mean()
    ends = np.cumsum(weight)
    place = np.linspace(0.0, max(ends[-1] - 1.0, 0.0), 101)
    below, above = (
        values[np.minimum(np.searchsorted(ends, copy, side="right"), len(values) - 1)]
        for copy in (np.floor(place), np.ceil(place))
    )
    return below + (place - np.floor(place)) * (above - below)
