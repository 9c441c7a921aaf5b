"""Scorers for scikit-learn's model selection, including scores of the worst group and gaps between groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from drosurv.errors import ArgumentError, arg, require
from drosurv.evaluation.catalogue import CATALOGUE, Metric
from drosurv.evaluation.data import EvaluationData, Subset
from drosurv.evaluation.evaluate import prepare
from drosurv.evaluation.evaluator import Attribute, Evaluator, intersection_of, parse_attributes
from drosurv.judging.from_predictions import outcomes, require_event_of
from drosurv.metrics import FollowUp
from drosurv.metrics.scores import warn_undefined
from drosurv.patients.groups import ALL, EVERYONE
from drosurv.patients.observation import Rows, one_row_each
from drosurv.patients.target import has_causes, of_any_cause, parse_target
from drosurv.predictions import as_predictions, of_causes


@dataclass(frozen=True)
class Score:
    """What a scorer computes: a metric, multiplied by a sign of 1 or -1 so that higher is better.

    `over` says for whom: all patients; the group with the lowest score; or the attribute with the largest gap.
    """

    metric: Metric
    over: Literal["all", "groups", "attributes"] = "all"
    sign: int = 1


def known_scores() -> dict[str, Score]:
    """Return every score by name, from the catalogue.

    ``neg_...`` is minus a metric of which lower is better; ``worst_group_...`` is the lowest score over groups. Metrics
    that need features or a reference, p-values, and metrics such as slopes, whose best value is 1 or 0, are left out.
    """
    found: dict[str, Score] = {}
    for metric in CATALOGUE.values():
        needs_more = {"features", "reference"} & {*metric.needs}
        if metric.better not in ("higher", "lower") or needs_more or metric.p_value:
            continue
        sign, prefix = (1, "") if metric.better == "higher" else (-1, "neg_")
        short = metric.short or metric.name
        if metric.of == "patients":
            found[prefix + short] = Score(metric, "all", sign)
            if metric.by_group:
                found[f"worst_group_{prefix}{short.removesuffix('_index')}"] = Score(metric, "groups", sign)
        elif metric.of in ("attribute", "everybody"):
            found[prefix + short] = Score(metric, "attributes", sign)
    # Not negated, for reports.
    found["concordance_imparity"] = Score(CATALOGUE["concordance_imparity"], "attributes")
    return found


class SurvivalScorer:
    """A scorer ``(estimator, X, y, sensitive_features=None) -> float``; parameters as in :func:`get_scorer`."""

    def __init__(
        self, name: str, *, y_train: Any = None, intersections: bool = False, cause: int | str | None = None
    ) -> None:
        require(name in known_scores(), "name", f"be one of {sorted(known_scores())}", name)
        self.name, self.y_train, self.intersections, self.cause = name, y_train, intersections, cause

    def __repr__(self) -> str:
        return f"get_scorer({self.name!r})"

    def __call__(self, estimator: Any, X: Any, y: Any, sensitive_features: Any = None) -> float:
        """Score a fitted estimator on new patients; fields of `y` are as in :func:`~drosurv.evaluation.evaluate`."""
        score = known_scores()[self.name]
        judged = one_row_each(y, Rows.parse(y, require_event=False))
        y, rows, X, sensitive_features = judged.y, judged.rows, judged.of(X), judged.of(sensitive_features)
        target = parse_target(of_any_cause(y), require_event=False)
        attributes = [] if score.over == "all" else self._attributes(sensitive_features, len(target))
        estimator, cause = of_causes(estimator, self.cause, y, name="estimator")
        predicted = as_predictions(estimator, X, len(target), rows=rows, name="estimator")
        if has_causes(y) or rows.entry is not None:
            require(cause is None or has_causes(y), "cause", "be left out where y has no causes", cause)
            require_event_of(outcomes(y, predicted.rows, cause), y, cause)
            how: dict[str, Any] = {"y_train": self.y_train, "wanted": [score.metric.name], "cause": cause}
            evaluator = replace(prepare(predicted, y, **how), attributes=attributes)
            patients = evaluator.everyone
        else:
            require(cause is None, "cause", "be left out where y has no causes", cause)
            y_train = None if self.y_train is None else FollowUp.parse(self.y_train)
            patients = Subset(EvaluationData(predicted, target, y_train))
            evaluator = Evaluator(patients, attributes, [score.metric.name])
        needed = score.metric.needs
        if "survival" in needed or ("gains" in needed and not patients.data.is_judged):
            # Raise an error that names the model if it has no curves.
            _ = patients.data.curves
        found = _values(evaluator, score)
        undefined = [who for who, value in found.items() if np.isnan(value)]
        is_undefined = f"{self.name} is undefined (NaN)"
        if evaluator.lacks(score.metric):
            needs = ", ".join(needed)
            warn_undefined(f"{is_undefined}: it needs {needs}, which the predictions do not give.")
        elif undefined:
            few = "too few patients or events in this fold"
            warn_undefined(f"{is_undefined} for {', '.join(undefined)}, which it leaves out: {few}.")
        defined = [score.sign * value for value in found.values() if not np.isnan(value)]
        if score.over == "attributes":
            return max(defined, key=abs, default=float("nan"))
        return min(defined, default=float("nan"))

    def get_metadata_routing(self) -> Any:
        """Request ``sensitive_features`` from scikit-learn if the score needs groups."""
        request = MetadataRequest(owner=repr(self))
        if known_scores()[self.name].over != "all":
            request.score.add_request(param="sensitive_features", alias=True)
        return request

    def _accept_sample_weight(self) -> bool:
        # scikit-learn calls this while metadata routing is off.
        return False

    def _attributes(self, sensitive_features: Any, n: int) -> Sequence[Attribute]:
        if sensitive_features is None:
            raise ArgumentError(
                "sensitive_features",
                f"the score {self.name!r} needs {arg('sensitive_features')}: call "
                "sklearn.set_config(enable_metadata_routing=True) and pass params={'sensitive_features': ...} to "
                "cross_validate, or sensitive_features=... to fit of a search.",
            )
        attributes = parse_attributes(sensitive_features, n)
        return [intersection_of(attributes)] if self.intersections else attributes


def get_scorer(
    name: str, *, y_train: Any = None, intersections: bool = False, cause: int | str | None = None
) -> SurvivalScorer:
    """Return a scorer for ``scoring=`` of scikit-learn's cross-validation and searches.

    Overall: "c_index", "uno_c", "auc", "log_partial_likelihood", "gain_over_null", "neg_ibs", "brier_skill",
    "likelihood_gain", "neg_ici". Lowest over the groups of all attributes: "worst_group_c", "worst_group_uno_c",
    "worst_group_auc", "worst_group_neg_ibs", "worst_group_brier_skill", "worst_group_likelihood_gain",
    "worst_group_neg_ici". Largest over attributes: "concordance_imparity" is the gap itself, to report; a search that
    maximises its score takes "neg_concordance_imparity"; "neg_group_disparity"; "neg_intersectional_disparity".

    Scores that compare groups request ``sensitive_features`` through scikit-learn's metadata routing. With
    `intersections`, groups are the intersections of all attributes. Censoring weights are those of the scored patients.
    The null model of skill and gain comes from the training patients, whose follow-up fitted estimators of this library
    keep; for others, such as scikit-survival's, give the training targets `y_train`, or it is that of the scored
    patients. Models of causes are scored by events of one `cause`, by number or name, else of any
    cause; scores that need log hazards, such as "gain_over_null", are then NaN.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.model_selection import cross_validate
    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> from drosurv.evaluation import make_scorers
    >>> data = make_hidden_minority(400, random_state=0)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     found = cross_validate(
    ...         drosurv.CoxPH(),
    ...         data.X,
    ...         data.y,
    ...         cv=2,
    ...         scoring=make_scorers(["c_index", "worst_group_c", "neg_ibs"]),
    ...         params={"sensitive_features": data.sensitive_features},
    ...     )
    >>> bool((found["test_worst_group_c"] < found["test_c_index"]).all())
    True
    """
    return SurvivalScorer(name, y_train=y_train, intersections=intersections, cause=cause)


def make_scorers(
    names: Iterable[str] | None = None,
    *,
    y_train: Any = None,
    intersections: bool = False,
    cause: int | str | None = None,
) -> dict[str, SurvivalScorer]:
    """Return several scorers by name, by default all, for ``scoring=``; other parameters as in :func:`get_scorer`.

    Examples
    --------
    >>> from drosurv.evaluation import make_scorers
    >>> sorted(make_scorers(["neg_ibs", "worst_group_c"]))
    ['neg_ibs', 'worst_group_c']
    """
    wanted = known_scores() if names is None else names
    how: dict[str, Any] = {"y_train": y_train, "intersections": intersections, "cause": cause}
    return {name: get_scorer(name, **how) for name in wanted}


def _values(evaluator: Evaluator, score: Score) -> dict[str, float]:
    """Return the values of the score's metric by group or attribute, or of all patients."""
    if evaluator.lacks(score.metric):
        return {"all": float("nan")}
    metric = score.metric.name
    if score.over == "groups":
        groups = [key for key in evaluator.estimates if key[0] != EVERYONE and key[2] == metric]
        return {f"{key[0]} {key[1]}": evaluator.estimates[key].value for key in groups}
    if score.metric.is_papers:
        return {"all" if key[0] == EVERYONE else key[0]: one for key, one in evaluator.papers_metrics.items()}
    return {"all": evaluator.estimates[EVERYONE, ALL, metric].value}
