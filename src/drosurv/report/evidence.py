"""The audited model and patients, and all numbers that the sections of the report show."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import norm

from drosurv.errors import ArgumentError
from drosurv.evaluation import EvaluationResult, Predictions
from drosurv.evaluation.attributes import EVERYONE, Attribute, parse_attributes, rows_by_group
from drosurv.evaluation.evaluate import evaluate_rows
from drosurv.evaluation.from_entry import curve_times
from drosurv.evaluation.result_views import DECISIONS
from drosurv.metrics import FollowUp
from drosurv.metrics.imparity import concordance_case_mix_test
from drosurv.observation import Inference, Rows
from drosurv.predictions import as_predictions
from drosurv.presentation import first_upper, group_name, with_interval, written
from drosurv.presentation.sentences import LEAST_DIFFERENCE
from drosurv.repairs import RepairedCox, repair
from drosurv.repairs.subgroup_bounds import SubgroupBounds, certify
from drosurv.report.alpha_path import Stop
from drosurv.report.verdict import ALL_PATIENTS, SEARCH_TESTS, Verdict, judge
from drosurv.tables import TableEncoder
from drosurv.target import FloatArray, IntArray, Target, parse_target

# Groups of fewer patients are not shown, nor smaller counts in the table of patients.
FEWEST = 5
# Words of the report for the concerns of the group table.
FINDINGS = {"calibration": "predictions are wrong", "worse than no model": "worse than no model"}
# Largest number of values of the reference's curves that are kept.
_MOST_VALUES = 20_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """The audited model and patients, and numbers that are computed when a section needs them.

    `stops` are the models of the slider; one is the audited model. `follow_up` is that of the training patients. The
    `reference` is a fitted model, Predictions or scores (n,), with its features. Rules use the columns `features`.
    `trained_on` are the numbers of training patients and of their events, if known. The method card shows `data`,
    `model`, what is `missing`, and the `limits`. Calibration is evaluated at the `horizons`, by default the quartiles
    of the event times. Events after `until` are not counted. Other fields are as in :func:`~drosurv.report.audit`.
    """

    stops: tuple[Stop, ...]
    y: Any
    follow_up: Any
    sensitive_features: Any
    reference: tuple[Any, Any] | None = None
    reference_name: str = "plain Cox"
    features: pd.DataFrame | FloatArray | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    features_train: pd.DataFrame | TableEncoder | None = None
    trained_on: tuple[int, int] | None = None
    horizons: FloatArray | None = None
    horizon: float | None = None
    threshold: float | None = None
    until: float | None = None
    rows: Rows = field(default_factory=Rows)
    title: str | None = None
    data_name: str = ""
    time_title: str = "time"
    n_bootstrap: int = 500
    n_bootstrap_path: int = 100
    level: float = 0.95
    search_rules: bool = True
    random_state: int = 0
    on_step: Callable[[str, int], None] | None = None
    also: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[Mapping[str, str], ...] = ()
    sections: tuple[Any, ...] = ()

    @cached_property
    def target(self) -> Target:
        """Events and times of the audited patients."""
        return parse_target(self.y)

    @property
    def time_unit(self) -> str:
        """Unit of times, such as "days"; empty if unknown."""
        return "" if self.time_title == "time" else self.time_title

    @property
    def stop(self) -> Stop:
        """The audited model."""
        return next(stop for stop in self.stops if stop.audited)

    @property
    def audited(self) -> EvaluationResult:
        """Evaluation of the audited model."""
        return self.results[self.stops.index(self.stop)]

    @cached_property
    def _every_attribute(self) -> list[Attribute]:
        return parse_attributes(self.sensitive_features, len(self.target))

    @cached_property
    def tiny_groups(self) -> list[tuple[str, str]]:
        """Attribute and label of the groups that are too small to be shown."""
        return [key for key, rows in rows_by_group(self._every_attribute).items() if len(rows) < FEWEST]

    @cached_property
    def attributes(self) -> list[Attribute]:
        """The attributes with the groups that are shown."""
        shown = (attribute.without(self.tiny_groups) for attribute in self._every_attribute)
        return [attribute for attribute in shown if len(attribute.labels) > 1]

    def rows_of(self, attribute: Attribute) -> dict[tuple[str, str], IntArray]:
        """Return the rows of the patients of each group of an attribute, by attribute and label."""
        return rows_by_group([attribute])

    @property
    def _groups(self) -> Any:
        return {attribute.name: attribute.groups for attribute in self.attributes} or None

    @cached_property
    def _reference(self) -> Any:
        """The reference's predictions for the audited patients; None without a reference."""
        if self.reference is None:
            return None
        n, (model, X) = len(self.target), self.reference
        if isinstance(model, Predictions):
            return model
        predicted = as_predictions(model, X, n, name="reference")
        risk, curves = predicted.risk, predicted.curves
        if curves is None or not self.target.n_events:
            return risk
        times = curves.times
        if times is None or n * len(times) > _MOST_VALUES:
            times = curve_times(self.target.time[self.target.event])
        return Predictions(risk, curves.survival(times), times)

    @cached_property
    def results(self) -> tuple[EvaluationResult, ...]:
        """Evaluation of every stop."""
        found = []
        for stop in self.stops:
            self._report_step(stop.name)
            with warnings.catch_warnings():
                if not stop.audited:
                    # The audited model gives the same warnings, such as of small groups.
                    warnings.simplefilter("ignore")
                found.append(
                    evaluate_rows(
                        stop.model,
                        stop.X,
                        self.y,
                        self.rows,
                        Inference(
                            self.level,
                            self.n_bootstrap if stop.audited else self.compared_bootstrap,
                            self.random_state,
                        ),
                        y_train=self.follow_up,
                        X_train=stop.X_train,
                        sensitive_features=self._groups,
                        horizons=self.horizons,
                        reference=self._reference,
                        horizon=self.horizon,
                        threshold=self.threshold,
                        further_tests=self._further_tests,
                    )
                )
        return tuple(found)

    @property
    def is_compared(self) -> bool:
        """Whether the audited model is compared with another one, and not with itself."""
        gains = self.audited.groups["gain_over_reference"].dropna()
        same = len(gains) > 0 and gains.abs().max() < LEAST_DIFFERENCE
        return self._reference is not None and not same

    @property
    def compared_bootstrap(self) -> int:
        """Number of bootstrap replicates for the models other than the audited one."""
        return min(self.n_bootstrap, self.n_bootstrap_path)

    @property
    def _further_tests(self) -> int:
        """Number of tests besides those of the group table: of the slope, imparity, decisions, and the search."""
        decided = 0 if self.threshold is None else len(DECISIONS)
        return (
            1 + len(self.attributes) * (1 + decided) + (0 if isinstance(self._bounds, str) else SEARCH_TESTS)
        )

    @cached_property
    def bounds(self) -> SubgroupBounds | str:
        """Bounds for subgroups that columns define, with p-values adjusted for all tests; or why there are none."""
        if isinstance(self._bounds, str):
            return self._bounds
        wrong = str(self.audited.groups["concern"].iloc[0]) == "calibration"
        return self._bounds.adjusted(self.audited.settings.n_tests / SEARCH_TESTS, rescaled=wrong)

    @cached_property
    def _bounds(self) -> SubgroupBounds | str:
        if not self.search_rules:
            return "it was not asked for"
        self._report_step("subgroups")
        n, audited = len(self.target), self.stop
        if not as_predictions(audited.model, audited.X, n).has_curves:
            return "the model gives no survival curves"
        if self.features is None or np.shape(self.features)[1] == 0:
            return "no columns were given that could define them"
        observed = self.horizon is not None and self.horizon <= self.target.time.max()
        try:
            return certify(
                audited.model,
                self.features if audited.X is None else audited.X,
                self.y,
                features=self.features,
                # Events are counted over the whole follow-up, as in the group table.
                brier_time=self.horizon if observed else None,
                level=self.level,
                id=self.rows.id,
                random_state=self.random_state,
            )
        except ArgumentError as error:
            return str(error).rstrip(".")

    @property
    def _model_error(self) -> float:
        """Variance from the model's estimation error, relative to that of the audited events; 0 if not known."""
        trained = FollowUp.parse(self.follow_up).training_events
        return 0.0 if trained is None else self.target.n_events / trained

    @cached_property
    def tests(self) -> pd.DataFrame:
        """Tests besides those of the group table: of the calibration slope, and of decisions and ranking of groups."""
        rows = [*_slope_test(self.audited, self._model_error), *_decision_tests(self.audited)]
        rows += [*self._ranking_tests()]
        return pd.DataFrame(rows, columns=["status", "attribute", "metric", "who", "text", "p"])

    def _ranking_tests(self) -> Iterator[dict[str, Any]]:
        """Test whether the groups of an attribute are ranked differently from what their scores imply."""
        for attribute in self.attributes:
            of_groups = self.audited.select(
                metric="concordance_fraction", attribute=attribute.name, kind="group"
            )
            compared = [row.group for row in of_groups if row.status == "ok"]
            if len(compared) < 2:
                continue
            rows, labels = attribute.kept, np.array(attribute.labels, dtype=object)
            test = concordance_case_mix_test(
                self.target.take(rows),
                as_predictions(self.stop.model, self.stop.X, len(self.target)).risk[rows],
                labels[attribute.groups.codes[rows]],
                compared=compared,
                random_state=self.random_state,
            )
            shares = {
                label: f"{written(test.fractions[label], 'share')} of the pairs, where its predictions imply "
                f"{written(test.implied[label], 'share')}"
                for label in (test.worst, test.best)
            }
            worst, best = (group_name(attribute.name, label) for label in (test.worst, test.best))
            yield {
                "status": "unequal",
                "attribute": attribute.name,
                "metric": "concordance_imparity",
                "who": worst,
                "text": f"Compared with all patients, {worst} is ranked right in {shares[test.worst]}, and {best} in "
                f"{shares[test.best]}",
                "p": test.p,
            }

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict on the audited model."""
        return judge(
            self.audited.groups,
            warnings=self.warnings,
            bounds=self.bounds,
            tests=self.tests,
            n_tests=self.audited.settings.n_tests,
            level=self.level,
            reference=self.reference_name,
        )

    @cached_property
    def repaired(self) -> RepairedCox | None:
        """The audited model, repaired with the audited patients.

        None for a model without survival curves, and if the verdict shows nothing to repair.
        """
        wrong = any(problem.status == "miscalibrated" for problem in self.verdict.problems)
        frozen = self.stop.frozen(self.features) if wrong and self.search_rules else None
        how: dict[str, Any] = {"features": self.features, "frozen": True, "random_state": self.random_state}
        return None if frozen is None else repair(*frozen, self.y, **how)

    def _report_step(self, step: str) -> None:
        if self.on_step is not None:
            self.on_step(step, len(self.stops) + self.search_rules)


def _slope_test(result: EvaluationResult, model_error: float) -> Iterator[dict[str, Any]]:
    """Test whether the calibration slope is 1; no test of a slope below 0, where gains show the error.

    The standard error contains the model's estimation error, because of which a right model may have another slope.
    """
    for row in result.select(metric="calibration_slope", kind="overall"):
        error = row.standard_error
        if row.status == "ok" and error > 0 and row.value > 0 and len(result.survival):
            direction = "over" if row.value < 1 else "under"
            yield {
                "status": "miscalibrated",
                "attribute": EVERYONE,
                "metric": "calibration_slope",
                "who": ALL_PATIENTS,
                "text": f"In the predicted probabilities, differences between patients are {direction}stated: "
                f"calibration slope {with_interval(row.value, row.low, row.high)}, where 1 is right",
                "p": float(2 * norm.sf(abs(row.value - 1) / (error * np.sqrt(1 + model_error)))),
            }


def _decision_tests(result: EvaluationResult) -> Iterator[dict[str, Any]]:
    """Test the gaps in decisions between groups; no test without a threshold, or of a gap that cannot be estimated."""
    table = result.decisions
    if table is None:
        return
    gap: Any
    for gap in table[(table["group"] == "gap") & table["p"].notna()].itertuples():
        same = (table["attribute"] == gap.attribute) & (table["metric"] == gap.metric)
        values = table[same & (table["group"] != "gap")].sort_values("value")
        shown = [
            (group_name(str(gap.attribute), str(row.group)), written(row.value))
            for row in values.itertuples()
        ]
        (worst, low), (best, high) = shown[0], shown[-1]
        what = DECISIONS[str(gap.metric)]
        yield {
            "status": "wrong_decisions",
            "attribute": gap.attribute,
            "metric": gap.metric,
            "who": worst,
            "text": f"{first_upper(what)} at the threshold of {written(result.settings.threshold, 'share')} is {low} "
            f"for {worst} and {high} for {best}",
            "p": _small_p_value(float(gap.p), gap.value, gap.high, result),
        }


def _small_p_value(p: float, size: float, high: float, result: EvaluationResult) -> float:
    """Return the p-value of a gap; if it is the smallest that replicates can give, the tail of a normal distribution.

    Otherwise no gap could be significant after adjustment for many tests. The scale comes from the interval of the gap;
    the tail of the normal distribution is heavier than that of the largest of several differences.
    """
    if not (p <= 1.5 / (result.settings.n_bootstrap + 1) and high > size):
        return p
    distance = ndtri((1 + result.settings.level) / 2) * size / (high - size)
    return min(p, float(2 * norm.sf(distance)))
