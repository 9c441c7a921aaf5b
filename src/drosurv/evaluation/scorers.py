"""Scorers for scikit-learn's model selection, those that compare groups among them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from drosurv.evaluation.attributes import Attribute, intersection_of, parse_attributes
from drosurv.evaluation.predictions import predict_curves, predict_risk, training_follow_up
from drosurv.metrics import (
    BrierAgainstNull,
    FollowUp,
    brier_against_null,
    concordance_imparity,
    concordance_index,
    dynamic_auc,
    group_disparity,
    likelihood_gains,
    log_partial_likelihood,
    uno_concordance,
)
from drosurv.metrics.scores import warn_undefined
from drosurv.metrics.survival_curves import SurvivalCurves
from drosurv.metrics.time_grid import auc_times, auc_times_of
from drosurv.target import FloatArray, IntArray, Target, parse_target


class Fold:
    """Held-out patients of one fold, and what a fitted model says of them, asked for when needed."""

    def __init__(self, model: Any, X: Any, y: Any, y_train: Any) -> None:
        self.model, self.X, self.y_train = model, X, y_train
        self.target: Target = parse_target(y, require_event=False)

    @cached_property
    def risk(self) -> FloatArray:
        """Risk scores."""
        return predict_risk(self.model, self.X, len(self.target), name="estimator")

    @cached_property
    def follow_up(self) -> FollowUp:
        """Follow-up of the training patients: what the fitted model kept of it."""
        kept = self.y_train if self.y_train is not None else training_follow_up(self.model)
        if kept is None:
            raise ValueError(
                f"{type(self.model).__name__} keeps no follow_up_ of its training patients, from which censoring "
                "weights come: build the scorer with y_train=..., or use an estimator of drosurv."
            )
        return FollowUp.parse(kept)

    @cached_property
    def auc_times(self) -> FloatArray:
        """Times of the dynamic AUC, the same for all groups."""
        return auc_times(self.follow_up, self.target) if self.target.event.any() else np.empty(0)

    @cached_property
    def brier(self) -> BrierAgainstNull:
        """Per-patient Brier scores, at the same times for all groups."""
        return brier_against_null(self.follow_up, self.target, self._curves)

    @cached_property
    def gains(self) -> FloatArray:
        """Per-patient likelihood gains over the null model."""
        return likelihood_gains(self.follow_up, self.target, self._curves)

    @cached_property
    def _curves(self) -> SurvivalCurves:
        curves = predict_curves(self.model, self.X, len(self.target))
        if curves is None:
            raise ValueError(
                f"{type(self.model).__name__} has no predict_survival_function: Brier scores and likelihood "
                "gains need survival curves; score with 'c_index', 'uno_c' or 'auc' instead."
            )
        return curves


def _c_index(fold: Fold, rows: IntArray) -> float:
    return concordance_index(fold.target.take(rows), fold.risk[rows])


def _uno_c(fold: Fold, rows: IntArray) -> float:
    return uno_concordance(fold.follow_up, fold.target.take(rows), fold.risk[rows])


def _auc(fold: Fold, rows: IntArray) -> float:
    target = fold.target.take(rows)
    at = auc_times_of(target, fold.auc_times)
    if len(at) == 0:
        warn_undefined("the dynamic AUC is undefined (NaN): at no time is there a case and a control.")
        return float("nan")
    return dynamic_auc(fold.follow_up, target, fold.risk[rows], at)


def _log_partial_likelihood(fold: Fold, rows: IntArray) -> float:
    return log_partial_likelihood(fold.target.take(rows), fold.risk[rows])


def _neg_ibs(fold: Fold, rows: IntArray) -> float:
    return -float(fold.brier.model[rows].mean())


def _brier_skill(fold: Fold, rows: IntArray) -> float:
    null = float(fold.brier.null[rows].sum())
    if null == 0:
        warn_undefined(
            "the Brier skill is undefined (NaN): the null model's Brier score of these patients is 0."
        )
        return float("nan")
    return 1.0 - float(fold.brier.model[rows].sum()) / null


def _likelihood_gain(fold: Fold, rows: IntArray) -> float:
    return float(fold.gains[rows].mean())


def _imparity(fold: Fold, attribute: Attribute, *, sign: int) -> float:
    return sign * concordance_imparity(fold.target, fold.risk, attribute.groups)


def _neg_group_disparity(fold: Fold, attribute: Attribute) -> float:
    return -group_disparity(fold.risk, attribute.groups)


@dataclass(frozen=True)
class Score:
    """What a scorer computes.

    Parameters
    ----------
    function : callable
        Of the fold and rows; or, if `over` is "attributes", of the fold and an attribute.
    over : "all", "groups" or "attributes"
        All patients at once; the lowest value over all groups; the value furthest from 0 over attributes.
    """

    function: Callable[[Fold, Any], float]
    over: Literal["all", "groups", "attributes"] = "all"


SCORES: dict[str, Score] = {
    "c_index": Score(_c_index),
    "uno_c": Score(_uno_c),
    "auc": Score(_auc),
    "log_partial_likelihood": Score(_log_partial_likelihood),
    "neg_ibs": Score(_neg_ibs),
    "brier_skill": Score(_brier_skill),
    "likelihood_gain": Score(_likelihood_gain),
    "worst_group_c": Score(_c_index, "groups"),
    "worst_group_uno_c": Score(_uno_c, "groups"),
    "worst_group_auc": Score(_auc, "groups"),
    "worst_group_brier_skill": Score(_brier_skill, "groups"),
    "worst_group_likelihood_gain": Score(_likelihood_gain, "groups"),
    "concordance_imparity": Score(partial(_imparity, sign=1), "attributes"),
    "neg_concordance_imparity": Score(partial(_imparity, sign=-1), "attributes"),
    "neg_group_disparity": Score(_neg_group_disparity, "attributes"),
}


class SurvivalScorer:
    """A scorer ``(estimator, X, y, sensitive_features=None) -> float``; see :func:`get_scorer`.

    Parameters
    ----------
    name : str
        Which score.
    y_train : structured array or FollowUp, optional
        Training targets, for estimators that keep none.
    intersections : bool
        Whether several attributes mean their intersections instead of each on its own.
    """

    def __init__(self, name: str, *, y_train: Any = None, intersections: bool = False) -> None:
        if name not in SCORES:
            raise ValueError(f"name must be one of {sorted(SCORES)}, got {name!r}.")
        self.name, self.y_train, self.intersections = name, y_train, intersections

    def __repr__(self) -> str:
        return f"get_scorer({self.name!r})"

    def __call__(self, estimator: Any, X: Any, y: Any, sensitive_features: Any = None) -> float:
        """Score a fitted estimator on patients it has not seen.

        Parameters
        ----------
        estimator : fitted model
            One of this library keeps what censoring weights need of its training patients.
        X : (n, d) array or DataFrame
            Features.
        y : structured array, (n,)
            What happened to the patients.
        sensitive_features : DataFrame, Series, (n,) or (n, J) labels
            Their groups, for scores that compare groups.
        """
        score = SCORES[self.name]
        fold = Fold(estimator, X, y, self.y_train)
        if score.over == "all":
            return float(score.function(fold, np.arange(len(fold.target))))
        attributes = self._attributes(sensitive_features, len(fold.target))
        if score.over == "attributes":
            values = [score.function(fold, attribute) for attribute in attributes]
            return max((value for value in values if not np.isnan(value)), key=abs, default=float("nan"))
        return _worst(score.function, fold, attributes, self.name)

    def get_metadata_routing(self) -> Any:
        """Ask scikit-learn for ``sensitive_features`` where the score needs groups."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=repr(self))
        if SCORES[self.name].over != "all":
            request.score.add_request(param="sensitive_features", alias=True)
        return request

    def _accept_sample_weight(self) -> bool:
        # scikit-learn asks its scorers this while routing is off.
        return False

    def _attributes(self, sensitive_features: Any, n: int) -> Sequence[Attribute]:
        if sensitive_features is None:
            raise ValueError(
                f"the score {self.name!r} needs sensitive_features: call "
                "sklearn.set_config(enable_metadata_routing=True) and pass "
                "params={'sensitive_features': ...} to cross_validate, or sensitive_features=... to fit of a search."
            )
        attributes = parse_attributes(sensitive_features, n)
        return [intersection_of(attributes)] if self.intersections else attributes


