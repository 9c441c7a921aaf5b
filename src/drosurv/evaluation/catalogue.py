"""The catalogue of metrics: a function and a record for each, which are all that the library needs to use it.

:func:`~drosurv.evaluation.evaluate`, scorers, searches, reports and the paper's tables read these records. A new metric
is a function in ``drosurv.metrics`` and a function here.

Functions take patient weights, so that one definition is used for the whole test set, every group, and every bootstrap
replicate of them. Functions that compare groups take the values of the groups and their replicates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from drosurv import metrics
from drosurv.evaluation.data import Subset
from drosurv.groups import Groups, ratio_by_group
from drosurv.metrics.calibration import calibration_index
from drosurv.metrics.disparities import censoring_aware_disparity
from drosurv.metrics.imparity import studentized_concordance, studentized_imparity
from drosurv.metrics.inference import (
    Draws,
    Method,
    largest_deviation,
    largest_difference,
    studentized_ratio,
)
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.metrics.sampled_pairs import PairInfluence, censored_influence, individual_influence
from drosurv.target import FloatArray

Better = Literal["higher", "lower", "near 1", "near 0", ""]
Of = Literal["patients", "groups", "attribute", "everybody"]
Need = Literal[
    "risk",
    "gains",
    "survival",
    "curves",
    "two times",
    "reference",
    "features",
    "log hazard",
    "slope",
    "hazards",
    "groups",
]


@dataclass(frozen=True)
class Metric:
    """One metric: its name, heading (`label`), meaning, which values are better, and the function that computes it.

    The name is that of the function in ``drosurv.metrics`` if there is one; scorers use the `short` name if there is
    one. A metric without a label is not shown: other metrics, which name it in `reads`, are computed from it. What the
    function takes and returns (NaN if undefined) depends on `of`:

    - "patients": ``(subset, weight) -> float``, for any patients. Without `by_group` it is computed for everybody
      only: the partial likelihood of a low-risk group, for example, depends on the risk sets of other patients.
    - "groups": ``(subset, groups, weight) -> (k,)``, for all groups of an attribute together.
    - "attribute" or "everybody": ``(comparison) -> Draws``, a comparison of the groups of an attribute, or of the
      intersections of all attributes.

    It `needs` "risk" scores, scores that are a "log hazard", "gains" of patients, "survival" at any times, at "two
    times" or throughout ("curves"), log hazards or survival for a "slope", a "reference" model, "features" for
    distances, "hazards" exp(risk) that are finite and positive, or "groups". `test` returns the statistic of a
    permutation test, a function of group labels (the largest difference between groups in standard errors); without it
    the p-value of a gap comes from the bootstrap. A ratio of sums has `terms`, of each patient above and below, (n,),
    which give its `test` and, where replicates are of a sample, the standard error of all patients. `error` returns the
    standard error where replicates do not show it. If it is `reweighted`, the function also takes weights for censoring
    (n,), which replicates estimate again.

    Without `resampled`, as for a p-value, there is no interval. Intervals are cut at the `bounds`, the lowest and the
    highest possible value. A "distance" is a mean of absolute values, which chance makes larger than it is. A "t"
    interval is for numbers of few patients, whose quantiles of replicates are too narrow. A value `in_time` is a time,
    in the unit of the outcome; all others do not depend on that unit.
    """

    name: str
    label: str
    meaning: str
    better: Better
    function: Callable[..., Any]
    of: Of = "patients"
    needs: tuple[Need, ...] = ()
    reads: tuple[str, ...] = ()
    test: Callable[[Subset], Callable[[Groups], float]] | None = None
    terms: Callable[[Subset], tuple[FloatArray, FloatArray | float]] | None = None
    error: Callable[[Subset], float] | None = None
    by_group: bool = True
    resampled: bool = True
    reweighted: bool = False
    interval: Method = "percentile"
    bounds: tuple[float, float] = (-np.inf, np.inf)
    short: str = ""
    in_time: bool = False


@dataclass(frozen=True, eq=False)
class GroupComparison:
    """Arguments of a metric that compares groups.

    The patients of one attribute with their groups, or everybody with the intersections of all attributes. By metric,
    `values` holds the values (k,) of the groups with their replicates (replicates, k), and `numbers` holds metrics that
    compare groups. Replicates are of a `sample`: these patients or some of very many, with their groups. `sums` returns
    the sum in each replicate of values (m,) of the sample's patients; None without replicates.
    """

    patients: Subset
    groups: Groups | None
    values: Mapping[str, tuple[FloatArray, FloatArray]]
    numbers: Mapping[str, Draws]
    sample: tuple[Subset, Groups | None]
    sums: Callable[[FloatArray], FloatArray] | None = None

    def linear(
        self,
        value: Callable[[Subset, Groups | None], float],
        influence: Callable[[Subset, Groups | None], PairInfluence],
    ) -> Draws:
        """Return a value that is at least 0, with replicates by linear approximation.

        `influence` returns the derivative of the value by the weight of each patient (m,), and the value too where it
        is over all pairs. Without replicates it gives the value of few patients, so that `value`, which is faster for
        many, need not be compiled.
        """
        if self.sums is None and len(self.patients) > _FEW:
            return Draws(value(self.patients, self.groups), np.empty(0), lowest=0.0)
        found, slopes = influence(*self.sample)
        found = value(*self.sample) if found is None else found
        if self.sums is None:
            return Draws(found, np.empty(0), lowest=0.0)
        moved = self.sums(slopes - slopes.mean())
        some, whole = len(self.sample[0]), len(self.patients)
        if some < whole:
            # In proportion to the value, because a sum over pairs grows with the number of patients.
            of_sample, found = found, value(self.patients, self.groups)
            moved *= np.sqrt(some / whole) * (found / of_sample if of_sample else 1.0)
        return Draws(found, found + moved, lowest=0.0)


# Of so few patients all pairs take a few milliseconds.
_FEW = 500
#: Every metric by name, in the order of tables.
CATALOGUE: dict[str, Metric] = {}


def metric(label: str, better: Better, **about: Any) -> Callable[[Callable[..., Any]], Metric]:
    """Add a function to the catalogue, under its name, with its docstring as the meaning."""
    if "terms" in about:
        about["test"] = lambda subset: studentized_ratio(*about["terms"](subset))

    def add(function: Callable[..., Any]) -> Metric:
        text = (function.__doc__ or "").rstrip(".")
        # A symbol, such as F_I, keeps its capital.
        meaning = text if text[1:2] == "_" else text[:1].lower() + text[1:]
        record = Metric(function.__name__, label, meaning, better, function, **about)
        CATALOGUE[record.name] = record
        return record

    return add


#: A metric that is at least 0, and better if lower.
disparity = partial(metric, better="lower", bounds=(0.0, np.inf))


def with_what_it_reads(names: set[str]) -> set[str]:
    """Return the named metrics and all metrics that they are computed from."""
    found = set(names)
    for name in names:
        found |= with_what_it_reads(set(CATALOGUE[name].reads))
    return found


def _ratio(above: Any, below: Any) -> float:
    return float(above / below) if below != 0 else float("nan")


@metric(
    "c-index",
    "higher",
    needs=("risk",),
    test=lambda subset: studentized_concordance(subset.harrell),
    interval="t",
    bounds=(0.0, 1.0),
    short="c_index",
)
def concordance_index(subset: Subset, weight: FloatArray) -> float:
    """Share of comparable pairs of patients that the model ranks in the right order; 0.5 is chance."""
    return subset.harrell.concordance(weight)


@metric(
    "CI",
    "lower",
    of="attribute",
    needs=("risk", "groups"),
    reads=("concordance_fraction",),
    test=lambda subset: studentized_imparity(subset.imparity),
    bounds=(0.0, 1.0),
)
def concordance_imparity(between: GroupComparison) -> Draws:
    """Largest difference between two groups' shares of rightly ranked pairs."""
    return largest_difference(*between.values["concordance_fraction"], largest=1.0)


