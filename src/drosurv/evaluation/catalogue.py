"""The catalogue of metrics: a function and a record for each, which are all that the library needs to use it.

:func:`~drosurv.evaluation.evaluate`, scorers, searches and reports read these records. A new metric is a function in
``drosurv.metrics`` that returns an :class:`~drosurv.metrics.estimates.Estimate`, and a function here.

The metrics of the paper's tables compare predicted hazards, and the ranking of pairs, between groups. Nothing is judged
by them: they are numbers without intervals, and are shown if they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from drosurv.evaluation.data import Subset
from drosurv.judging.residual_tests import mean_estimate
from drosurv.metrics.calibration import calibration_index
from drosurv.metrics.calibration_slope import slope_estimate, slope_of_curves_estimate
from drosurv.metrics.concordance import concordance_estimate, uno_estimate
from drosurv.metrics.dynamic_auc import auc_estimate
from drosurv.metrics.estimates import Estimate
from drosurv.metrics.pair_order import PairOrder
from drosurv.paper import disparities
from drosurv.paper.disparities import censoring_aware_disparity
from drosurv.patients.groups import Groups, ratio_by_group
from drosurv.patients.target import FloatArray

Better = Literal["higher", "lower", "near 1", "near 0", ""]
Of = Literal["patients", "groups", "attribute", "everybody"]
Need = Literal[
    "risk",
    "gains",
    "survival",
    "curves",
    "one event",
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
    one. What the function takes and returns (NaN if undefined) depends on `of`:

    - "patients": ``(patients) -> Estimate``, for any :class:`Subset`, with the influence of each of all patients. An
      estimate without influences has no interval. Without `by_group` it is computed for everybody only: the partial
      likelihood of a low-risk group, for example, depends on the risk sets of other patients.
    - "groups": ``(comparison) -> (k,)``, for all groups of an attribute together.
    - "attribute" or "everybody": ``(comparison) -> float``, a :class:`GroupComparison` of the groups of an attribute,
      or of the intersections of all attributes.

    It `needs` "risk" scores, scores that are a "log hazard", "gains" of patients, "survival" at any times, at "two
    times" or throughout ("curves"), log hazards or survival for a "slope", a "reference" model, "features" for
    distances, "hazards" exp(risk) that are finite and positive, or "groups". Gaps between groups are tested if they are
    `comparable`: others depend on how long groups were followed. Intervals are cut at the `bounds`, the lowest and the
    highest possible value. A value `in_time` is a time, in the unit of the outcome; all others do not depend on that
    unit. A `p_value` is no score.
    """

    name: str
    label: str
    meaning: str
    better: Better
    function: Callable[..., Any]
    of: Of = "patients"
    needs: tuple[Need, ...] = ()
    by_group: bool = True
    comparable: bool = False
    bounds: tuple[float, float] = (-np.inf, np.inf)
    short: str = ""
    in_time: bool = False
    p_value: bool = False

    @property
    def is_papers(self) -> bool:
        """Whether it is a metric of the paper's tables, which is shown only if it is asked for."""
        return self.of != "patients"


#: Every metric by name, in the order of tables.
CATALOGUE: dict[str, Metric] = {}


def metric(label: str, better: Better, **about: Any) -> Callable[[Callable[..., Any]], Metric]:
    """Add a function to the catalogue, under its name, with its docstring as the meaning."""

    def add(function: Callable[..., Any]) -> Metric:
        text = (function.__doc__ or "").partition("\n")[0].rstrip(".")
        # A symbol, such as F_I, keeps its capital.
        meaning = text if text[1:2] == "_" else text[:1].lower() + text[1:]
        record = Metric(function.__name__, label, meaning, better, function, **about)
        CATALOGUE[record.name] = record
        return record

    return add


def _number(value: float, patients: Subset) -> Estimate:
    """Return a number without an interval."""
    return Estimate(value, np.zeros(len(patients.data.target)))


@metric("c-index", "higher", needs=("risk",), bounds=(0.0, 1.0), short="c_index")
def concordance_index(patients: Subset) -> Estimate:
    """Share of comparable pairs of patients that the model ranks in the right order; 0.5 is chance."""
    return patients.of_all(concordance_estimate(patients.target, patients.risk, order=patients.harrell))


