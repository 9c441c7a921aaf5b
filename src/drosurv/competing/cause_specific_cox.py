"""Cox models of competing causes, plain or robust, and the cumulative incidence they give together."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from drosurv.competing.cause_inference import CauseInference
from drosurv.competing.cumulative_incidence import cumulative_incidence
from drosurv.errors import Argument, ArgumentError, warn_caller
from drosurv.estimators import CoxPH
from drosurv.estimators.baseline import Baseline, checked_times
from drosurv.estimators.fitted import warn_unless_converged
from drosurv.estimators.parameters import check_count, check_number
from drosurv.losses import CompetingRisks
from drosurv.metrics import FollowUp, concordance_by_cause
from drosurv.objectives.balls import ball_objective, check_ball
from drosurv.objectives.objective import check_alpha
from drosurv.observation import parse_observation
from drosurv.solvers import Criterion, LinearProblem, Solution, minimise
from drosurv.tables.front_door import enter
from drosurv.target import CompetingTarget, FloatArray, parse_competing_target

# Curves of this many numbers are held at a time.
_HELD = 2_000_000
# If the worst-off share gains less than this per event, the model is called the null model.
_NOTHING = 1e-4


class CauseSpecificCox(CauseInference):
    """Linear Cox models of competing causes.

    With ``alpha=1`` each cause has Cox's partial likelihood with the others counted as censoring, as ``coxph`` fits it
    cause by cause. Below 1 the causes are trained together: a patient's loss is the sum over the causes of the
    full-likelihood loss less the null model's, and its worst case over groups of mass alpha is minimised.

    Parameters
    ----------
    alpha : float
        Smallest share of patients to protect, in (0, 1]; 1 is the plain model.
    ball : {"chi2", "paper", "cvar"}
        Shape of the worst case.
    n_intervals : int
        Intervals of each cause's baseline hazard, below alpha 1.
    l2 : float
        Adds l2/2 ||coefficients||^2 to the objective.
    ties : {"breslow", "efron"}
        How equal event times share a risk set, at alpha 1.
    max_iter, tol
        Of the convex solver.

    Attributes
    ----------
    coef_ : (causes, d) float64
    n_causes_ : int
    models_ : list of CoxPH
        The model of each cause, at alpha 1.
    worst_case_weights_ : (n,) float64
        Weights of the patients in the worst case, below alpha 1.
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

    _per_patient = ("worst_case_weights_",)

    def __init__(
        self,
        alpha: float = 1.0,
        ball: str = "chi2",
        *,
        n_intervals: int = 20,
        l2: float = 0.0,
        ties: str = "breslow",
        max_iter: int = 500,
        tol: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.ball = ball
        self.n_intervals = n_intervals
        self.l2 = l2
        self.ties = ties
        self.max_iter = max_iter
        self.tol = tol

    def __sklearn_tags__(self) -> Any:
        """Targets are structured arrays, which scikit-learn has no tag for."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **observed: Any) -> Self:
        """Fit the models of all causes.

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Text, categories and missing values of a DataFrame become features as in :meth:`drosurv.CoxPH.fit`.
        y : structured array (n,)
            Of :meth:`drosurv.Surv.competing`: cause (0 is censored) and time.
        sample_weight : (n,) array, optional
        **observed
            ``entry``, ``strata``, ``clusters``, ``offset`` and ``id`` as in :meth:`drosurv.CoxPH.fit`; below alpha 1
            ``entry`` alone.
        """
        check_alpha(self.alpha)
        check_ball(self.ball)
        check_number("l2", self.l2)
        check_count("n_intervals", self.n_intervals)
        target = parse_competing_target(y)
        X = enter(self, X, y, fit=True)
        features = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if len(target) != len(features):
            raise ValueError(
                f"X and y must have the same number of rows, got {len(features)} and {len(target)}."
            )
        self.n_causes_ = target.n_causes
        for earlier in ("models_", "_baselines", "worst_case_weights_", "_kept_training", "_findings"):
            self.__dict__.pop(earlier, None)
        seen = parse_observation(target.of_any_cause(), entry=observed.get("entry"), id=observed.get("id"))
        if self.alpha == 1.0:
            self._fit_each(X, target, sample_weight, observed)
        elif given := [name for name, value in observed.items() if value is not None and name != "entry"]:
            raise ArgumentError(
                Argument(given[0]),
                " has no definition for alpha below 1: causes are trained together with one baseline hazard each, and "
                "every patient has one loss. Use alpha=1.",
            )
        else:
            weight = _check_sample_weight(sample_weight, features, dtype=np.float64, ensure_non_negative=True)
            self._fit_together(features, replace(target, entry=seen.entry), weight)
        any_cause = seen.observe(target.of_any_cause())
        patients = seen.patients(any_cause)
        self.unique_times_ = any_cause.curve_times
        self.n_patients_ = len(patients)
        self.n_events_ = np.bincount(target.cause, minlength=self.n_causes_ + 1)[1:]
        self.follow_up_ = FollowUp.of(patients, entry=patients.entry)
        return self

    def _fit_each(
        self, X: Any, target: CompetingTarget, sample_weight: ArrayLike | None, observed: dict[str, Any]
    ) -> None:
        options: dict[str, Any] = {
            "l2": self.l2,
            "ties": self.ties,
            "max_iter": self.max_iter,
            "tol": self.tol,
        }
        self.models_ = [
            CoxPH(**options).fit(X, target.of_cause(k).to_structured(), sample_weight, **observed)
            for k in range(1, target.n_causes + 1)
        ]
        self.coef_ = np.stack([model.coef_ for model in self.models_])

    def _solved(
        self, X: FloatArray, target: CompetingTarget, weight: FloatArray
    ) -> tuple[Solution, Criterion, FloatArray]:
        """The optimum of the causes together, what was minimised, and the coefficients (causes, d)."""
        mass = weight / weight.sum()
        loss = CompetingRisks(target, self.n_intervals, weight)
        objective = ball_objective(self.ball, np.array([self.alpha]))
        criterion = Criterion(loss, objective, mass, offset=loss.null_losses())
        problem = LinearProblem(X - mass @ X, criterion, self.l2)
        found = minimise(problem, tol=self.tol, max_iter=self.max_iter)
        return found, criterion, found.x[: problem.n_coefficients].reshape(target.n_causes, -1)

    def _coefficients(self, X: FloatArray, target: CompetingTarget, weight: FloatArray) -> FloatArray:
        return self._solved(X, target, weight)[2]

    def _fit_together(self, X: FloatArray, target: CompetingTarget, weight: FloatArray) -> None:
        found, criterion, self.coef_ = self._solved(X, target, weight)
        loss, mass = cast(CompetingRisks, criterion.loss), criterion.patient_mass
        centre = mass @ X
        warn_unless_converged("CauseSpecificCox", found)
        scores = (X - centre) @ self.coef_.T
        extra = loss.start + found.x[self.coef_.size :]
        psi = loss.split(extra)
        self._baselines = [
            Baseline.piecewise(part, target.of_cause(k + 1), own - centre @ coef)
            for k, (part, own, coef) in enumerate(zip(loss.parts, psi, self.coef_, strict=True))
        ]
        at = criterion.objective(criterion.entries(scores[None], extra[None]), mass)
        self.worst_case_weights_ = at.weights[0] / at.weights[0].sum()
        self.objective_, self.status_, self.n_iter_ = found.value, found.status, found.n_iter
        if found.value > -_NOTHING * loss.event_share:
            warn_caller(
                "CauseSpecificCox is the null model: under every other one the worst-off share of the patients is no "
                f"better served than by no model. Raise alpha (now {self.alpha:g})."
            )
        self._kept_training = X, target, weight

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit has come to its end."""
        return hasattr(self, "follow_up_")

    def predict(self, X: Any, cause: int = 1) -> FloatArray:
        """Log risk (n,) of one cause; higher means sooner."""
        row = self._row(cause)
        features = validate_data(self, enter(self, X), dtype=np.float64, reset=False)
        scores: FloatArray = features @ self.coef_[row]
        return scores

    def predict_cumulative_incidence(
        self, X: Any, times: ArrayLike | None = None, cause: int = 1, **given: Any
    ) -> FloatArray:
        """Probability (n, T) of an event of the cause by each time, in the presence of the other causes.

        Parameters
        ----------
        X : (n, d) array or DataFrame
        times : (T,) array, optional
            ``unique_times_`` if not given.
        cause : int
            From 1.
        **given
            ``strata`` and ``offset``, for models that were fitted with them.
        """
        row = self._row(cause)
        at = self.unique_times_ if times is None else checked_times(times)
        # All jumps count, whatever times are asked for.
        place = np.searchsorted(self.unique_times_, at, side="right") - 1
        parts = [cumulative_incidence(hazards)[row][:, place] for hazards in self._hazards(X, given)]
        return np.concatenate(parts)

    def predict_survival_function(self, X: Any, times: ArrayLike | None = None, **given: Any) -> FloatArray:
        """Probability (n, T) of no event of any cause by each time; parameters as above."""
        at = self.unique_times_ if times is None else checked_times(times)
        place = np.searchsorted(self.unique_times_, at, side="right") - 1
        return np.concatenate([np.exp(-hazards.sum(axis=0))[:, place] for hazards in self._hazards(X, given)])

    def score(self, X: Any, y: Any, cause: int = 1) -> float:
        """Concordance of the cause's risks, with patients of other causes known never to have it."""
        target = parse_competing_target(y, complete=False)
        return float(concordance_by_cause(target.cause, target.time, self.predict(X, cause), of=cause))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file that :func:`drosurv.load` reads."""
        from drosurv.persistence import save

        save(self, path)

    def _row(self, cause: int) -> int:
        check_is_fitted(self)
        if not 1 <= cause <= self.n_causes_:
            raise ValueError(f"cause must be one of 1 to {self.n_causes_}, got {cause}.")
        return int(cause) - 1

    def _hazards(self, X: Any, given: dict[str, Any]) -> Any:
        """Cumulative hazards (causes, rows, K) of some patients after the other."""
        check_is_fitted(self)
        X = enter(self, X)
        n, times = len(X), self.unique_times_
        size = max(1, _HELD // (len(times) * self.n_causes_))
        for start in range(0, n, size):
            part = slice(start, start + size)
            rows = X.iloc[part] if hasattr(X, "iloc") else X[part]
            own: dict[str, Any] = {
                name: np.asarray(value)[part] for name, value in given.items() if value is not None
            }
            if self.alpha == 1.0:
                yield np.stack(
                    [m.predict_cumulative_hazard_function(rows, times=times, **own) for m in self.models_]
                )
            else:
                if own:
                    raise ValueError(f"the model was fitted without {next(iter(own))}; leave it out.")
                scores = validate_data(self, rows, dtype=np.float64, reset=False) @ self.coef_.T
                pairs = zip(self._baselines, scores.T, strict=True)
                yield np.stack([baseline.cumulative_hazard(score, times) for baseline, score in pairs])
