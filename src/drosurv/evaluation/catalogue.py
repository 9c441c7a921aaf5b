"""The catalogue of metrics: one record says all that the rest of the library knows of a metric.

:func:`~drosurv.evaluation.evaluate`, :class:`~drosurv.evaluation.SurvivalMetricFrame`, scorers, searches, reports
and the paper's tables read these records. A new metric is a function in ``drosurv.metrics`` and a record here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from drosurv import metrics
from drosurv.evaluation import definitions as by
from drosurv.evaluation.patients import Patients
from drosurv.groups import Groups
from drosurv.inference import Method, studentized_ratio
from drosurv.metrics.concordance_inference import studentized_concordance, studentized_imparity
from drosurv.target import FloatArray

Better = Literal["higher", "lower", "near 1", "near 0", ""]
Of = Literal["patients", "groups", "attribute", "everybody"]
# Largest difference of groups in its standard errors, as a function of the labels.
GapStatistic = Callable[[Groups], float]
Need = Literal["risk", "survival", "reference", "features", "hazards", "groups"]


@dataclass(frozen=True)
class Metric:
    """One metric.

    Parameters
    ----------
    name : str
        As in tables; also that of the function in ``drosurv.metrics`` where there is one.
    label : str
        Short heading; empty for a number that only others are made from.
    meaning : str
        What it tells, in plain words.
    better : "higher", "lower", "near 1", "near 0" or ""
        Which values are good.
    function : callable
        What it takes and returns follows from `of`.
    of : "patients", "groups", "attribute" or "everybody"
        A number of any set of patients on its own: ``(patients, weight) -> float``. Numbers of all groups of an
        attribute: ``(patients, groups, weight) -> (k,)``. Or one number that compares, of an attribute's groups or
        of everybody: ``(between) -> Number``. NaN where undefined.
    needs : tuple
        What must be there: the model's ``"risk"`` scores or ``"survival"`` curves, a ``"reference"`` model,
        ``"features"`` to take distances in, ``"hazards"`` that neither overflow nor vanish, ``"groups"``.
    reads : tuple of str
        Metrics that it is made from.
    test : callable, optional
        Patients to a statistic of group labels, for the permutation test that groups do not differ; without one the
        p-value of a gap comes from the bootstrap.
    by_group : bool
        Whether a set's number can be read by group. Partial likelihood cannot: a right model loses partial
        likelihood on low-risk groups, whose merit stands in other patients' risk sets.
    resampled : bool
        Whether a bootstrap interval makes sense; a p-value has none.
    interval : "percentile" or "basic"
        Kind of interval. "basic" mirrors the replicates at the estimate, for a mean of absolute values, which
        resampling noise alone makes larger.
    bounds : pair of float
        The lowest and the highest possible value, where intervals are cut.
    short : str
        What scorers call it; by default its name.
    """

    name: str
    label: str
    meaning: str
    better: Better
    function: Callable[..., Any]
    of: Of = "patients"
    needs: tuple[Need, ...] = ()
    reads: tuple[str, ...] = ()
    test: Callable[[Patients], GapStatistic] | None = None
    by_group: bool = True
    resampled: bool = True
    interval: Method = "percentile"
    bounds: tuple[float, float] = (-np.inf, np.inf)
    short: str = ""

    def __call__(self, patients: Patients, weight: FloatArray) -> float:
        """Value of a set of patients; NaN if nobody has weight, or no finite value is best."""
        if not weight.any():
            return float("nan")
        value = float(self.function(patients, weight))
        return value if np.isfinite(value) else float("nan")

    @property
    def widest(self) -> float:
        """The largest gap there can be between two groups."""
        return self.bounds[1] - self.bounds[0]


_RECORDS = (
    Metric(
        "concordance_index",
        "c-index",
        "share of comparable pairs of patients whom the model orders right; 0.5 is a coin",
        "higher",
        lambda some, weight: some.harrell.concordance(weight),
        needs=("risk",),
        test=lambda some: studentized_concordance(some.harrell),
        bounds=(0.0, 1.0),
        short="c_index",
    ),
    Metric(
        "concordance_imparity",
        "CI",
        "largest difference between two groups' shares of right pairs",
        "lower",
        by.concordance_imparity,
        of="attribute",
        needs=("risk", "groups"),
        reads=("concordance_fraction",),
        test=lambda some: studentized_imparity(some.imparity),
        bounds=(0.0, 1.0),
    ),
    Metric(
        "uno_concordance",
        "Uno's C",
        "the c-index, weighted so that it does not depend on how patients were censored",
        "higher",
        lambda some, weight: some.harrell.concordance(weight, some.uno_weight),
        needs=("risk",),
        bounds=(0.0, 1.0),
        short="uno_c",
    ),
    Metric(
        "dynamic_auc",
        "AUC",
        "how well those who have had the event are told from those still free of it, averaged over time",
        "higher",
        by.dynamic_auc,
        needs=("risk",),
        bounds=(0.0, 1.0),
        short="auc",
    ),
    Metric(
        "log_partial_likelihood",
        "LPL",
        "how probable the model finds the order of events, per event",
        "higher",
        lambda some, weight: metrics.log_partial_likelihood(some.target, some.risk, sample_weight=weight),
        needs=("risk",),
        by_group=False,
    ),
    Metric(
        "integrated_brier_score",
        "IBS",
        "mean squared error of predicted survival, averaged over time",
        "lower",
        lambda some, weight: weight @ some.brier.model / weight.sum(),
        needs=("survival",),
        test=lambda some: studentized_ratio(some.brier.model, 1.0),
        bounds=(0.0, np.inf),
        short="ibs",
    ),
    Metric(
        "brier_skill",
        "Brier skill",
        "share by which the model's squared error is below that of no model",
        "higher",
        by.brier_skill,
        needs=("survival",),
        test=lambda some: studentized_ratio(some.brier.null - some.brier.model, some.brier.null),
        bounds=(-np.inf, 1.0),
    ),
    Metric(
        "likelihood_gain",
        "likelihood gain",
        "gain in log likelihood of the whole outcome over no model, per patient",
        "higher",
        lambda some, weight: weight @ some.gains / weight.sum(),
        needs=("survival",),
        test=lambda some: studentized_ratio(some.gains, 1.0),
    ),
    Metric(
        "calibration_slope",
        "slope",
        "what the risk scores must be multiplied by to be right: above 1 they are too timid, below 1 too bold",
        "near 1",
        lambda some, weight: metrics.calibration_slope(some.target, some.risk, sample_weight=weight),
        needs=("risk",),
    ),
    Metric(
        "calibration_difference",
        "predicted - observed",
        "mean predicted survival less Kaplan-Meier survival at the horizon",
        "near 0",
        by.calibration_difference,
        needs=("survival",),
        bounds=(-1.0, 1.0),
    ),
    Metric(
        "integrated_calibration_index",
        "ICI",
        "mean distance of predicted from observed survival at the horizon",
        "lower",
        by.integrated_calibration_index,
        needs=("survival",),
        interval="basic",
        bounds=(0.0, 1.0),
        short="ici",
    ),
    Metric(
        "d_calibration_p",
        "D-calibration p",
        "p-value of the hypothesis that predicted survival is calibrated over its whole range",
        "higher",
        lambda some, weight: metrics.d_calibration(some.target, some.curves).p_value,
        needs=("survival",),
        resampled=False,
        bounds=(0.0, 1.0),
    ),
    Metric(
        "gain_over_null",
        "LPL gain",
        "gain in log partial likelihood over no model, per event",
        "higher",
        lambda some, weight: metrics.gain_over_null(some.target, some.risk, sample_weight=weight),
        needs=("risk",),
        by_group=False,
    ),
    Metric(
        "share_of_gain",
        "share of Cox's gain",
        "the gain in log partial likelihood as a share of the reference's",
        "higher",
        lambda some, weight: metrics.share_of_gain(
            some.target, some.risk, some.reference, sample_weight=weight
        ),
        needs=("risk", "reference"),
        by_group=False,
    ),
    Metric(
        "concordance_fraction",
        "CF",
        "share of right pairs among those of a group's patients with everybody",
        "higher",
        by.concordance_fractions,
        of="groups",
        needs=("risk", "groups"),
        bounds=(0.0, 1.0),
    ),
    Metric(
        "mean_hazard",
        "mean hazard",
        "mean of exp(risk) over a group's patients",
        "",
        by.mean_hazards,
        of="groups",
        needs=("groups", "hazards"),
    ),
    Metric(
        "mean_hazard_of_all",
        "",
        "mean of exp(risk) over all patients of the attribute, beside each of its groups",
        "",
        by.mean_hazard_of_all,
        of="groups",
        needs=("groups", "hazards"),
    ),
    Metric(
        "intersectional_disparity",
        "F_cap",
        "largest difference between the log mean hazards of two intersections of groups",
        "lower",
        by.intersectional_disparity,
        of="everybody",
        needs=("groups", "hazards"),
        reads=("mean_hazard",),
        test=lambda some: studentized_ratio(some.hazard, 1.0),
        bounds=(0.0, np.inf),
    ),
    Metric(
        "individual_disparity",
        "F_I",
        "how much more hazards differ between patients than their features do",
        "lower",
        by.individual_disparity,
        of="everybody",
        needs=("features", "hazards"),
        bounds=(0.0, np.inf),
    ),
    Metric(
        "censored_individual_disparity",
        "F_I, censoring-aware",
        "F_I over pairs of a censored patient and one whose event came no earlier",
        "lower",
        by.censored_disparity,
        of="everybody",
        needs=("features", "hazards"),
        bounds=(0.0, np.inf),
    ),
    Metric(
        "group_disparity",
        "F_G",
        "largest distance of a group's mean hazard from that of all",
        "lower",
        by.group_disparity,
        of="attribute",
        needs=("groups", "hazards"),
        reads=("mean_hazard", "mean_hazard_of_all"),
        test=lambda some: studentized_ratio(some.hazard, 1.0),
        bounds=(0.0, np.inf),
    ),
    Metric(
        "average_disparity",
        "F_A",
        "mean of F_I, F_G and F_cap",
        "lower",
        by.average_disparity,
        of="attribute",
        needs=("groups", "features", "hazards"),
        reads=("individual_disparity", "group_disparity", "intersectional_disparity"),
        bounds=(0.0, np.inf),
    ),
    Metric(
        "censored_group_disparity",
        "F_G, censoring-aware",
        "the censoring-aware F_I over pairs of the same group",
        "lower",
        lambda between: by.censored_disparity(between, between.attribute.kept_groups),
        of="attribute",
        needs=("groups", "features", "hazards"),
        bounds=(0.0, np.inf),
    ),
)

#: Every metric by name, in the order of tables.
CATALOGUE: dict[str, Metric] = {record.name: record for record in _RECORDS}


def with_what_it_reads(names: set[str]) -> set[str]:
    """The named metrics and all that they are made from."""
    found = set(names)
    for name in names:
        found |= with_what_it_reads(set(CATALOGUE[name].reads))
    return found
