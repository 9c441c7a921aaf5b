"""Risk scores and survival curves of any fitted model, or given as arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Literal, get_args

import numpy as np
from sklearn.utils import gen_batches

from drosurv.errors import ArgumentError, require
from drosurv.metrics import likelihood_gains, parse_survival
from drosurv.metrics.scores import parse_risk
from drosurv.metrics.survival_curves import ArrayCurves, CurveType, SurvivalCurves
from drosurv.observation import in_pandas
from drosurv.solvers.arrays import is_tensor
from drosurv.target import FloatArray, IntArray, Target

# Patients whose survival at their own times is computed together, at a cost of m * m for m patients.
_CHUNK = 256
# The estimation error of a linear model with more coefficients is not computed.
_MOST_COLUMNS = 60
# Rows that a model predicts at once.
_ROWS = 32_768


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
        Risk scores; higher means sooner. Without them, concordance and disparities of hazards are left out.
    survival : n step functions or callables, or (n, k) array, optional
        Survival curves; an array holds the survival at `times`, one column each, and is read as a step
        function between them. Without curves, Brier scores, likelihood gains and calibration are left out.
    times : (k,) array, optional
        Times of the columns of an array.
    trained_on : sequence of pairs, optional
        For predictions of several models, as in cross-validation: the rows that each model predicted, with the target
        or follow-up of the patients that it was trained on.
    curve_type : {"points", "step", "smooth"}
        What an array of survival means between its times: nothing is known there ("points"), it is constant ("step"),
        or it is smooth. Expected events depend on it; see :mod:`drosurv.metrics.expected_events`.
    score_type : {"log hazard", "log time", "other"}
        What `risk` is: log hazards, as of a Cox model; minus expected log times; or any other score. Disparities of
        hazards, the partial likelihood and the Cox calibration slope need log hazards, and are left out otherwise.

    Examples
    --------
    >>> from drosurv.evaluation import Predictions
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

    def __post_init__(self) -> None:
        """Raise if there is neither risk nor survival, or the score type is unknown."""
        if self.risk is None and self.survival is None:
            raise ArgumentError("risk", "give risk, survival or both.")
        known = get_args(ScoreType)
        require(self.score_type in known, "score_type", f"be one of {list(known)}", self.score_type)


@dataclass(frozen=True, eq=False)
class ModelCurves:
    """Survival curves of n patients, computed from their features when needed and not kept.

    `survival` returns the survival of patients at common times. `patient_hazard`, if the model has it, returns the
    cumulative hazard of each patient at a time of that patient. Curves are known until the longest training time, if
    the model keeps it (`known_until`), and not only until the last of the `jumps`, the last training event.
    """

    survival: Callable[[Any, FloatArray], Any]
    X: Any
    n: int
    jumps: FloatArray | None = None
    curve_type: CurveType = "step"
    patient_hazard: Callable[[Any, FloatArray], FloatArray] | None = None
    known_until: float = -np.inf

    def __len__(self) -> int:
        return self.n

    def at(self, times: FloatArray) -> FloatArray:
        """Return the survival of every patient at each of k times, (n, k)."""
        found = np.empty((self.n, len(times)))
        # In batches, because a model makes several arrays of the size of what it returns.
        for rows in gen_batches(self.n, _ROWS):
            found[rows] = self.survival(take(self.X, rows), times)
        return found

    def at_patient_times(self, times: FloatArray) -> FloatArray:
        """Return the survival of each patient at a time of that patient, (n,) -> (n,)."""
        found = np.empty(self.n)
        if self.patient_hazard is not None:
            for rows in gen_batches(self.n, _ROWS):
                found[rows] = np.exp(-self.patient_hazard(take(self.X, rows), times[rows]))
            return found
        # Sorted, so that patients with equal times are in one batch.
        order = np.argsort(times, kind="stable")
        for chunk in gen_batches(self.n, _CHUNK):
            rows = order[chunk]
            distinct, column = np.unique(times[rows], return_inverse=True)
            values = np.asarray(self.survival(take(self.X, rows), distinct))
            found[rows] = values[np.arange(len(rows)), column]
        return found

    def take(self, rows: slice) -> ModelCurves:
        """Return the curves of some patients."""
        return replace(self, X=take(self.X, rows), n=len(range(self.n)[rows]))


@dataclass(frozen=True, eq=False)
class ReadCurves:
    """Survival curves computed in advance: at all times that will be needed (k,), and at each patient's time (n,).

    Groups share one array of values (m, k); `rows` (n,) are those of this group, by default all. Curves change at the
    `jumps` only; None if they may change at any time.
    """

    times: FloatArray
    values: FloatArray
    values_at_patient_times: FloatArray
    jumps: FloatArray | None = None
    rows: IntArray | None = None
    curve_type: CurveType = "step"

    def __len__(self) -> int:
        return len(self.values_at_patient_times)

    def at(self, times: FloatArray) -> FloatArray:
        """Return the survival at times that are all among those computed, (n, k)."""
        columns = np.searchsorted(self.times, times)
        if not np.array_equal(self.times[np.minimum(columns, len(self.times) - 1)], times):
            raise ValueError("these curves were computed at other times: compute them again.")
        return self.values[:, columns] if self.rows is None else self.values[self.rows[:, None], columns]

    def at_patient_times(self, times: FloatArray) -> FloatArray:
        """Return the survival of each patient at that patient's time; `times` must be those given before."""
        return self.values_at_patient_times

    def take(self, rows: Any) -> ReadCurves:
        """Return the curves of the given rows."""
        among = np.arange(len(self.values_at_patient_times)) if self.rows is None else self.rows
        return ReadCurves(
            self.times,
            self.values,
            self.values_at_patient_times[rows],
            self.jumps,
            among[rows],
            self.curve_type,
        )