@metric(
    "Uno's C",
    "higher",
    needs=("risk",),
    reweighted=True,
    interval="t",
    bounds=(0.0, 1.0),
    short="uno_c",
)
def uno_concordance(subset: Subset, weight: FloatArray, censoring: FloatArray | None = None) -> float:
    """The c-index, weighted so that it does not depend on how patients were censored."""
    return subset.uno.concordance(weight, subset.uno_weight if censoring is None else censoring)


@metric("AUC", "higher", needs=("risk",), interval="t", bounds=(0.0, 1.0), short="auc")
def dynamic_auc(subset: Subset, weight: FloatArray) -> float:
    """How well patients who have had the event are ranked above those who have not, averaged over time."""
    return subset.by_risk.auc(weight).mean if len(subset.by_risk.at) else float("nan")


@metric("LPL", "higher", needs=("log hazard",), by_group=False)
def log_partial_likelihood(subset: Subset, weight: FloatArray) -> float:
    """How probable the model finds the order of events, per event."""
    # It grows with the logarithm of the number of patients, of which some are drawn from a sample by chance.
    weight = weight * (len(weight) / weight.sum())
    return metrics.log_partial_likelihood(subset.target, subset.risk, sample_weight=weight)


@metric(
    "IBS",
    "lower",
    needs=("survival", "two times"),
    terms=lambda subset: (subset.brier.model, 1.0),
    bounds=(0.0, np.inf),
    short="ibs",
)
def integrated_brier_score(subset: Subset, weight: FloatArray) -> float:
    """Mean squared error of predicted survival, averaged over time."""
    return float(weight @ subset.brier.model / weight.sum())


