"""Predictions of any model, or given as numbers, parsed once into one record.

:func:`as_predictions` takes what `evaluate`, `audit`, `certify`, `repair`, `compare` and the commands take: a fitted
model (of this library, of scikit-survival, a Pipeline, a finished search, a frozen model), :class:`Predictions`, a pair
(times, survival), or an array of risk scores. :class:`Predicted` then gives risk scores and curves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from typing import Any, Literal, get_args

import numpy as np

from drosurv.curves import (
    CompetingCurves,
    CurveType,
    CurveValues,
    ModelValues,
    PointCurves,
    SmoothCurves,
    StepCurves,
    StepFunction,
    SurvivalCurves,
    TableValues,
    checked_survival,
    checked_total,
    curves_of_functions,
    curves_of_type,
    parse_survival,
)
from drosurv.errors import ArgumentError, ArgumentTypeError, arg, require, warn_caller
from drosurv.metrics.scores import parse_risk
from drosurv.patients.observation import Rows, in_pandas, select_rows, take
from drosurv.patients.target import (
    FloatArray,
    IntArray,
    cause_names,
    chosen_cause,
    has_causes,
    number_of_cause,
    require_same_causes,
)
from drosurv.predictions.any_model import (
    final_step,
    model_name,
    own_columns,
    prepared,
    require_fitted,
    training_follow_up,
    unwrapped,
)
from drosurv.presentation import cause_in_words, listing

ScoreType = Literal["log hazard", "log time", "other"]
# Score types of scikit-survival's models, and of its boosted models by loss; all others are "other".
_SKSURV_SCORES: dict[str, ScoreType] = {
    "CoxPHSurvivalAnalysis": "log hazard",
    "CoxnetSurvivalAnalysis": "log hazard",
    "IPCRidge": "log time",
}
_BOOSTING_SCORES: dict[str, ScoreType] = {"coxph": "log hazard", "squared": "log time", "ipcwls": "log time"}


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of n patients as arrays, accepted wherever a fitted model is.

    Parameters
    ----------
    risk : (n,) array, optional
        Risk scores; a higher score means an earlier event. Without them, concordance and disparities of hazards are
        left out.
    survival : n step functions or callables, or (n, k) array, optional
        Survival curves; an array holds the survival at `times`, one column each. Without curves, Brier scores,
        likelihood gains and calibration are left out.
    times : (k,) array, optional
        Times of the columns of an array.
    trained_on : sequence of pairs, optional
        For predictions of several models, as in cross-validation: the rows that each model predicted, with the target
        or follow-up of the patients that it was trained on.
    curve_type : {"points", "step", "smooth"}
        What an array of survival means between its times: nothing is known there ("points"), it is constant ("step"),
        or it is smooth: the cumulative hazard is linear between them, from 0 at time 0. Expected events depend on it.
    score_type : {"log hazard", "log time", "other"}
        What `risk` is: log hazards, as of a Cox model; minus expected log times; or any other score. Disparities of
        hazards, the partial likelihood and the Cox calibration slope need log hazards, and are left out otherwise.
    incidence : mapping of causes to (n, k) arrays, optional
        With competing causes: the probability of an event of each cause, given by its number, from 1, or its name, by
        the `times`. `survival` is by default 1 minus their sum. Of one cause alone, it is judged at these times only.
    design : (n, p) array, optional
        With `trained_on`, the columns that linear models have coefficients for: tests allow for the error of these.
    by_cause : CompetingCurves, optional
        Instead of `incidence`, the curves of models of causes, with their own hazards.

    Examples
    --------
    >>> from drosurv.predictions import Predictions
    >>> model = Predictions(risk=[0.3, -0.1], survival=[[0.9, 0.5], [0.95, 0.7]], times=[1.0, 2.0])
    >>> len(model.risk)
    2
    """

    risk: Any = None
    survival: Any = None
    times: Any = None
    trained_on: Sequence[tuple[IntArray, Any]] | None = None
    curve_type: CurveType = "points"
    score_type: ScoreType = "log hazard"
    incidence: Mapping[Any, Any] | None = None
    design: FloatArray | None = None
    by_cause: CompetingCurves | None = None

    def __post_init__(self) -> None:
        """Raise if there is neither risk nor survival nor incidence, incidences are wrong, or a type is unknown."""
        if self.incidence is not None:
            wanted = "be 'points' with incidences, which are known at their times only"
            require(self.curve_type == "points", "curve_type", wanted, self.curve_type)
            total = checked_total(self.incidence, self.times)
            if self.survival is None:
                object.__setattr__(self, "survival", 1.0 - total)
        if self.by_cause is not None:
            object.__setattr__(self, "survival", self.by_cause.any_cause)
        if self.risk is None and self.survival is None:
            raise ArgumentError("risk", f"give {arg('risk')}, survival or both.")
        for name, types in (("score_type", ScoreType), ("curve_type", CurveType)):
            known, given = get_args(types), getattr(self, name)
            require(given in known, name, f"be one of {list(known)}", given)

    def take(self, rows: Any) -> Predictions:
        """Return the predictions of some patients, in the order of the given indices."""
        parts = self.trained_on and [
            (np.flatnonzero(np.isin(rows, predicted)), seen) for predicted, seen in self.trained_on
        ]
        return replace(
            self,
            risk=select_rows(self.risk, rows),
            survival=select_rows(self.survival, rows),
            incidence=select_rows(self.incidence, rows),
            design=select_rows(self.design, rows),
            by_cause=select_rows(self.by_cause, rows),
            trained_on=parts,
        )


