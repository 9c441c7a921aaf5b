"""A survival model that is corrected for the groups it is wrong about."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from drosurv.errors import Argument, ArgumentError
from drosurv.estimators.baseline import HeldStepFunction
from drosurv.estimators.cox import CoxPH
from drosurv.estimators.parameters import check_count, check_number
from drosurv.insight.coded_table import readable_table
from drosurv.insight.curves import predicted_curves
from drosurv.metrics import FollowUp
from drosurv.repairs.baseline_factor import BaselineFactor
from drosurv.repairs.effect_columns import EffectColumns
from drosurv.repairs.expected_events import (
    Expected,
    expected_of_fitted,
    expected_of_frozen,
    log_risk,
    reference_times,
    take,
)
from drosurv.repairs.finding import Attempt, Settings, draw_folds, find_repairs
from drosurv.repairs.prediction_grid import PredictionGrid
from drosurv.repairs.progress import bar
from drosurv.repairs.words import status
from drosurv.target import FloatArray, Target, parse_target

if TYPE_CHECKING:
    import pandas as pd

    from drosurv.repairs.repair import Repair

# Cumulative hazards of held-out patients are held to [this, log n + 3]: one outlier must not decide.
SMALLEST_EXPECTED = 1e-4
SMALLEST_SURVIVAL = 1e-300


class RepairedCox(BaseEstimator):
    """A survival model that finds the groups it is wrong about, and corrects itself there.

    A base model is fitted. Readable rules are searched for patients of whom more or fewer had the event than it
    expected, or for whom features have other effects. The model's hazards are then multiplied there. Each such
    repair is kept only if patients who were used neither to find nor to fit it gain.

    Parameters
    ----------
    base : estimator, optional
        Unfitted, with ``fit`` and survival curves or cumulative hazards: ours, scikit-survival's or a Pipeline;
        plain Cox (:class:`drosurv.CoxPH`) if not given.
    max_repairs : int
        At most so many repairs.
    max_conditions : int
        At most so many conditions in a rule.
    min_group : int or "auto"
        Least number of patients in a group; "auto" is n / 80, but at least 20 and at most 50.
    min_events : int
        Least number of events in a group, both observed and expected.
    folds : int
        Into how many parts the patients are split; at least 3.
    evidence : float
        Least e-value. If a frozen model is right, a repair of one kind passes with probability at most 1 over it.
    tau : float
        Prior standard deviation of effects that differ: log hazard ratios per standard deviation of a column.
    random_state : int, Generator or None
        Seed or source of the folds.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    base_ : estimator
        Fitted on all patients; None where only predictions were given to :func:`drosurv.repair`.
    repairs_ : list of Repair
        What was corrected, in this order.
    attempts_ : list of Attempt
        Every repair that was put to the test, whether it passed or not.
    status_ : str
        What was found, in one sentence.
    min_group_ : int
        Least number of patients in a group that was used.
    n_patients_, n_events_ : int

    Examples
    --------
    >>> from drosurv import RepairedCox
    >>> from drosurv.datasets import make_hidden_minority
    >>> data = make_hidden_minority(n_samples=2000, random_state=0)
    >>> model = RepairedCox(random_state=0).fit(data.X, data.y)
    >>> [str(repair.rule) for repair in model.repairs_]
    ['x5 > 1.08']
    """

    def __init__(
        self,
        base: Any = None,
        max_repairs: int = 5,
        max_conditions: int = 2,
        min_group: int | str = "auto",
        min_events: int = 10,
        folds: int = 5,
        evidence: float = 20.0,
        tau: float = 0.5,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.base = base
        self.max_repairs = max_repairs
        self.max_conditions = max_conditions
        self.min_group = min_group
        self.min_events = min_events
        self.folds = folds
        self.evidence = evidence
        self.tau = tau
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Survival targets are structured arrays, which scikit-learn has no tag for."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any, features: Any = None) -> Self:
        """Fit the base model, then find and fit repairs.

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features, as the base model takes them.
        y : structured array (n,)
            Event flag and time; see :class:`drosurv.Surv`.
        features : (n, d') DataFrame, optional
            Columns that rules may speak about, in units a reader knows; ``X`` by default. Then needed in
            prediction too.

        Returns
        -------
        self
        """
        target, tables = self._begin(X, y, features)
        base = CoxPH() if self.base is None else self.base
        self.base_ = clone(base).fit(X, y)
        self._curve_times = curve_times(self.base_, X, target)
        if self._too_few(target):
            return self
        rng = np.random.default_rng(self.random_state)
        folds = draw_folds(len(target), self.folds, rng, target.event)
        edges = BaselineFactor.intervals(target)
        at_edges = np.empty((len(target), len(edges)))
        parts: list[Expected] = []
        with bar(self.verbose) as progress:
            for fold in range(self.folds):
                progress("base model", fold, self.folds)
                out = folds == fold
                model = clone(base).fit(take(X, ~out), target.take(~out).to_structured())
                held = take(X, out)
                parts.append(expected_of_fitted(model, held, target.take(out), self._times))
                at_edges[out] = hazards_of(model, held)(edges)
            expected = Expected.joined(parts, folds).held(SMALLEST_EXPECTED, np.log(len(target)) + 3)
            r = self._find(expected, tables, folds, progress)
        if self.repairs_:
            self._factor = BaselineFactor.learn(edges, at_edges, expected.hazard, r, target)
        return self

    def _fit_frozen(self, model: Any, X: Any, y: Any, features: Any) -> Self:
        """Repair a model that stays as it is, from what it says of patients it was not trained on."""
        target, tables = self._begin(X, y, features)
        self.base_ = None if isinstance(model, tuple) else model
        if self.base_ is not None:
            self._curve_times = curve_times(self.base_, X, target)
        expected = expected_of_frozen(model, X, target, self._times)
        if self._too_few(target):
            return self
        # Folds drawn by events would make likelihood ratios larger than 1 on average.
        folds = draw_folds(len(target), self.folds, np.random.default_rng(self.random_state))
        with bar(self.verbose) as progress:
            self._find(expected, tables, folds, progress, frozen=True)
        return self

    def _begin(self, X: Any, y: Any, features: Any) -> tuple[Target, tuple[pd.DataFrame, pd.DataFrame]]:
        for earlier in [name for name in vars(self) if name.endswith("_") or name == "_factor"]:
            # A fit that fails leaves no model behind.
            del self.__dict__[earlier]
        self._check_parameters()
        validate_data(self, X, skip_check_array=True)
        target = parse_target(y)
        if len(target) < 2:
            raise ValueError(f"X has {len(target)} sample, but a minimum of 2 is required.")
        self.n_patients_, self.n_events_ = len(target), target.n_events
        self.min_group_ = (
            int(min(50, max(20, len(target) / 80))) if self.min_group == "auto" else int(self.min_group)
        )
        self.follow_up_ = FollowUp.of(target)
        self._times = reference_times(target)
        self._own_features = features is not None
        table = readable_table(X, len(target))
        return target, (readable_table(features, len(target)) if self._own_features else table, table)

    def _check_parameters(self) -> None:
        check_count("max_repairs", self.max_repairs, least=0)
        check_count("max_conditions", self.max_conditions)
        check_count("min_events", self.min_events)
        check_count("folds", self.folds, least=3)
        check_number("evidence", self.evidence, positive=True)
        check_number("tau", self.tau, positive=True)
        if isinstance(self.min_group, str):
            if self.min_group != "auto":
                raise ArgumentError.must("min_group", 'be a number of patients or "auto"', self.min_group)
        else:
            check_count("min_group", self.min_group, least=2)

    def _too_few(self, target: Target) -> bool:
        """Whether the search cannot find anything, and if so, say what it needs."""
        self.repairs_: list[Repair] = []
        self.attempts_: list[Attempt] = []
        # The shortest chain sees two folds of five; the group and the rest each need their events there.
        share = max(1, (self.folds + 1) // 2 - 1) / self.folds
        events, patients = (int(np.ceil(2 * least / share)) for least in (self.min_events, self.min_group_))
        short = [
            f"{has:,} {what} are too few, it takes {needs:,}"
            for has, needs, what in (
                (target.n_events, events, "events"),
                (len(target), patients, "patients"),
            )
            if has < needs
        ]
        self.status_ = f"No group was looked for: {' and '.join(short)}." if short else ""
        return bool(short)

    def _find(
        self,
        expected: Expected,
        tables: tuple[pd.DataFrame, pd.DataFrame],
        folds: NDArray[np.intp],
        progress: Callable[[str, int, int], None],
        *,
        frozen: bool = False,
    ) -> FloatArray:
        """Find repairs; each patient's log hazard ratio from the repairs found without him, (n,)."""
        rules, effects = tables
        self._columns = EffectColumns.learn(effects, expected.log_risk)
        settings = Settings(
            max_repairs=self.max_repairs,
            max_conditions=self.max_conditions,
            min_group=self.min_group_,
            min_events=self.min_events,
            evidence=float(self.evidence),
            tau=float(self.tau),
            frozen=frozen,
        )
        self.repairs_, self.attempts_, r = find_repairs(
            expected,
            rules,
            self._columns,
            effects,
            folds,
            ("everyone", "effects", "level"),
            settings,
            progress,
        )
        self.status_ = status(self.repairs_, int(expected.events.sum()), self.min_group_)
        return r

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit has come to its end."""
        return hasattr(self, "status_")

    @property
    def unique_times_(self) -> FloatArray:
        """Times of the base model's curves, (K,)."""
        check_is_fitted(self)
        return self._curve_times

    def log_hazard_ratios(self, X: Any, features: Any = None) -> FloatArray:
        """What the repairs add to each patient's log hazard, (n,).

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features, as in ``fit``.
        features : (n, d') DataFrame, optional
            Columns that rules speak about, if ``fit`` was given some.
        """
        self._check(X)
        return self._ratios(X, features, log_risk(self.base_, X, len(X), self._times))

    def predict(self, X: Any, features: Any = None) -> FloatArray:
        """Log risk (n,) of each patient, higher means sooner; parameters as in :meth:`log_hazard_ratios`.

        For a base without proportional hazards: log of the mean cumulative hazard at the quartiles of event times.
        """
        self._check(X)
        risk = log_risk(self.base_, X, len(X), self._times)
        own: FloatArray = np.asarray(self.base_.predict(X)) if is_proportional(self.base_) else risk
        return own + self._ratios(X, features, risk)

    def predict_survival_function(
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None, *, features: Any = None
    ) -> NDArray[Any]:
        """Survival curves S(t | x).

        Parameters
        ----------
        X : (n, d) array or DataFrame
        return_array : bool
            False: (n,) step functions. True: (n, T) values.
        times : (T,) array, optional
            Times of the values; ``unique_times_`` if not given. Giving them implies ``return_array=True``.
        features : (n, d') DataFrame, optional
            Columns that rules speak about, if ``fit`` was given some.
        """
        return self._curves(X, features, return_array, times, lambda hazard: np.exp(-hazard))

    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None, *, features: Any = None
    ) -> NDArray[Any]:
        """Cumulative hazards H(t | x); parameters as in :meth:`predict_survival_function`."""
        return self._curves(X, features, return_array, times, lambda hazard: hazard)

    def correct(self, predictions: tuple[ArrayLike, ArrayLike], X: Any, features: Any = None) -> FloatArray:
        """Repaired survival (n, m) of patients for whom only predictions (times, survival) are known.

        Parameters
        ----------
        predictions : pair (times, survival)
            Increasing times (m,) and survival probabilities (n, m) of the model that was repaired.
        X, features
            As in :meth:`log_hazard_ratios`.
        """
        check_is_fitted(self)
        n = len(X)
        grid = PredictionGrid.parse(predictions, n)
        ratios = self._ratios(X, features, grid.log_risk(self._times))
        survival = np.asarray(predictions[1], dtype=np.float64)
        corrected: FloatArray = np.clip(survival, 0.0, 1.0) ** np.exp(ratios)[:, None]
        return corrected

    def score(self, X: Any, y: Any, features: Any = None) -> float:
        """Harrell's c-index of the predicted risks."""
        from drosurv.metrics import concordance_index

        return float(concordance_index(y, self.predict(X, features)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file that :func:`drosurv.load` reads; see :func:`drosurv.save`."""
        from drosurv.persistence import save

        save(self, path)

    def _check(self, X: Any) -> None:
        check_is_fitted(self)
        if self.base_ is None:
            raise ValueError(
                "only predictions of the repaired model are known, so it cannot predict: pass its predictions for "
                "these patients to correct((times, survival), X)."
            )
        validate_data(self, X, skip_check_array=True, reset=False)

    def _ratios(self, X: Any, features: Any, risk: FloatArray) -> FloatArray:
        n = len(X)
        if not self.repairs_:
            return np.zeros(n)
        effects = readable_table(X, n, getattr(self, "feature_names_in_", None))
        table = features if self._own_features else effects
        rules = effects if table is effects or table is None else readable_table(table, n)
        wanted = sorted({c.column for r in self.repairs_ if r.rule for c in r.rule.conditions})
        if missing := [column for column in wanted if table is None or column not in rules]:
            raise ArgumentError(
                Argument("features"),
                f" must hold the columns {missing}, which the repairs' rules speak about.",
            )
        columns = self._columns.of(effects, risk)
        ratios: FloatArray = np.sum([r.log_hazard_ratios(rules, columns) for r in self.repairs_], axis=0)
        return ratios

    def _curves(
        self,
        X: Any,
        features: Any,
        return_array: bool,
        times: ArrayLike | None,
        shown: Callable[[FloatArray], FloatArray],
    ) -> NDArray[Any]:
        self._check(X)
        at = self._curve_times if times is None else check_times(times)
        ratios = self._ratios(X, features, log_risk(self.base_, X, len(X), self._times))
        hazard = hazards_of(self.base_, X)
        factor = getattr(self, "_factor", None)
        found = hazard(at) if factor is None else factor.applied(hazard, at)
        values = shown(found * np.exp(ratios)[:, None])
        if return_array or times is not None:
            return values
        curves = np.empty(len(values), dtype=object)
        for i, row in enumerate(values):
            curves[i] = HeldStepFunction(at, row)
        return curves


def is_proportional(model: Any) -> bool:
    """Whether a model's ``predict`` is a log risk under proportional hazards."""
    final = model.steps[-1][1] if hasattr(model, "steps") else model
    return hasattr(final, "cum_baseline_hazard_")


def hazards_of(model: Any, X: Any) -> Callable[[FloatArray], FloatArray]:
    """Cumulative hazards (n, T) of a model's patients, as a function of times (T,)."""
    curves = predicted_curves(model, X, len(X))
    return lambda times: -np.log(np.maximum(curves.at(times), SMALLEST_SURVIVAL))


def curve_times(model: Any, X: Any, target: Target) -> FloatArray:
    """Times at which a model's curves step; times of events for a model whose curves are smooth."""
    if hasattr(model, "predict_survival_function"):
        first = model.predict_survival_function(take(X, np.arange(1)))[0]
        if hasattr(first, "x"):
            return np.asarray(first.x, dtype=np.float64)
    return np.unique(np.concatenate([[0.0], target.time[target.event]]))


def check_times(times: ArrayLike) -> FloatArray:
    """Reject what is not a list of times."""
    found = np.asarray(times, dtype=np.float64)
    if found.ndim != 1 or not np.isfinite(found).all() or (found < 0).any():
        raise ArgumentError.must("times", "be a list of finite times >= 0", times)
    return found
