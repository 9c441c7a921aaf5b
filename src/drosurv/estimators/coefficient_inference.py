"""What linear models tell of their coefficients: the Cox table, residuals, and the proportional hazards test."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from drosurv.errors import ArgumentError
from drosurv.estimators.base import SurvivalEstimator
from drosurv.estimators.coefficients import (
    CoxTable,
    FittedCox,
    ProportionalHazardsTest,
    proportional_hazards_test,
)
from drosurv.estimators.coefficients.fitted_cox import RESIDUALS, sandwich
from drosurv.estimators.coefficients.summary import (
    BesidePlain,
    Findings,
    bootstrap_coefficients,
    findings_table,
)
from drosurv.estimators.fitting import train
from drosurv.estimators.natural_units import encoder_notes
from drosurv.estimators.parameters import check_choice
from drosurv.estimators.recalibration import out_of_fold_factor
from drosurv.estimators.recipe import Recipe, Schedule
from drosurv.estimators.training import Training
from drosurv.target import BoolArray, FloatArray

METHODS = ("auto", "information", "sandwich", "bootstrap")
# A saved model brings the covariance of its coefficients along, unless computing it costs more than this.
_SAVED_WORK = 2e9
# Two patients whose log hazards differ by more than this in one feature: the effect is large, or without end.
_FAR = 10.0


class CoefficientInference(SurvivalEstimator):
    """Inference for the coefficients of estimators with a linear network.

    The training data are kept beside the fitted model for it, as a reference, and never saved.
    """

    network: Any
    ties: str
    l2: float
    recalibrate: bool
    _kept_training: Training | None = None
    _findings: Findings | None = None

    def summary(
        self,
        level: float = 0.95,
        method: str = "auto",
        *,
        n_boot: int = 1000,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        scale: FloatArray | None = None,
        names: Sequence[str] | None = None,
    ) -> CoxTable:
        """The Cox table: one row per feature with coefficient, hazard ratio, standard error, interval, z and p.

        For a robust model plain Cox on the same patients stands beside it, and notes say which coefficients changed
        most and for whom.

        Parameters
        ----------
        level : float
            Of the intervals.
        method : {"auto", "information", "sandwich", "bootstrap"}
            Where standard errors come from: the observed information (plain Cox); the sandwich, which allows for
            weights, clusters and a wrong model; refits to patients (or clusters) drawn with replacement, which any
            linear model has. "auto" is the information for plain Cox, the sandwich if it was fitted with weights,
            clusters of several rows or several events of an id, and for a robust model no standard errors unless a
            bootstrap was run before.
        n_boot : int
            Refits of the bootstrap.
        random_state : int
            Its seed.
        n_jobs : int, optional
            Threads of the bootstrap; as many as there are processors if not given.
        verbose : bool, optional
            Whether the bootstrap shows a progress bar; as the estimator's own if not given.
        scale : (d,) array, optional
            What the features were divided by before training, for a table on their natural units;
            :func:`drosurv.summary` finds it in a Pipeline.
        names : sequence of str, optional
            What the features are called, where the model was not told; from a Pipeline, too.

        Examples
        --------
        >>> from drosurv import CoxPH, datasets
        >>> data = datasets.make_hidden_minority(n_samples=500, random_state=0)
        >>> table = CoxPH().fit(data.X, data.y).summary()
        >>> bool(table.loc[data.X.columns[0], "p"] < 0.05)
        True
        """
        self._check_linear("summary")
        check_choice("method", method, METHODS)
        if method == "bootstrap":
            talks = bool(getattr(self, "verbose", False)) if verbose is None else verbose
            how = {"n_boot": n_boot, "random_state": random_state, "threads": n_jobs, "verbose": talks}
            self._findings = self._known().with_bootstrap(self._bootstrap(**how))
        used = self._tell(method)
        table = findings_table(
            self._title(),
            names or self._feature_names(),
            self.coef_,
            self._known(),
            used,
            level,
            scale,
            self._ratio,
        )
        table.notes = (*table.notes, *encoder_notes(getattr(self, "encoder_", None)))
        return table

    def residuals(self, kind: str = "martingale") -> FloatArray:
        """Residuals of a plain Cox model on its training rows.

        Parameters
        ----------
        kind : {"martingale", "deviance", "score", "dfbeta", "schoenfeld", "scaled_schoenfeld"}
            The first two are (n,), "score" and "dfbeta" (n, d); the last two (events, d), by stratum and time.
        """
        check_choice("kind", kind, list(RESIDUALS))
        return RESIDUALS[kind](self._fitted_cox("residuals"))

    def check_proportional_hazards(self, transform: Any = "km") -> ProportionalHazardsTest:
        """Test whether coefficients of a plain Cox model change with time, as R's ``cox.zph`` does.

        Parameters
        ----------
        transform : {"km", "rank", "identity", "log"} or callable
            Function of time that the change follows.
        """
        fit = self._fitted_cox("check_proportional_hazards")
        return proportional_hazards_test(fit, transform, self._feature_names())

    @property
    def _ratio(self) -> str:
        """What exp(coef) is."""
        return "hazard ratio"

    @property
    def _maximises_likelihood(self) -> bool:
        """Whether the coefficients maximise the partial likelihood: only then is its information theirs."""
        return False

    def _tell(self, method: str) -> str | None:
        """The method to use, after computing its covariance; None where only refits can give one."""
        used, known = self._method(method), self._known()
        wanted = used in ("information", "sandwich") and used not in known.covariances
        if wanted or (self._maximises_likelihood and known.log_likelihoods is None):
            # One evaluation serves the likelihoods and the covariance.
            fit, covariances = self._fitted_cox("summary"), dict(known.covariances)
            if used is not None and wanted:
                training = self._required("summary")
                clusters = None if training.observation.clusters is None else training.together
                covariances[used] = fit.covariance if used == "information" else sandwich(fit, clusters)
            self._findings = replace(
                known,
                log_likelihoods=fit.log_likelihoods,
                covariances=covariances,
                endless=self._endless(fit),
                degrees=None if self.l2 > 0 else fit.degrees,
                ties=self.ties if len(fit.likelihood.event_times) < len(fit.rows) else "",
            )
        return used

    def _endless(self, fit: FittedCox) -> BoolArray:
        """Which coefficients (d,) the likelihood drives to infinity, where the solver stops at some large number."""
        far: BoolArray = np.zeros(len(self.coef_), dtype=np.bool_)
        # The scores tell that nobody is far from anybody, as nearly always.
        if np.ptp(fit.scores) > _FAR:
            far = abs(self.coef_) * np.ptp(fit.X, axis=0) > _FAR
        if not far.any():
            return far
        # A large effect that the data show has a small error; one without end has next to no information.
        return far & (np.sqrt(np.diag(fit.covariance)) > abs(self.coef_))

    def _method(self, method: str) -> str | None:
        if method in ("information", "sandwich") and not self._maximises_likelihood:
            raise ArgumentError(
                "method",
                f"method={method!r} speaks of plain Cox, not of {self._title()}: use method='bootstrap'.",
            )
        if method != "auto":
            return method
        known, training = self._known().covariances, self._kept_training
        if not self._maximises_likelihood:
            return "bootstrap" if "bootstrap" in known else None
        if training is None:
            return "sandwich" if "sandwich" in known else "information"
        together = training.weight is not None or training.observation.depend(training.target)
        return "sandwich" if together else "information"

    def _known(self) -> Findings:
        """What is known of the coefficients so far; of a robust model's, plain Cox's and the features at once."""
        if self._findings is None:
            training = self._required("summary")
            self._findings = training.findings()
            if not self._maximises_likelihood:
                X, counts = training.X, training.weight
                share = np.full(len(X), 1 / len(X)) if counts is None else counts / counts.sum()
                # Rivals weigh patients by rules of their own: only a worst case that is minimised has a threshold.
                weights = getattr(self, "worst_case_weights_", None) if hasattr(self, "eta_") else None
                worst_case = None if weights is None else weights[training.kept] / weights.sum()
                recipe, plan = Recipe(training.likelihood(self.ties)), Schedule("convex", "CoxPH", l2=self.l2)
                with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                    ((plain,),) = train([recipe], [training], plan)
                beside = BesidePlain.of(X, share, plain.network, worst_case)
                self._findings = replace(self._findings, plain=beside)
        return self._findings

    def _bootstrap(self, **how: Any) -> FloatArray:
        """Coefficients (R, d) of refits to patients drawn anew."""
        training = self._required("summary(method='bootstrap')")

        def refit(counts: FloatArray) -> FloatArray:
            drawn = training.drawn(counts)
            found: FloatArray = self._trained(drawn).network
            return found * out_of_fold_factor(self, drawn) if self.recalibrate else found

        return bootstrap_coefficients(refit, training.together, **how)

    def _fitted_cox(self, asked: str) -> FittedCox:
        self._check_linear(asked)
        if not self._maximises_likelihood:
            raise ValueError(
                f"{asked} is defined for plain Cox, not for {self._title()}; fit a CoxPH beside it."
            )
        training = self._required(asked)
        return FittedCox(training.X, training.likelihood(self.ties), self.coef_, self.l2)

    def _check_linear(self, asked: str) -> None:
        check_is_fitted(self)
        if not hasattr(self, "coef_"):
            raise ArgumentError(
                "network", f"{asked} speaks of coefficients, which network={self.network!r} does not have."
            )

    def _required(self, asked: str) -> Training:
        if self._kept_training is None:
            raise ValueError(
                f"{asked} needs the training data, which a saved model does not keep: call it before saving, or fit "
                "again."
            )
        return self._kept_training.in_double()

    def _title(self) -> str:
        alpha = getattr(self, "alpha", None)
        name = f"recalibrated {type(self).__name__}" if self.recalibrate else type(self).__name__
        return name if alpha is None else f"{name} (alpha = {alpha:g})"

    def _feature_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(len(self.coef_))] if names is None else [str(name) for name in names]

    def _keep(self, training: Training) -> None:
        """Remember the training data of a linear model."""
        self._kept_training, self._findings = training, None

    def _without_training(self, state: dict[str, Any]) -> dict[str, Any]:
        """The state to save: with what summary() needs, without the training data."""
        training = state.pop("_kept_training", None)
        if training is not None and max(training.X.shape) * training.X.shape[1] ** 2 <= _SAVED_WORK:
            self._tell("auto")
            state["_findings"] = self._findings
        return state