def read_curves(curves: SurvivalCurves, times: FloatArray, patient_times: FloatArray) -> ReadCurves:
    """Compute curves at every time that will be needed, and at each patient's time."""
    grid = np.unique(times)
    at_patient_times = curves.at_patient_times(patient_times)
    return ReadCurves(grid, curves.at(grid), at_patient_times, curves.jumps, curve_type=curves.curve_type)


def predict_risk(model: Any, X: Any, n: int, *, name: str = "model") -> FloatArray:
    """Return the risk scores of n patients, higher meaning sooner, from a fitted model, `Predictions` or an array.

    Models of scikit-survival that predict times are multiplied by -1.
    """
    if isinstance(model, Predictions):
        if model.risk is None:
            raise ArgumentError(name, f"{name} holds survival curves only: give its risk scores too.")
        return parse_risk(model.risk, n, name=f"the risk of {name}")
    model = unwrapped(model)
    if hasattr(model, "predict"):
        _check_rows(X, n, name)
        sign = 1.0 if getattr(final_step(model), "_predict_risk_score", True) else -1.0
        return sign * parse_risk(model.predict(X), n, name=f"the prediction of {name}")
    if isinstance(model, Sequence) or hasattr(model, "__array__"):
        return parse_risk(model, n, name=name)
    raise ArgumentError(
        name,
        f"{name} must be a fitted model with a predict method, drosurv.evaluation.Predictions, or an array "
        f"of risk scores; got {type(model).__name__}.",
    )


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


def predict_curves(model: Any, X: Any, n: int) -> SurvivalCurves | None:
    """Return the survival curves of n patients, None if the model has none; parameters as in `predict_risk`."""
    if isinstance(model, Predictions):
        if model.survival is None:
            return None
        curves = parse_survival(model.survival, n, model.times)
        return replace(curves, curve_type=model.curve_type) if isinstance(curves, ArrayCurves) else curves
    # scikit-learn's Pipeline has only predict: ask its last step for curves.
    final = final_step(model)
    method = getattr(final, "predict_survival_function", None)
    if method is None:
        return None
    X = prepared(model, X)
    if "times" in signature(method).parameters:
        # A model without a baseline has no event times.
        jumps = np.asarray(final.unique_times_, np.float64) if hasattr(final, "unique_times_") else None
        curve_type: CurveType = getattr(final, "curve_type", "step")
        hazard = final._hazard_at_patient_times if hasattr(final, "_baseline") else None
        # A repaired model has the curves of the model before the repair.
        trained = training_follow_up(getattr(final, "base_", final))
        end = -np.inf if trained is None else float(trained.times[-1])
        return ModelCurves(lambda X, at: method(X, times=at), in_pandas(X), n, jumps, curve_type, hazard, end)
    return parse_survival(method(X), n)


def predicted_until(model: Any) -> float:
    """Return the last time of given predictions at some times; infinity for models, and for functions of time."""
    if not isinstance(model, Predictions) or model.times is None:
        return float("inf")
    return float(np.max(np.asarray(model.times, dtype=np.float64)))


def gives_risk(model: Any) -> bool:
    """Whether a model, or predictions, come with risk scores."""
    return not isinstance(model, Predictions) or model.risk is not None


def gives_curves(model: Any) -> bool:
    """Whether a model, or predictions, come with survival curves."""
    if isinstance(model, Predictions):
        return model.survival is not None
    return hasattr(final_step(model), "predict_survival_function")