@metric("Uno's C", "higher", needs=("risk",), bounds=(0.0, 1.0), short="uno_c", comparable=True)
def uno_concordance(patients: Subset) -> Estimate:
    """The c-index, weighted so that it does not depend on how patients were censored."""
    # Later events would have the weights of very few patients, and the range would be another in each sample.
    last = min(patients.until, patients.data.last_time)
    until = float(np.nextafter(last, np.inf))
    found = uno_estimate(patients.target, patients.risk, until=until, order=patients.harrell)
    return patients.of_all(found)


@metric("AUC", "higher", needs=("risk",), bounds=(0.0, 1.0), short="auc", comparable=True)
def dynamic_auc(patients: Subset) -> Estimate:
    """How well patients who have had the event are ranked above those who have not, averaged over time."""
    times = patients.data.auc_times
    return patients.of_all(auc_estimate(patients.target, patients.risk, times[times <= patients.until]))


@metric("LPL", "higher", needs=("log hazard",), by_group=False)
def log_partial_likelihood(patients: Subset) -> Estimate:
    """How probable the model finds the order of events, per event."""
    return patients.of_all(patients.likelihoods.likelihood)


@metric("IBS", "lower", needs=("survival", "two times"), bounds=(0.0, np.inf), short="ibs", comparable=True)
def integrated_brier_score(patients: Subset) -> Estimate:
    """Mean squared error of predicted survival, averaged over time."""
    return patients.brier.score


@metric("Brier skill", "higher", needs=("survival", "two times"), bounds=(-np.inf, 1.0), comparable=True)
def brier_skill(patients: Subset) -> Estimate:
    """Share by which the model's squared error is below that of no model."""
    return patients.brier.skill


@metric("likelihood gain", "higher", needs=("gains",))
def likelihood_gain(patients: Subset) -> Estimate:
    """Gain in log likelihood of the whole outcome over no model, per patient."""
    judged, freedom = patients.data.judged, patients.target.n_events - 1.0
    inside = patients.member & judged.inside
    found = mean_estimate(judged.gains, inside, np.ones(len(inside)), judged.own_curve, freedom)
    return replace(found, patients=int(inside.sum()))


@metric("slope", "near 1", needs=("slope",), comparable=True)
def calibration_slope(patients: Subset) -> Estimate:
    """Factor that makes log risks right: above 1 they differ too little between patients, below 1 too much."""
    data = patients.data
    if not data.is_judged or data.slope_of_scores:
        return patients.of_all(slope_estimate(patients.target, patients.risk))
    judged, rows = data.judged, slice(None) if patients.rows is None else patients.rows
    if judged.few_times:
        return _number(judged.slope(patients.rows), patients)
    observed, expected = (part[rows] for part in judged.residuals.events)
    return patients.of_all(slope_of_curves_estimate(observed, expected, judged.score[rows]))


@metric(
    "predicted - observed", "near 0", needs=("survival", "one event"), bounds=(-1.0, 1.0), comparable=True
)
def calibration_difference(patients: Subset) -> Estimate:
    """Mean predicted less observed survival at the horizon, as in the table of times."""
    risks = patients.data.risks
    return risks.less_predicted(risks.observed(patients.data.horizon, patients.rows))


@metric("ICI", "lower", needs=("survival",), bounds=(0.0, 1.0), short="ici")
def integrated_calibration_index(patients: Subset) -> Estimate:
    """Mean distance of predicted from observed survival at the horizon.

    It has no interval: where predictions are right, a mean of absolute differences has no normal limit. The band of the
    calibration curve shows how certain the differences are.
    """
    horizon, weight = patients.data.horizon, np.ones(len(patients))
    risk = 1.0 - patients.curves.survival(np.array([horizon]))[:, 0]
    return _number(calibration_index(patients.target, risk, horizon, weight), patients)


@metric("D-calibration p", "higher", needs=("survival", "curves"), bounds=(0.0, 1.0), p_value=True)
def d_calibration_p(patients: Subset) -> Estimate:
    """P-value of the hypothesis that predicted survival is calibrated over its whole range."""
    return _number(patients.d_calibration.p, patients)


@metric("LPL gain", "higher", needs=("log hazard",), by_group=False)
def gain_over_null(patients: Subset) -> Estimate:
    """Gain in log partial likelihood over no model, per event."""
    return patients.of_all(patients.likelihoods.gain)


@metric("share of Cox's gain", "higher", needs=("log hazard", "reference"), by_group=False)
def share_of_gain(patients: Subset) -> Estimate:
    """The gain in log partial likelihood as a share of the reference's."""
    return patients.of_all(patients.likelihoods.share)