@metric(
    "Brier skill",
    "higher",
    needs=("survival", "two times"),
    terms=lambda subset: (subset.brier.null - subset.brier.model, subset.brier.null),
    bounds=(-np.inf, 1.0),
)
def brier_skill(subset: Subset, weight: FloatArray) -> float:
    """Share by which the model's squared error is below that of no model."""
    return 1.0 - _ratio(weight @ subset.brier.model, weight @ subset.brier.null)


@metric(
    "likelihood gain",
    "higher",
    needs=("gains",),
    terms=lambda subset: (subset.gains, subset.has_gain),
    error=lambda subset: subset.gain_error,
    interval="t",
)
def likelihood_gain(subset: Subset, weight: FloatArray) -> float:
    """Gain in log likelihood of the whole outcome over no model, per patient."""
    return _ratio(weight @ subset.gains, weight @ subset.has_gain)


@metric("slope", "near 1", needs=("slope",))
def calibration_slope(subset: Subset, weight: FloatArray) -> float:
    """Factor that makes log risks right: above 1 they differ too little between patients, below 1 too much."""
    if subset.data.is_judged and not subset.data.slope_of_scores:
        return subset.data.judged.slope(subset.rows, weight)
    return metrics.calibration_slope(subset.target, subset.risk, sample_weight=weight)


@metric("predicted - observed", "near 0", needs=("survival",), bounds=(-1.0, 1.0))
def calibration_difference(subset: Subset, weight: FloatArray) -> float:
    """Mean predicted survival less Kaplan-Meier survival at the horizon."""
    observed = KaplanMeier.of(subset.target, weight).at(np.array([subset.data.horizon]))
    return float(weight @ subset.survival_at_horizon) / float(weight.sum()) - float(observed[0])


@metric("ICI", "lower", needs=("survival",), interval="distance", bounds=(0.0, 1.0), short="ici")
def integrated_calibration_index(subset: Subset, weight: FloatArray) -> float:
    """Mean distance of predicted from observed survival at the horizon."""
    return calibration_index(subset.target, 1.0 - subset.survival_at_horizon, subset.data.horizon, weight)


@metric("D-calibration p", "higher", needs=("survival", "curves"), resampled=False, bounds=(0.0, 1.0))
def d_calibration_p(subset: Subset, weight: FloatArray) -> float:
    """P-value of the hypothesis that predicted survival is calibrated over its whole range."""
    return metrics.d_calibration(subset.target, subset.curves).p


@metric("LPL gain", "higher", needs=("log hazard",), by_group=False)
def gain_over_null(subset: Subset, weight: FloatArray) -> float:
    """Gain in log partial likelihood over no model, per event."""
    return metrics.gain_over_null(subset.target, subset.risk, sample_weight=weight)


@metric("share of Cox's gain", "higher", needs=("log hazard", "reference"), by_group=False)
def share_of_gain(subset: Subset, weight: FloatArray) -> float:
    """The gain in log partial likelihood as a share of the reference's."""
    return metrics.share_of_gain(subset.target, subset.risk, subset.reference, sample_weight=weight)