def get_scorer(name: str, *, y_train: Any = None, intersections: bool = False) -> SurvivalScorer:
    """A scorer for ``scoring=`` of scikit-learn's cross-validation and searches.

    Overall: "c_index", "uno_c", "auc", "log_partial_likelihood", "neg_ibs", "brier_skill", "likelihood_gain".
    Lowest over the groups of all attributes: "worst_group_c", "worst_group_uno_c", "worst_group_auc",
    "worst_group_brier_skill", "worst_group_likelihood_gain". Largest over attributes:
    "concordance_imparity" is the gap itself, to report; a search that maximises its score takes
    "neg_concordance_imparity"; and "neg_group_disparity".

    Scores that compare groups ask scikit-learn's metadata routing for ``sensitive_features``. Censoring weights
    come from the curves that a fitted estimator of this library keeps of its training patients.

    Parameters
    ----------
    name : str
        Which score.
    y_train : structured array or FollowUp, optional
        Training targets, for estimators that keep none, such as scikit-survival's.
    intersections : bool
        Whether several attributes mean their intersections instead of each on its own.

    Returns
    -------
    SurvivalScorer

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
    return SurvivalScorer(name, y_train=y_train, intersections=intersections)


def make_scorers(
    names: Iterable[str] = tuple(SCORES), *, y_train: Any = None, intersections: bool = False
) -> dict[str, SurvivalScorer]:
    """Several scorers by name, for ``scoring=`` of a cross-validation; parameters as in :func:`get_scorer`.

    Examples
    --------
    >>> from drosurv.evaluation import make_scorers
    >>> sorted(make_scorers(["neg_ibs", "worst_group_c"]))
    ['neg_ibs', 'worst_group_c']
    """
    return {name: get_scorer(name, y_train=y_train, intersections=intersections) for name in names}


def _worst(
    function: Callable[[Fold, IntArray], float], fold: Fold, attributes: Sequence[Attribute], name: str
) -> float:
    """Lowest value over all groups that have one."""
    from sklearn.exceptions import UndefinedMetricWarning

    found: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        for attribute in attributes:
            for label, rows in zip(attribute.labels, attribute.rows, strict=True):
                found[f"{attribute.name} {label}"] = function(fold, rows)
    undefined = [group for group, value in found.items() if np.isnan(value)]
    if undefined:
        warnings.warn(
            f"{name} is undefined (NaN) for {', '.join(undefined)}, which it leaves out: too few patients or "
            "events in this fold.",
            UndefinedMetricWarning,
            stacklevel=3,
        )
    defined = [value for value in found.values() if not np.isnan(value)]
    return min(defined) if defined else float("nan")
