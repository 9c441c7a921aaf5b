"""Patients that settings are scored on: what does not change from one setting to the next is prepared once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from drosurv.estimators.baseline import Baseline
from drosurv.evaluation import Predictions
from drosurv.evaluation.attributes import (
    Count,
    intersection_of,
    parse_attributes,
    rows_by_group,
    warn_of_small_groups,
)
from drosurv.evaluation.engine import Key, Panel
from drosurv.evaluation.patients import Patients, Scoring
from drosurv.inference import Number
from drosurv.metrics import FollowUp
from drosurv.metrics.pair_disparities import Convention
from drosurv.metrics.survival_curves import SurvivalCurves
from drosurv.target import FloatArray, Target, parse_target


class HeldOut:
    """Held-out patients with everything that scoring them needs of the training patients.

    Features are standardised by the training patients' mean and deviation. Without labels, disparities between
    groups have no value. Groups that are too small to be compared, by attribute and label, are left out of them.
    """

    def __init__(
        self,
        y_train: Any,
        X: Any,
        y: Any,
        sensitive_features: Any = None,
        *,
        small: Collection[tuple[str, str]] = (),
        convention: Convention = "paper",
    ) -> None:
        self.train_target = parse_target(y_train, name="y_train")
        self.follow_up = FollowUp.parse(self.train_target)
        self.X = np.asarray(X, dtype=np.float64)
        self.target = parse_target(y, require_event=False)
        self.convention = convention
        # A fold may have lost all but one group of an attribute.
        parsed = parse_attributes(sensitive_features, len(self.target), at_least=1)
        large = (attribute.without(small) for attribute in parsed)
        self.attributes = [attribute for attribute in large if attribute.labels]
        self.intersection = intersection_of(self.attributes) if self.attributes else None

    def measure(
        self,
        risk: FloatArray,
        curves: SurvivalCurves | None = None,
        *,
        metrics: Collection[str] | None = None,
        replicates: int = 0,
    ) -> dict[Key, Number]:
        """Score one setting with the engine behind :func:`~drosurv.evaluation.evaluate`: its `Panel.numbers`.

        Metrics of curves have no value without curves. The same patients are drawn for every setting, so that
        settings compare paired.
        """
        scoring = Scoring(
            Predictions(risk, curves),
            None,
            self.target,
            self.follow_up,
            convention=self.convention,
            features=self.X,
        )
        panel = Panel(Patients(scoring), self.attributes, self.intersection, metrics, inside_groups=False)
        # One thread: settings and folds are what runs in parallel.
        sheet = panel.sheet(replicates, random_state=0, threads=1)
        return panel.numbers(sheet)

    def breslow(self, risk: FloatArray, train_risk: FloatArray) -> SurvivalCurves:
        """Curves of scores that have no model of their own, such as shrunken ones, by Breslow's baseline hazard."""
        return BreslowCurves(Baseline.breslow(self.train_target, train_risk), risk)


def interval_columns(metric: str, number: Number) -> dict[str, float]:
    """Standard error and 95 % interval of a bootstrapped number, under the metric's name."""
    found = number.interval(0.95)
    return {
        f"{metric}_se": found.standard_error,
        f"{metric}_low": found.low,
        f"{metric}_high": found.high,
    }


def small_groups(
    labels: pd.DataFrame | None, target: Target, min_group: int, min_events: int
) -> tuple[frozenset[tuple[str, str]], bool]:
    """Groups too small to be compared, after a warning, and whether an attribute has two that are not."""
    groups = rows_by_group(parse_attributes(labels, len(target)))
    counts = {key: Count.of(target.take(rows)) for key, rows in groups.items()}
    then = "they are left out of the disparities"
    small = warn_of_small_groups(counts, min_group=min_group, min_events=min_events, then=then)
    large = Counter(name for name, label in counts if (name, label) not in small)
    return small, any(number > 1 for number in large.values())


@dataclass(frozen=True, eq=False)
class BreslowCurves:
    """Survival of n patients by their scores and a baseline hazard."""

    baseline: Baseline
    risk: FloatArray

    @property
    def jumps(self) -> FloatArray:
        """Times of the baseline."""
        return self.baseline.times

    def __len__(self) -> int:
        return len(self.risk)

    def at(self, times: FloatArray) -> FloatArray:
        """Survival of every patient at each of k times, (n, k)."""
        return np.exp(-self.baseline.cumulative_hazard(self.risk, times))

    def at_own(self, times: FloatArray) -> FloatArray:
        """Survival of each patient at a time of its own, (n,) -> (n,)."""
        # The patient of mean score has the baseline itself, whose log is added to.
        with np.errstate(over="ignore", divide="ignore"):
            log_baseline = np.log(self.baseline.cumulative_hazard(np.zeros(1), times)[0])
            survival: FloatArray = np.exp(-np.exp(log_baseline + self.risk))
        return survival

    def take(self, rows: slice) -> BreslowCurves:
        """Curves of some patients."""
        return BreslowCurves(self.baseline, self.risk[rows])
