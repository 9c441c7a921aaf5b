"""The metrics as functions of scored patients, for the records of the catalogue.

Each takes patient weights, so that one definition serves the whole test set, every group, and every bootstrap
replicate of them; or, if it compares, numbers that are already drawn. The last ones are statistics for permutation
tests that groups do not differ.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drosurv import metrics
from drosurv.evaluation.between import Between
from drosurv.evaluation.patients import Patients
from drosurv.groups import Groups, ratio_by_group
from drosurv.inference import Draws, Extreme, largest_deviation, largest_difference, studentized_ratio
from drosurv.metrics import concordance_inference
from drosurv.metrics.nonparametric import kaplan_meier
from drosurv.metrics.pair_influence import censored_influence, individual_influence
from drosurv.target import FloatArray

# Largest difference of groups in its standard errors, as a function of the labels.
GapStatistic = Callable[[Groups], float]


def _ratio(above: float, below: float) -> float:
    return above / below if below != 0 else float("nan")


def concordance_index(patients: Patients, weight: FloatArray) -> float:
    """Harrell's c-index."""
    return _ratio(*patients.harrell.harrell_sums(weight))


def uno_concordance(patients: Patients, weight: FloatArray) -> float:
    """Uno's C."""
    return _ratio(*patients.harrell.harrell_sums(weight, patients.uno_weight))


def dynamic_auc(patients: Patients, weight: FloatArray) -> float:
    """Dynamic AUC over the whole set's times."""
    at = patients.auc_times
    if len(at) == 0:
        return float("nan")
    follow_up = patients.scoring.follow_up
    return metrics.dynamic_auc(follow_up, patients.target, patients.risk, at, sample_weight=weight)


def log_partial_likelihood(patients: Patients, weight: FloatArray) -> float:
    """Log partial likelihood per event."""
    return metrics.log_partial_likelihood(patients.target, patients.risk, sample_weight=weight)


def integrated_brier_score(patients: Patients, weight: FloatArray) -> float:
    """Mean of the patients' Brier contributions."""
    return _ratio(float(weight @ patients.brier.model), float(weight.sum()))


def brier_skill(patients: Patients, weight: FloatArray) -> float:
    """Share of the null model's Brier score that is spared."""
    return 1.0 - _ratio(float(weight @ patients.brier.model), float(weight @ patients.brier.null))


def likelihood_gain(patients: Patients, weight: FloatArray) -> float:
    """Mean of the patients' likelihood gains."""
    return _ratio(float(weight @ patients.gains), float(weight.sum()))


def calibration_slope(patients: Patients, weight: FloatArray) -> float:
    """Coefficient of the risk score in a Cox model of its own."""
    return metrics.calibration_slope(patients.target, patients.risk, sample_weight=weight)


def calibration_difference(patients: Patients, weight: FloatArray) -> float:
    """Mean predicted survival less Kaplan-Meier at the horizon."""
    predicted = float(weight @ patients.survival_at_horizon) / float(weight.sum())
    observed = kaplan_meier(patients.target, np.array([patients.scoring.horizon]), weight)
    return predicted - float(observed[0])


def integrated_calibration_index(patients: Patients, weight: FloatArray) -> float:
    """Mean distance of predicted from observed survival at the horizon."""
    # Whole-number weights count copies, and the index takes patients, not weights.
    rows = np.repeat(np.arange(len(patients)), weight.astype(np.intp))
    survival, horizon = patients.survival_at_horizon[rows, None], patients.scoring.horizon
    return metrics.integrated_calibration_index(
        patients.target.take(rows), survival, horizon, times=[horizon]
    )


def d_calibration_p(patients: Patients, weight: FloatArray) -> float:
    """p-value of D-calibration; weights are not looked at."""
    return metrics.d_calibration(patients.target, patients.curves).p_value


def gain_over_null(patients: Patients, weight: FloatArray) -> float:
    """Log partial likelihood per event above that of equal scores."""
    return metrics.gain_over_null(patients.target, patients.risk, sample_weight=weight)


def share_of_gain(patients: Patients, weight: FloatArray) -> float:
    """The gain as a share of the reference's."""
    return metrics.share_of_gain(
        patients.target, patients.risk, patients.reference_risk, sample_weight=weight
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
    patients, X, scale, pairs = between.patients, between.X, between.scale, between.pairs
    convention = patients.scoring.convention
    assert X is not None
    return between.linear(
        metrics.individual_disparity(patients.risk, X, scale=scale, convention=convention, pairs=pairs),
        lambda: individual_influence(patients.hazard, X, scale=scale, convention=convention, pairs=pairs),
    )


def average_disparity(between: Between) -> Draws:
    """F_A."""
    parts = [
        between.known[name]
        for name in ("individual_disparity", "group_disparity", "intersectional_disparity")
    ]
    estimate = sum(part.estimate for part in parts) / 3
    draws: FloatArray = np.sum([part.draws for part in parts], axis=0) / 3
    return Draws(estimate, draws, lowest=0.0)


def censored_individual_disparity(between: Between) -> Draws:
    """Censoring-aware F_I."""
    patients, X, scale, pairs = between.patients, between.X, between.scale, between.pairs
    assert X is not None
    return between.linear(
        metrics.censored_individual_disparity(patients.target, patients.risk, X, scale=scale, pairs=pairs),
        lambda: censored_influence(patients.target, patients.hazard, X, None, scale=scale, pairs=pairs),
    )


def censored_group_disparity(between: Between) -> Draws:
    """Censoring-aware F_G."""
    patients, X, scale, pairs = between.patients, between.X, between.scale, between.pairs
    assert X is not None
    assert between.attribute is not None
    groups = between.attribute.kept_groups
    return between.linear(
        metrics.censored_group_disparity(patients.target, patients.risk, X, groups, scale=scale, pairs=pairs),
        lambda: censored_influence(patients.target, patients.hazard, X, groups, scale=scale, pairs=pairs),
    )


def studentized_concordance(patients: Patients) -> GapStatistic:
    """Statistic of the groups' own c-indices."""
    return concordance_inference.studentized_concordance(patients.harrell)


def studentized_imparity(patients: Patients) -> GapStatistic:
    """Statistic of the groups' concordance fractions against everybody."""
    return concordance_inference.studentized_imparity(patients.imparity)


def studentized_hazard(patients: Patients) -> GapStatistic:
    """Statistic of the groups' mean hazards."""
    return studentized_ratio(patients.hazard, 1.0)


def studentized_brier(patients: Patients) -> GapStatistic:
    """Statistic of the groups' Brier scores."""
    return studentized_ratio(patients.brier.model, 1.0)


def studentized_brier_skill(patients: Patients) -> GapStatistic:
    """Statistic of the groups' Brier skills."""
    return studentized_ratio(patients.brier.null - patients.brier.model, patients.brier.null)


def studentized_gain(patients: Patients) -> GapStatistic:
    """Statistic of the groups' likelihood gains."""
    return studentized_ratio(patients.gains, 1.0)