@dataclass(frozen=True, eq=False)
class Predicted:
    """What a model predicts for n patients; scores and curves are computed when first needed.

    Made by :func:`as_predictions`. `model` is the fitted model, or :class:`Predictions`; `X` are the features as given,
    `rows` the strata and offsets of the patients. Error messages call the model by `name`. With a `cause`, scores and
    curves are those of its hazard.
    """

    model: Any
    X: Any
    n: int
    rows: Rows
    name: str = "model"
    cause: int | None = None

    def __len__(self) -> int:
        return self.n

    @property
    def given(self) -> Predictions | None:
        """The predictions, if they were given as numbers; None for a model."""
        return self.model if isinstance(self.model, Predictions) else None

    @property
    def title(self) -> str:
        """Name of the model for tables: its class, or "predictions"."""
        return model_name(self.model)

    @property
    def has_risk(self) -> bool:
        """Whether there are risk scores."""
        return self.given is None or self.given.risk is not None

    @property
    def has_curves(self) -> bool:
        """Whether there are survival curves."""
        if self.given is not None:
            return self.given.survival is not None
        return _predicts_curves(final_step(self.model))

    @property
    def score_type(self) -> ScoreType:
        """What the risk scores are."""
        return score_type(self.model)

    @property
    def has_log_hazards(self) -> bool:
        """Whether there are risk scores that are log hazards."""
        return self.has_risk and self.score_type == "log hazard"

    @cached_property
    def risk(self) -> FloatArray:
        """Risk scores (n,), higher for earlier events; predicted times are multiplied by -1."""
        if self.given is not None:
            if self.given.risk is None:
                raise ArgumentError(
                    self.name,
                    f"{arg(self.name)} holds survival curves only: give its risk scores too.",
                )
            return parse_risk(self.given.risk, self.n, name=f"the risk of {self.name}")
        self._check_rows()
        if self.cause is not None:
            found = final_step(self.model).predict(self.features, cause=self.cause, **_taken(self))
            return parse_risk(found, self.n, name=f"the prediction of {self.name}")
        sign = 1.0 if getattr(final_step(self.model), "_predict_risk_score", True) else -1.0
        if self.rows.for_models:
            found = final_step(self.model).predict(self.features, **_taken(self))
        else:
            found = self.model.predict(own_columns(self.model, self.X))
        return sign * parse_risk(found, self.n, name=f"the prediction of {self.name}")

    @cached_property
    def features(self) -> Any:
        """X as the last step of a Pipeline takes it; None for predictions given as numbers."""
        return None if self.given is not None else in_pandas(prepared(self.model, self.X))

    @cached_property
    def curves(self) -> SurvivalCurves | None:
        """Survival curves, or None; with causes, of an event of any cause, or of the hazard of the chosen cause."""
        if self.cause is not None:
            return self._curves_of_cause(self.cause)
        if self.given is not None:
            if self.given.survival is None:
                return None
            return parse_survival(self.given.survival, self.n, self.given.times, self.given.curve_type)
        if not self.has_curves:
            return None
        self._check_rows()
        return _curves_of_model(self)

    def _curves_of_cause(self, cause: int) -> SurvivalCurves:
        if self.competing is None:
            raise needs_causes(" of all causes")
        if self.knows_hazards:
            return self.competing.of_cause(cause)
        assert self.given is not None
        assert self.given.incidence is not None
        given = CompetingCurves.of_incidences(self.given.times, self.given.incidence, between=True)
        own = given.of_cause(cause)
        return PointCurves(own.values, own.times, own.known_until)

    @property
    def survival_curves(self) -> SurvivalCurves:
        """Survival curves; raise if there are none."""
        if self.curves is not None:
            return self.curves
        if self.given is not None:
            raise ArgumentError(
                self.name,
                f"{arg(self.name)} has risk scores but no survival curves, which expected events need: give "
                "a pair (times, survival), or Predictions(survival=..., times=...).",
            )
        raise ArgumentError(
            self.name,
            f"{arg(self.name)}: {type(final_step(self.model)).__name__} has neither predict_survival_function nor "
            "predict_cumulative_hazard_function: give a fitted survival model with curves, or a pair (times, "
            "survival).",
        )

    def require_curves(self, needed_by: str) -> None:
        """Raise if there are no survival curves, which an argument, or a field of `y`, needs."""
        if self.has_curves:
            return
        leave = {"entry": f", or leave {arg('entry')} out of y: Surv.event_time(y)"}.get(needed_by, "")
        raise ArgumentError(
            self.name.partition("[")[0],
            f"{arg(self.name)} has risk scores but no survival curves, which {arg(needed_by)} needs: give a fitted "
            f"model with predict_survival_function, or a pair (times, survival){leave}.",
        )

    @cached_property
    def competing(self) -> CompetingCurves | None:
        """Curves of each cause; None without causes."""
        if self.given is not None and self.given.by_cause is not None:
            return self.given.by_cause
        if self.given is not None:
            incidence = self.given.incidence or {}
            if not incidence or set(incidence) != set(range(1, len(incidence) + 1)):
                # Of one cause alone, hazards are not known.
                return None
            return CompetingCurves.of_incidences(self.given.times, incidence)
        final = final_step(self.model)
        if not hasattr(final, "curves_by_cause"):
            return None
        found: CompetingCurves = final.curves_by_cause(self.features, **self.rows.for_models)
        return found

    @property
    def knows_hazards(self) -> bool:
        """Whether curves of causes are those of models, whose hazards are known, and not tables of incidences."""
        return self.given is None or self.given.by_cause is not None

    @property
    def until(self) -> float:
        """Last time of predictions at some times only; infinity for models with curves, and for functions of time."""
        final = final_step(self.model)
        if self.given is None and getattr(final, "curve_type", None) == "points":
            return float(final.unique_times_[-1])
        if self.given is None or self.given.times is None:
            return float("inf")
        return float(np.max(np.asarray(self.given.times, dtype=np.float64)))

    @property
    def follow_up(self) -> Any:
        """Follow-up of the training patients, which fitted models of this library keep; None for others."""
        return training_follow_up(self.model)

    @property
    def trained_on(self) -> Sequence[tuple[IntArray, Any]] | None:
        """For predictions of several models, the rows that each predicted, and its training patients."""
        return None if self.given is None else self.given.trained_on

    def take(self, rows: IntArray) -> Predicted:
        """Return the predictions of some patients."""
        model = self.model if self.given is None else self.given.take(rows)
        X = None if self.X is None else take(self.X, rows)
        return Predicted(model, X, len(rows), self.rows.take(rows), self.name, self.cause)

    def _check_rows(self) -> None:
        if self.X is None:
            raise ArgumentError("X", f"X is needed to predict with {self.name}: pass the patients' features.")
        rows = self.X.shape[0] if hasattr(self.X, "shape") else len(self.X)
        if rows != self.n:
            raise ArgumentError("X", f"X has {rows} rows for the {self.n} patients of y: give one row each.")


