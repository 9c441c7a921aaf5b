"""Predictions of a repaired model: the hazards of a base model, multiplied by repairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from drosurv.curves import CurveType, PointCurves, SurvivalCurves, checked_times, step_functions
from drosurv.errors import ArgumentError, InputError, arg, require
from drosurv.estimators.base import SurvivalModel
from drosurv.estimators.capabilities import Capabilities
from drosurv.judging.rules import readable_table
from drosurv.patients.observation import in_pandas, take
from drosurv.patients.target import FloatArray, IntArray, Target
from drosurv.predictions import as_predictions
from drosurv.predictions.any_model import final_step
from drosurv.repairs.effect_columns import EffectColumns
from drosurv.repairs.expected import log_risk
from drosurv.repairs.periods import repaired_hazard
from drosurv.repairs.repair import Repair
from drosurv.tables.encoder import TableEncoder, training_medians

SMALLEST_SURVIVAL = 1e-300


class RepairedPredictions(SurvivalModel):
    """Predictions of a repaired model; subclasses find the repairs."""

    base_: Any
    repairs_: list[Repair]
    _columns: EffectColumns
    base: Any
    # Correction of the baseline hazard, None if that of the base model is kept.
    _factor: BaselineFactor | None
    # Times at which the log risk is computed, and times of the curves.
    _times: FloatArray
    _curve_times: FloatArray
    _own_features: bool
    # The cause whose hazards are repaired, None without causes.
    _cause: int | None = None

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the model was fitted."""
        return hasattr(self, "status_")

    @property
    def unique_times_(self) -> FloatArray:
        """Times of the base model's curves, (K,)."""
        check_is_fitted(self)
        return self._curve_times

    @property
    def curve_type(self) -> CurveType:
        """Type of the survival curves, "step" or "smooth", as of the base model."""
        check_is_fitted(self)
        return getattr(final_step(self.base_), "curve_type", "step")

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """Scores are log hazards if those of the base model are."""
        base = getattr(self, "base_", self.base)
        # Hazards are not proportional after a correction of the timing of events.
        by_period = any(repair.periods is not None for repair in getattr(self, "repairs_", ()))
        proportional = (base is None or is_proportional(base)) and not by_period
        return Capabilities(
            score="log hazard" if proportional else "other",
            exp_coef=None,
            own_curves=not proportional,
            no_recalibration="",
            row_arguments=("entry", "clusters", "id"),
            no_row_arguments="a rule is for patients of all strata, and predictions take no offset",
            objective="other",
            no_ties="",
            convex=False,
            devices="cpu",
        )

    def log_hazard_ratios(self, X: Any, features: Any = None) -> FloatArray:
        """Return the sum of the repairs' log hazard ratios for each patient, (n,).

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features, as in ``fit``; a DataFrame may have further columns.
        features : (n, d') DataFrame, optional
            Columns that rules use, if ``fit`` was given some; not needed if X has them.
        """
        X, features = self._known(X, features)
        return self._ratios(X, features, log_risk(self._base_curves(X), self._times), self.repairs_)

    def predict(self, X: Any, features: Any = None) -> FloatArray:  # type: ignore[override]
        """Predict log risks (n,), higher for earlier events; parameters as in :meth:`log_hazard_ratios`.

        If the base model has no proportional hazards, it is the log of the mean cumulative hazard at three times.
        """
        X, features = self._known(X, features)
        risk = log_risk(self._base_curves(X), self._times)
        proportional = is_proportional(self.base_)
        score = as_predictions(self.base_, X, len(X)).risk if proportional else risk
        return score + self._ratios(X, features, risk, self.repairs_)

    def predict_survival_function(  # type: ignore[override]
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None, *, features: Any = None
    ) -> NDArray[Any]:
        """Predict survival curves S(t | x).

        Parameters
        ----------
        X : (n, d) array or DataFrame
        return_array : bool
            False: (n,) step functions. True: (n, T) values.
        times : (T,) array, optional
            Times of the values; ``unique_times_`` if not given. Giving them implies ``return_array=True``.
            After the longest follow-up in training curves stay constant, and are too high.
        features : (n, d') DataFrame, optional
            Columns that rules use, if ``fit`` was given some.
        """
        return self._curves(X, features, return_array, times, survival=True)

    def predict_cumulative_hazard_function(  # type: ignore[override]
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None, *, features: Any = None
    ) -> NDArray[Any]:
        """Predict cumulative hazards H(t | x); parameters as in :meth:`predict_survival_function`."""
        return self._curves(X, features, return_array, times, survival=False)

    def correct(self, predictions: Any, X: Any, features: Any = None) -> FloatArray:
        """Repair predictions at m times of the model that was repaired; return survival (n, m).

        Parameters
        ----------
        predictions : pair (times, survival), or Predictions
            Increasing times (m,) and survival probabilities (n, m).
        X, features
            As in :meth:`log_hazard_ratios`.
        """
        check_is_fitted(self)
        X, features = self._known(X, features)
        validate_data(self, X, skip_check_array=True, reset=False)
        curves = as_predictions(
            predictions, None, len(X), name="predictions", cause=self._cause
        ).survival_curves
        require(curves.times is not None, "predictions", "hold survival at times", predictions)
        assert curves.times is not None
        hazard: Callable[[FloatArray], FloatArray] = partial(cumulative_hazard, curves)
        if isinstance(curves, PointCurves):
            hazard = curves.cumulative_hazard
        risk = log_risk(curves, self._times)
        return np.exp(-self._repaired(hazard, curves.times, risk, X, features))

    def score(self, X: Any, y: Any, features: Any = None) -> float:  # type: ignore[override]
        """Return Harrell's c-index of the predicted risks; with entry times, of pairs at risk together."""
        from drosurv.metrics import concordance_index

        return float(concordance_index(y, self.predict(X, features)))

    def _known(self, X: Any, features: Any) -> tuple[Any, Any]:
        """Return the columns that the model was fitted on, in their order, and those that rules use."""
        check_is_fitted(self)
        X = in_pandas(X)
        names = getattr(self, "feature_names_in_", None)
        if names is None or not isinstance(X, pd.DataFrame) or not set(names) <= set(X.columns):
            return X, features
        if features is None and self._own_features:
            features = X
        return X[list(names)], features

    def _base_curves(self, X: Any) -> SurvivalCurves:
        check_is_fitted(self)
        if self.base_ is None:
            raise InputError(
                f"the model was repaired from predictions only, so it cannot predict: pass {arg('predictions')} for "
                "these "
                "patients to correct((times, survival), X)."
            )
        validate_data(self, X, skip_check_array=True, reset=False)
        return as_predictions(self.base_, X, len(X), cause=self._cause).survival_curves

    def _ratios(self, X: Any, features: Any, risk: FloatArray, repairs: list[Repair]) -> FloatArray:
        """Return the log hazard ratios (n,) of some of the repairs, which hold at all times."""
        n = len(X)
        if not repairs:
            return np.zeros(n)
        effects = self._as_encoded(readable_table(X, n, getattr(self, "feature_names_in_", None)))
        table = features if self._own_features else effects
        rules = effects if table is effects or table is None else readable_table(X, n, features=table)
        wanted = sorted({c.column for r in repairs if r.rule for c in r.rule.conditions})
        if missing := [column for column in wanted if table is None or column not in rules]:
            raise ArgumentError(
                "features",
                f"{arg('features')} must have the columns {missing}, which the rules of repairs use.",
            )
        columns = self._columns.of(effects, risk)
        ratios: FloatArray = np.sum([r.log_hazard_ratios(rules, columns) for r in repairs], axis=0)
        return ratios

    def _as_encoded(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table with values that training never saw as the base model takes them, so that rules agree."""
        model: Any = self.base_[0] if isinstance(self.base_, Pipeline) else self.base_
        encoder = getattr(model, "encoder_", model)
        if isinstance(encoder, TableEncoder):
            return encoder.as_encoded(table)
        medians = training_medians(model) if table.isna().to_numpy().any() else None
        return table if medians is None else table.fillna(pd.Series(medians, model.feature_names_in_))

    def _curves(
        self, X: Any, features: Any, return_array: bool, times: ArrayLike | None, *, survival: bool
    ) -> NDArray[Any]:
        at = self.unique_times_ if times is None else checked_times(times)
        values = self._values(X, features, at, survival=survival)
        return values if return_array or times is not None else step_functions(at, values)

    def _values(self, X: Any, features: Any, at: FloatArray, *, survival: bool) -> FloatArray:
        """Return survival (n, T) at the times, or cumulative hazards."""
        X, features = self._known(X, features)
        curves = self._base_curves(X)
        risk = log_risk(curves, self._times)
        hazard = self._repaired(partial(cumulative_hazard, curves), at, risk, X, features)
        return np.exp(-hazard) if survival else hazard

    def _repaired(
        self,
        hazard: Callable[[FloatArray], FloatArray],
        times: FloatArray,
        risk: FloatArray,
        X: Any,
        features: Any,
    ) -> FloatArray:
        """Return repaired cumulative hazards (n, T), given those of the model, `hazard(times)`, and its log risks (n,).

        The model's hazard is multiplied by one number of each patient (repairs of subgroups) and, in periods of the
        follow-up, by further factors: of everybody's baseline, and of repairs that change over time.
        """
        of_patients = np.exp(self._ratios(X, features, risk, self.repairs_))[:, None]
        changing = [k for k, repair in enumerate(self.repairs_) if repair.periods is not None]
        if self._factor is None and not changing:
            return of_patients * hazard(times)
        starts, factors = np.zeros(1), np.ones(1)
        if self._factor is not None:
            starts, factors = self._factor.edges, self._factor.factors
        for k in changing:
            periods = self.repairs_[k].periods
            assert periods is not None
            # Cut the follow-up at the starts of both sets of periods, and multiply their factors.
            both = np.union1d(starts, periods.cuts)
            so_far = factors[np.searchsorted(starts, both, side="right") - 1]
            # The score as in the search: centred and clipped, with the repairs before this one.
            column = self._columns.columns[0]
            score = column.scale * column.scaled(risk) + self._ratios(X, features, risk, self.repairs_[:k])
            starts, factors = both, so_far * np.exp(periods.at_intervals(both, score))
        return of_patients * repaired_hazard(hazard, times, starts, factors)


def is_proportional(model: Any) -> bool:
    """Whether a model's ``predict`` is a log hazard ratio that does not depend on time."""
    final = final_step(model)
    return (
        hasattr(final, "cum_baseline_hazard_") and getattr(final, "score_type", "log hazard") == "log hazard"
    )


def cumulative_hazard(curves: SurvivalCurves, times: FloatArray) -> FloatArray:
    """Return cumulative hazards (n, T) at the times (T,)."""
    return -np.log(np.maximum(curves.survival(times), SMALLEST_SURVIVAL))


def curve_times(model: Any, X: Any, target: Target, cause: int | None = None) -> FloatArray:
    """Return the times at which a model's curves jump; event times for a model with smooth curves."""
    jumps = as_predictions(model, take(X, np.arange(1)), 1, cause=cause).survival_curves.times
    return target.curve_times if jumps is None else jumps


def intervals_of(times: FloatArray, edges: FloatArray) -> IntArray:
    """Return the interval of each time, given where intervals begin, at first at 0; an end belongs to its interval."""
    return np.maximum(np.searchsorted(edges, times, side="left") - 1, 0)


def intervals_between(times: FloatArray) -> FloatArray:
    """Return beginnings of about 20 intervals, which are 0 and some of the times (K,)."""
    shares = np.linspace(0, 1, N_INTERVALS + 1)[1:-1]
    inner = np.quantile(times, shares, method="inverted_cdf")
    return np.unique(np.concatenate([[0.0], inner[(inner > 0) & (inner < times.max())]]))


N_INTERVALS = 20
# Added to observed and expected events of every interval, so that factors from few events stay near 1.
SHRINKAGE = 10.0


@dataclass(frozen=True)
class BaselineFactor:
    """Factors that multiply the hazards in intervals of time.

    There are k edges, the first 0, and k factors: the last interval has no end. Under proportional hazards this is
    Breslow's baseline on intervals. It needs only cumulative hazards, so it can be used with every model.
    """

    edges: FloatArray
    factors: FloatArray

    @staticmethod
    def intervals(target: Target) -> FloatArray:
        """Return edges of intervals between quantiles of the event times."""
        inner = np.quantile(target.time[target.event], np.linspace(0, 1, N_INTERVALS + 1)[1:-1])
        return np.unique(np.concatenate([[0.0], inner[inner > 0]]))

    @staticmethod
    def learn(edges: FloatArray, expected: FloatArray, target: Target, weight: FloatArray) -> BaselineFactor:
        """Estimate factors: events over expected events in each interval, from models fitted without the patient.

        `expected` (k,) are the expected events of all patients, with all repairs; `weight` (n,) their weights, which
        are counted in them.
        """
        interval = intervals_of(target.time, edges)
        events = np.bincount(interval, weight * target.event, minlength=len(edges))
        return BaselineFactor(edges, (events + SHRINKAGE) / (expected + SHRINKAGE))
