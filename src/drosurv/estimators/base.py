"""Base class of all survival models: fit, scores, survival curves and times; baseline hazards of trained models."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from drosurv.curves import Baseline, CurveType, FittedCurves, checked_times, step_functions
from drosurv.errors import ArgumentError, arg, as_number, require
from drosurv.estimators.capabilities import WEIGHTED, Capabilities, require_capabilities
from drosurv.losses import ConvexLoss
from drosurv.losses.cox_partial import CoxPartial
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.losses.summed_likelihood import StratifiedLikelihood
from drosurv.metrics import FollowUp, concordance_index
from drosurv.patients.arrays import batches, is_tensor
from drosurv.patients.observation import Rows, given_rows, given_weight, with_offset
from drosurv.patients.target import FloatArray, parse_target
from drosurv.solvers import Options, Problem, Result, TrainingData, solve
from drosurv.solvers.device import checked_tensor, cpu_array, tensor_scores
from drosurv.solvers.networks import network_scores, network_state
from drosurv.tables.encoder import checked_features, encode_features, training_medians

# Number of values of survival curves that are computed at a time.
_BLOCK = 4_000_000
# Number of patients whose curves are integrated together.
_TOGETHER = 256
# Nodes of Gauss-Legendre quadrature in (-1, 1), and their weights.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)

# Private attributes that exist only of a fitted model; the others of a fit end with an underscore.
_FITTED = ("_baseline", "_baselines", "_kept_training", "_findings", "_inference", "_complete")


class SurvivalInterval(NamedTuple):
    """Survival curves of n patients with the lower and upper ends of their pointwise confidence intervals."""

    survival: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]


class SurvivalModel(BaseEstimator):
    """Base class of the survival models.

    A subclass defines ``fit``, which sets the fitted curves, ``_baseline``. One that predicts in another way overrides
    ``predict``, ``unique_times_`` and ``predict_cumulative_hazard_function``.

    Attributes
    ----------
    capabilities : Capabilities
        What the model is and supports. Each model states it; a class that does not raises TypeError when it is defined.
    """

    capabilities: ClassVar[Capabilities]
    # Fitted attributes with a value for each training patient; a saved model leaves them out.
    _per_patient: ClassVar[tuple[str, ...]] = ("worst_case_weights_", "subgroup_regret_", "null_loss_")
    # Whether the model was fitted with an offset, so that predictions need one too.
    _has_offset = False
    # Numbers of training patients and events; with weights they may not be integers.
    n_patients_: Any
    n_events_: Any
    _baseline: FittedCurves
    # The training data of a linear model for inference on coefficients, which are never saved, and its results.
    _kept_training: Any = None
    _findings: Any = None
    # Training features of a table without missing values until their medians are computed, and these.
    _complete: Any = None
    medians_: FloatArray

    # Models that compare groups request sensitive_features from scikit-learn's metadata routing; the others do not.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sensitive_features": UNUSED}

    def __init_subclass__(cls, abstract: bool = False, **rest: Any) -> None:
        """Require that a model states its capabilities, unless it is the base class of others."""
        super().__init_subclass__(**rest)
        if not abstract:
            require_capabilities(cls)

    @property
    def score_type(self) -> str:
        """What :meth:`predict` returns: "log hazard", "log time" or "other"."""
        return self.capabilities.score

    def __sklearn_tags__(self) -> Any:
        """Return the tags; scikit-learn has none for structured arrays, the targets of survival models."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @property
    def _compares_groups(self) -> str | None:
        """Name, for messages, of what compares groups in training; None if groups are not compared."""
        return None

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether fit has finished; names and number of features are set before that."""
        return hasattr(self, "_baseline")

    def _forget_last_fit(self) -> None:
        """Remove the attributes of the last fit, so that a failed fit leaves no model."""
        for name in [name for name in vars(self) if name.endswith("_") or name in _FITTED]:
            del self.__dict__[name]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file that :func:`drosurv.load` reads; see :func:`drosurv.save`."""
        from drosurv.estimators.persistence import save

        save(self, path)

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters and fitted attributes, with a network as plain arrays, and without the training data."""
        training_medians(self)
        state = dict(super().__getstate__())
        for name in ("_kept_training", "_complete"):
            state.pop(name, None)
        if "network_" in state:
            state["network_"] = network_state(state["network_"])
        return state

    # Scores.

    @property
    def _fitted_with(self) -> tuple[str, ...]:
        """Names of the arguments that predictions need besides features."""
        given = {"strata": self._baseline.strata, "offset": self._has_offset}
        return tuple(name for name, needed in given.items() if needed)

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> FloatArray:
        """Return the log risk (n,) of each patient; higher means an earlier event.

        Parameters
        ----------
        X : (n, d) array, DataFrame or torch tensor
            Features.
        offset : (n,) array, optional
            Known effects, for a model that was fitted with an offset.
        """
        check_is_fitted(self)
        if is_tensor(X) and hasattr(self, "coef_"):
            scores = tensor_scores(self.coef_, checked_tensor(self, X, fit=False))
        else:
            features = self._new_features(X)
            network = self.coef_ if hasattr(self, "coef_") else self.network_
            # Coefficients already include the factor.
            factor = 1.0 if hasattr(self, "coef_") else getattr(self, "recalibration_", 1.0)
            scores = network_scores(network, features) * factor
        return with_offset(scores, offset, fitted_with=self._has_offset)

    def _new_features(self, X: Any) -> FloatArray:
        """Check the features (n, d) of patients to predict for."""
        check_is_fitted(self)
        given = cpu_array(X, type(self).__name__) if is_tensor(X) else encode_features(self, X)
        features: FloatArray = checked_features(self, given)
        return features

    def score(self, X: Any, y: Any, *, strata: Any = None, offset: Any = None) -> float:
        """Return Harrell's c-index of the predicted risks; see :func:`drosurv.metrics.concordance_index`.

        Entry times and weights are those of `y`.
        """
        return float(concordance_index(y, self.predict(X, offset=offset), strata=strata))

    # Curves.

    @property
    def unique_times_(self) -> FloatArray:
        """Times of the baseline, (K,)."""
        check_is_fitted(self)
        return self._baseline.times

    @property
    def curve_type(self) -> CurveType:
        """Type of the survival curves: "step" if they change only at ``unique_times_``, else "smooth"."""
        return "step" if hasattr(self, "_baseline") and self._baseline.in_steps else "smooth"

    @property
    def cum_baseline_hazard_(self) -> Any:
        """Cumulative baseline hazard: a step function or, with strata, a dict from labels to them."""
        return self._baseline_curve(lambda hazard: hazard)

    @property
    def baseline_survival_(self) -> Any:
        """Survival of a patient of log risk zero: a step function or, with strata, a dict from labels to them."""
        return self._baseline_curve(lambda hazard: np.exp(-hazard))

    def _baseline_curve(self, curve: Callable[[FloatArray], FloatArray]) -> Any:
        baseline = self._baseline
        curves = step_functions(baseline.times, curve(baseline.at_zero()))
        return dict(zip(baseline.strata, curves, strict=True)) if baseline.strata else curves[0]

    def predict_survival_function(
        self,
        X: Any,
        return_array: bool = False,
        times: ArrayLike | None = None,
        *,
        strata: Any = None,
        offset: ArrayLike | None = None,
        conditional_after: ArrayLike | None = None,
        level: float | None = None,
    ) -> Any:
        """Return survival curves S(t | x).

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features.
        return_array : bool
            False: (n,) step functions. True: (n, T) values.
        times : (T,) array, optional
            Times of the values, by default ``unique_times_``. If given, an array is returned. After the longest
            follow-up in training curves are constant, and too optimistic, except those of a parametric model
            (:class:`drosurv.AcceleratedFailureTime`).
        strata : (n,) labels, optional
            Stratum of each patient, for a model that was fitted with strata.
        offset : (n,) array, optional
            As in :meth:`predict`.
        conditional_after : float or (n,) array, optional
            Time s up to which each patient is known to have had no event: the curve is S(t | x) / S(s | x) after s, and
            1 before.
        level : float, optional
            Level of pointwise confidence intervals of plain Cox: a named tuple ``(survival, low, high)`` is returned,
            each in the form of curves without it. The intervals are those of R's ``survfit``, on the scale of
            log survival, with the standard errors of :meth:`drosurv.CoxPH.summary`. With a ridge penalty they cover on
            average over patients, not for each. A saved model has none, since they need the training data.
        """
        hazard = self.predict_cumulative_hazard_function(X, True, times, strata=strata, offset=offset)
        if level is not None:
            require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
            require(conditional_after is None, "level", "be left out where conditional_after is given", level)
            at = self.unique_times_ if times is None else checked_times(times)
            margin = norm.isf((1 - level) / 2) * self._hazard_errors(X, at, strata, offset)
            found = (np.exp(-np.maximum(of, 0.0)) for of in (hazard, hazard + margin, hazard - margin))
            if return_array or times is not None:
                return SurvivalInterval(*found)
            return SurvivalInterval(*(step_functions(at, values) for values in found))
        if conditional_after is not None:
            survived = self._survived_hazard(X, conditional_after, {"strata": strata, "offset": offset})
            hazard = np.maximum(hazard - survived[:, None], 0.0)
        survival = np.exp(-hazard)
        return survival if return_array or times is not None else step_functions(self.unique_times_, survival)

    def _hazard_errors(self, X: Any, times: FloatArray, strata: Any, offset: ArrayLike | None) -> FloatArray:
        """Return standard errors (n, T) of cumulative hazards; raise for a model that has none."""
        raise ArgumentError(
            "level",
            f"{type(self).__name__} has no intervals of survival curves, which CoxPH and CoxPHCV have: leave "
            f"{arg('level')} out.",
        )

    def predict_cumulative_hazard_function(
        self,
        X: Any,
        return_array: bool = False,
        times: ArrayLike | None = None,
        *,
        strata: Any = None,
        offset: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Return cumulative hazards H(t | x); parameters as in :meth:`predict_survival_function`."""
        curves, scores = self._curves_and_scores(X, strata, offset)
        hazard = curves.cumulative_hazard(scores, None if times is None else checked_times(times))
        return hazard if return_array or times is not None else step_functions(self.unique_times_, hazard)

    def _curves_and_scores(
        self, X: Any, strata: Any = None, offset: ArrayLike | None = None
    ) -> tuple[FittedCurves, FloatArray]:
        scores = self._outputs(X, offset)
        return self._baseline.of_patients(strata, len(scores)), scores

    def _outputs(self, X: Any, offset: ArrayLike | None) -> FloatArray:
        """Return the scores (n,), or network outputs (n, K), that determine the curves."""
        return self.predict(X, offset=offset)

    # Times read from the curves.

    def predict_median(self, X: Any, **given: Any) -> FloatArray:
        """Return median survival times (n,); infinity where the curve ends above 1/2.

        Other arguments are ``strata`` and ``offset`` as in :meth:`predict`, and ``conditional_after`` as in
        :meth:`predict_survival_function`; so they are in :meth:`predict_quantile` and :meth:`predict_expectation`.

        Examples
        --------
        >>> from drosurv import CoxPH, datasets
        >>> data = datasets.make_hidden_minority(n_samples=500, random_state=0)
        >>> CoxPH().fit(data.X, data.y).predict_median(data.X).shape
        (500,)
        """
        return self.predict_quantile(X, 0.5, **given)

    def predict_quantile(self, X: Any, q: float, **given: Any) -> FloatArray:
        """Return quantiles (n,) of the survival times: the first t with S(t | x) <= 1 - q.

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features.
        q : float
            Between 0 and 1. The quantile is infinite for patients whose curve ends above 1 - q.
        """
        check_is_fitted(self)
        require(0 < as_number(q) < 1, "q", "lie between 0 and 1", q)
        # Computed with hazards, because the survival of patients at high risk soon rounds to 0.
        after = given.pop("conditional_after", None)
        reached = self._times_of_hazard(X, self._survived_hazard(X, after, given) - np.log1p(-q), given)
        # By rounding, a small increase of a large hazard may be lost.
        return reached if after is None else np.maximum(reached, after)

    def _times_of_hazard(self, X: Any, hazard: FloatArray, given: dict[str, Any]) -> FloatArray:
        """Return the first times (n,) at which patients reach given cumulative hazards (n,); infinity if never."""
        if hasattr(self, "_baseline"):
            curves, scores = self._curves_and_scores(X, **given)
            return curves.first_at(hazard, scores)
        times, found = self.unique_times_, np.empty(len(X))
        for part, rows, arguments in _in_parts(X, given, len(times)):
            reached_by = self.predict_cumulative_hazard_function(rows, times=times, **arguments)
            # The tolerance is for curves that equal the given hazard up to rounding.
            reached = reached_by >= hazard[part, None] * (1.0 - 1e-12)
            found[part] = np.where(reached.any(axis=1), times[reached.argmax(axis=1)], np.inf)
        return found

    def predict_expectation(self, X: Any, until: float | None = None, **given: Any) -> FloatArray:
        """Return mean survival times (n,) up to a horizon: the area under S(t | x) from 0 to ``until``.

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features.
        until : float, optional
            Horizon; by default the last event time, after which the curves are unknown.
        """
        times = self.unique_times_
        until = float(times[-1]) if until is None else until
        wanted = f"be above 0 and not after the last event time, {times[-1]}"
        require(0 < as_number(until) <= times[-1], "until", wanted, until)
        found, width = np.empty(len(X)), len(_NODES) * len(times)
        after = given.pop("conditional_after", None)
        survived = self._survived_hazard(X, after, given)
        if np.ndim(after):
            # Each patient adds a time to the grid of the block, so blocks must be small.
            width = max(width, _BLOCK // _TOGETHER)
        for part, rows, arguments in _in_parts(X, given, width):
            grid, widths = self._grid(until, _rows(after, part) if np.ndim(after) else after)
            hazard = self.predict_cumulative_hazard_function(rows, times=grid, **arguments)
            found[part] = np.exp(-np.maximum(hazard - survived[part, None], 0.0)) @ widths
        return found

    def _grid(self, until: float, after: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
        """Return times (T,) and weights (T,) of the numerical integral of curves from zero to a horizon."""
        times, in_steps = self.unique_times_, self.curve_type == "step"
        # A smooth conditional curve has a kink at the time `after`.
        kinks = times if in_steps or after is None else np.append(times, after)
        edges = np.concatenate([[0.0], np.unique(kinks[(kinks > 0) & (kinks < until)]), [until]])
        starts, widths = edges[:-1], np.diff(edges)
        if in_steps:
            return starts, widths
        grid = starts[:, None] + widths[:, None] * (1.0 + _NODES) / 2.0
        return grid.ravel(), (widths[:, None] * _WEIGHTS / 2.0).ravel()

    def _survived_hazard(self, X: Any, after: ArrayLike | None, given: dict[str, Any]) -> FloatArray:
        """Return each patient's cumulative hazard (n,) at the time `after`, up to which they survived; 0 if None."""
        if after is None:
            return np.zeros(len(X))
        known, survived = np.asarray(after, dtype=np.float64), np.empty(len(X))
        fits = known.shape in ((), (len(X),)) and (np.isfinite(known) & (known >= 0)).all()
        wanted = f"be a finite time >= 0, or one for each of {len(X)} patients"
        require(fits, "conditional_after", wanted, after)
        known = np.broadcast_to(known, len(X))
        if hasattr(self, "_baseline"):
            curves, scores = self._curves_and_scores(X, **given)
            return curves.cumulative_hazard(scores, known[:, None])[:, 0]
        # The patients of a block may all have different times.
        for part, rows, arguments in _in_parts(X, given, int(_BLOCK**0.5)):
            times, column = np.unique(known[part], return_inverse=True)
            hazard = self.predict_cumulative_hazard_function(rows, times=times, **arguments)
            survived[part] = hazard[np.arange(len(column)), column]
        return survived


class SolvedModel(SurvivalModel, ABC, abstract=True):
    """Base class of the models that one solver fits: a subclass defines what is minimised, and how."""

    @abstractmethod
    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        """Return what a batch of estimators minimises; they differ only in the learning rate and the objective."""

    @abstractmethod
    def _options(self, batch: Sequence[Self]) -> Options:
        """Return how the batch is trained."""

    def _check_parameters(self) -> None:
        """Raise ArgumentError for invalid parameters; called when fitting begins."""

    def _describe(self, result: Result) -> None:
        """Set the fitted attributes that are specific to this model."""
        if self.capabilities.objective in WEIGHTED:
            self.worst_case_weights_ = result.worst_case_weights
        if self.capabilities.objective == "worst case":
            self.eta_ = result.eta

    def _seed(self) -> int:
        return 0

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: Any = None,
        strata: Any = None,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : (n, d) array, DataFrame or torch tensor
            Features; column names are stored in ``feature_names_in_``. Linear Cox models are solved on the device of a
            tensor. A DataFrame may contain text, categories and missing values: a
            :class:`drosurv.tables.TableEncoder`, stored as ``encoder_``, turns them into features, here and in
            prediction. If it holds numbers only and none is missing, values missing in prediction are filled with its
            medians.
        y : structured array (n,)
            Event flag and time; see :class:`drosurv.Surv`. With a field ``entry``, a row is at risk at t only if
            entry < t <= time. Rows (entry, time] with one ``id`` are a patient whose features change with time: they
            must not overlap, and patients, not rows, are counted and weighted. Of ``clusters`` the rows are
            correlated: the standard errors of :meth:`summary` account for that, the coefficients do not change.
        sample_weight : (n,) array, optional
            Patient weights, unless they are the field ``weight`` of `y`; weight 2 counts a patient twice (with
            ``ties="efron"``, two tied events differ from one event of weight 2).
        sensitive_features : Series, DataFrame or array (n,) or (n, J), optional
            Group labels, for models that compare groups in training; several columns define groups by their
            combinations.
        strata : (n,) labels, optional
            Strata: each has its own baseline hazard, and risk sets are within strata.
        offset : (n,) array, optional
            Known effects, added to the scores.

        Returns
        -------
        self
        """
        data = self._training_data(X, y, given_weight(y, sample_weight), sensitive_features)
        if given := given_rows(y, strata, offset):
            data = self._observed(data, given, Rows.parse(y, strata=strata, offset=offset, judged=False))
        if not self._fit_on_accelerator(data):
            self._fit_data(data.in_double())
        return self

    def _fit_data(self, data: TrainingData) -> None:
        """Solve the problem of checked data, and set the fitted attributes."""
        self._accept(self._recalibrated(solve(self._problem(data, [self]), self._options([self]))))

    def _fit_on_accelerator(self, data: TrainingData) -> bool:
        """Solve a linear model on an accelerator if its parameters allow it; return whether it was done."""
        return False

    def _training_data(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, sensitive_features: Any = None
    ) -> TrainingData:
        """Check the arguments of fit."""
        self._forget_last_fit()
        self._check_parameters()
        self._check_groups(sensitive_features)
        X = self._features(X, y)
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else [str(name) for name in names]
        data = TrainingData.parse(X, parse_target(y), sample_weight, names=names, seed=self._seed())
        return data if sensitive_features is None else data.with_groups(sensitive_features)

    def _observed(self, data: TrainingData, given: Sequence[str], rows: Rows) -> TrainingData:
        """Add entry times, strata, clusters, offset and ids; raise for those that the model does not support."""
        name, able = type(self).__name__, self.capabilities
        if unsupported := [argument for argument in given if argument not in able.row_arguments]:
            raise ArgumentError(
                unsupported[0],
                f"{name} does not support {arg(unsupported[0])}: {able.no_row_arguments}. Use CoxPH, DROCox, "
                "DROCoxSplit or RegularizedCox.",
            )
        return data.observed(rows, name=name, robust=able.objective in WEIGHTED)

    def _check_groups(self, sensitive_features: Any) -> None:
        """Raise if groups are given but not compared in training, or compared but not given."""
        needed_by = self._compares_groups
        if needed_by is None and sensitive_features is not None:
            raise ArgumentError(
                "sensitive_features",
                f"{arg('sensitive_features')} would have no effect: {type(self).__name__} with these parameters does "
                "not compare groups. Leave it out, or use GroupDROCox.",
            )
        if needed_by is not None and sensitive_features is None:
            raise ArgumentError(
                "sensitive_features",
                f"{needed_by} compares groups: pass {arg('sensitive_features')} to fit (one label per patient).",
            )

    def _features(self, X: Any, y: Any) -> Any:
        """Check the features to train on."""
        tensor = is_tensor(X)
        given = cpu_array(X, type(self).__name__) if tensor else encode_features(self, X, y, fit=True)
        return checked_features(self, given, fit=True)

    def _recalibrated(self, result: Result) -> Result:
        """Return the trained model, recalibrated if the parameters say so."""
        return result

    def _accept(self, result: Result, follow_up: FollowUp | None = None) -> None:
        """Set the fitted attributes from a training result; `follow_up` is that of its data, if it is known."""
        if result.factor is not None:
            self.recalibration_ = result.factor
        if isinstance(result.network, np.ndarray):
            self.coef_: FloatArray = result.network
        else:
            self.network_ = result.network
        data = result.problem.data
        self._set_status(result, result.objective)
        self.n_patients_, self.n_events_ = data.n_patients, data.n_events
        self.follow_up_ = training_follow_up(data) if follow_up is None else follow_up
        self._has_offset = data.rows.offset is not None
        self._describe(result)
        self._baseline = fitted_curves(result)

    def _set_status(self, found: Any, objective: float) -> None:
        """Set the attributes about convergence."""
        self.n_iter_, self.status_, self.gap_ = found.n_iter, found.status, found.gap
        self.converged_ = found.status in ("converged", "steps_done", "stopped_early")
        self.history_, self.objective_ = found.history, objective


def training_follow_up(data: TrainingData) -> FollowUp:
    """Return the follow-up of the training patients."""
    target = data.target if data.rows.patient is None else data.rows.patients(data.target)
    late = data.target.entry is not None and bool((data.target.entry > 0).any())
    return replace(FollowUp.of(target, data.patient_weight, entry=target.entry), late_entry=late)


def _in_parts(X: Any, given: dict[str, Any], width: int) -> Iterator[tuple[slice, Any, dict[str, Any]]]:
    """Yield blocks of patients with their arguments, small enough for `width` numbers per patient in memory."""
    for part in batches(len(X), max(1, _BLOCK // width)):
        rows = {name: value if np.ndim(value) == 0 else _rows(value, part) for name, value in given.items()}
        yield part, _rows(X, part), rows


def _rows(values: Any, part: slice) -> Any:
    return values.iloc[part] if hasattr(values, "iloc") else values[part]


def fitted_curves(result: Result) -> FittedCurves:
    """Return the survival curves of a trained model; by default those of a Cox model, with the ties of the loss."""
    problem = result.problem
    if problem.curves is not None:
        curves: FittedCurves = problem.curves(problem.data, result.scores, result.extra)
        return curves
    loss = problem.loss if isinstance(problem.loss, CoxPartial) else problem.data.cox_loss()
    return cox_baseline(loss, problem.data, result.scores, result.extra)


def cox_baseline(loss: CoxPartial, data: TrainingData, scores: FloatArray, extra: FloatArray) -> Baseline:
    """Return the baseline of a partial likelihood, Breslow's or Efron's; with strata, one for each."""
    jumps = loss.log_hazard_jumps(scores)
    if loss.event_strata is None or data.target.stratum is None:
        return Baseline.through(loss.event_times, jumps)
    strata, stratum = data.rows.strata, loss.event_strata
    times = np.unique(loss.event_times if loss.event_times.min() <= 0 else np.append(loss.event_times, 0.0))
    log_cumulative = np.full((len(strata), len(times)), np.nan)
    for k in np.unique(stratum):
        inside = stratum == k
        steps = np.concatenate([[-np.inf], np.logaddexp.accumulate(jumps[inside])])
        log_cumulative[k] = steps[np.searchsorted(loss.event_times[inside], times, side="right")]
    return Baseline(times, log_cumulative, strata)


def piecewise(loss: ConvexLoss, data: TrainingData, scores: FloatArray, extra: FloatArray) -> Baseline:
    """Return the baseline of a full likelihood, whose extra parameters are the logs of piecewise-constant hazards.

    The cumulative hazard is computed at zero and at every event time.
    """
    strata, times = data.rows.strata, data.target.curve_times
    if not isinstance(loss, StratifiedLikelihood):
        return Baseline(times, _log_cumulative(loss, extra, times))
    log_cumulative = np.full((len(strata), len(times)), np.nan)
    for stratum, part in zip(loss.strata, loss.parts, strict=True):
        # Curves are constant after the last event of the stratum.
        last = data.target.take(part.rows).curve_times[-1]
        log_cumulative[stratum] = _log_cumulative(part.loss, extra[part.psi], np.minimum(times, last))
    return Baseline(times, log_cumulative, strata)


def _log_cumulative(loss: ConvexLoss, psi: FloatArray, times: FloatArray) -> FloatArray:
    """Return the log cumulative hazard (T,) at each time, given log hazards psi (K,) on the intervals of the loss."""
    assert isinstance(loss, PiecewiseExponential), "a full likelihood"
    with np.errstate(divide="ignore"):
        level = psi.max()
        out: FloatArray = np.log(loss.intervals.exposure(times).cumulative(np.exp(psi - level))) + level
    return out