def gains_over_null(model: Any, curves: SurvivalCurves, follow_up: Any, target: Target) -> FloatArray:
    """Return each patient's likelihood gain over the null model, (n,); `curves` are what the model predicts.

    For predictions of several models, as in cross-validation, the null model of each is fitted to its training
    patients. A null model of all patients would have an advantage: it would be fitted to the predicted patients too.
    """
    if not isinstance(model, Predictions) or model.trained_on is None:
        return likelihood_gains(follow_up, target, curves)
    gains = np.empty(len(target))
    for rows, trained_on in model.trained_on:
        gains[rows] = likelihood_gains(trained_on, target.take(rows), take(model.survival, rows), model.times)
    return gains


def model_name(model: Any) -> str:
    """Return the name of a model for tables: its class, or "predictions" for arrays."""
    if isinstance(model, Predictions) or not hasattr(model, "predict"):
        return "predictions"
    return type(model).__name__


def training_follow_up(model: Any) -> Any:
    """Return the follow-up of the training patients, which fitted models of this library keep; None for others."""
    return getattr(final_step(model), "follow_up_", None)


def unwrapped(model: Any) -> Any:
    """Return the best model of a finished search; any other model unchanged."""
    if hasattr(model, "best_estimator_") and not hasattr(model, "predict_survival_function"):
        return model.best_estimator_
    return model


def final_step(model: Any) -> Any:
    """Return the last step of a Pipeline, or the model itself; of a finished search, that of its best model."""
    steps = getattr(unwrapped(model), "steps", None)
    return steps[-1][1] if steps else unwrapped(model)


def prepared(model: Any, X: Any) -> Any:
    """Return X transformed by all steps of a Pipeline but the last; X itself for other models."""
    model = unwrapped(model)
    return model[:-1].transform(X) if len(getattr(model, "steps", ())) > 1 else X


def linear_columns(model: Any, X: Any) -> FloatArray | None:
    """Return the design matrix of a linear model: a column of ones, then its standardised features.

    None for other models, and for more than 60 coefficients.
    """
    estimator = final_step(model)
    coef = np.asarray(getattr(estimator, "coef_", ()), dtype=float)
    if X is None or coef.ndim != 1 or not 0 < coef.size <= _MOST_COLUMNS:
        return None
    Z = prepared(model, X)
    Z = np.asarray(Z.detach().cpu() if is_tensor(Z) else Z)
    if not np.issubdtype(Z.dtype, np.number) or Z.ndim != 2 or not np.isfinite(Z).all():
        return None
    design = getattr(estimator, "_design", None)
    if design is not None and Z.shape[1] == estimator.n_features_in_:
        Z = design.standardised(Z.astype(np.float64))
    if Z.shape[1] != coef.size:
        return None
    return np.column_stack([np.ones(len(Z)), (Z - Z.mean(axis=0)) / np.maximum(Z.std(axis=0), 1e-12)])


def estimation_share(columns: FloatArray | None, expected: FloatArray, sums: FloatArray) -> FloatArray:
    r"""Return the share (G,) of the training events from which a model estimates the expected events of each subgroup.

    .. math:: \frac{E_g^2}{E \, a_g^T M^{-1} a_g}, \qquad a_g = \sum_{i \in g} e_i z_i, \quad M = \sum_i e_i z_i z_i^T

    with e the expected events of patients (n,), E their sum, E_g that of the subgroup, z the `columns` (n, p) of a
    linear model, and `sums` (G, p) the a_g, whose first column is E_g. A linear model uses all training patients to
    predict a subgroup. Any other model, without `columns`, is assumed to use those of the subgroup only.
    """
    of_subgroup: FloatArray = sums[:, 0] / max(float(expected.sum()), 1e-12)
    if columns is None:
        return of_subgroup
    # The pseudoinverse ignores columns that are constant here.
    inverse = np.linalg.pinv(columns.T @ (expected[:, None] * columns), hermitian=True)
    form = np.einsum("gj,jk,gk->g", sums, inverse, sums)
    share: FloatArray = np.clip(sums[:, 0] * of_subgroup / np.maximum(form, 1e-12), of_subgroup, 1.0)
    return share


def given_arguments(**observed: Any) -> dict[str, Any]:
    """Return the arguments, such as ``entry`` and ``strata``, that are not None."""
    return {name: value for name, value in observed.items() if value is not None}


def take(X: Any, rows: Any) -> Any:
    """Return rows of an array, DataFrame or tensor."""
    X = in_pandas(X)
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if is_tensor(X) else np.asarray(X)[rows]


def _check_rows(X: Any, n: int, name: str) -> None:
    if X is None:
        raise ArgumentError("X", f"X is needed to predict with {name}: pass the patients' features.")
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if rows != n:
        raise ArgumentError("X", f"X has {rows} rows for the {n} patients of y: give one row each.")
