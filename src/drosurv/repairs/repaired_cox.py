"""A survival model that is corrected for the subgroups it is wrong about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted, validate_data

from drosurv.errors import ArgumentError, InputError, arg, check_count, check_number, require
from drosurv.estimators.coefficient_inference import summary as base_summary
from drosurv.estimators.cox_cv import CoxPHCV
from drosurv.judging.from_predictions import require_an_event
from drosurv.judging.rules import CodedTable, readable_table
from drosurv.metrics import FollowUp
from drosurv.patients.arrays import batches
from drosurv.patients.draws import draw_folds, row_order
from drosurv.patients.observation import Rows, copies, generator, given_weight
from drosurv.patients.target import (
    BoolArray,
    FloatArray,
    IntArray,
    Target,
    parse_target,
    with_fields,
    y_field,
)
from drosurv.predictions import as_predictions
from drosurv.predictions.any_model import final_step, fit_any
from drosurv.presentation import Table, literal
from drosurv.presentation.drawing import ProgressCallback, bar
from drosurv.repairs.at_few_times import AtFewTimes
from drosurv.repairs.bayes_factors import TOGETHER, Clusters, Limits, OverTime, Residuals
from drosurv.repairs.checked_search import Attempt, CheckedSearch, Trial, fewest_folds, find_repairs
from drosurv.repairs.effect_columns import EffectColumns
from drosurv.repairs.expected import (
    QUARTILES,
    Expected,
    FoldFits,
    expected_of_frozen,
    precision,
    reference_times,
)
from drosurv.repairs.repair import EffectChange, Repair, effect_changes, only_linear_column
from drosurv.repairs.repair_search import AtTimes
from drosurv.repairs.repair_views import (
    hazard_ratio_table,
    in_words,
    linear_columns,
    linear_effects,
    plot_repairs,
    repair_frame,
    repair_table,
    status,
)
from drosurv.repairs.repaired_predictions import (
    BaselineFactor,
    RepairedPredictions,
    curve_times,
    intervals_between,
    intervals_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVENTS_PER_FEATURE = 10


@dataclass(eq=False, repr=False)
class RepairedCox(RepairedPredictions):
    """A survival model that is corrected for the subgroups it is wrong about.

    A base model is fitted. Then rules are searched for: subgroups with more or fewer events than it predicts, or with
    other effects of features. A repair multiplies the model's hazards there. Where the effect of the predicted risk
    changes over the follow-up, a repair multiplies the hazards by period. It is kept only if it increases the
    likelihood of patients who were used neither to find nor to fit it.

    Parameters
    ----------
    base : estimator or None
        Unfitted model that predicts survival curves or cumulative hazards: ours, scikit-survival's or a Pipeline. None
        is :class:`drosurv.CoxPHCV`, so that a nonlinear effect is not mistaken for a subgroup.
    max_repairs : int
        Largest number of repairs.
    max_conditions : int
        Largest number of conditions in a rule.
    min_group : int or "auto"
        Smallest number of patients in a subgroup; "auto" is n / 80, but at least 20 and at most 50.
    min_events : int
        Smallest number of events in a subgroup, both observed and expected.
    folds : int
        Number of folds; at least 3.
    evidence : float
        Smallest e-value that a repair must reach. If a frozen model is right, a repair of one kind is accepted with
        probability at most 1 / evidence.
    tau : float
        Prior standard deviation of effects that differ: log hazard ratios per standard deviation of a column.
    random_state : int, Generator or None
        Seed or source of the folds.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    base_ : estimator
        Base model fitted on all patients; None if only predictions were given to :func:`drosurv.repair`.
    repairs_ : list of Repair
        Corrections, in the order in which they were found.
    attempts_ : list of Attempt
        Every repair that was tested, accepted or not.
    checked_ : (k, n) bool
        Which training patients are in each repair's subgroup, by the rule found without their fold; not saved.
    held_out_ : (n,) float64
        Log hazard ratio of each training patient by the repairs found without their fold, but for a repair by period;
        not saved.
    status_ : str
        What was found, in one or two sentences.
    min_group_ : int
        Smallest number of patients in a subgroup, as used.
    n_patients_, n_events_ : int

    Examples
    --------
    >>> from drosurv import CoxPH, RepairedCox
    >>> from drosurv.datasets import make_hidden_minority
    >>> data = make_hidden_minority(n_samples=1000, random_state=0)
    >>> model = RepairedCox(base=CoxPH(), random_state=0).fit(data.X, data.y)
    >>> [str(repair.rule) for repair in model.repairs_]
    ['x5 > 1.1']
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

    # Fitted attributes with values of single training patients.
    _per_patient = ("checked_", "held_out_")

    def fit(
        self,
        X: Any,
        y: Any,
        features: Any = None,
        sample_weight: Any = None,
        *,
        strata: Any = None,
        offset: Any = None,
    ) -> Self:
        """Fit the base model, then find and fit repairs.

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features, as the base model takes them.
        y : structured array (n,)
            Event flag and time, with further fields as in :meth:`drosurv.CoxPH.fit`, for a base model that takes them.
            The log likelihoods of several rows of one patient are added. Clusters, without them patients, stay in one
            fold, and count in the evidence as much as the mean of their patients.
        features : (n, d') DataFrame, optional
            Columns that rules may use, in units a reader knows; ``X`` by default. If given, predictions need them too.
        sample_weight : (n,) array, optional
            Number of copies that each row stands for, in the base model and in the search, unless it is the field
            ``weight`` of `y`.
        strata, offset
            Not supported: a rule is for patients of all strata, and predictions of a repaired model take no offset.
            Give strata as a column, or repair one model for each stratum.

        Returns
        -------
        self
        """
        for name, value in {"strata": strata, "offset": offset}.items():
            if value is not None:
                raise ArgumentError(
                    name,
                    f"{arg(name)} is not supported by RepairedCox, whose rules are for all patients: leave it out, "
                    "give it "
                    "as a column of X, or fit one model for each stratum.",
                )
        return self._fit(self._base(), X, y, features, sample_weight)

    def _base(self) -> Any:
        """Return the unfitted base model."""
        if self.base is None:
            return CoxPHCV(random_state=self.random_state if isinstance(self.random_state, Integral) else 0)
        fits = hasattr(self.base, "fit") and hasattr(self.base, "get_params")
        require(fits, "base", "be an estimator such as CoxPH() or None", self.base)
        return self.base

    def _fit(self, base: Any, X: Any, y: Any, features: Any, sample_weight: Any = None) -> Self:
        """Fit the base model, then find and fit repairs."""
        target, tables = self._begin(X, y, features)
        n, given = len(target), given_weight(y, sample_weight)
        weight = np.ones(n) if given is None else copies(given, n)
        rows = Rows.parse(y, judged=False)
        if given is not None:
            y = with_fields(y, weight=weight)
        self.base_ = fit_any(base, X, y)
        self._curve_times = curve_times(self.base_, X, target)
        clusters = self._parse_clusters(rows, n)
        if self._too_few(target, clusters, tables[1].shape[1]):
            return self
        folds = self._drawn(clusters, row_order(target, X, rows.entry, rows.cluster, given), target.event)
        edges = BaselineFactor.intervals(target)
        fits = FoldFits(base, self.base_, X, np.asarray(y), folds, self._times, edges[1:])
        over_time = (edges, intervals_of(target.time, edges))
        with bar("", shown=self.verbose) as progress:
            expected = fits.joined(fits.out_of_fold(progress))
            weighted = expected.weighted(weight)
            accepted, starts = self._find(weighted, tables, folds, clusters, progress, over_time)
            if accepted:
                # Their arrays are not needed.
                del accepted
                # Once more, with predictions that do not depend on the fold on which a repair is checked. They are
                # needed by period only.
                alone = [expected.part(folds == fold, starts) for fold in range(fits.n_folds)]
                fits = replace(fits, edges=edges[starts[1:]])
                parts = fits.without_each_fold(alone, progress)
                # Each part is freed when its patients are joined.
                without = (fits.joined(parts.pop(0)).weighted(weight) for _ in range(len(parts)))
                accepted, _ = self._find(
                    weighted, tables, folds, clusters, progress, over_time, without=(starts, without)
                )
        if accepted:
            assert expected.by_interval is not None
            r, over = self.held_out_, [trial.held_out for trial in accepted if trial.held_out is not None]
            total = np.zeros(len(edges))
            for part in batches(len(target), TOGETHER):
                by_interval = (
                    np.exp(r[part, None] + sum(by[part] for by in over)) * expected.by_interval[part]
                )
                total += weight[part] @ by_interval
            self._factor = BaselineFactor.learn(edges, total, target, weight)
        self._add_changes(X, tables[0])
        return self

    def _fit_frozen(self, model: Any, X: Any, y: Any, features: Any, causes: Any = None) -> Self:
        """Repair a fitted model without refitting it, from predictions for patients it was not trained on.

        With one cause of several, `y` has its events, and `causes` is the target with all.
        """
        target, tables = self._begin(X, y, features)
        rows = Rows.parse(y, judged=y_field(y, "entry") is None)
        of_patients = rows.clusters is None
        if rows.entry is None and rows.patient is not None and np.bincount(rows.patient).max() > 1:
            # Without entry times, rows of one patient are a cluster.
            rows = replace(rows, clusters=rows.cluster, patient=None)
        clusters = replace(self._parse_clusters(rows, len(target)), of_patients=of_patients)
        predicted = as_predictions(model, X, len(target), need_curves=True, cause=self._cause)
        require_an_event(predicted, target)
        self._n_causes = 0 if predicted.competing is None else len(predicted.competing.causes)
        if predicted.given is None:
            self.base_, times = model, curve_times(model, X, target, self._cause)
        else:
            known = predicted.survival_curves.times
            self.base_, times = None, target.curve_times if known is None else np.union1d(0.0, known)
        # Not quantiles of event times, because the columns of a patient must not depend on outcomes.
        self._curve_times, self._times = times, np.quantile(times, QUARTILES)
        edges = intervals_between(times)
        of_rows = Rows(entry=rows.entry, clusters=clusters.number if clusters.of_several else None)
        one = self._cause if self._n_causes > 1 else None
        outcomes = target.to_structured() if one is None else causes
        few_times = AtFewTimes.of(predicted, outcomes, of_rows, clusters.share, one)
        if self._too_few(target, clusters):
            return self
        # Not stratified by events: the mean of likelihood ratios would then exceed 1.
        folds = self._drawn(clusters, row_order(target, tables[1], rows.entry, rows.cluster))
        with bar("", shown=self.verbose) as progress:
            over_time = (edges, intervals_of(target.time, edges))
            if few_times is None:
                cuts = edges[1:]
                expected = expected_of_frozen(model, X, target, self._times, rows.entry, cuts, self._cause)
            else:
                expected = few_times.expected(self._times)
            trials, _ = self._find(
                expected, tables, folds, clusters, progress, over_time, frozen=True, at_times=few_times
            )
        if few_times is not None and not any(repair.periods for repair in self.repairs_):
            pairs = zip(self.repairs_, trials, strict=True)
            self.repairs_ = [few_times.described(repair, trial) for repair, trial in pairs]
        self._add_changes(X, tables[0])
        return self

    def _begin(self, X: Any, y: Any, features: Any) -> tuple[Target, tuple[pd.DataFrame, pd.DataFrame]]:
        """Check the arguments; return the target, and the tables of rules and of effects."""
        self._forget_last_fit()
        self._check_parameters()
        validate_data(self, X, skip_check_array=True)
        target = parse_target(y)
        if len(target) < 2:
            raise InputError(f"X has {len(target)} sample, but a minimum of 2 is required.")
        self.n_patients_, self.n_events_ = len(target), target.n_events
        self.follow_up_ = FollowUp.of(target)
        self._factor = None
        self._columns = EffectColumns(())
        self._times = reference_times(target)
        self._own_features = features is not None
        table = readable_table(X, len(target))
        rules = readable_table(X, len(target), features=features) if self._own_features else table
        return target, (rules, table)

    def _parse_clusters(self, rows: Rows, n: int) -> Clusters:
        """Return the clusters of the rows, each row if there are none, and set the smallest size of a subgroup."""
        number = np.arange(n) if rows.cluster is None else rows.cluster
        found = Clusters(number, rows.patient, rows.clusters is None)
        self.min_group_ = (
            int(min(50, max(20, len(found) / 80))) if self.min_group == "auto" else int(self.min_group)
        )
        return found

    def _drawn(self, clusters: Clusters, order: IntArray, event: BoolArray | None = None) -> IntArray:
        """Draw the fold of each row; `order` (n,) is that of :func:`row_order`."""
        wanted = f"be at most the number of patients or clusters, {len(clusters)}"
        require(self.folds <= len(clusters), "folds", wanted, self.folds)
        rng = generator(self.random_state)
        return draw_folds(len(clusters.number), self.folds, rng, event, clusters.number, order=order)

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

    def _too_few(self, target: Target, clusters: Clusters, n_columns: int = 0) -> bool:
        """Whether there are too few patients or events for a search; if so, the status says how many are needed.

        Events are counted as in the evidence: a cluster has the mean of its patients. `n_columns` are those of a model
        that is fitted.
        """
        self.repairs_: list[Repair] = []
        self.attempts_: list[Attempt] = []
        self.checked_, self.held_out_ = np.zeros((0, len(target)), dtype=np.bool_), np.zeros(len(target))
        # The subgroup and the other patients each need their events in the smallest part that is searched.
        part = fewest_folds(self.folds)
        needed: list[tuple[int, str]] = []
        for least in (self.min_events, self.min_group_):
            why = f"{least} in a group and {least} outside of it, in {part} of {self.folds} folds"
            needed.append((int(np.ceil(2 * least * self.folds / part)), why))
        # With fewer events per column, most of a fitted model's error is estimation error.
        per_column = (EVENTS_PER_FEATURE * n_columns, f"{EVENTS_PER_FEATURE} for each of {n_columns} columns")
        events = int(clusters.share @ target.event)
        short = [
            f"{counted} are too few, at least {needs:,} are needed ({why})"
            for has, (needs, why), counted in (
                (events, max(needed[0], per_column), f"{events:,} events"),
                (len(clusters), needed[1], clusters.counted),
            )
            if has < needs
        ]
        if short and clusters.of_several:
            short.append("the rows of one patient or cluster count together as one")
        self.status_ = (
            f"Nothing was repaired, because no subgroup was searched for: {'; '.join(short)}."
            if short
            else ""
        )
        return bool(short)

    def _find(
        self,
        expected: Expected,
        tables: tuple[pd.DataFrame, pd.DataFrame],
        folds: IntArray,
        clusters: Clusters,
        progress: ProgressCallback,
        over_time: tuple[FloatArray, IntArray],
        *,
        frozen: bool = False,
        without: tuple[IntArray, Iterable[Expected]] | None = None,
        at_times: AtTimes | None = None,
    ) -> tuple[list[Trial], IntArray]:
        """Find repairs, set the fitted attributes, and return the accepted trials and the intervals that begin periods.

        `over_time` are the beginnings (m,) of the intervals of time, and the interval (n,) in which each patient's time
        lies. `without` are the expected events that do not depend on each of the folds, and the intervals that begin
        longer ones in which they are counted; by default the same for all.
        `at_times` are predictions at few times.
        """
        rules, effects = tables
        edges, interval = over_time
        self._columns = EffectColumns.learn(effects, expected.log_risk)

        risk = self._columns.columns[0]
        columns = self._columns.of(effects, expected.log_risk, precision(len(effects)))

        def residuals_of(part: Expected, starts: IntArray, period: IntArray) -> Residuals:
            by_time = None
            if part.by_interval is not None:
                by_time = OverTime(part.by_interval, period, edges[starts], risk.scale)
            found = Residuals(expected.events, part.hazard, columns, over_time=by_time)
            if part is not expected:
                found = replace(found, log_risk=risk.scaled(part.log_risk))
            return found.averaged(clusters) if clusters.of_several else found

        residuals = residuals_of(expected, np.arange(len(edges)), interval)
        if without is not None:
            starts, parts = without
            longer = np.searchsorted(starts, interval, side="right") - 1
        checked = CheckedSearch(
            CodedTable.from_table(rules),
            residuals,
            folds,
            self.max_conditions,
            float(self.evidence),
            progress,
            frozen=frozen,
            without=None if without is None else [residuals_of(part, starts, longer) for part in parts],
            at_times=at_times,
        )
        limits = Limits(self.min_group_, self.min_events, float(self.tau))
        if not frozen:
            # A model without any effect may be right; one with reversed effects is a model of noise.
            limits = replace(limits, least_slope=-self._columns.columns[0].scale)
        tested = find_repairs(checked, limits, self.max_repairs)
        accepted = [trial for trial in tested if isinstance(trial, Trial) and trial.accepted]
        self.attempts_ = [trial.as_attempt() for trial in tested]
        self.repairs_ = [Repair.of(trial, expected, clusters) for trial in accepted]
        self.checked_ = np.array([trial.inside for trial in accepted], dtype=np.bool_).reshape(-1, len(folds))
        if accepted:
            self.held_out_ = accepted[-1].r_after
        searched = "the model" if self.base_ is None else type(final_step(self.base_)).__name__
        self.status_ = status(self.repairs_, int(residuals.events.sum()), self.min_group_, searched)
        if clusters.of_several:
            of, which = ("of", "whom") if clusters.of_patients else ("in", "which")
            self.status_ += (
                f" The {self.n_patients_:,} rows are {of} {clusters.counted}, each of {which} counts once in the tests "
                "of a correction."
            )
        return accepted, checked.period_starts if residuals.over_time is not None else np.empty(0, np.intp)

    def _add_changes(self, X: Any, rules: pd.DataFrame) -> None:
        """Add to each repair the hazard ratios that it changes."""
        linear = linear_columns(self.base_)
        for k, repair in enumerate(self.repairs_):
            changed: list[EffectChange] = []
            if self.base_ is not None:
                changed = effect_changes(repair, self.predict, self._columns, X, rules, self._own_features)
            self.repairs_[k] = replace(
                repair, changes=tuple(changed), linear_in=only_linear_column(repair, linear)
            )

    def in_words(self, time_unit: str = "") -> list[str]:
        """Describe each repair in sentences: who was predicted wrongly, what was changed, and with which effect.

        `time_unit`, such as "days", is that of the times.
        """
        check_is_fitted(self)
        return [in_words(repair, frozen=self._factor is None, unit=time_unit) for repair in self.repairs_]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each repair, with intervals as ``_low`` and ``_high``."""
        check_is_fitted(self)
        return repair_frame(self.repairs_)

    def to_markdown(self) -> str:
        """Return the status, the repairs in sentences, and the table of repairs, as Markdown."""
        check_is_fitted(self)
        parts = [literal(sentence) for sentence in (self.status_, *self.in_words())]
        if self.repairs_:
            parts.append(repair_table(self.repairs_).to_markdown().rstrip())
        return "\n\n".join(parts) + "\n"

    def summary(self, level: float = 0.95, **options: Any) -> pd.DataFrame:
        """Return the hazard ratios of a repaired model by subgroup; without repairs, the base model's summary.

        Parameters
        ----------
        level : float
            Confidence level of the intervals.
        **options
            Further arguments of the base model's ``summary``.

        Returns
        -------
        DataFrame
            For a linear model with repairs: the subgroup, the feature, its hazard ratio there and everyone's, without
            standard errors, which would not be valid after a search. For other models with repairs: :meth:`to_frame`.
            Without repairs: coefficients with standard errors, and a note that nothing was repaired.
        """
        check_is_fitted(self)
        if self.repairs_:
            linear = linear_effects(self.base_) is not None
            return pd.DataFrame(list(self.hazard_ratios().rows)) if linear else self.to_frame()
        if self.base_ is None:
            raise InputError(
                f"there is no summary: predictions were given, without a model that has coefficients. {self.status_}"
            )
        final = final_step(self.base_)
        if not hasattr(final, "summary"):
            raise InputError(
                f"{type(final).__name__} has no summary: to_frame() lists the repairs of every model."
            )
        found = base_summary(self.base_, level, **options)
        found.notes = (self.status_, *found.notes)
        return found

    def hazard_ratios(self) -> Table:
        """Return the hazard ratios of a linear model: for everyone, then where they differ in repaired subgroups."""
        check_is_fitted(self)
        return hazard_ratio_table(self.base_, self._columns, self.repairs_)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw observed over expected events of each repaired subgroup, before and after."""
        check_is_fitted(self)
        return plot_repairs(self.repairs_, ax)