def needs_causes(which: str = "") -> ArgumentError:
    """Return the error that one of several causes is chosen of predictions that do not know it."""
    model = "a model of causes, such as CauseSpecificCox"
    return ArgumentError("cause", f"{arg('cause')} needs {model}, or predicted incidences{which}.")


def as_predictions(
    model: Any,
    X: Any,
    n: int,
    *,
    rows: Rows | None = None,
    name: str = "model",
    need_curves: bool = False,
    cause: int | None = None,
) -> Predicted:
    """Return the predictions of n patients as one record.

    The model is a fitted one, with scikit-survival's ``predict`` and, for curves, ``predict_survival_function`` or
    ``predict_cumulative_hazard_function``; or predictions given as numbers, which need no X: :class:`Predictions`, a
    pair (times, survival), or risk scores (n,). `rows` has strata and offset, for a model that was fitted with them.
    Messages call the argument `name`. With `need_curves`, risk scores alone are an error; `cause` is one of several.

    >>> predicted = as_predictions(([1.0, 2.0], [[0.9, 0.5], [0.8, 0.7]]), None, 2)
    >>> predicted.has_risk, predicted.curves.survival(np.array([2.0]))[:, 0].tolist()
    (False, [0.5, 0.7])
    """
    if isinstance(model, Predicted):
        return model
    if rows is not None and rows.entry is None and getattr(training_follow_up(model), "late_entry", False):
        warn_caller(
            f"a model was fitted with entry times, but {arg('entry')} is not given: every row counts as observed from "
            "time 0 on.",
            argument="entry",
        )
    rows = Rows() if rows is None else rows
    predicted = Predicted(_one_form(model, name), X, n, rows, name, cause)
    if predicted.given is not None and predicted.given.incidence is not None:
        length = len(next(iter(predicted.given.incidence.values())))
        wanted = f"have one row for each of the {n:,} patients"
        require(length == n, "incidence", wanted, length)
    fitted = require_fitted(predicted.model)
    if rows.for_models:
        method = getattr(fitted, "predict_survival_function", None)
        if method is None or not hasattr(fitted, "unique_times_"):
            raise ArgumentError(
                "model",
                f"{type(fitted).__name__} must have predict_survival_function and unique_times_ to be evaluated "
                "with entry times or strata.",
            )
        for argument in rows.for_models:
            if argument not in signature(method).parameters:
                raise ArgumentError(
                    argument, f"{type(fitted).__name__} does not support {arg(argument)}: leave it out."
                )
    if need_curves:
        _ = predicted.survival_curves
    return predicted


