"""Grid search over settings of an estimator, with a rule that picks one."""

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
from drosurv.tuning.grids import Grid, default_grid, grid_points, plain_models
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
    """Pictures of a finished search, from its tables, its rule and its choice."""

    results_: pd.DataFrame
    control_: pd.DataFrame
    reference_: pd.Series[Any]
    rule_: SelectionRule
    best_index_: int

    def plot_front(self, ax: Axes | None = None, *, minimise: str = "concordance_imparity") -> Axes:
        """Draw the c-index against a disparity.

        Every setting is a point with its 95 % interval, where one is known; the line joins those that no other
        beats on both; the chosen one is ringed. The cross is the unregularised model, the dotted line its scores
        multiplied by c < 1, which moves disparities of hazards and leaves the c-index and concordance imparity where
        they are. The vertical line is the accuracy budget, where the rule has one.
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
            label="no other setting beats both",
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
        """Draw a disparity against the share of the unregularised model's gain over no model at all.

        The line is the unregularised model with its scores multiplied by c from 1 down to 0. A setting on or above
        the line has bought its low disparity by saying less, and nothing else; one below it has done better.
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
        """The picture with a ring around the chosen setting, where it is among the results, and words."""
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
                f"minimise: the search did not measure {name!r}; it has {list(table.columns)}. Name it in metrics."
            )
    known = table.dropna(subset=list(names))
    if known.empty:
        raise ValueError(
            f"there is nothing to draw: no setting has a number for {' and '.join(map(in_words, names))}. Groups may "
            "be too small to be compared."
        )
    return known


def _reach(table: pd.DataFrame, name: str) -> FloatArray | None:
    """Distances (2, settings) from a value to the ends of its interval; None where no interval is known."""
    if f"{name}_low" not in table:
        return None
    value, low, high = numbers(table, name, f"{name}_low", f"{name}_high")
    return np.nan_to_num(np.maximum(np.stack([value - low, high - value]), 0.0))


# Always measured: accuracy, and what the shrinkage control needs.
_ALWAYS = ("concordance_index", "log_partial_likelihood", "gain_over_null", "calibration_slope")
_DISPARITIES = ("concordance_imparity", "group_disparity", "intersectional_disparity")
# The first is the model itself, the others its shrunk versions.
FACTORS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02)


