"""Cox regression with ridge penalty and splines chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2
from sklearn.utils.validation import check_is_fitted

from drosurv.errors import ArgumentError, as_number, as_whole, check_choice, check_count, require, warn_caller
from drosurv.estimators.base import SurvivalModel
from drosurv.estimators.capabilities import ROW_ARGUMENTS, Capabilities
from drosurv.estimators.coefficient_inference import encoder_notes
from drosurv.estimators.coefficients import CoxTable, FittedCox
from drosurv.estimators.coefficients.fitted_cox import sandwich
from drosurv.estimators.coefficients.summary import coefficient_columns, interval_names
from drosurv.estimators.cox import CoxPH
from drosurv.estimators.spline_design import HARRELL, SplineDesign, find_knots, knots_for_events
from drosurv.losses.cox_partial import TIES, CoxPartial
from drosurv.metrics.nonparametric import weighted_quantiles
from drosurv.observation import draw_folds, generator, label_codes
from drosurv.presentation import Column, Table, axes_or_new
from drosurv.solvers import TrainingData
from drosurv.solvers.ridge_path import ridge_path
from drosurv.splines import spline_columns
from drosurv.tables.encoder import checked_features, encode_features
from drosurv.target import FloatArray, IntArray, Target, parse_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Penalties that are tried unless others are given.
L2S = tuple(float(f"{l2:.2g}") for l2 in np.geomspace(1e-4, 1.0, 13))
# Factors by which the penalty of nonlinear columns is larger than that of linear ones, to choose from.
NONLINEAR_PENALTIES = (3.0, 10.0)
# Saving a model computes the tests of nonlinearity if they take at most this many operations.
_SAVED_WORK = 2e9
_POINTS = 200


@dataclass(eq=False, repr=False)
class CoxPHCV(SurvivalModel):
    """Cox regression with a ridge penalty, and splines of numeric columns, chosen by cross-validation.

    Every numeric column with more than 8 distinct values may enter as a restricted cubic spline: the column itself and
    nonlinear columns, which are linear beyond the outer knots. Values outside the range of the training patients are
    set to the nearer end of the range. A ridge penalty on the standardised columns shrinks the effects. The penalty,
    and whether splines are used, maximise the cross-validated partial likelihood of Verweij and van Houwelingen (1993).

    Parameters
    ----------
    splines : "auto", int or False
        "auto" chooses between linear effects and splines of 3 knots (fewer than 100 events), 4 (up to 300) or 5; a
        number from 3 to 7 is the number of knots; False means linear effects.
    l2s : sequence of float, optional
        Penalties to choose from; by default 13 values from 1e-4 to 1. l2/2 times the sum of squared coefficients of the
        standardised columns is added to the mean loss per patient. The penalty of nonlinear columns, which are made
        uncorrelated with the linear one, is 3 or 10 times as large, whichever is better.
    cv : int
        Number of folds. Rows of one id or cluster are in the same fold; folds are stratified by event and stratum.
    ties : {"breslow", "efron"}
        Method for tied event times.
    random_state : int, RandomState, Generator or None
        Seed of the folds; None uses the same folds in every fit.

    Attributes
    ----------
    l2_ : float
        Chosen penalty.
    nonlinear_penalty_ : float
        Factor by which the penalty of nonlinear columns is larger; 1 if there are none.
    knots_ : dict
        Knots of each column; empty if its effect is linear.
    cv_results_ : dict of arrays
        One entry per candidate: ``l2``, ``knots`` (0 for linear effects), ``nonlinear_penalty``, ``split0_test_score``
        and so on (the part of each fold in the cross-validated log partial likelihood), ``mean_test_score``,
        ``std_test_score``, ``rank_test_score``.
    estimator_ : CoxPH
        The Cox model fitted to the standardised design columns.
    coef_ : (p,) float64
        Coefficients of the design columns in the units of X; their names are :meth:`get_feature_names_out`.
    n_patients_, n_events_ : int
        Numbers of training patients and events.

    References
    ----------
    Verweij and van Houwelingen, Cross-validation in survival analysis, Statistics in Medicine 12, 1993.
    Harrell, Regression Modeling Strategies, second edition, 2015, section 2.4.

    Examples
    --------
    >>> from drosurv import CoxPHCV, datasets
    >>> data = datasets.make_hidden_minority(n_samples=500, random_state=0)
    >>> model = CoxPHCV().fit(data.X, data.y)
    >>> len(model.get_feature_names_out()) == len(model.coef_)
    True
    """

    splines: Any = "auto"
    l2s: Any = None
    cv: int = 5
    ties: str = "breslow"
    random_state: Any = None

    capabilities = Capabilities(
        score="log hazard",
        exp_coef="hazard ratio",
        own_curves=False,
        no_recalibration="",
        row_arguments=ROW_ARGUMENTS,
        no_row_arguments="",
        objective="other",
        no_ties="",
        convex=True,
        batched=(),
        devices="cpu",
    )

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        entry: ArrayLike | None = None,
        strata: Any = None,
        clusters: Any = None,
        offset: ArrayLike | None = None,
        id: Any = None,
    ) -> Self:
        """Choose splines and penalty, and fit the model on all patients.

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features; text, categories and missing values as in :meth:`drosurv.CoxPH.fit`.
        y : structured array (n,)
            Event flag and time; see :class:`drosurv.Surv`.
        sample_weight, entry, strata, clusters, offset : optional
            As in :meth:`drosurv.CoxPH.fit`.
        id : (n,) labels, optional
            Patient of each row, as in :meth:`drosurv.CoxPH.fit`. Without entry times, rows of one id must be copies of
            each other, as in a bootstrap sample; each copy counts.

        Returns
        -------
        self
        """
        self._forget()
        self._check_parameters()
        features = checked_features(self, encode_features(self, X, y, fit=True), fit=True)
        target = parse_target(y)
        if id is not None and entry is None and clusters is None and _are_copies(id, target):
            clusters, id = id, None
        observed = {"entry": entry, "strata": strata, "clusters": clusters, "offset": offset, "id": id}
        given = {name: value for name, value in observed.items() if value is not None}
        training = TrainingData.parse(features, target, sample_weight)
        if given:
            # The fit of CoxPH below gives these warnings.
            with warnings.catch_warnings(action="ignore"):
                training = training.observed(target, given, name=type(self).__name__, robust=False)
        chosen = self._choose(training)
        self.l2_, self.nonlinear_penalty_ = chosen.l2, chosen.nonlinear_penalty
        design = SplineDesign.learn(training.X, training.weight, chosen.knots)
        self._design = design.with_nonlinear_penalty(chosen.nonlinear_penalty)
        self.knots_ = dict(zip(self._names(), self._design.knots, strict=True))
        self.estimator_ = CoxPH(l2=self.l2_, ties=self.ties).fit(
            self._frame(features), target.to_structured(), sample_weight, **given
        )
        self.coef_: FloatArray = self._design.in_units(self.estimator_.coef_)
        self.n_patients_, self.n_events_ = self.estimator_.n_patients_, self.estimator_.n_events_
        self.follow_up_ = self.estimator_.follow_up_
        self._keep(training)
        return self

    def _forget(self) -> None:
        """Remove the last fit, so that a failed fit leaves no model."""
        private = ("_design", "_quartiles", "_range", "_covariance", "_kept_training", "_nonlinearity")
        for name in [name for name in vars(self) if name in private or name.endswith("_")]:
            del self.__dict__[name]

    def _check_parameters(self) -> None:
        allowed = self.splines is False or as_whole(self.splines) in HARRELL or self.splines == "auto"
        require(allowed, "splines", 'be "auto", False or a number of knots from 3 to 7', self.splines)
        check_count("cv", self.cv, least=2)
        check_choice("ties", self.ties, TIES)
        if self.l2s is not None:
            listed = isinstance(self.l2s, (Sequence, np.ndarray)) and not isinstance(self.l2s, str)
            fits = listed and len(self.l2s) > 0 and all(0 <= as_number(l2) < np.inf for l2 in self.l2s)
            require(fits, "l2s", "list finite numbers that are not negative, or be None", self.l2s)

    def _choose(self, training: TrainingData) -> CandidateModel:
        """Set the results of cross-validation and return the best candidate."""
        l2s = L2S if self.l2s is None else tuple(float(l2) for l2 in self.l2s)
        knots = knots_for_events(training.n_events) if self.splines == "auto" else int(self.splines)
        linear = [CandidateModel(l2, 0, 1.0) for l2 in l2s]
        splined: list[CandidateModel] = []
        if knots and any(map(len, find_knots(training.X, training.weight, knots))):
            splined = [
                CandidateModel(l2, knots, p)
                for l2 in l2s
                for p in (NONLINEAR_PENALTIES if l2 > 0 else (1.0,))
            ]
        choices = [*linear, *splined] if self.splines == "auto" else splined or linear
        scores = cross_validated_likelihood(training, self._folds(training), choices, self.ties)
        # Of candidates with equal scores choose the simplest: linear, then the largest penalty.
        columns = {f"split{k}_test_score": part for k, part in enumerate(scores.T)}
        table = {name: np.array([getattr(c, name) for c in choices]) for name in CandidateModel._fields}
        order = np.lexsort((-table["nonlinear_penalty"], -table["l2"], table["knots"], -scores.sum(axis=1)))
        self.cv_results_ = {
            **table,
            **columns,
            "mean_test_score": scores.mean(axis=1),
            "std_test_score": scores.std(axis=1),
            "rank_test_score": np.argsort(order) + 1,
        }
        return choices[int(order[0])]

    def _folds(self, training: TrainingData) -> IntArray:
        """Return the fold (n,) of each row, numbered from 0."""
        units, event = training.clusters, training.target.event
        with_event = int((np.bincount(units, event) > 0).sum())
        if with_event < 2:
            raise ArgumentError(
                "y", "y has one patient with an event, but cross-validation needs two. Use CoxPH(l2=0.1)."
            )
        if with_event < self.cv:
            warn_caller(
                f"{with_event} patients had an event: {with_event} folds are used instead of cv={self.cv}."
            )
        return draw_folds(
            len(event),
            min(int(self.cv), with_event),
            self._generator(),
            event,
            units,
            training.target.stratum,
        )

    def _keep(self, training: TrainingData) -> None:
        """Store what the summary and the plots need from the training patients."""
        X, q = training.X, (0.01, 0.25, 0.5, 0.75, 0.99)
        quantiles = np.array([weighted_quantiles(x, training.weight, q) for x in np.ascontiguousarray(X.T)])
        self._quartiles, self._range = quantiles[:, 1:4], quantiles[:, [0, 4]]
        fit = FittedCox(
            self._design.standardised(X), training.cox_loss(self.ties), self.estimator_.coef_, self.l2_
        )
        # Columns without information have coefficient 0 and standard error 0.
        self._covariance = self._design.in_units(self._design.in_units(np.nan_to_num(fit.covariance)).T)
        self._kept_training = training

    def _generator(self) -> np.random.Generator:
        """Return the random generator of the folds; without a seed it is the same in every fit."""
        given = 0 if self.random_state is None else self.random_state
        if isinstance(given, np.random.RandomState):
            given = int(given.randint(2**31 - 1))
        return generator(given)

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> FloatArray:
        """Return the log hazard ratio (n,) of each patient to the mean of the training patients.

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features.
        offset : (n,) array, optional
            Known effects, for a model that was fitted with an offset.
        """
        check_is_fitted(self)
        features = checked_features(self, encode_features(self, X))
        return self.estimator_.predict(self._frame(features), offset=offset)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names (p,) of the design columns: age is the column itself, age' and age'' are nonlinear."""
        check_is_fitted(self)
        return np.array(self._design.names(self._names()), dtype=object)

    def summary(
        self,
        level: float = 0.95,
        method: str = "auto",
        *,
        scale: FloatArray | None = None,
        center: FloatArray | None = None,
        names: Sequence[str] | None = None,
    ) -> EffectTable:
        """Return the effect of each column: the hazard ratio of upper to lower quartile, or per unit if linear.

        Intervals are those of the penalised fit and treat the penalty as known. ``p nonlinear`` is the p-value of the
        Wald test that the effect of a column is linear, in the unpenalised model with splines of all columns that can
        have one, so that it does not depend on the chosen penalty and splines.

        Parameters
        ----------
        level : float
            Level of the confidence intervals.
        method : {"auto"}
            Present for compatibility with :meth:`drosurv.CoxPH.summary`.
        scale, center : (d,) array, optional
            If ``(original - center) / scale`` were the columns passed to fit, effects are reported in the original
            units.
        names : sequence of str, optional
            Names of the columns; by default those of the model.

        Examples
        --------
        >>> from drosurv import CoxPHCV, datasets
        >>> data = datasets.make_hidden_minority(n_samples=500, random_state=0)
        >>> table = CoxPHCV(splines=False).fit(data.X, data.y).summary()
        >>> list(table.columns[:2])
        ['contrast', 'coef']
        """
        check_is_fitted(self)
        check_choice("method", method, ("auto",))
        require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
        unit = np.ones(self.n_features_in_) if scale is None else np.asarray(scale)
        zero = np.zeros(self.n_features_in_) if center is None else np.asarray(center)
        contrasts, effects = [], []
        for j, knots in enumerate(self._design.knots):
            if len(knots):
                low, high = self._quartiles[j, [0, 2]]
                # If most patients have the same value, the quartiles may be equal.
                low, high = (low, high) if low < high else (knots[0], knots[-1])
                shown = zero[j] + unit[j] * np.array([low, high])
                contrasts.append(f"{shown[0]:.4g} to {shown[1]:.4g}")
                coef, error = self._effect(j, np.array([high]), low)
            else:
                columns = self._design.feature == j
                contrasts.append("per unit")
                coef = self.coef_[columns] / unit[j]
                error = np.sqrt(self._covariance[columns, columns]) / unit[j]
            effects.append((coef[0], error[0]))
        coef, error = np.array(effects).T
        contrast, splined = np.array(contrasts), any(map(len, self._design.knots))
        table = EffectTable(
            {"contrast": contrast, **coefficient_columns(coef, error, level)},
            index=pd.Index(list(names or self._names()), name="covariate"),
        )
        table["p nonlinear"] = self._tested()
        table.caption, table.level, table.ratio = "CoxPHCV: effect of each column", level, "hazard ratio"
        table.notes = (*self._notes(splined), *encoder_notes(getattr(self, "encoder_", None)))
        return table

    def partial_effect(
        self, column: str | int, values: ArrayLike | None = None, *, level: float = 0.95
    ) -> pd.DataFrame:
        """Return log hazard ratios of values of one column to its median, other columns equal, with intervals.

        Parameters
        ----------
        column : str or int
            Name or number of the column.
        values : (m,) array, optional
            Values of the column; by default 200 between the 1st and the 99th percentile of the training patients.
        level : float
            Level of the pointwise intervals, which treat the penalty as known.

        Returns
        -------
        DataFrame
            Columns ``coef``, ``exp(coef)``, ``se(coef)`` and their bounds, as in :meth:`summary`; the values are the
            index.
        """
        check_is_fitted(self)
        names = self._names()
        j = names.index(column) if column in names else as_whole(column)
        require(0 <= j < len(names), "column", f"be one of {names}, or its number", column)
        j = int(j)
        low, high = (float(end) for end in self._range[j])
        at = np.linspace(low, high, _POINTS) if values is None else np.asarray(values, dtype=np.float64)
        index = pd.Index(at, name=names[j])
        effect = self._effect(j, at, self._quartiles[j, 1])
        return pd.DataFrame(coefficient_columns(*effect, level), index=index)

    def plot_partial_effect(self, column: str | int, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Plot :meth:`partial_effect` of one column with its confidence band; knots are marked on the axis.

        Parameters
        ----------
        column : str or int
            Name or number of the column.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure if not given.
        level : float
            Level of the band.
        """
        from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

        effect = self.partial_effect(column, level=level)
        ax, (low, high) = axes_or_new(ax), interval_names("exp(coef)", level)
        ax.fill_between(effect.index, effect[low], effect[high], color="C0", alpha=0.2, linewidth=0)
        ax.plot(effect.index, effect["exp(coef)"], color="C0")
        ax.axhline(1.0, color="0.6", linestyle="--", linewidth=1)
        knots = self.knots_[str(effect.index.name)]
        ax.plot(
            knots, np.zeros(len(knots)), "|", color="0.3", transform=ax.get_xaxis_transform(), clip_on=False
        )
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.set(xlabel=str(effect.index.name), ylabel="hazard ratio to the median")
        return ax

    def _effect(self, j: int, values: FloatArray, reference: float) -> tuple[FloatArray, FloatArray]:
        """Return log hazard ratios (m,) of values (m,) of column j to a reference, and their standard errors (m,)."""
        columns, knots = self._design.feature == j, self._design.knots[j]
        points = np.append(values, reference).clip(self._design.low[j], self._design.high[j])
        basis = spline_columns(points, knots).T
        contrast = basis[:-1] - basis[-1]
        covariance = self._covariance[np.ix_(columns, columns)]
        variance = np.einsum("ij,jk,ik->i", contrast, covariance, contrast)
        return contrast @ self.coef_[columns], np.sqrt(variance)

    def _notes(self, splined: bool) -> list[str]:
        chosen = "restricted cubic splines" if splined else "linear effects"
        ranked = self.cv_results_["knots"]
        choice = "were chosen" if len(np.unique(ranked)) > 1 else "were given"
        notes = [
            f"The fit is penalised (l2 = {self.l2_:g}), which shrinks hazard ratios towards 1; {chosen} {choice}. "
            "Intervals treat both as known.",
            f"Based on {self.n_patients_:,} patients and {self.n_events_:,} events.",
        ]
        if splined:
            notes.append("Splined columns are compared from their lower to their upper quartile.")
        known = self._tested()
        if np.isfinite(known).any():
            notes.append("p nonlinear: Wald's test in the unpenalised model with splines, before any choice.")
        return notes

    def _tested(self) -> FloatArray:
        """Return the p-values (d,) of nonlinearity; NaN for columns without a spline, or without a test."""
        if not hasattr(self, "_nonlinearity"):
            unknown = np.full(self.n_features_in_, np.nan)
            training = getattr(self, "_kept_training", None)
            self._nonlinearity = unknown if training is None else self._nonlinearity_tests(training)
        return self._nonlinearity

    def _nonlinearity_tests(self, training: TrainingData) -> FloatArray:
        """Compute Wald tests in the unpenalised model with splines of all columns that can have one."""
        out = np.full(self.n_features_in_, np.nan)
        given = self.splines is not False and self.splines != "auto"
        n_knots = int(self.splines) if given else knots_for_events(training.n_events)
        design = SplineDesign.learn(training.X, training.weight, n_knots)
        if not design.nonlinear.any():
            return out
        X, loss = design.standardised(training.X), training.cox_loss(self.ties)
        coef, status = ridge_path(X, loss, training.mass, np.zeros((1, X.shape[1])), tol=1e-12)
        if status[0] != "converged":
            return out
        fit = FittedCox(X, loss, coef[0])
        depends = training.weight is not None or training.observation.depend(training.target)
        clusters = None if training.observation.clusters is None else training.clusters
        covariance = sandwich(fit, clusters) if depends else fit.covariance
        for j in np.unique(design.feature[design.nonlinear]):
            nonlinear = (design.feature == j) & design.nonlinear
            part = covariance[np.ix_(nonlinear, nonlinear)]
            if np.isfinite(part).all():
                statistic = float(coef[0, nonlinear] @ np.linalg.solve(part, coef[0, nonlinear]))
                out[j] = chi2.sf(statistic, int(nonlinear.sum()))
        return out

    @property
    def _baseline(self) -> Any:  # type: ignore[override]
        return self.estimator_._baseline

    @property
    def _has_offset(self) -> bool:  # type: ignore[override]
        return self.estimator_._has_offset

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def _names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return (
            [f"x{j}" for j in range(self.n_features_in_)] if names is None else [str(name) for name in names]
        )

    def _frame(self, features: FloatArray) -> pd.DataFrame:
        """Return the standardised design columns (n, p) with their names."""
        return pd.DataFrame(self._design.standardised(features), columns=self._design.names(self._names()))

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters and fitted attributes with the tests of nonlinearity and without the training data."""
        training = getattr(self, "_kept_training", None)
        if training is not None and training.X.size * training.X.shape[1] * 16 <= _SAVED_WORK:
            self._tested()
        state = dict(super().__getstate__())
        state.pop("_kept_training", None)
        return state


class CandidateModel(NamedTuple):
    """One of the models from which cross-validation chooses.

    `knots` is the number of knots, 0 for linear effects; `nonlinear_penalty` is the factor by which the penalty of
    nonlinear columns is larger than that of linear ones.
    """

    l2: float
    knots: int
    nonlinear_penalty: float


def cross_validated_likelihood(
    training: TrainingData, folds: IntArray, choices: Sequence[CandidateModel], ties: str
) -> FloatArray:
    """Return the part of each fold in the cross-validated log partial likelihood, (choices, folds).

    With b the coefficients of a model fitted without the fold, it is the log partial likelihood of all patients at b
    minus that of the patients outside the fold. Knots, means and standard deviations are computed without the fold,
    too.
    """
    of_all = training.cox_loss(ties)
    out = np.empty((len(choices), int(folds.max()) + 1))
    l2, knots, factor = (np.array(column) for column in zip(*choices, strict=True))
    for k in range(out.shape[1]):
        rows = np.flatnonzero(folds != k)
        part = training.take(rows)
        loss = part.cox_loss(ties)
        design = SplineDesign.learn(part.X, part.weight, int(knots.max()))
        columns = design.standardised(training.X)
        for n_knots in np.unique(knots):
            # The linear design consists of the linear columns of the design with knots.
            X = columns if n_knots else columns[:, ~design.nonlinear]
            nonlinear = design.nonlinear if n_knots else np.full(X.shape[1], False)
            path = np.flatnonzero(knots == n_knots)
            path = path[_path_order(l2[path], factor[path])]
            ridges = l2[path, None] * np.where(nonlinear, factor[path, None], 1.0)
            scores = ridge_path(X[rows], loss, part.mass, ridges)[0] @ X.T
            out[path, k] = _log_likelihood(of_all, scores) - _log_likelihood(loss, scores[:, rows])
    return out


def _path_order(l2: FloatArray, factor: FloatArray) -> IntArray:
    """Return an order (K,) of penalties in which successive ones are similar, since each fit starts from the last.

    For the first factor l2 decreases, for the second it increases, and so on; l2 = 0 is last.
    """
    increases = np.searchsorted(np.unique(factor[l2 > 0]), factor) % 2 == 1
    return np.lexsort((np.where(increases, l2, -l2), factor, l2 == 0))


def _log_likelihood(loss: CoxPartial, scores: FloatArray) -> FloatArray:
    """Return the log partial likelihood (B,) of scores (B, n)."""
    losses = loss(scores)
    return -losses.sum(axis=1) if loss.weight is None else -losses @ loss.weight[loss.rows]


def _are_copies(id: Any, target: Target) -> bool:
    """Whether all rows of an id have the same time and event."""
    codes = label_codes("id", id, len(target))[0]
    first = np.unique(codes, return_index=True)[1][codes]
    same = (target.time == target.time[first]) & (target.event == target.event[first])
    return bool(same.all())


class EffectTable(CoxTable):
    """One row per column of X: the contrast, its hazard ratio with interval, and the test of nonlinearity.

    It prints like :class:`drosurv.estimators.CoxTable`; its columns are ``contrast``, ``coef``, ``exp(coef)``,
    ``se(coef)``, their bounds and ``p nonlinear``.
    """

    def to_table(self) -> Table:
        """Return the table in the form used by reports."""
        percent = f"{100 * self.level:g} %"
        columns = [
            Column("covariate", "column"),
            Column("contrast", "contrast"),
            Column(
                "exp(coef)",
                f"{self.ratio} ({percent} interval)",
                "value",
                interval_names("exp(coef)", self.level),
            ),
            Column("p nonlinear", "p nonlinear", "p_value"),
        ]
        frame = pd.DataFrame(self).rename_axis("covariate").reset_index()
        return Table.of("effects", self.caption, columns, frame, self.notes)
