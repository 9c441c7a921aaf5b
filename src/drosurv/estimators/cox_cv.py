"""Cox regression with ridge penalty and splines chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from drosurv.errors import (
    ArgumentError,
    arg,
    as_number,
    as_whole,
    check_choice,
    check_count,
    require,
    warn_caller,
)
from drosurv.estimators.base import SurvivalModel
from drosurv.estimators.capabilities import ROW_ARGUMENTS, Capabilities
from drosurv.estimators.coefficient_inference import (
    encoder_notes,
    feature_names,
    initial_findings,
    name_references,
)
from drosurv.estimators.coefficients.summary import coefficient_columns, interval_names, show_ratios
from drosurv.estimators.column_effects import UNPENALISED, ColumnInference, EffectTable
from drosurv.estimators.cox import CoxPH
from drosurv.estimators.penalty_choice import MANY_ROWS, Search
from drosurv.estimators.spline_design import (
    HARRELL,
    DesignRows,
    SplineDesign,
    column_quantiles,
    knots_for_events,
)
from drosurv.losses.cox_partial import TIES
from drosurv.metrics.calibration import spline_columns
from drosurv.patients.draws import draw_folds
from drosurv.patients.observation import Rows, generator, given_rows, given_weight, label_codes
from drosurv.patients.target import FloatArray, IntArray, parse_target, with_fields, y_field
from drosurv.presentation import axes_or_new
from drosurv.solvers import TrainingData
from drosurv.tables.encoder import checked_features, encode_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With fewer events per column the summary says so.
_FEWEST_EVENTS = 2
# Saving a model computes intervals and tests if they take at most this many operations.
_SAVED_WORK = 2e9
_POINTS = 200
# Notes of the summary.
_INTERVALS = (
    "Intervals are those of the unpenalised model with the same columns, corrected for bias by a jackknife; they treat "
    "the choice of splines as known."
)
_NO_INTERVALS = (
    "No intervals: the unpenalised model with the same columns has no finite fit, because there are too many columns "
    "for the events, or a column separates early from late events."
)


@dataclass(eq=False, repr=False)
class CoxPHCV(SurvivalModel):
    """Cox regression with a ridge penalty, and splines of numeric columns, chosen by cross-validation.

    Every numeric column with more than 8 distinct values may enter as a restricted cubic spline: the column itself and
    nonlinear columns, which are linear beyond the outer knots. Values outside the range of the training patients are
    set to the nearer end of the range. A ridge penalty on the standardised columns shrinks the effects. The penalty,
    and whether splines are used, maximise the cross-validated partial likelihood of Verweij and van Houwelingen (1993).
    If the best setting gains less than 2 in log likelihood over no model, which is no more than its standard error, the
    largest penalty is taken that keeps three quarters of the gain.

    Parameters
    ----------
    splines : "auto", int or False
        "auto" chooses between linear effects and splines of 3 knots (fewer than 100 events), 4 (up to 300) or 5; a
        number from 3 to 7 is the number of knots; False means linear effects.
    l2s : sequence of float, optional
        Penalties to choose from; by default 13 values from 1e-4 to 1 and, while the best is at an end, values beyond,
        up to one that leaves practically no effect. With more columns than patients they begin with the latter. l2/2
        times the sum of squared coefficients of the standardised columns is added to the mean loss per patient. The
        penalty of nonlinear columns, which are made uncorrelated with the linear one, is 3 or 10 times as large,
        whichever is better.
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
        Numbers of training patients and of their events, whatever their weights; copies with one id count once.

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
        devices="cpu",
    )

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        strata: Any = None,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Choose splines and penalty, and fit the model on all patients.

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features; text, categories and missing values as in :meth:`drosurv.CoxPH.fit`.
        y : structured array (n,)
            Event flag and time, with further fields as in :meth:`drosurv.CoxPH.fit`. Without entry times, rows of one
            ``id`` must be copies of each other, as in a bootstrap sample; each copy counts.
        sample_weight, strata, offset : optional
            As in :meth:`drosurv.CoxPH.fit`.

        Returns
        -------
        self
        """
        near = self.__dict__.pop("_near", None)
        self._forget_last_fit()
        self._check_parameters()
        features = checked_features(self, encode_features(self, X, y, fit=True), fit=True)
        target, patients = parse_target(y), y_field(y, "id")
        if patients is not None and y_field(y, "entry") is None and y_field(y, "clusters") is None:
            codes = label_codes("id", patients, len(target))[0]
            first = np.unique(codes, return_index=True)[1][codes]
            if ((target.time == target.time[first]) & (target.event == target.event[first])).all():
                # All rows of an id are copies.
                y = with_fields(y, id=None, clusters=patients)
        training = TrainingData.parse(features, target, given_weight(y, sample_weight))
        if given_rows(y, strata, offset):
            rows = Rows.parse(y, strata=strata, offset=offset, judged=False)
            training = training.observed(rows, name=type(self).__name__, robust=False)
        self.n_patients_, self.n_events_ = _count(training, patients)
        folds, linear = self._folds(training), self.splines == "auto"
        search = Search(training, folds, self.ties, self._knots, linear, self.n_events_)
        if self.l2s is None:
            search.try_default_penalties(near)
        else:
            search.try_penalties([float(l2) for l2 in self.l2s])
        self.cv_results_, chosen = search.results(), search.best
        self.l2_, self.nonlinear_penalty_ = chosen.l2, chosen.nonlinear_penalty
        design = SplineDesign.learn(training.X, training.weight, chosen.knots)
        self._design = design.with_nonlinear_penalty(chosen.nonlinear_penalty)
        self.knots_ = dict(zip(feature_names(self), self._design.knots, strict=True))
        self.estimator_ = self._fitted_cox(training)
        self.coef_: FloatArray = self._design.in_units(self.estimator_.coef_)
        self.follow_up_ = self.estimator_.follow_up_
        # What the summary and the plots need from the training patients.
        quantiles = column_quantiles(training.X, training.weight, (0.01, 0.25, 0.5, 0.75, 0.99))
        self._quartiles, self._range = quantiles[:, 1:4], quantiles[:, [0, 4]]
        size = initial_findings(training)
        self._counted = f"Based on {size.patients} and {size.events}. {size.weights}".rstrip()
        self._kept_training = training
        return self

    def _fitted_cox(self, training: TrainingData) -> CoxPH:
        """Fit a Cox model to the standardised design columns, which are not in memory for many patients."""
        columns, cox = DesignRows(self._design, training.X), CoxPH(l2=self.l2_, ties=self.ties)
        names = self._design.names(feature_names(self))
        cox.feature_names_in_, cox.n_features_in_ = np.array(names, dtype=object), len(names)
        X = columns if len(columns) >= MANY_ROWS else np.asarray(columns)
        cox._fit_data(replace(training, X=X, names=names))
        return cox

    def begin_near(self, fitted: CoxPHCV) -> None:
        """Let the next fit, on many rows, first try penalties near that of a model fitted on similar patients."""
        self._near = fitted.l2_

    def _check_parameters(self) -> None:
        allowed = self.splines is False or as_whole(self.splines) in HARRELL or self.splines == "auto"
        require(allowed, "splines", 'be "auto", False or a number of knots from 3 to 7', self.splines)
        check_count("cv", self.cv, least=2)
        check_choice("ties", self.ties, TIES)
        if self.l2s is not None:
            listed = isinstance(self.l2s, (Sequence, np.ndarray)) and not isinstance(self.l2s, str)
            fits = listed and len(self.l2s) > 0 and all(0 <= as_number(l2) < np.inf for l2 in self.l2s)
            require(fits, "l2s", "list finite numbers that are not negative, or be None", self.l2s)

    @property
    def _knots(self) -> int:
        """Number of knots of splines, 0 for linear effects."""
        return knots_for_events(self.n_events_) if self.splines == "auto" else int(self.splines)

    def _folds(self, training: TrainingData) -> IntArray:
        """Return the fold (n,) of each row, numbered from 0."""
        units, event = training.clusters, training.target.event
        # Without a seed the folds are the same in every fit.
        seed = 0 if self.random_state is None else self.random_state
        rng = generator(int(seed.randint(2**31 - 1)) if isinstance(seed, np.random.RandomState) else seed)
        with_event = int((np.bincount(units, event) > 0).sum())
        if with_event < 2:
            raise ArgumentError(
                "y",
                "y has one patient with an event, but cross-validation needs two. Use plain Cox with a penalty: "
                "CoxPH(l2=0.1), or `drosurv fit --model cox --l2 0.1`.",
            )
        if with_event < self.cv:
            warn_caller(
                f"{with_event} patients had an event: {with_event} folds are used instead of {arg('cv', self.cv)}."
            )
        return draw_folds(
            len(event),
            min(int(self.cv), with_event),
            rng,
            event,
            units,
            training.target.stratum,
            training.order,
        )

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> FloatArray:
        """Return the log hazard ratio (n,) of each patient to the mean of the training patients.

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features.
        offset : (n,) array, optional
            Known effects, for a model that was fitted with an offset.
        """
        features = self._new_features(X)
        return self.estimator_.predict(self._frame(features), offset=offset)

    def _hazard_errors(self, X: Any, times: FloatArray, strata: Any, offset: ArrayLike | None) -> FloatArray:
        return self.estimator_._hazard_errors(self._frame(self._new_features(X)), times, strata, offset)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names (p,) of the design columns: age is the column itself, age' and age'' are nonlinear."""
        check_is_fitted(self)
        return np.array(self._design.names(feature_names(self)), dtype=object)

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

        ``shrunken exp(coef)`` are the hazard ratios with which the model predicts. Shrinkage is a bias that intervals
        around them would not cover, so ``coef`` and its interval are those of the unpenalised Cox model with the same
        columns and knots, corrected for the bias of maximum likelihood by a jackknife. Standard errors are those of
        :meth:`drosurv.CoxPH.summary`: robust if there are weights, clusters or patients with several events. They are
        empty if there are more columns than events, or the unpenalised model has no finite fit.

        ``p nonlinear`` is the p-value of the Wald test that the effect of a column is linear, in the unpenalised model
        with splines of all columns that can have one, so that it does not depend on the chosen penalty and splines.

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
            low, high = self._quartiles[j, [0, 2]]
            # If most patients have the same value, the quartiles may be equal.
            low, high = (0.0, 1.0) if not len(knots) else (low, high) if low < high else (knots[0], knots[-1])
            shown = zero[j] + unit[j] * np.array([low, high])
            contrasts.append(f"{shown[0]:.4g} to {shown[1]:.4g}" if len(knots) else "per unit")
            effect = self._effect(j, np.array([high]), low) / (1.0 if len(knots) else unit[j])
            effects.append(effect[:, 0])
        shrunken, coef, error = np.array(effects).T
        table = EffectTable(
            {"contrast": np.array(contrasts), **effect_columns(shrunken, coef, error, level)},
            index=pd.Index(list(names or feature_names(self)), name="covariate"),
        )
        table["p nonlinear"] = self._inferred().p_nonlinear
        table.caption, table.level, table.ratio = "CoxPHCV: effect of each column", level, "hazard ratio"
        encoder = getattr(self, "encoder_", None)
        table.notes = (*self._notes(), *encoder_notes(encoder))
        name_references(table, encoder)
        return table

    def partial_effect(
        self, column: str | int, values: ArrayLike | None = None, *, level: float = 0.95
    ) -> pd.DataFrame:
        """Return log hazard ratios of values of one column to its median, other columns equal, with intervals.

        As in :meth:`summary`, ``shrunken coef`` is that of this model, ``coef`` with its interval that of the
        unpenalised one.

        Parameters
        ----------
        column : str or int
            Name or number of the column.
        values : (m,) array, optional
            Values of the column; by default 200 between the 1st and the 99th percentile of the training patients.
        level : float
            Level of the pointwise intervals.

        Returns
        -------
        DataFrame
            Columns ``coef``, ``exp(coef)``, ``se(coef)``, their bounds, ``shrunken coef`` and ``shrunken exp(coef)``;
            the values are the index.
        """
        check_is_fitted(self)
        names = feature_names(self)
        j = names.index(column) if column in names else as_whole(column)
        require(0 <= j < len(names), "column", f"be one of {names}, or its number", column)
        j = int(j)
        low, high = (float(end) for end in self._range[j])
        at = np.linspace(low, high, _POINTS) if values is None else np.asarray(values, dtype=np.float64)
        index = pd.Index(at, name=names[j])
        shrunken, coef, error = self._effect(j, at, self._quartiles[j, 1])
        return pd.DataFrame(effect_columns(shrunken, coef, error, level), index=index)

    def plot_partial_effect(self, column: str | int, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Plot :meth:`partial_effect` of one column: this model, and the unpenalised one with its confidence band.

        Knots are marked on the axis.

        Parameters
        ----------
        column : str or int
            Name or number of the column.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure if not given.
        level : float
            Level of the band.
        """
        effect = self.partial_effect(column, level=level)
        ax, (low, high) = axes_or_new(ax), interval_names("exp(coef)", level)
        ax.plot(effect.index, effect["shrunken exp(coef)"], color="C0", label="this model, shrunken")
        if effect["coef"].notna().any():
            ax.plot(effect.index, effect["exp(coef)"], color="C1", linestyle=":", label=UNPENALISED)
            percent = f"{100 * level:g} % interval"
            ax.fill_between(
                effect.index, effect[low], effect[high], color="C1", alpha=0.2, linewidth=0, label=percent
            )
            ax.legend()
        ax.axhline(1.0, color="0.6", linestyle="--", linewidth=1)
        knots = self.knots_[str(effect.index.name)]
        ax.plot(
            knots, np.zeros(len(knots)), "|", color="0.3", transform=ax.get_xaxis_transform(), clip_on=False
        )
        ax.set_yscale("log")
        show_ratios(ax.yaxis, *ax.get_ylim())
        ax.set(xlabel=str(effect.index.name), ylabel="hazard ratio to the median")
        return ax

    def _effect(self, j: int, values: FloatArray, reference: float) -> FloatArray:
        """Return log hazard ratios of values (m,) of column j to a reference, (3, m).

        They are those of this model, those of the unpenalised model, and the standard errors of the latter.
        """
        columns, knots, known = self._design.feature == j, self._design.knots[j], self._inferred()
        # Per unit, 1 and 0 need not lie in the range of the column.
        points = np.append(values, reference)
        points = points.clip(self._design.low[j], self._design.high[j]) if len(knots) else points
        basis = spline_columns(points, knots).T
        contrast = basis[:-1] - basis[-1]
        variance = np.einsum("ij,jk,ik->i", contrast, known.covariances[j], contrast)
        return np.stack([contrast @ self.coef_[columns], contrast @ known.coef[columns], np.sqrt(variance)])

    def _notes(self) -> list[str]:
        splined, known = any(map(len, self._design.knots)), self._inferred()
        effects = "restricted cubic splines" if splined else "linear effects"
        if len(np.unique(self.cv_results_["knots"])) > 1:
            effects += " were chosen"
        elif splined or not self._knots:
            effects += f", because {arg('splines', self.splines)}"
        else:
            effects += ", because no column has enough different values for splines"
        notes = [
            f"The model predicts with the shrunken hazard ratios (l2 = {self.l2_:g}); {effects}.",
            _INTERVALS if known.known else _NO_INTERVALS,
            self._counted,
        ]
        if self.n_events_ < _FEWEST_EVENTS * self.n_features_in_:
            notes.append(
                f"{self.n_events_:,} events are fewer than {_FEWEST_EVENTS} for each of {self.n_features_in_:,} "
                "columns: effects of single columns cannot be told apart."
            )
        if splined:
            notes.append("Splined columns are compared from their lower to their upper quartile.")
        if np.isfinite(known.p_nonlinear).any():
            notes.append("p nonlinear: Wald's test in the unpenalised model with splines, before any choice.")
        return notes

    def _inferred(self) -> ColumnInference:
        """Return intervals and tests, computed when they are first asked for; unknown without the training data."""
        if not hasattr(self, "_inference"):
            training, design = self._kept_training, self._design
            self._inference = (
                ColumnInference.unknown(design)
                if training is None
                else ColumnInference.of(training, design, self.ties, self._knots)
            )
        return self._inference

    @property
    def _baseline(self) -> Any:  # type: ignore[override]
        return self.estimator_._baseline

    @property
    def _has_offset(self) -> bool:  # type: ignore[override]
        return self.estimator_._has_offset

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def _frame(self, features: FloatArray) -> pd.DataFrame:
        """Return the standardised design columns (n, p) with their names."""
        names = self._design.names(feature_names(self))
        return pd.DataFrame(self._design.standardised(features), columns=names, copy=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters and fitted attributes with intervals and tests and without the training data."""
        training = self._kept_training
        if training is not None and training.X.size * training.X.shape[1] * 16 <= _SAVED_WORK:
            self._inferred()
        return super().__getstate__()


def effect_columns(
    shrunken: FloatArray, coef: FloatArray, error: FloatArray, level: float
) -> dict[str, FloatArray]:
    """Return the columns of a table of effects (m,): unpenalised with standard errors, and shrunken."""
    own = {"shrunken coef": shrunken, "shrunken exp(coef)": np.exp(shrunken)}
    return {**coefficient_columns(coef, error, level), **own}


def _count(training: TrainingData, patients: Any) -> tuple[int, int]:
    """Return the numbers of patients and events; rows of one label of `patients` are one patient."""
    event = training.target.event
    if patients is None:
        return len(event), int(event.sum())
    codes = label_codes("id", patients, training.n_rows)[0][training.kept]
    several = training.rows.patient is not None
    return len(np.unique(codes)), int(event.sum()) if several else len(np.unique(codes[event]))