@dataclass(eq=False, repr=False)
class GridSearch(SearchPlots, MetaEstimatorMixin, BaseEstimator):
    """Tune any estimator of drosurv over a grid, under an accuracy budget or any other rule.

    Settings that may share a batch are trained as one. Each is scored on folds or on one validation part,
    and the rule picks one, which is trained again on everybody.

    Parameters
    ----------
    estimator : estimator, or Pipeline that ends in one
        What to tune; its parameters that the grid does not name stay. The steps before it are fitted anew on
        the training patients of each fold.
    grid : mapping of parameter to values, or a list of such, optional
        Parameters of the estimator, without the name of a Pipeline step. By default the paper's: alpha or the penalty's
        weight, and the learning rate where Adam trains.
    rule : SelectionRule, optional
        Picks a row of ``results_``. By default :class:`CarefulBudget`; without sensitive features, the best c-index.
        The plain model is a candidate beside every other one's settings, except of the paper's rule,
        :class:`AccuracyBudget`.
    cv : int, float, splitter or iterable
        Number of folds; or the share of patients in one validation part; or given folds (see
        :func:`drosurv.tuning.folds.parse_folds`).
    metrics : sequence of str, optional
        Measured beside those that the rule reads, such as ``integrated_brier_score``, ``dynamic_auc``,
        ``individual_disparity``.
    min_group, min_events : int
        Groups with fewer patients or events are left out of the disparities.
    bootstrap : int
        Replicates behind the standard errors of the c-index and of concordance imparity when there is only
        one validation part; folds give theirs by themselves.
    refit : bool
        Train the chosen setting on everybody.
    n_jobs : int, optional
        Processes, as in joblib.
    random_state : int, RandomState or None
        Draws the folds.
    verbose : bool, optional
        Show a progress bar when it takes long; by default only in a terminal.

    Attributes
    ----------
    best_estimator_ : estimator or Pipeline
        The chosen setting, trained on everybody.
    best_params_ : dict
        The chosen setting; empty if that is the plain model.
    best_index_ : int
        Its row in ``results_``.
    choice_ : Choice
        The rule's choice, with its reason and whether it had to fall back.
    results_ : DataFrame
        One row per setting: its parameters; the mean over folds of every metric, with ``<metric>_se`` and,
        for the c-index and concordance imparity, ``_low`` and ``_high`` (95 %); ``gain_share``, the gain in log
        partial likelihood over no model as a share of the unregularised model's. With several sensitive
        features a disparity is that of the attribute where it is largest; that of each attribute is in
        ``<metric>_<attribute>``. ``error`` says what went wrong in training, where something did. The plain
        model's row is the last one, marked in ``plain``; ``<minimise>_difference`` with ``_se`` compares every
        setting with it on the same patients.
    fold_results_ : DataFrame
        The same per setting and fold.
    reference_ : Series
        The unregularised model's row: a Cox model of the same network, at the best c-index of its settings.
    control_ : DataFrame
        What multiplying the unregularised model's scores by c does: the shrinkage control.

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
        """Search.

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features.
        y : structured array (n,)
            Event flag and time.
        sensitive_features : Series, DataFrame or array, optional
            One column of labels per attribute: disparities compare its groups, and penalties that compare
            groups are trained with them.
        groups : (n,) labels, optional
            Whose row it is, where patients have several: their rows are never both trained on and scored.

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
        # Among settings of plain Cox it is chosen from already.
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
        """The steps before the estimator, as one transformer or None, and the estimator."""
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
        """Set the unregularised model's row, its shrunk versions, and every setting's share of its gain.

        Returns that model and its scores by fold.
        """
        as_trained = plain.loc[plain[FACTOR] == 1.0]
        table = setting_table(as_trained, metrics)
        if table["concordance_index"].isna().all():
            raise ValueError(
                f"the unregularised model could not be trained, so nothing can be held against it: "
                f"{table['error'].iloc[0]}"
            )
        best = int(table["concordance_index"].argmax())
        # Each factor is a separate setting.
        own = plain.loc[plain[CANDIDATE] == table.index[best]]
        self.control_ = setting_table(own.assign(**{CANDIDATE: own[FACTOR]}), metrics).reset_index(drop=True)
        full = float(self.control_["gain_over_null"].iloc[0])
        for table in (self.results_, self.control_):
            table["gain_share"] = kept_share(table["gain_over_null"], full)
        self.reference_ = self.control_.iloc[0].drop(FACTOR)
        return references[best], own.loc[own[FACTOR] == 1.0]

    def _metrics(self, rule: SelectionRule, groups: pd.DataFrame | None, comparable: bool) -> tuple[str, ...]:
        read = list(_read_by(rule).values())
        asked = [*(self.metrics or ()), *read]
        unknown = [name for name in asked if name not in known_metrics()]
        if unknown:
            raise ArgumentError(
                "metrics",
                f"metrics={unknown[0]!r} is not a metric that a search measures; choose from "
                f"{', '.join(known_metrics())}.{did_you_mean(unknown[0], known_metrics())}",
            )
        _refuse_the_worst(rule)
        grouped = [name for name in asked if "groups" in CATALOGUE[name].needs]
        if groups is None and grouped:
            raise ArgumentError(
                "sensitive_features",
                f"{grouped[0]} compares groups: pass sensitive_features, or choose with a "
                f"rule that does not, such as the best c-index.",
            )
        if not comparable and any(name in read for name in grouped):
            raise ArgumentError(
                "sensitive_features",
                f"{grouped[0]} compares groups, and sensitive_features has no two with at least "
                f"{self.min_group:,} patients and {self.min_events:,} events: merge groups, or choose with a "
                f"rule that does not compare them, such as the best c-index.",
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
        """Of each model one row per fold and factor: its number, its parameters and its metrics.

        After the settings come the unregularised models, and only they are also scored shrunk.
        """
        settings = [*points, *({"lr": model.lr} for model in models[len(points) :])]
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
        # Of a Pipeline, scikit-survival passes curves on as well.
        return self.best_estimator_


def _read_by(rule: SelectionRule) -> dict[str, str]:
    """Metrics that a rule looks at, by the part they play in it."""
    named = {part: getattr(rule, part, None) for part in ("metric", "minimise", "maximise")}
    return {part: name for part, name in named.items() if isinstance(name, str)}


def _refuse_the_worst(rule: SelectionRule) -> None:
    """Raise if a rule takes the worst values of a metric for the best."""
    wanted, maximise = {"minimise": "lower", "maximise": "higher"}, getattr(rule, "maximise", None)
    if isinstance(maximise, bool):
        wanted["metric"] = "higher" if maximise else "lower"
    for part, name in _read_by(rule).items():
        better = CATALOGUE[name].better
        if part in wanted and {better, wanted[part]} == {"higher", "lower"}:
            raise ArgumentError(
                part,
                f"{part}={name!r} is better the {better}, but rule takes {wanted[part]} for "
                "better: name another metric, or turn maximise round where the rule has it.",
            )
