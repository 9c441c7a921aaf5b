"""A survival model that is corrected for the groups it is wrong about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from drosurv.errors import ArgumentError, require
from drosurv.estimators.cox import CoxPH
from drosurv.estimators.parameters import check_count, check_number
from drosurv.evaluation.predictions import take
from drosurv.folds import draw_folds
from drosurv.metrics import FollowUp
from drosurv.metrics.inference import generator
from drosurv.observation import label_codes
from drosurv.presentation import Table, literal
from drosurv.presentation.progress import Told, bar
from drosurv.repairs.acceptance import Attempt, Shadows, fewest_folds, find_repairs
from drosurv.repairs.curves import (
    QUARTILES,
    SMALLEST_EXPECTED,
    Expected,
    PredictionGrid,
    expected_of_fitted,
    expected_of_frozen,
    predicted_curves,
    reference_times,
)
from drosurv.repairs.evidence import EffectColumns, Limits, Residuals
from drosurv.repairs.repair import Repair
from drosurv.repairs.repaired_predictions import (
    BaselineFactor,
    RepairedPredictions,
    cumulative_hazard,
    curve_times,
)
from drosurv.repairs.rules import CodedTable, readable_table
from drosurv.repairs.views import (
    hazard_ratio_table,
    in_words,
    plot_repairs,
    repair_frame,
    repair_table,
    status,
)
from drosurv.target import BoolArray, IntArray, Target, parse_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVENTS_PER_FEATURE = 10


@dataclass(eq=False, repr=False)
class RepairedCox(RepairedPredictions):
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
    checked_ : (k, n) bool
        Whom each repair is for, each training patient by the rule found without him; a saved model leaves it out.
    held_out_ : (n,) float64
        Each training patient's log hazard ratio by repairs found without him; a saved model leaves it out.
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

    base: Any = None
    max_repairs: int = 5
    max_conditions: int = 2
    min_group: int | str = "auto"
    min_events: int = 10
    folds: int = 5
    evidence: float = 20.0
    tau: float = 0.5
    random_state: Any = None
    verbose: bool = False

    # Fitted attributes that speak of single training patients.
    _per_patient = ("checked_", "held_out_")

    def fit(self, X: Any, y: Any, features: Any = None, clusters: Any = None) -> Self:
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
        clusters : (n,) labels, optional
            Rows with the same label, such as those of one patient, are never on both sides of a check.

        Returns
        -------
        self
        """
        target, tables, clusters = self._begin(X, y, features, clusters)
        base = CoxPH() if self.base is None else self.base
        self.base_ = clone(base).fit(X, y)
        self._curve_times = curve_times(self.base_, X, target)
        # With fewer events for each feature, most of a fitted model's errors are those of fitting it.
        if self._too_few(target, EVENTS_PER_FEATURE * tables[1].shape[1]):
            return self
        folds = self._drawn(clusters, target.event)
        edges = BaselineFactor.intervals(target)
        at_edges = np.empty((len(target), len(edges)))
        parts: list[Expected] = []
        with bar("fitting the model in folds", self.folds, shown=self.verbose) as progress:
            for fold in range(self.folds):
                progress(fold)
                out = folds == fold
                model = clone(base).fit(take(X, ~out), target.take(~out).to_structured())
                curves = predicted_curves(model, take(X, out), int(out.sum()))
                parts.append(expected_of_fitted(curves, target.take(out), self._times))
                at_edges[out] = cumulative_hazard(curves, edges)
            expected = Expected.joined(parts, folds).held(SMALLEST_EXPECTED, np.log(len(target)) + 3)
            self._find(expected, tables, folds, clusters, progress)
        if self.repairs_:
            self._factor = BaselineFactor.learn(edges, at_edges, expected.hazard, self.held_out_, target)
        return self

    def _fit_frozen(self, model: Any, X: Any, y: Any, features: Any, clusters: Any) -> Self:
        """Repair a model that stays as it is, from what it says of patients it was not trained on."""
        target, tables, clusters = self._begin(X, y, features, clusters)
        if isinstance(model, tuple):
            self.base_, times = None, PredictionGrid.parse(model, len(target)).times
        else:
            self.base_, times = model, curve_times(model, X, target)
        # Not where events happened: the columns of a patient may not know his outcome.
        self._curve_times, self._times = times, np.quantile(times, QUARTILES)
        expected = expected_of_frozen(model, X, target, self._times)
        if self._too_few(target):
            return self
        # Folds drawn by events would make likelihood ratios larger than 1 on average.
        folds = self._drawn(clusters)
        with bar("", shown=self.verbose) as progress:
            self._find(expected, tables, folds, clusters, progress, frozen=True)
        return self

    def _begin(
        self, X: Any, y: Any, features: Any, clusters: Any
    ) -> tuple[Target, tuple[pd.DataFrame, pd.DataFrame], IntArray]:
        """The target, the tables of rules and of effects, and the cluster of each row."""
        for earlier in [name for name in vars(self) if name.endswith("_")]:
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
        self._factor = None
        self._columns = EffectColumns(())
        self._times = reference_times(target)
        self._own_features = features is not None
        table = readable_table(X, len(target))
        rules = readable_table(X, len(target), features=features) if self._own_features else table
        own = (
            np.arange(len(target)) if clusters is None else label_codes("clusters", clusters, len(target))[0]
        )
        return target, (rules, table), own

    def _drawn(self, clusters: IntArray, event: BoolArray | None = None) -> IntArray:
        """The fold of each row."""
        most = int(clusters.max()) + 1
        require(
            self.folds <= most, "folds", f"be at most the number of patients or clusters, {most}", self.folds
        )
        rng = generator(self.random_state)
        return draw_folds(len(clusters), self.folds, rng, event, clusters)

    def _check_parameters(self) -> None:
        fits = self.base is None or (hasattr(self.base, "fit") and hasattr(self.base, "get_params"))
        require(fits, "base", "be an estimator such as CoxPH(), or None", self.base)
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

    def _too_few(self, target: Target, least_events: int = 0) -> bool:
        """Whether the search cannot find anything, and if so, say what it needs."""
        self.repairs_: list[Repair] = []
        self.attempts_: list[Attempt] = []
        self.checked_, self.held_out_ = np.zeros((0, len(target)), dtype=np.bool_), np.zeros(len(target))
        # The group and the rest each need their events where the shortest chain looks.
        share = fewest_folds(self.folds) / self.folds
        events, patients = (int(np.ceil(2 * least / share)) for least in (self.min_events, self.min_group_))
        short = [
            f"{has:,} {what} are too few, it takes {needs:,}"
            for has, needs, what in (
                (target.n_events, max(events, least_events), "events"),
                (len(target), patients, "patients"),
            )
            if has < needs
        ]
        self.status_ = f"No group was looked for: {'; '.join(short)}." if short else ""
        return bool(short)

    def _find(
        self,
        expected: Expected,
        tables: tuple[pd.DataFrame, pd.DataFrame],
        folds: IntArray,
        clusters: IntArray,
        progress: Told,
        *,
        frozen: bool = False,
    ) -> None:
        """Find repairs, and keep all that is known of them."""
        rules, effects = tables
        self._columns = EffectColumns.learn(effects, expected.log_risk)
        residuals = Residuals(expected.events, expected.hazard, self._columns.of(effects, expected.log_risk))
        shadows = Shadows(
            CodedTable.from_table(rules),
            residuals,
            folds,
            self.max_conditions,
            float(self.evidence),
            progress,
            frozen=frozen,
        )
        limits = Limits(self.min_group_, self.min_events, float(self.tau))
        trials = find_repairs(shadows, limits, self.max_repairs)
        accepted = [trial for trial in trials if trial.accepted]
        self.attempts_ = [Attempt(t.kind, t.rule, t.gain, t.e, t.overlap, t.accepted) for t in trials]
        self.repairs_ = [Repair.of(trial, expected) for trial in accepted]
        self.checked_ = np.array([trial.inside for trial in accepted], dtype=np.bool_).reshape(-1, len(folds))
        if accepted:
            self.held_out_ = accepted[-1].r_after
        self.status_ = status(self.repairs_, int(expected.events.sum()), self.min_group_)
        n_clusters = int(clusters.max()) + 1
        if n_clusters < self.n_patients_:
            self.status_ += f" Counted are rows, {self.n_patients_:,} in {n_clusters:,} clusters."

    def in_words(self) -> list[str]:
        """What was wrong, for whom, what was changed and what it did: some sentences for each repair."""
        check_is_fitted(self)
        return [in_words(repair, self._columns) for repair in self.repairs_]

    def to_frame(self) -> pd.DataFrame:
        """One row for each repair, intervals as ``_low`` and ``_high``."""
        check_is_fitted(self)
        return repair_frame(self.repairs_)

    def to_markdown(self) -> str:
        """What was found in words, and the table of repairs."""
        check_is_fitted(self)
        parts = [literal(sentence) for sentence in (self.status_, *self.in_words())]
        if self.repairs_:
            parts.append(repair_table(self.repairs_).to_markdown().rstrip())
        return "\n\n".join(parts) + "\n"

    def hazard_ratios(self) -> Table:
        """A linear model as a table: everyone's hazard ratios, then the exceptions."""
        check_is_fitted(self)
        return hazard_ratio_table(self.base_, self._columns, self.repairs_)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Observed over expected events of each repaired group, before and after."""
        check_is_fitted(self)
        return plot_repairs(self.repairs_, ax)


def repair(
    model: Any,
    X: Any,
    y: Any,
    *,
    features: Any = None,
    frozen: bool = False,
    clusters: Any = None,
    **options: Any,
) -> RepairedCox:
    """Find the groups a survival model is wrong about, and correct it there.

    Parameters
    ----------
    model : estimator, or a pair (times, survival)
        With ``frozen=False`` an unfitted estimator, which is fitted on all patients and, to see its errors, on parts
        of them. With ``frozen=True`` a fitted model, or survival probabilities (n, m) at m increasing times, of
        patients that the model was not trained on; it is left as it is.
    X : (n, d) array or DataFrame
        Features, as the model takes them.
    y : structured array (n,)
        Event flag and time; see :class:`drosurv.Surv`.
    features : (n, d') DataFrame, optional
        Columns that rules may speak about, in units a reader knows; ``X`` by default.
    frozen : bool
        Whether the model stays as it is. Then the chance of a false repair is bounded whatever the data: see the
        guide on repairs.
    clusters : (n,) labels, optional
        Rows with the same label, such as those of one patient, are never on both sides of a check.
    **options
        Parameters of :class:`drosurv.RepairedCox`, such as ``max_repairs`` or ``random_state``.

    Returns
    -------
    RepairedCox
        Fitted. Where only predictions were given, use its ``correct``.

    Examples
    --------
    A model trained in one place, repaired with patients of another:

    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> there = make_hidden_minority(n_samples=2000, minority=0.0, random_state=0)
    >>> here = make_hidden_minority(n_samples=2000, minority=0.3, random_state=1)
    >>> model = drosurv.CoxPH().fit(there.X, there.y)
    >>> repaired = drosurv.repair(model, here.X, here.y, frozen=True, random_state=0)
    >>> str(repaired.repairs_[-1].rule)
    'x5 > 0.54'
    """
    if frozen:
        return RepairedCox(**options)._fit_frozen(model, X, y, features, clusters)
    if isinstance(model, tuple):
        raise ValueError(
            "predictions (times, survival) belong to a model that stays as it is: pass frozen=True."
        )
    return RepairedCox(base=model, **options).fit(X, y, features, clusters)