def of_causes(model: Any, cause: Any, y: Any, *, name: str = "model") -> tuple[Any, int | None]:
    """Return a model, or predictions, for the causes of `y`, and the number of the cause chosen by number or name.

    Incidences that are given by the names of causes get the numbers that these have in `y`. Raise if the model has the
    causes in another order, or if no cause is chosen and only incidences of some are given. Warn if the model names
    other causes, or predicts several and `y` has one event.
    """
    number, names, given = chosen_cause(cause, y), cause_names(y), unwrapped(model)
    if isinstance(given, Predictions) and given.incidence is not None:
        try:
            numbers = [number_of_cause(key, names) for key in given.incidence]
        except ArgumentError:
            known = (
                f"those of y, {listing(list(map(repr, names)))}"
                if names
                else "numbers, as y has no names of them"
            )
            keys = list(given.incidence)
            raise ArgumentError.must(name, f"have incidences of causes that are {known}", keys) from None
        model = given = replace(given, incidence=dict(zip(numbers, given.incidence.values(), strict=True)))
        _require_all_causes(given, numbers, number, y, name)
    require_same_causes(getattr(final_step(model), "cause_names_", ()), y, name)
    several = int(getattr(final_step(model), "n_causes_", 1))
    if isinstance(given, Predictions) and given.incidence is not None:
        several = len(given.incidence)
    if several > 1 and cause is None and not has_causes(y):
        warn_caller(
            f"{arg(name)} predicts events of {several} causes, and y has one event: it is compared with an event of "
            f"any cause. To judge one cause, build y with Surv.competing and pass {arg('cause')}.",
            argument="y",
        )
    return model, number


def _require_all_causes(
    given: Predictions, numbers: Sequence[int], cause: int | None, y: Any, name: str
) -> None:
    """Raise if incidences of some causes would be compared with events of any cause."""
    if cause is not None or not has_causes(y) or given.incidence is None:
        return
    total = sum(np.asarray(of_cause, dtype=np.float64) for of_cause in given.incidence.values())
    happened = y[y.dtype.names[0]]
    missing = sorted(set(happened[happened > 0].tolist()) - set(numbers))
    # Survival may be given beside the incidence.
    if missing and np.array_equal(np.asarray(given.survival), 1.0 - total):
        called = cause_names(y)
        has = listing([cause_in_words(one, called) for one in numbers])
        raise ArgumentError(
            "cause",
            f"{arg(name)} has incidences of {has} only, and y also events of {cause_in_words(missing[0], called)}: "
            f"pass {arg('cause', numbers[0])}.",
        )


def require_model(model: Any, name: str = "model") -> None:
    """Raise unless a value is a model, or predictions in one of their forms."""
    found = unwrapped(model)
    numbers = isinstance(found, (Predictions, Sequence)) or hasattr(found, "__array__")
    predicts = hasattr(found, "predict") or _predicts_curves(final_step(found))
    if isinstance(found, (str, type)) or not (numbers or predicts):
        got = f"the class {found.__name__}" if isinstance(found, type) else type(found).__name__
        raise ArgumentTypeError(
            name,
            f"{arg(name)} must be a fitted survival model with a predict method, drosurv.evaluation.Predictions, a "
            f"pair (times, survival), or an array of risk scores; got {got}.",
        )


