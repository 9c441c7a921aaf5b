"""Cause-specific Cox models of competing risks, plain or robust, and their cumulative incidence."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from drosurv.curves import Baseline, CompetingCurves, FittedCurves, StepCurves, SumValues, checked_times
from drosurv.errors import InputError, check_alpha, check_count, check_number
from drosurv.estimators.base import SurvivalModel, piecewise, training_follow_up
from drosurv.estimators.capabilities import ROW_ARGUMENTS, Capabilities
from drosurv.estimators.coefficient_inference import (
    encoder_notes,
    feature_names,
    initial_findings,
    kept_training,
)
from drosurv.estimators.coefficients import CoxTable
from drosurv.estimators.coefficients.summary import (
    BesidePlain,
    Findings,
    bootstrap_coefficients,
    findings_table,
    sized,
)
from drosurv.estimators.cox import CoxPH
from drosurv.estimators.subgroup_robust_cox import warn_if_null
from drosurv.losses import ConvexLoss
from drosurv.losses.summed_likelihood import CompetingRisks, RowsOfPatients
from drosurv.metrics import concordance_by_cause
from drosurv.objectives.balls import ball_objective, check_ball, lists_balls
from drosurv.patients.observation import Rows, ends_of_patients, given_rows, given_weight, with_offset
from drosurv.patients.target import (
    CompetingTarget,
    FloatArray,
    Surv,
    cause_names,
    number_of_cause,
    of_events,
    parse_competing_target,
    require_same_causes,
)
from drosurv.presentation import cause_in_words, cause_label, cause_title, first_upper, listing
from drosurv.solvers import Options, Problem, Result, TrainingData, solve
from drosurv.tables.encoder import checked_features, encode_features


@lists_balls
@dataclass(eq=False, repr=False)
class CauseSpecificCox(SurvivalModel):
    """Linear Cox models of competing risks, one per cause.

    With ``alpha=1`` each cause has a Cox model in which events of other causes count as censored, as with ``coxph`` in
    R. With alpha below 1 all causes are trained together: a patient's loss is the sum over causes of the
    full-likelihood loss minus that of the null model, and the worst case over subpopulations of at least mass alpha is
    minimised.

    Parameters
    ----------
    alpha : float
        Smallest share of patients to protect, in (0, 1]; 1 is the plain model.
    ball : {balls}
        As in :class:`drosurv.DROCox`, for alpha below 1.
    n_intervals : int
        Number of intervals of each cause's baseline hazard, for alpha below 1.
    l2 : float
        Adds l2/2 ||coefficients||^2 to the objective.
    ties : {"breslow", "efron"}
        Method for tied event times, for alpha 1.
    max_iter, tol
        Largest number of iterations and relative gap of the convex solver.

    Attributes
    ----------
    coef_ : (causes, d) float64
        Coefficients of each cause.
    n_causes_ : int
        Number of causes.
    cause_names_ : tuple of str
        What causes 1, 2, ... are called, if ``y`` says so; else empty.
    models_ : list of CoxPH
        The model of each cause, for alpha 1.
    worst_case_weights_ : (n,) float64
        Weights of the patients in the worst case, for alpha below 1.
    unique_times_ : (K,) float64
        Zero and every event time of any cause.
    n_patients_, n_events_, follow_up_
        Numbers of training patients and events of each cause, and the follow-up with any cause as the event.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv import CauseSpecificCox, Surv
    >>> rng = np.random.default_rng(0)
    >>> X, cause = rng.normal(size=(300, 2)), rng.integers(0, 3, 300)
    >>> model = CauseSpecificCox().fit(X, Surv.competing(cause, rng.exponential(size=300)))
    >>> model.coef_.shape
    (2, 2)
    >>> incidence = [model.predict_cumulative_incidence(X, times=[0.5], cause=k) for k in (1, 2)]
    >>> survival = model.predict_survival_function(X, times=[0.5])
    >>> bool(np.allclose(sum(incidence) + survival, 1.0))
    True
    """

    alpha: float = 1.0
    ball: str = "chi2"
    _: KW_ONLY
    n_intervals: int = 20
    l2: float = 0.0
    ties: str = "breslow"
    max_iter: int = 500
    tol: float | None = None

    capabilities = Capabilities(
        score="log hazard",
        exp_coef="hazard ratio",
        own_curves=False,
        no_recalibration="",
        row_arguments=ROW_ARGUMENTS,
        no_row_arguments="",
        objective="worst case",
        no_ties="",
        convex=True,
        devices="cpu",
    )

    # Models of several causes are trained on another target than the others.
    _several_causes: ClassVar[bool] = True
    # Set by fit; replaces the property of the base class.
    unique_times_ = np.empty(0)

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        strata: Any = None,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Fit the models of all causes.

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features; a DataFrame is encoded as in :meth:`drosurv.CoxPH.fit`.
        y : structured array (n,)
            Cause (0 is censored) and time, from :meth:`drosurv.Surv.competing`, with further fields as in
            :meth:`drosurv.CoxPH.fit`. With alpha below 1, the loss of a patient with several rows is the sum over rows
            and causes.
        sample_weight : (n,) array, optional
            Patient weights, unless they are a field of `y`.
        strata, offset : (n,) arrays, optional
            As in :meth:`drosurv.CoxPH.fit`. Each cause has a baseline hazard in each stratum.
        """
        self._forget_last_fit()
        check_alpha(self.alpha)
        check_ball(self.ball)
        check_number("l2", self.l2)
        check_count("n_intervals", self.n_intervals)
        target = parse_competing_target(y)
        X = encode_features(self, X, y, fit=True)
        features = checked_features(self, X, fit=True)
        self.n_causes_, self.cause_names_ = target.n_causes, cause_names(y)
        any_cause, robust = target.of_any_cause(), self.alpha < 1.0
        training = TrainingData.parse(features, any_cause, given_weight(y, sample_weight))
        # With alpha 1 the model of each cause handles the strata.
        own_strata = strata if robust else None
        if given_rows(y, own_strata, offset):
            rows = Rows.parse(y, strata=own_strata, offset=offset, judged=False)
            training = training.observed(rows, name="CauseSpecificCox", robust=robust)
        if not robust:
            cox = CoxPH(l2=self.l2, ties=self.ties, max_iter=self.max_iter, tol=self.tol)
            self.models_ = [
                clone(cox).fit(
                    X, of_events(y, target.cause == k), sample_weight, strata=strata, offset=offset
                )
                for k in range(1, target.n_causes + 1)
            ]
            self.coef_ = np.stack([model.coef_ for model in self.models_])
        target, of_any = target.take(training.kept), training.target
        if robust:
            self._fit_together(training, replace(target, entry=of_any.entry, stratum=of_any.stratum))
        self._has_offset = training.rows.offset is not None
        self.unique_times_ = training.target.curve_times
        self.n_patients_ = training.n_patients
        self.n_events_ = np.bincount(target.cause, training.weight)[1:]
        self.follow_up_ = training_follow_up(training)
        return self

    def _trained(self, training: TrainingData, target: CompetingTarget) -> tuple[Result, CompetingRisks]:
        """Train all causes together; return the result and the loss by row."""
        if len(np.unique(target.cause[target.cause > 0])) < self.n_causes_:
            raise InputError(
                "a cause has no event among patients of positive weight: count its events as censored (cause 0)."
            )
        of_rows = CompetingRisks(target, self.n_intervals, training.weight, training.rows.offset)
        loss: ConvexLoss = of_rows
        patient = training.rows.patient
        if patient is not None:
            loss = RowsOfPatients(of_rows, patient, ends_of_patients(patient, training.target)[1])
        objective = ball_objective(self.ball, np.array([self.alpha]))
        options = Options("convex", "CauseSpecificCox", max_iter=self.max_iter, tol=self.tol, l2=self.l2)
        return solve(Problem(training, loss, objective, regret=True), options), of_rows

    def _fit_together(self, training: TrainingData, target: CompetingTarget) -> None:
        fitted, loss = self._trained(training, target)
        warn_if_null("CauseSpecificCox", fitted, f"Raise alpha (now {self.alpha:g}).")
        self.coef_, self.worst_case_weights_ = np.atleast_2d(fitted.network), fitted.worst_case_weights
        self.objective_, self.status_, self.n_iter_ = fitted.objective, fitted.status, fitted.n_iter
        self._baselines = []
        for k, part in enumerate(loss.parts, start=1):
            of_cause = replace(training, target=target.of_cause(k))
            self._baselines.append(piecewise(part.loss, of_cause, fitted.scores, fitted.extra[part.psi]))
        self._kept_training = training, target

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether fit has finished."""
        return hasattr(self, "follow_up_")

    def predict(self, X: Any, cause: int | str = 1, *, offset: ArrayLike | None = None) -> FloatArray:
        """Return the log risk (n,) of one cause; pass an offset if the model was fitted with one."""
        row, features = self._row(cause), self._new_features(X)
        return with_offset(features @ self.coef_[row], offset, fitted_with=self._has_offset)

    def predict_cumulative_incidence(
        self,
        X: Any,
        times: ArrayLike | None = None,
        cause: int | str = 1,
        *,
        strata: Any = None,
        offset: ArrayLike | None = None,
    ) -> FloatArray:
        """Return the cumulative incidence (n, T) of one cause: the probability of its event by each time.

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features.
        times : (T,) array, optional
            Times, by default ``unique_times_``. After the longest follow-up in training the incidence is constant.
        cause : int or str
            Number of the cause, from 1, or its name.
        strata : (n,) labels, optional
            Stratum of each patient, for a model that was fitted with strata.
        offset : (n,) array, optional
            As in :meth:`predict`.
        """
        row, at = self._row(cause), self._times(times)
        return self.curves_by_cause(X, strata=strata, offset=offset).incidence(row + 1, at)

    def predict_survival_function(  # type: ignore[override]
        self, X: Any, times: ArrayLike | None = None, *, strata: Any = None, offset: ArrayLike | None = None
    ) -> FloatArray:
        """Return the probability (n, T) of no event of any cause by each time.

        Parameters as in :meth:`predict_cumulative_incidence`.
        """
        curves = self.curves_by_cause(X, strata=strata, offset=offset)
        return curves.any_cause.survival(self._times(times))

    def score(  # type: ignore[override]
        self, X: Any, y: Any, cause: int | str = 1, *, offset: ArrayLike | None = None
    ) -> float:
        """Return the concordance index of one cause, with patients ranked by :meth:`predict`, as in scikit-survival.

        This is the log hazard of the cause. ``evaluate`` ranks patients by their incidence, which depends on the
        hazards of the other causes too. In both, patients with another event never have this one
        (:func:`drosurv.metrics.concordance_by_cause`).
        """
        check_is_fitted(self)
        require_same_causes(self.cause_names_, y)
        target, risk = parse_competing_target(y, complete=False), self.predict(X, cause, offset=offset)
        how: dict[str, Any] = {"of": self._row(cause) + 1, "sample_weight": given_weight(y)}
        return float(concordance_by_cause(target.cause, target.time, risk, **how))

    def _row(self, cause: int | str) -> int:
        check_is_fitted(self)
        number = number_of_cause(cause, self.cause_names_) if isinstance(cause, str) else cause
        if number not in range(1, self.n_causes_ + 1):
            raise InputError(f"cause must be one of 1 to {self.n_causes_}, got {cause!r}.")
        return int(number) - 1

    def _times(self, times: ArrayLike | None) -> FloatArray:
        return self.unique_times_ if times is None else checked_times(times)

    def predict_cumulative_hazard_function(
        self,
        X: Any,
        return_array: bool = True,
        times: ArrayLike | None = None,
        *,
        strata: Any = None,
        offset: ArrayLike | None = None,
    ) -> FloatArray:
        """Return the cumulative hazard (n, T) of an event of any cause.

        Parameters as in :meth:`predict_cumulative_incidence`; `return_array` is not used.
        """
        curves = self.curves_by_cause(X, strata=strata, offset=offset)
        return curves.any_cause.cumulative_hazard(self._times(times))

    def curves_by_cause(
        self, X: Any, *, strata: Any = None, offset: ArrayLike | None = None
    ) -> CompetingCurves:
        """Return the curves of every cause and of any cause; parameters as in :meth:`predict_cumulative_incidence`."""
        features = self._new_features(X)
        scores = [with_offset(features @ coef, offset, fitted_with=self._has_offset) for coef in self.coef_]
        end = max(float(self.unique_times_[-1]), float(self.follow_up_.times[-1]))
        causes = []
        for base, of_cause in zip(self._cause_curves, scores, strict=True):
            curves = base.of_patients(strata, len(features)).of_scores(of_cause, end)
            assert isinstance(curves, StepCurves), "the baseline of a cause is in steps"
            causes.append(curves)
        total = SumValues(tuple(curves.values for curves in causes))
        return CompetingCurves(tuple(causes), StepCurves(total, self.unique_times_, end, own_hazard=True))

    @property
    def _cause_curves(self) -> Sequence[FittedCurves]:
        """The baseline of each cause; its hazard is zero in a stratum that has only events of other causes."""
        known: Any = [model._baseline for model in self.models_] if self.alpha == 1.0 else self._baselines
        causes: list[Baseline] = known
        if not causes[0].strata:
            return causes
        # A stratum without events of any cause stays NaN: no curve can be predicted for it.
        unknown = np.logical_and.reduce([np.isnan(cause.log_cumulative).any(axis=1) for cause in causes])
        filled = [
            np.where(np.isnan(cause.log_cumulative) & ~unknown[:, None], -np.inf, cause.log_cumulative)
            for cause in causes
        ]
        return [replace(cause, log_cumulative=found) for cause, found in zip(causes, filled, strict=True)]

    @property
    def _fitted_with(self) -> tuple[str, ...]:
        """Names of the arguments that predictions need besides features."""
        needed = {"strata": self._cause_curves[0].strata, "offset": self._has_offset}
        return tuple(name for name, given in needed.items() if given)

    def summary(
        self,
        cause: int | str | None = None,
        level: float = 0.95,
        method: str = "auto",
        *,
        n_bootstrap: int = 1000,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
        scale: FloatArray | None = None,
        names: Sequence[str] | None = None,
    ) -> CoxTable:
        """Return the Cox table of one cause, by default of all, with a column ``cause``.

        Other parameters are those of :meth:`drosurv.CoxPH.summary`. If alpha is below 1, the table includes plain Cox
        for the same cause, and standard errors come from a bootstrap of all causes together, which is stored and used
        for every cause.
        """
        wanted = range(1, len(self.coef_) + 1) if cause is None else [self._row(cause) + 1]
        how: dict[str, Any] = {"n_bootstrap": n_bootstrap, "random_state": random_state, "verbose": verbose}
        tables: list[CoxTable]
        title = "CauseSpecificCox" if self.alpha == 1.0 else f"CauseSpecificCox (alpha = {self.alpha:g})"
        if self.alpha == 1.0:
            tables = [
                self.models_[k - 1].summary(level, method, **how, n_jobs=n_jobs, scale=scale, names=names)
                for k in wanted
            ]
            for table in tables:
                table.caption = sized(title, *table.counts)
        else:
            if method not in ("auto", "bootstrap"):
                raise InputError(
                    f"method={method!r} is defined for plain Cox only: use method='bootstrap', or alpha=1."
                )
            known = self._known()
            if method == "bootstrap":
                draws = np.split(self._bootstrap(**how, n_jobs=n_jobs), len(known), axis=1)
                pairs = zip(known, draws, strict=True)
                known = self._findings = [findings.with_bootstrap(refits) for findings, refits in pairs]
            features = names or feature_names(self)
            used = "bootstrap" if "bootstrap" in known[0].covariances else None
            tables = [
                findings_table(title, features, self.coef_[k - 1], known[k - 1], used, level, scale)
                for k in wanted
            ]
        if cause is None:
            table = _of_all_causes(title, tables, self.cause_names_)
        else:
            table = tables[0]
            table.caption = f"{_title(wanted[0], self.cause_names_)}, {table.caption}"
        table.notes = (*table.notes, *encoder_notes(getattr(self, "encoder_", None)))
        return table

    def _known(self) -> list[Findings]:
        """Return the findings of each cause; the first call fits plain Cox."""
        if self._findings is None:
            training, target = kept_training(self, "summary")
            given = training.rows
            fields = {"entry": given.entry, "id": given.patient, "weight": training.weight}
            y = Surv.competing(target.cause, target.time, **fields)
            plain = clone(self).set_params(alpha=1.0)
            with warnings.catch_warnings(action="ignore"):
                # The robust fit has already given these warnings.
                plain.fit(training.X, y, strata=given.stratum, offset=given.offset)
            weights, self._findings = self.worst_case_weights_[training.kept], []
            for k, coef in enumerate(plain.coef_, start=1):
                findings = initial_findings(replace(training, target=target.of_cause(k)))
                beside = BesidePlain.of(training.X, training.mass, coef, weights)
                self._findings.append(replace(findings, plain=beside))
        known: list[Findings] = self._findings
        return known

    def _bootstrap(self, **how: Any) -> FloatArray:
        """Return coefficients (R, causes * d) of bootstrap refits."""
        training, target = kept_training(self, "summary")

        def refit(counts: FloatArray) -> FloatArray:
            result, _ = self._trained(training.resample(counts), target.take(np.flatnonzero(counts)))
            return np.ravel(result.network)

        return bootstrap_coefficients(refit, training.clusters, **how)

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters and fitted attributes, with the findings for summary() and without the training data."""
        if self._kept_training is not None:
            self._known()
        return super().__getstate__()


def _title(cause: int, names: Sequence[str]) -> str:
    return first_upper(cause_title(cause_label(cause, names)))


def _of_all_causes(title: str, tables: Sequence[CoxTable], names: Sequence[str]) -> CoxTable:
    """Join the tables of causes 1, 2, ..., called `names`; notes that differ between causes name the cause."""
    numbered = list(enumerate(tables, start=1))
    found = CoxTable(pd.concat([pd.DataFrame(table) for table in tables]))
    found.insert(
        0, "cause", np.repeat([cause_label(k, names) for k, _ in numbered], [len(table) for table in tables])
    )
    found.level, found.ratio = tables[0].level, tables[0].ratio
    events = listing(
        [f"{table.counts[1]} of {cause_in_words(k, names)}" for k, table in numbered], len(tables)
    )
    found.counts = tables[0].counts[0], events
    found.caption = sized(title, *found.counts)
    common = [note for note in tables[0].notes if all(note in table.notes for table in tables)]
    own = [
        f"{_title(k, names)}: {note}" for k, table in numbered for note in table.notes if note not in common
    ]
    found.notes = (*common, *own)
    return found