@metric("CF", "higher", of="groups", needs=("risk", "groups"), bounds=(0.0, 1.0))
def concordance_fraction(subset: Subset, groups: Groups, weight: FloatArray) -> FloatArray:
    """Share of correctly ranked pairs among all pairs with a patient of the group."""
    return ratio_by_group(groups, *subset.imparity.counts(weight))


@metric("mean hazard", "", of="groups", needs=("groups", "hazards"))
def mean_hazard(subset: Subset, groups: Groups, weight: FloatArray) -> FloatArray:
    """Mean of exp(risk) over a group's patients."""
    size, total = groups.sums(weight), groups.sums(weight * subset.hazard)
    # Smoothed, as in the published tables.
    more, patients = (0.5, 1.0) if subset.data.convention == "table" else (0.0, 0.0)
    with np.errstate(invalid="ignore"):
        return np.where(size > 0, (total + more) / (size + patients), np.nan)


@metric("", "", of="groups", needs=("groups", "hazards"))
def mean_hazard_of_all(subset: Subset, groups: Groups, weight: FloatArray) -> FloatArray:
    """Mean of exp(risk) over all patients of the attribute, beside each of its groups."""
    return np.full(len(groups), _ratio(weight @ subset.hazard, weight.sum()))


@disparity(
    "F_cap",
    of="everybody",
    needs=("groups", "hazards"),
    reads=("mean_hazard",),
    test=lambda subset: studentized_ratio(subset.hazard, 1.0),
)
def intersectional_disparity(between: GroupComparison) -> Draws:
    """Largest difference between the log mean hazards of two intersections of groups."""
    means, drawn = between.values["mean_hazard"]
    return largest_difference(np.log(means), np.log(drawn))


@disparity("F_I", of="everybody", needs=("features", "hazards"))
def individual_disparity(between: GroupComparison) -> Draws:
    """How much more hazards differ between patients than their features do."""
    how = between.patients.data
    options: dict[str, Any] = {"convention": how.convention, "pairs": how.pairs}
    return between.linear(
        lambda some, _: metrics.individual_disparity(some.risk, some.features, **options),
        lambda some, _: individual_influence(some.hazard, some.features, **options),
    )


def _censored_disparity(between: GroupComparison) -> Draws:
    pairs = between.patients.data.pairs
    return between.linear(
        lambda some, of: censoring_aware_disparity(some.target, some.risk, some.features, of, pairs=pairs),
        lambda some, of: censored_influence(some.target, some.hazard, some.features, of, pairs=pairs),
    )


@disparity("F_I (censoring-aware)", of="everybody", needs=("features", "hazards"))
def censored_individual_disparity(between: GroupComparison) -> Draws:
    """F_I over pairs of a censored patient and one whose event came no earlier."""
    return _censored_disparity(between)


@disparity(
    "F_G",
    of="attribute",
    needs=("groups", "hazards"),
    reads=("mean_hazard", "mean_hazard_of_all"),
    test=lambda subset: studentized_ratio(subset.hazard, 1.0),
)
def group_disparity(between: GroupComparison) -> Draws:
    """Largest distance of a group's mean hazard from that of all."""
    (means, drawn), (centre, centre_drawn) = between.values.values()
    found = largest_deviation(means, float(centre[0]), drawn, centre_drawn[:, 0])
    # The disparity of a single group is undefined, not 0.
    return found if len(means) > 1 else found._replace(estimate=float("nan"))


@disparity(
    "F_A",
    of="attribute",
    needs=("groups", "features", "hazards"),
    reads=("individual_disparity", "group_disparity", "intersectional_disparity"),
)
def average_disparity(between: GroupComparison) -> Draws:
    """Mean of F_I, F_G and F_cap."""
    parts = between.numbers.values()
    draws: FloatArray = np.sum([part.draws for part in parts], axis=0) / 3
    return Draws(sum(part.estimate for part in parts) / 3, draws, lowest=0.0)


@disparity("F_G (censoring-aware)", of="attribute", needs=("groups", "features", "hazards"))
def censored_group_disparity(between: GroupComparison) -> Draws:
    """The censoring-aware F_I over pairs of the same group."""
    return _censored_disparity(between)
