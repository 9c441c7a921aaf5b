"""Metrics of the settings of a grid on held-out patients, with the censoring weights of the training patients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from drosurv import metrics as library
from drosurv import paper
from drosurv.curves import Baseline, SurvivalCurves
from drosurv.evaluation.catalogue import spread
from drosurv.evaluation.data import hazards_exist
from drosurv.evaluation.evaluator import Attribute, intersection_of, parse_attributes
from drosurv.losses.cox_partial import CoxPartial
from drosurv.metrics import FollowUp
from drosurv.metrics.pair_order import PairOrder
from drosurv.paper.disparities import Convention
from drosurv.patients.draws import in_parallel, replicate_rng, seed_sequence
from drosurv.patients.groups import EVERYONE, ratio_by_group
from drosurv.patients.target import FloatArray, Target, parse_target

# Attribute and metric.
Key = tuple[str, str]
# Metrics of everybody that need scores only, hazards and features, hazards of groups, and curves.
_OF_SCORES = ("log_partial_likelihood", "gain_over_null", "calibration_slope")


class Imparity(NamedTuple):
    """Concordance imparity, its values on bootstrap replicates, and the largest error of any difference in each."""

    value: float
    draws: FloatArray
    errors: FloatArray


class HeldOut:
    """Held-out patients, and the follow-up of the training patients that metrics need.

    Features `X` are standardised by the training patients' mean and standard deviation. Disparities need
    `sensitive_features`; groups in `small`, pairs of attribute and label, are left out of them.
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
        # In a fold an attribute may have only one group.
        parsed = parse_attributes(sensitive_features, len(self.target), at_least=1)
        large = (attribute.without(small) for attribute in parsed)
        self.attributes = [attribute for attribute in large if attribute.labels]

    def measure(
        self,
        risk: FloatArray,
        curves: SurvivalCurves | None = None,
        *,
        metrics: Collection[str] | None = None,
    ) -> dict[Key, float]:
        """Compute metrics of one setting, by attribute and metric; those of survival curves need `curves`."""
        return {
            key: value() for key, value in self._numbers(risk, curves) if metrics is None or key[1] in metrics
        }

    def _numbers(
        self, risk: FloatArray, curves: SurvivalCurves | None
    ) -> Iterator[tuple[Key, Callable[[], float]]]:
        """Yield functions that compute the metrics."""
        target, how = self.target, {"convention": self.convention}
        weighted: Any = {"grid": "table" if self.convention == "table" else "inside"}
        yield (EVERYONE, "concordance_index"), lambda: library.concordance_index(target, risk)
        yield (
            (EVERYONE, "dynamic_auc"),
            lambda: library.dynamic_auc(self.follow_up, target, risk, **weighted),
        )
        for name in _OF_SCORES:
            yield (EVERYONE, name), lambda name=name: getattr(library, name)(target, risk)
        if curves is not None:
            yield (
                (EVERYONE, "integrated_brier_score"),
                lambda: library.integrated_brier_score(self.follow_up, target, curves, **weighted),
            )
        hazards = hazards_exist(risk)
        if hazards:
            yield (
                (EVERYONE, "individual_disparity"),
                lambda: paper.individual_disparity(risk, self.X, **how),
            )
        if hazards and self.attributes:
            crossed = intersection_of(self.attributes)
            rows, groups = crossed.kept, crossed.kept_groups
            yield (
                (EVERYONE, "intersectional_disparity"),
                lambda: (
                    paper.intersectional_disparity(risk[rows], groups, **how)
                    if len(groups) > 1
                    else float("nan")
                ),
            )
        for one in self.attributes:
            if hazards:
                yield (one.name, "group_disparity"), lambda one=one: self._group_disparity(risk, one)
            yield (
                (one.name, "concordance_imparity"),
                lambda one=one: spread(_fractions(self.target, risk, one)()),
            )

    def _group_disparity(self, risk: FloatArray, one: Attribute) -> float:
        """Return F_G; that of a single group is undefined."""
        if len(one.labels) < 2:
            return float("nan")
        return paper.group_disparity(risk[one.kept], one.kept_groups, convention=self.convention)

    def imparity(self, risk: FloatArray, replicates: int) -> dict[str, Imparity]:
        """Return the concordance imparity of each attribute with bootstrap replicates, the same patients in all."""
        found, n, streams = {}, len(self.target), seed_sequence(0)
        for one in self.attributes:
            fractions = _fractions(self.target, risk, one)

            def draw(k: int, of: Callable[..., FloatArray] = fractions) -> FloatArray:
                rows = replicate_rng(streams, k).integers(n, size=n)
                return of(np.bincount(rows, minlength=n).astype(np.float64))

            own, drawn = fractions(), np.array(list(in_parallel(draw, replicates, 1)))
            draws, errors = (np.array(list(map(spread, values))) for values in (drawn, drawn - own))
            found[one.name] = Imparity(spread(own), draws, errors)
        return found

    def breslow(self, risk: FloatArray, train_risk: FloatArray) -> SurvivalCurves:
        """Return curves from Breslow's baseline hazard, for scores without a fitted model, such as shrunken scores."""
        return breslow(self.train_target, train_risk).of_scores(risk, -np.inf)


def _fractions(target: Any, risk: FloatArray, one: Attribute) -> Callable[..., FloatArray]:
    """Return the function that computes concordance fractions (k,) of an attribute's groups, with weights (n,)."""
    order = PairOrder.for_imparity(target.take(one.kept), risk[one.kept])

    def fractions(weight: FloatArray | None = None) -> FloatArray:
        own = np.ones(len(one.kept)) if weight is None else weight[one.kept]
        return ratio_by_group(one.kept_groups, *order.counts(own))

    return fractions


def interval_columns(metric: str, number: Imparity) -> dict[str, float]:
    """Return the standard error and 95 % interval of the imparity, as columns of a table.

    With c the 95 % quantile of the largest errors, all differences lie within c of their estimates, and so does the
    largest.
    """
    reach = float(np.nanquantile(number.errors, 0.95))
    low, high = max(number.value - reach, 0.0), min(number.value + reach, 1.0)
    error = float(number.draws[~np.isnan(number.draws)].std(ddof=1))
    return {f"{metric}_se": error, f"{metric}_low": low, f"{metric}_high": high}


def breslow(target: Target, scores: FloatArray, weight: FloatArray | None = None) -> Baseline:
    """Breslow's estimator: the hazard at an event time is the number of events over the summed risk at that time.

    It is computed in logs, so that scores of any size do not overflow.
    """
    loss = CoxPartial(Target(target.event, target.time), weight=weight)
    return Baseline.through(loss.event_times, loss.log_hazard_jumps(scores))
