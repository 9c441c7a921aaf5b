"""Metrics as functions of scored patients, for the records of the catalogue that need more than a line.

Each takes patient weights, so that one definition serves the whole test set, every group, and every bootstrap
replicate of them; or, if it compares, numbers that are already drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drosurv import metrics
from drosurv.evaluation.patients import Patients
from drosurv.evaluation.sheet import Between
from drosurv.groups import Groups, ratio_by_group
from drosurv.inference import Draws, Extreme, largest_deviation, largest_difference
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.metrics.pair_disparities import censoring_aware_disparity
from drosurv.metrics.pair_influence import censored_influence, individual_influence
from drosurv.target import FloatArray


def _ratio(above: float, below: float) -> float:
    return above / below if below != 0 else float("nan")


def dynamic_auc(patients: Patients, weight: FloatArray) -> float:
    """Dynamic AUC over the whole set's times."""
    at = patients.auc_times
    if len(at) == 0:
        return float("nan")
    follow_up = patients.scoring.follow_up
    return metrics.dynamic_auc(follow_up, patients.target, patients.risk, at, sample_weight=weight)


def brier_skill(patients: Patients, weight: FloatArray) -> float:
    """Share of the null model's Brier score that is spared."""
    return 1.0 - _ratio(float(weight @ patients.brier.model), float(weight @ patients.brier.null))


def calibration_difference(patients: Patients, weight: FloatArray) -> float:
    """Mean predicted survival less Kaplan-Meier at the horizon."""
    predicted = float(weight @ patients.survival_at_horizon) / float(weight.sum())
    observed = KaplanMeier.of(patients.target, weight).at(np.array([patients.scoring.horizon]))
    return predicted - float(observed[0])


def integrated_calibration_index(patients: Patients, weight: FloatArray) -> float:
    """Mean distance of predicted from observed survival at the horizon."""
    # Whole-number weights count copies, and the index takes patients, not weights.
    rows = np.repeat(np.arange(len(patients)), weight.astype(np.intp))
    survival, horizon = patients.survival_at_horizon[rows, None], patients.scoring.horizon
    return metrics.integrated_calibration_index(
        patients.target.take(rows), survival, horizon, times=[horizon]
    )


def concordance_fractions(patients: Patients, groups: Groups, weight: FloatArray) -> FloatArray:
    """Concordance fraction of every group against everybody."""
    counts = patients.imparity.imparity_counts(weight)
    return ratio_by_group(groups, counts.numerator, counts.denominator)


def mean_hazards(patients: Patients, groups: Groups, weight: FloatArray) -> FloatArray:
    """Mean hazard of every group; in the tables' convention smoothed as they are."""
    size, total = groups.sums(weight), groups.sums(weight * patients.hazard)
    with np.errstate(invalid="ignore"):
        smooth = patients.scoring.convention == "table"
        means = (total + 0.5) / (size + 1.0) if smooth else total / size
    return np.where(size > 0, means, np.nan)


def mean_hazard_of_all(patients: Patients, groups: Groups, weight: FloatArray) -> FloatArray:
    """Mean hazard of all these patients, once for every group."""
    return np.full(len(groups), _ratio(float(weight @ patients.hazard), float(weight.sum())))


def concordance_imparity(between: Between) -> Extreme:
    """Largest difference of two groups' concordance fractions."""
    return largest_difference(*between.values("concordance_fraction"), largest=1.0)


def group_disparity(between: Between) -> Extreme:
    """F_G; undefined, and not 0, where there is only one group."""
    (means, drawn), (centre, centre_drawn) = map(between.values, ("mean_hazard", "mean_hazard_of_all"))
    found = largest_deviation(means, float(centre[0]), drawn, centre_drawn[:, 0])
    return found if len(means) > 1 else found._replace(estimate=float("nan"))


def intersectional_disparity(between: Between) -> Extreme:
    """F_cap."""
    means, drawn = between.values("mean_hazard")
    return largest_difference(np.log(means), np.log(drawn))


def individual_disparity(between: Between) -> Draws:
    """F_I."""
    some, how = between.patients, between.patients.scoring
    options: dict[str, Any] = {"scale": how.scale, "convention": how.convention, "pairs": how.pairs}
    return between.linear(
        metrics.individual_disparity(some.risk, some.features, **options),
        lambda: individual_influence(some.hazard, some.features, **options),
    )


def average_disparity(between: Between) -> Draws:
    """F_A."""
    names = ("individual_disparity", "group_disparity", "intersectional_disparity")
    parts = [between.number(name) for name in names]
    draws: FloatArray = np.sum([part.draws for part in parts], axis=0) / 3
    return Draws(sum(part.estimate for part in parts) / 3, draws, lowest=0.0)


def censored_disparity(between: Between, groups: Groups | None = None) -> Draws:
    """Censoring-aware F_I; inside groups, F_G."""
    some, how = between.patients, between.patients.scoring
    options: dict[str, Any] = {"groups": groups, "scale": how.scale, "pairs": how.pairs}
    return between.linear(
        censoring_aware_disparity(some.target, some.risk, some.features, **options),
        lambda: censored_influence(some.target, some.hazard, some.features, **options),
    )
