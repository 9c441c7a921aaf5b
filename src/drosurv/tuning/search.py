"""Grid search over settings of an estimator, with a rule that chooses one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from drosurv.errors import ArgumentError, as_whole, did_you_mean, require
from drosurv.estimators.cox import CoxPH
from drosurv.estimators.grid import batches, fit_grid
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.evaluation.attributes import label_frame
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.metrics.partial_likelihood import kept_share
from drosurv.presentation import axes_or_new
from drosurv.presentation.progress import bar
from drosurv.target import FloatArray, parse_target
from drosurv.tuning.folds import Fold, parse_folds
from drosurv.tuning.grids import Grid, default_grid, grid_points, learning_rate, plain_models
from drosurv.tuning.results import (
    CANDIDATE,
    FACTOR,
    FOLD,
    WITH_INTERVAL,
    in_words,
    numbers,
    paired_differences,
    setting_table,
    with_plain,
)
from drosurv.tuning.rules import BestScore, CarefulBudget, Choice, SelectionRule, pareto_front
from drosurv.tuning.scoring import DRAWS, Trials, known_metrics, small_groups

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Okabe and Ito's colours, distinct with any colour vision.
_SETTING, _FRONT, _CHOSEN, _PLAIN = "#56B4E9", "#0072B2", "#D55E00", "#000000"
_LABELS = {"gain_share": "share of the unregularised model's gain in log partial likelihood"}


class SearchPlots:
    """Plots of a finished search."""

    results_: pd.DataFrame
    control_: pd.DataFrame
    reference_: pd.Series[Any]
    rule_: SelectionRule
    best_index_: int

    def plot_front(self, ax: Axes | None = None, *, minimise: str = "concordance_imparity") -> Axes:
        """Plot a disparity against the c-index.

        Every setting is a point, with its 95 % interval if it is known. The solid line is the Pareto front, the circle
        the chosen setting, the cross the unregularised model. The dotted line is the unregularised model with scores
        multiplied by c < 1, which changes disparities of hazards but not the c-index and concordance imparity. The
        vertical line is the accuracy budget, if the rule has one.
        """
        check_is_fitted(self, "results_")
        ax = axes_or_new(ax)
        results = _with(self.results_, "concordance_index", minimise)
        x, y = numbers(results, "concordance_index", minimise)
        reach = _reach(results, "concordance_index")
        ax.errorbar(
            x, y, xerr=reach, yerr=_reach(results, minimise),
            fmt="o", markersize=4, color=_SETTING, elinewidth=0.6, zorder=1,
            label="settings" if reach is None else "settings, 95 % interval",
        )  # fmt: skip
        front = pareto_front(results, minimise=minimise)
        ax.plot(
            *numbers(front, "concordance_index", minimise), "o-", color=_FRONT, markersize=5, zorder=2,
            label="Pareto front",
        )  # fmt: skip
        control = self.control_
        if minimise in control:
            accuracy, heights = numbers(control, "concordance_index", minimise)
            ax.plot(accuracy, heights, ":", color=_PLAIN, label="unregularised model x c")
            ax.plot(accuracy[:1], heights[:1], "x", color=_PLAIN, markersize=8, label="unregularised model")
        rule: Any = self.rule_
        if hasattr(rule, "least") and rule.metric == "concordance_index":
            ax.axvline(rule.least(self.results_), color="grey", linewidth=0.8, label="accuracy budget")
        return self._finished(ax, results, "concordance_index", minimise)

    def plot_shrinkage(self, ax: Axes | None = None, *, minimise: str = "group_disparity") -> Axes:
        """Plot a disparity against the share of the unregularised model's gain over the null model.

        The line is the unregularised model with its scores multiplied by c from 1 down to 0. A setting on or above the
        line has no lower disparity than such shrinkage would have at the same gain; a setting below the line has.
        """
        check_is_fitted(self, "results_")
        ax = axes_or_new(ax)
        results = _with(self.results_, "gain_share", minimise)
        control = _with(self.control_, "gain_share", minimise)
        ax.plot(
            *numbers(control, "gain_share", minimise), "x-", color=_PLAIN, markersize=5,
            label="unregularised model x c",
        )  # fmt: skip
        x, y = numbers(results, "gain_share", minimise)
        ax.errorbar(
            x, y, yerr=_reach(results, minimise),
            fmt="o", markersize=4, color=_SETTING, elinewidth=0.6, label="settings",
        )  # fmt: skip
        ax.axvline(0.0, color="grey", linewidth=0.8)
        return self._finished(ax, results, "gain_share", minimise)

    def _finished(self, ax: Axes, results: pd.DataFrame, x: str, y: str) -> Axes:
        """Add a circle around the chosen setting, if it is among the results, axis labels and a legend."""
        if self.best_index_ in results.index:
            row = results.loc[self.best_index_]
            ax.plot(
                [row[x]], [row[y]], "o", markersize=11, markerfacecolor="none", markeredgecolor=_CHOSEN, zorder=3,
                label="chosen",
            )  # fmt: skip
        ax.set(xlabel=_LABELS.get(x, in_words(x)), ylabel=_LABELS.get(y, in_words(y)))
        ax.legend(fontsize="small")
        return ax


def _with(table: pd.DataFrame, *names: str) -> pd.DataFrame:
    for name in names:
        if name not in table:
            raise ValueError(
                f"minimise: the search did not compute {name!r}; it has {list(table.columns)}. Name it in metrics."
            )
    known = table.dropna(subset=list(names))
    if known.empty:
        raise ValueError(
            f"no setting has a value of {' and '.join(map(in_words, names))} to plot. Groups may be too small to be "
            "compared."
        )
    return known


def _reach(table: pd.DataFrame, name: str) -> FloatArray | None:
    """Return the distances (2, settings) of values from the ends of their intervals; None without intervals."""
    if f"{name}_low" not in table:
        return None
    value, low, high = numbers(table, name, f"{name}_low", f"{name}_high")
    return np.nan_to_num(np.maximum(np.stack([value - low, high - value]), 0.0))


# Metrics that are always computed: accuracy, and those for the comparison with shrunken scores.
_ALWAYS = ("concordance_index", "log_partial_likelihood", "gain_over_null", "calibration_slope")
_DISPARITIES = ("concordance_imparity", "group_disparity", "intersectional_disparity")
# Factors of the scores of the unregularised model: 1 is the model itself, the others shrink its scores.
FACTORS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02)


@dataclass(eq=False, repr=False)
class GridSearch(SearchPlots, MetaEstimatorMixin, BaseEstimator):
    """Tune an estimator over a grid of settings, under an accuracy budget or another rule.

    Each setting is evaluated on folds or on one validation set. The rule chooses one of them, which is trained again on
    all patients. Settings that can be trained in one batch are trained together.

    Parameters
    ----------
    estimator : estimator, or Pipeline that ends in one
        Estimator to tune; parameters that the grid does not name keep their values. The steps before it are fitted to
        the training patients of each fold.
    grid : mapping of parameter to values, or a list of such, optional
        Parameters of the estimator, without the name of a Pipeline step. By default the paper's grid: alpha or the
        weight of the penalty, and the learning rate if Adam is used.
    rule : SelectionRule, optional
        Chooses a row of ``results_``. By default :class:`CarefulBudget`; without sensitive features, the best c-index.
        With every rule except the paper's, :class:`AccuracyBudget`, the plain model is one of the candidates.
    cv : int, float, splitter or iterable
        Number of folds; or the share of patients in one validation set; or given folds (see
        :func:`drosurv.tuning.folds.parse_folds`).
    metrics : sequence of str, optional
        Further metrics to compute, such as ``integrated_brier_score``, ``dynamic_auc``, ``individual_disparity``.
    min_group, min_events : int
        Groups with fewer patients or events are left out of the disparities.
    bootstrap : int
        Number of bootstrap replicates for the standard errors of the c-index and of concordance imparity with a single
        validation set. With folds, standard errors come from the folds.
    refit : bool
        Whether to train the chosen setting on all patients.
    n_jobs : int, optional
        Number of processes, as in joblib.
    random_state : int, RandomState or None
        Seed of the folds.
    verbose : bool, optional
        Whether to show a progress bar for a long search; by default only in a terminal.

    Attributes
    ----------
    best_estimator_ : estimator or Pipeline
        The chosen setting, trained on all patients.
    best_params_ : dict
        Parameters of the chosen setting; empty for the plain model.
    best_index_ : int
        Row of the chosen setting in ``results_``.
    choice_ : Choice
        The choice of the rule, with its reason and whether no setting met the rule's condition.
    results_ : DataFrame
        One row per setting: its parameters; the mean over folds of every metric, with ``<metric>_se`` and,
        for the c-index and concordance imparity, ``_low`` and ``_high`` (95 %); ``gain_share``, the gain in log
        partial likelihood over the null model, divided by that of the unregularised model. With several sensitive
        features a disparity is the largest over attributes; that of each attribute is in ``<metric>_<attribute>``.
        ``error`` is the error message if training failed. The last row is the plain model, marked in ``plain``;
        ``<minimise>_difference`` with ``_se`` is the paired difference of every setting from it.
    fold_results_ : DataFrame
        The same per setting and fold.
    reference_ : Series
        Row of the unregularised model: a Cox model with the same network, and of its settings the one with the best
        c-index.
    control_ : DataFrame
        Metrics of the unregularised model with its scores multiplied by each c <= 1.

    Examples
    --------
    >>> from drosurv import DROCox, datasets
    >>> from drosurv.tuning import GridSearch
    >>> data = datasets.make_hidden_minority(n_samples=400, random_state=0)
    >>> search = GridSearch(DROCox(), {"alpha": [0.2, 0.5]}, cv=3, random_state=0)
    >>> search = search.fit(data.X, data.y, sensitive_features=data.sensitive_features)
    >>> search.best_params_.get("alpha") in (0.2, 0.5, None)
    True
    """

    estimator: Any
    grid: Grid | None = None
    _: KW_ONLY
    rule: SelectionRule | None = None
    cv: Any = 5
    metrics: Sequence[str] | None = None
    min_group: int = 50
    min_events: int = 10
    bootstrap: int = 200
    refit: bool = True
    n_jobs: int | None = None
    random_state: Any = None
    verbose: bool | None = None

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, groups: Any = None) -> Self:
        """Evaluate all settings, choose one, and train it on all patients.

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features.
        y : structured array (n,)
            Event flag and time.
        sensitive_features : Series, DataFrame or array, optional
            One column of labels per attribute, for disparities between its groups and penalties that compare groups.
        groups : (n,) labels, optional
            Patient of each row, if patients have several rows: the rows of one patient are never both in the training
            and in the validation set.

        Returns
        -------
        self
        """
        target = parse_target(y)
        labels = label_frame(sensitive_features, len(target))
        small, comparable = small_groups(labels, target, self.min_group, self.min_events)
        default = CarefulBudget() if comparable else BestScore()
        rule: Any = default if self.rule is None else self.rule
        require(hasattr(rule, "choose"), "rule", "be a rule such as CarefulBudget(), or None", rule)
        require(as_whole(self.bootstrap) >= 0, "bootstrap", "be a whole number, 0 for none", self.bootstrap)
        jobs, named = self.n_jobs, self.metrics
        counted = jobs is None or abs(as_whole(jobs)) >= 1
        require(counted, "n_jobs", "be a whole number other than 0, or None", jobs)
        listed = named is None or (hasattr(named, "__iter__") and not isinstance(named, str))
        require(listed, "metrics", "be a list of metrics' names, or None", named)
        preparation, model = self._steps()
        points = grid_points(default_grid(model) if self.grid is None else self.grid)
        candidates = [clone(model).set_params(**point) for point in points]
        references = plain_models(candidates)
        folds = parse_folds(self.cv, target.event, self.random_state, groups)
        metrics = self._metrics(rule, labels, comparable)
        replicates = self.bootstrap if len(folds) == 1 else 0
        compared = tuple(
            name for name in dict.fromkeys([*WITH_INTERVAL, *_read_by(rule).values()]) if name in metrics
        )
        trials = Trials(X, target.to_structured(), labels, preparation, small, metrics, compared, replicates)
        rows = self._score([*candidates, *references], points, trials, folds)
        self.fold_results_ = pd.DataFrame(chain(*rows[: len(points)])).drop(columns=FACTOR)
        self.results_ = setting_table(self.fold_results_, metrics)
        if (self.results_["error"] != "").all():
            raise ValueError(f"no setting could be trained; the first: {self.results_['error'].iloc[0]}")
        plain = pd.DataFrame(chain(*rows[len(points) :]))
        reference, reference_folds = self._compare(references, plain, metrics)
        if getattr(rule, "reference", None) == "unregularised":
            rule = rule.against(float(self.reference_[rule.metric]))
        # The settings of CoxPH are plain models already.
        if getattr(rule, "may_choose_plain", type(model) is not CoxPH):
            compared_by = getattr(rule, "minimise", "concordance_index")
            differences = paired_differences(self.fold_results_, reference_folds, compared_by)
            self.results_ = with_plain(self.results_, self.reference_, differences)
        self.fold_results_ = self.fold_results_.drop(columns=DRAWS, errors="ignore")
        self.rule_: SelectionRule = rule
        self.choice_: Choice = rule.choose(self.results_)
        self.best_index_ = int(self.choice_.index)
        chosen = self.best_index_ < len(points)
        self.best_params_ = points[self.best_index_] if chosen else {}
        if self.refit:
            best = clone(model).set_params(**self.best_params_) if chosen else clone(reference)
            self.best_estimator_ = self._refitted(preparation, best, X, y, labels)
        return self

    def _steps(self) -> tuple[Any, NetworkEstimator]:
        """Return the steps before the estimator, as one transformer or None, and the estimator."""
        *before, last = (
            self.estimator.steps if isinstance(self.estimator, Pipeline) else [("", self.estimator)]
        )
        if not isinstance(last[1], NetworkEstimator):
            raise TypeError(
                f"estimator must be one of drosurv's, or a Pipeline that ends in one, got {type(last[1]).__name__}."
            )
        return Pipeline(before) if before else None, last[1]

    def _refitted(
        self, preparation: Any, model: NetworkEstimator, X: Any, y: Any, groups: pd.DataFrame | None
    ) -> Any:
        prepared = None if preparation is None else clone(preparation).fit(X, y)
        fit_grid([model], X if prepared is None else prepared.transform(X), y, sensitive_features=groups)
        if prepared is None:
            return model
        return Pipeline([*prepared.steps, (self.estimator.steps[-1][0], model)])

    def _compare(
        self, references: Sequence[NetworkEstimator], plain: pd.DataFrame, metrics: Sequence[str]
    ) -> tuple[NetworkEstimator, pd.DataFrame]:
        """Set `reference_`, `control_`, and the `gain_share` of every setting.

        Return the unregularised model and its results by fold.
        """
        as_trained = plain.loc[plain[FACTOR] == 1.0]
        table = setting_table(as_trained, metrics)
        if table["concordance_index"].isna().all():
            raise ValueError(
                f"the unregularised model could not be trained, so settings cannot be compared with it: "
                f"{table['error'].iloc[0]}"
            )
        best = int(table["concordance_index"].argmax())
        # One row per factor instead of one per setting.
        rows = plain.loc[plain[CANDIDATE] == table.index[best]]
        by_factor = rows.assign(**{CANDIDATE: rows[FACTOR]})
        self.control_ = setting_table(by_factor, metrics).reset_index(drop=True)
        full = float(self.control_["gain_over_null"].iloc[0])
        for table in (self.results_, self.control_):
            table["gain_share"] = kept_share(table["gain_over_null"], full)
        self.reference_ = self.control_.iloc[0].drop(FACTOR)
        return references[best], rows.loc[rows[FACTOR] == 1.0]

    def _metrics(self, rule: SelectionRule, groups: pd.DataFrame | None, comparable: bool) -> tuple[str, ...]:
        """Return the names of the metrics to compute."""
        read = list(_read_by(rule).values())
        asked = [*(self.metrics or ()), *read]
        unknown = [name for name in asked if name not in known_metrics()]
        if unknown:
            raise ArgumentError(
                "metrics",
                f"metrics={unknown[0]!r} is not a metric that a search can compute; choose from "
                f"{', '.join(known_metrics())}.{did_you_mean(unknown[0], known_metrics())}",
            )
        _check_direction(rule)
        grouped = [name for name in asked if "groups" in CATALOGUE[name].needs]
        if groups is None and grouped:
            raise ArgumentError(
                "sensitive_features",
                f"{grouped[0]} compares groups: pass sensitive_features, or use a rule that does not compare groups, "
                "such as BestScore().",
            )
        if not comparable and any(name in read for name in grouped):
            raise ArgumentError(
                "sensitive_features",
                f"{grouped[0]} compares groups, and sensitive_features has no two with at least "
                f"{self.min_group:,} patients and {self.min_events:,} events: merge groups, or use a rule that does "
                "not compare groups, such as BestScore().",
            )
        parts = [part for name in asked for part in CATALOGUE[name].reads if CATALOGUE[part].of != "groups"]
        return tuple(dict.fromkeys([*_ALWAYS, *(() if groups is None else _DISPARITIES), *asked, *parts]))

    def _score(
        self,
        models: list[NetworkEstimator],
        points: Sequence[dict[str, Any]],
        trials: Trials,
        folds: Sequence[Fold],
    ) -> list[list[dict[str, Any]]]:
        """Return for each model one row per fold and factor: its number, its parameters and its metrics.

        The unregularised models come after the settings; only they are also evaluated with shrunken scores.
        """
        settings = [*points, *(_rate(model) for model in models[len(points) :])]
        plain = [[len(points) + m for m in part] for part in batches(models[len(points) :])]
        tasks: list[tuple[list[int], tuple[float, ...], int]] = [
            (part, factors, k)
            for parts, factors in ((batches(models[: len(points)]), (1.0,)), (plain, FACTORS))
            for part in parts
            for k in range(len(folds))
        ]
        work = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(trials.fold)([clone(models[m]) for m in part], folds[k], factors)
            for part, factors, k in tasks
        )
        rows: list[list[dict[str, Any]]] = [[] for _ in models]
        with bar(f"{type(models[0]).__name__} search", len(tasks), shown=self.verbose, late=True) as advance:
            for (part, factors, k), scored in zip(tasks, work, strict=True):
                for m, by_factor in zip(part, scored, strict=True):
                    rows[m] += [
                        {CANDIDATE: m, FOLD: k, FACTOR: factor, **settings[m], **found}
                        for factor, found in zip(factors, by_factor, strict=True)
                    ]
                advance()
        return rows

    def predict(self, X: Any) -> FloatArray:
        """Log risk (n,) by the chosen setting; higher means an earlier event."""
        return np.asarray(self._chosen.predict(X))

    def predict_survival_function(self, X: Any, return_array: bool = False, times: Any = None) -> Any:
        """Survival curves by the chosen setting."""
        return self._chosen.predict_survival_function(X, return_array=return_array, times=times)

    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False, times: Any = None
    ) -> Any:
        """Cumulative hazards by the chosen setting."""
        return self._chosen.predict_cumulative_hazard_function(X, return_array=return_array, times=times)

    def score(self, X: Any, y: Any) -> float:
        """Harrell's c-index of the chosen setting."""
        return float(self._chosen.score(X, y))

    @property
    def _chosen(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        # scikit-survival adds predict_survival_function to Pipeline.
        return self.best_estimator_


def _read_by(rule: SelectionRule) -> dict[str, str]:
    """Return the metrics that a rule uses, by the name of its attribute."""
    named = {part: getattr(rule, part, None) for part in ("metric", "minimise", "maximise")}
    return {part: name for part, name in named.items() if isinstance(name, str)}


def _check_direction(rule: SelectionRule) -> None:
    """Raise if a rule minimises a metric of which higher values are better, or the reverse."""
    wanted, maximise = {"minimise": "lower", "maximise": "higher"}, getattr(rule, "maximise", None)
    if isinstance(maximise, bool):
        wanted["metric"] = "higher" if maximise else "lower"
    for part, name in _read_by(rule).items():
        better = CATALOGUE[name].better
        if part in wanted and {better, wanted[part]} == {"higher", "lower"}:
            raise ArgumentError(
                part,
                f"{part}={name!r}: {better} values of it are better, but the rule prefers {wanted[part]} values: name "
                "another metric, or change maximise if the rule has it.",
            )


def _rate(model: NetworkEstimator) -> dict[str, float]:
    """Return the learning rate of a plain model under the name that it has in a grid."""
    return {"lr" if model._is_linear else "network__lr": learning_rate(model)}