@dataclass(frozen=True, eq=False)
class GroupComparison:
    """Patients and groups that the paper's metrics compare: of one attribute, or the intersections of all."""

    everyone: Subset
    patients: Subset
    groups: Groups | None = None
    intersections: GroupComparison | None = None

    @cached_property
    def fractions(self) -> FloatArray:
        """Concordance fractions of the groups (k,)."""
        assert self.groups is not None
        order = PairOrder.for_imparity(self.patients.target, self.patients.risk)
        return ratio_by_group(self.groups, *order.counts(np.ones(len(self.patients))))

    @cached_property
    def mean_hazards(self) -> FloatArray:
        """Mean of exp(risk) of the groups (k,)."""
        assert self.groups is not None
        return ratio_by_group(self.groups, self.patients.hazard, np.ones(len(self.patients)))

    @cached_property
    def individual(self) -> float:
        """F_I of all patients."""
        if self.intersections is not None:
            return self.intersections.individual
        some = self.everyone
        return disparities.individual_disparity(some.risk, some.features, pairs=some.data.pairs)

    @cached_property
    def of_group(self) -> float:
        """F_G; the disparity of a single group is undefined, not 0."""
        apart = np.abs(self.mean_hazards - float(self.patients.hazard.mean()))
        return float(np.fmax.reduce(apart)) if len(apart) > 1 else float("nan")

    @cached_property
    def intersectional(self) -> float:
        """F_cap of the intersections."""
        means = self.mean_hazards if self.intersections is None else self.intersections.mean_hazards
        return spread(np.log(means))

    def censored(self) -> float:
        """Return the censoring-aware disparity of pairs, within groups if these are of one attribute."""
        whole = self.intersections is None
        some, groups = (self.everyone, None) if whole else (self.patients, self.groups)
        how: dict[str, Any] = {"pairs": some.data.pairs}
        return censoring_aware_disparity(some.target, some.risk, some.features, groups, **how)


def spread(values: FloatArray) -> float:
    """Return the largest difference of values (k,), ignoring NaN; NaN for fewer than two values."""
    known = values[~np.isnan(values)]
    return float(np.ptp(known)) if len(known) > 1 else float("nan")


#: A metric that is at least 0, and better if lower.
disparity = partial(metric, better="lower", bounds=(0.0, np.inf))


@metric("CI", "lower", of="attribute", needs=("risk", "groups"), bounds=(0.0, 1.0))
def concordance_imparity(between: GroupComparison) -> float:
    """Largest difference between two groups' shares of rightly ranked pairs."""
    return spread(between.fractions)


@metric("CF", "higher", of="groups", needs=("risk", "groups"), bounds=(0.0, 1.0))
def concordance_fraction(between: GroupComparison) -> FloatArray:
    """Share of correctly ranked pairs among all pairs with a patient of the group."""
    return between.fractions


@metric("mean hazard", "", of="groups", needs=("groups", "hazards"))
def mean_hazard(between: GroupComparison) -> FloatArray:
    """Mean of exp(risk) over a group's patients."""
    return between.mean_hazards


@disparity("F_cap", of="everybody", needs=("groups", "hazards"))
def intersectional_disparity(between: GroupComparison) -> float:
    """Largest difference between the log mean hazards of two intersections of groups."""
    return between.intersectional


@disparity("F_I", of="everybody", needs=("features", "hazards"))
def individual_disparity(between: GroupComparison) -> float:
    """How much more hazards differ between patients than their features do."""
    return between.individual


@disparity("F_I (censoring-aware)", of="everybody", needs=("features", "hazards"))
def censored_individual_disparity(between: GroupComparison) -> float:
    """F_I over pairs of a censored patient and one whose event came no earlier."""
    return between.censored()


@disparity("F_G", of="attribute", needs=("groups", "hazards"))
def group_disparity(between: GroupComparison) -> float:
    """Largest distance of a group's mean hazard from that of all."""
    return between.of_group


@disparity("F_A", of="attribute", needs=("groups", "features", "hazards"))
def average_disparity(between: GroupComparison) -> float:
    """Mean of F_I, F_G and F_cap."""
    return (between.individual + between.of_group + between.intersectional) / 3


@disparity("F_G (censoring-aware)", of="attribute", needs=("groups", "features", "hazards"))
def censored_group_disparity(between: GroupComparison) -> float:
    """The censoring-aware F_I over pairs of the same group."""
    return between.censored()