def _one_form(model: Any, name: str) -> Any:
    """Return a fitted model, the best one of a search, or predictions given as numbers as `Predictions`."""
    require_model(model, name)
    if isinstance(model, Predictions):
        return model
    if isinstance(model, tuple) and not (len(model) > 0 and all(np.ndim(part) == 0 for part in model)):
        if len(model) != 2:
            raise ArgumentError(
                name, f"{arg(name)} must be a pair (times, survival), got {len(model)} items."
            )
        return Predictions(survival=model[1], times=model[0])
    model = unwrapped(model)
    if hasattr(model, "predict") or _predicts_curves(final_step(model)):
        return model
    if np.ndim(model) == 2 and np.shape(model)[1] > 1:
        raise ArgumentError(
            name,
            f"{arg(name)} has {np.shape(model)[1]} columns. Pass the pair (times, survival) of the times and the "
            "probabilities of no event by each, or one risk score per patient.",
        )
    return Predictions(risk=parse_risk(model, name=name))


def _curves_of_model(predicted: Predicted) -> SurvivalCurves:
    """Return the curves of a fitted model with a method for curves."""
    final, X, given = final_step(predicted.model), predicted.features, predicted.rows.for_models
    if predicted.competing is not None:
        return predicted.competing.any_cause
    if hasattr(final, "_baseline") and hasattr(final, "_curves_and_scores"):
        fitted, scores = final._curves_and_scores(X, **given)
        found: SurvivalCurves = fitted.of_scores(scores, _end_of_training(final))
        return found
    method = getattr(final, "predict_survival_function", None)
    own_hazard = predicted.score_type == "log hazard"
    if method is None:
        hazards = final.predict_cumulative_hazard_function(X)
        return curves_of_functions([_survival_of(hazard) for hazard in hazards], own_hazard=own_hazard)
    if "times" not in signature(method).parameters:
        return curves_of_functions(method(X), own_hazard=own_hazard)
    values: CurveValues = ModelValues(lambda part, at: method(part, times=at), X)
    if not hasattr(final, "unique_times_"):
        return SmoothCurves(values)
    times = np.asarray(final.unique_times_, np.float64)
    end = max(float(times[-1]), _end_of_training(final))
    curve_type: CurveType = getattr(final, "curve_type", "step")
    if curve_type == "points":
        # The model predicts at its times only.
        values = TableValues(times, checked_survival(np.asarray(method(X, times=times))))
    curves = curves_of_type(curve_type, values, times, end)
    return replace(curves, own_hazard=own_hazard) if isinstance(curves, StepCurves) else curves


def _end_of_training(final: Any) -> float:
    """Return the longest training time, until which curves are known; minus infinity if the model keeps none."""
    # A repaired model has the curves of the model before the repair.
    trained = training_follow_up(getattr(final, "base_", final))
    return -np.inf if trained is None else float(trained.times[-1])


def _survival_of(hazard: Any) -> Any:
    """Return the survival function of a cumulative hazard; a step function for a step function."""
    if not hasattr(hazard, "x"):
        return lambda times: np.exp(-hazard(times))
    heights = getattr(hazard, "a", 1.0) * np.asarray(hazard.y) + getattr(hazard, "b", 0.0)
    return StepFunction(hazard.x, np.exp(-heights))


def _predicts_curves(final: Any) -> bool:
    return hasattr(final, "predict_survival_function") or hasattr(final, "predict_cumulative_hazard_function")


def _taken(predicted: Predicted) -> dict[str, Any]:
    """Return the strata and offset that the model's ``predict`` takes."""
    parameters = signature(final_step(predicted.model).predict).parameters
    return {name: value for name, value in predicted.rows.for_models.items() if name in parameters}


def score_type(model: Any) -> ScoreType:
    """Return what the risk scores of a model are: "log hazard", "log time" or "other".

    Models and predictions may have an attribute `score_type`. In scikit-survival, Cox models and boosting with the loss
    "coxph" predict log hazards; boosting with another loss and IPCRidge predict log times. Any other model is "other".
    An array of scores is taken as log hazards; use :class:`Predictions` for other scores.
    """
    if not isinstance(model, Predictions) and not hasattr(unwrapped(model), "predict"):
        return "log hazard"
    final = model if isinstance(model, Predictions) else final_step(model)
    if hasattr(final, "score_type"):
        given: ScoreType = final.score_type
        return given
    if not type(final).__module__.startswith("sksurv."):
        return "other"
    boosted = "Boosting" in type(final).__name__
    name = str(getattr(final, "loss", "")) if boosted else type(final).__name__
    return (_BOOSTING_SCORES if boosted else _SKSURV_SCORES).get(name, "other")
