"""Inference on the coefficients of linear models: the Cox table, residuals, and the proportional hazards test."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.validation import check_is_fitted

from drosurv.curves import Baseline
from drosurv.errors import ArgumentError, InputError, arg, call, check_choice
from drosurv.estimators.base import SolvedModel, SurvivalModel
from drosurv.estimators.coefficients import (
    CoxTable,
    FittedCox,
    ProportionalHazardsTest,
    proportional_hazards_test,
)
from drosurv.estimators.coefficients.fitted_cox import RESIDUALS, hazard_errors, sandwich
from drosurv.estimators.coefficients.summary import (
    BesidePlain,
    Findings,
    bootstrap_coefficients,
    findings_table,
)
from drosurv.patients.target import BoolArray, FloatArray
from drosurv.solvers import Options, Problem, TrainingData, solve
from drosurv.tables.columns import CategoryColumn, LeftOutColumn
from drosurv.tables.encoder import TableEncoder

METHODS = ("auto", "information", "sandwich", "bootstrap")
# A saved model contains the covariance of its coefficients if computing it takes at most this many operations.
_SAVED_WORK = 2e9
# A coefficient whose feature changes log hazards by more than this is large, or infinite.
_FAR = 10.0


class CoefficientInference(SolvedModel, abstract=True):
    """Base class of models with inference on the coefficients of a fitted linear model, from its training data.

    Results are stored as ``_findings`` and saved with the model; the training data are not saved.
    """

    l2: float
    ties: str
    verbose: bool

    def summary(
        self,
        level: float = 0.95,
        method: str = "auto",
        *,
        n_bootstrap: int = 1000,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        scale: FloatArray | None = None,
        names: Sequence[str] | None = None,
    ) -> CoxTable:
        """Return the Cox table: one row per feature with coefficient, hazard ratio, standard error, interval, z and p.

        For a robust model the table also shows plain Cox on the same patients, and notes name the coefficients that
        differ most.

        Parameters
        ----------
        level : float
            Level of the confidence intervals.
        method : {"auto", "information", "sandwich", "bootstrap"}
            Source of the standard errors: the observed information (plain Cox); the sandwich estimator, valid under
            weights, clusters and a misspecified model; or refits to patients (or clusters) drawn with replacement, for
            any linear model. "auto" is the information for plain Cox, the sandwich if it was fitted with weights,
            clusters of several rows or several events of an id, and for a robust model no standard errors unless a
            bootstrap was run before.
        n_bootstrap : int
            Number of bootstrap refits.
        random_state : int
            Seed of the bootstrap.
        n_jobs : int, optional
            Number of threads of the bootstrap; by default the number of processors.
        verbose : bool, optional
            Whether the bootstrap shows a progress bar; by default the estimator's ``verbose``.
        scale : (d,) array, optional
            Numbers by which the features were divided before training, for a table in their original units;
            :func:`drosurv.summary` reads them from a Pipeline.
        names : sequence of str, optional
            Names of the features; by default those of the model.

        Examples
        --------
        >>> from drosurv import CoxPH, datasets
        >>> data = datasets.make_hidden_minority(n_samples=500, random_state=0)
        >>> table = CoxPH().fit(data.X, data.y).summary()
        >>> bool(table.loc[data.X.columns[0], "p"] < 0.05)
        True
        """
        check_linear(self, "summary")
        check_choice("method", method, METHODS)
        if method == "bootstrap":
            shown = self.verbose if verbose is None else verbose
            draws = self._bootstrap(
                n_bootstrap=n_bootstrap, random_state=random_state, n_jobs=n_jobs, verbose=shown
            )
            self._findings = self._known().with_bootstrap(draws)
        used, ratio = self._compute(method), self.capabilities.exp_coef
        names = names or feature_names(self)
        table = findings_table(title(self), names, self.coef_, self._known(), used, level, scale, ratio)
        table.notes = (*table.notes, *encoder_notes(getattr(self, "encoder_", None)))
        return table

    def residuals(self, kind: str = "martingale") -> FloatArray:
        """Return the residuals of a plain Cox model on its training rows.

        Parameters
        ----------
        kind : {"martingale", "deviance", "score", "dfbeta", "schoenfeld", "scaled_schoenfeld"}
            The first two are (n,), "score" and "dfbeta" (n, d); the last two (events, d), by stratum and time.
        """
        check_choice("kind", kind, list(RESIDUALS))
        return RESIDUALS[kind](self._fitted_cox("residuals"))

    def check_proportional_hazards(self, transform: Any = "km") -> ProportionalHazardsTest:
        """Test whether coefficients of a plain Cox model change with time, as R's ``cox.zph`` does.

        Where rows of a cluster may be correlated, the variance of sums over clusters is used if it is larger.

        Parameters
        ----------
        transform : {"km", "rank", "identity", "log"} or callable
            Function of time with which coefficients change under the alternative hypothesis.
        """
        fit = self._fitted_cox("check_proportional_hazards")
        data = self._training("check_proportional_hazards")
        clusters = data.clusters if data.rows.depend(data.target) else None
        return proportional_hazards_test(fit, transform, feature_names(self), clusters)

    def _hazard_errors(self, X: Any, times: FloatArray, strata: Any, offset: ArrayLike | None) -> FloatArray:
        """Return standard errors (n, k) of log cumulative hazards at times (k,)."""
        curves, log_risk = self._curves_and_scores(X, strata, offset)
        stratum = curves.stratum if isinstance(curves, Baseline) else None
        fit, used = self._fitted_cox("level"), self._compute("auto")
        assert used is not None
        covariance = self._known().covariances[used]
        if np.isnan(covariance).any():
            named = zip(feature_names(self), covariance, strict=True)
            lost = ", ".join(name for name, row in named if np.isnan(row).all())
            raise ArgumentError(
                "level",
                f"{arg('level')} needs coefficients with standard errors, which {lost} have not, because other "
                "features determine them, or they do not vary: leave them out, or leave level out.",
            )
        return hazard_errors(fit, covariance, self._new_features(X), log_risk, times, stratum)

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters and fitted attributes, with results of inference and without the training data.

        The results contain the covariance of the coefficients unless computing it would take too long.
        """
        data = self._kept_training
        if data is not None and max(data.X.shape) * data.X.shape[1] ** 2 <= _SAVED_WORK:
            self._compute("auto")
        return super().__getstate__()

    def _compute(self, method: str) -> str | None:
        """Compute the covariance of a method and return its name; None if only a bootstrap can give one."""
        used, known = self._method(method), self._known()
        wanted = used in ("information", "sandwich") and used not in known.covariances
        if wanted or (maximises_likelihood(self) and known.log_likelihoods is None):
            # One evaluation gives the likelihoods and the covariance.
            fit, covariances = self._fitted_cox("summary"), dict(known.covariances)
            if used is not None and wanted:
                data = self._training("summary")
                clusters = None if data.rows.cluster is None else data.clusters
                covariances[used] = fit.covariance if used == "information" else sandwich(fit, clusters)
            self._findings = replace(
                known,
                log_likelihoods=fit.log_likelihoods,
                covariances=covariances,
                infinite=infinite_coefficients(self.coef_, fit),
                degrees=None if self.l2 > 0 else fit.degrees,
                ties=self.ties if len(fit.likelihood.event_times) < len(fit.rows) else "",
            )
        return used

    def _method(self, method: str) -> str | None:
        """Return the method that "auto" stands for; None if only a bootstrap can give standard errors."""
        if method in ("information", "sandwich") and not maximises_likelihood(self):
            raise ArgumentError(
                "method",
                f"method={method!r} is defined for plain Cox, not for {title(self)}: use method='bootstrap'.",
            )
        if method != "auto":
            return method
        known, data = self._known().covariances, self._kept_training
        if not maximises_likelihood(self):
            return "bootstrap" if "bootstrap" in known else None
        if data is None:
            return "sandwich" if "sandwich" in known else "information"
        correlated = data.weight is not None or data.rows.depend(data.target)
        return "sandwich" if correlated else "information"

    def _known(self) -> Findings:
        """Return the results so far; the first call for a robust model also fits plain Cox to the same patients."""
        if self._findings is None:
            data = self._training("summary")
            self._findings = initial_findings(data)
            # Coefficients without a ratio cannot be compared with log hazard ratios.
            if not maximises_likelihood(self) and self.capabilities.exp_coef is not None:
                X, counts = data.X, data.weight
                share = np.full(len(X), 1 / len(X)) if counts is None else counts / counts.sum()
                # Only models that minimise a worst case have a threshold eta_.
                weights = getattr(self, "worst_case_weights_", None) if hasattr(self, "eta_") else None
                worst_case = None if weights is None else weights[data.kept] / weights.sum()
                plain = Problem(data, data.cox_loss(self.ties))
                with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                    found = solve(plain, Options("convex", "CoxPH", l2=self.l2))
                beside = BesidePlain.of(X, share, found.network, worst_case)
                self._findings = replace(self._findings, plain=beside)
        findings: Findings = self._findings
        return findings

    def _bootstrap(self, **how: Any) -> FloatArray:
        """Return the coefficients (R, d) of refits to patients drawn with replacement."""
        data = self._training("summary(method='bootstrap')")

        def refit(counts: FloatArray) -> FloatArray:
            drawn = data.resample(counts)
            result = solve(self._problem(drawn, [self]), self._options([self]))
            found: FloatArray = self._recalibrated(result).network
            return found

        return bootstrap_coefficients(refit, data.clusters, **how)

    def _fitted_cox(self, asked: str) -> FittedCox:
        check_linear(self, asked)
        if not maximises_likelihood(self):
            raise InputError(
                f"{asked} is defined for plain Cox, not for {title(self)}; fit a CoxPH to the same patients."
            )
        data = self._training(asked)
        return FittedCox(data.X, data.cox_loss(self.ties), self.coef_, self.l2)

    def _training(self, asked: str) -> TrainingData:
        data: TrainingData = kept_training(self, asked)
        return data.in_double()


def kept_training(model: SurvivalModel, asked: str) -> Any:
    """Return the training data that a model keeps; raise for a saved model."""
    if model._kept_training is None:
        raise InputError(
            f"{asked} needs the training data, which a saved model does not contain: call it before saving, or fit "
            "again."
        )
    return model._kept_training


def initial_findings(data: TrainingData) -> Findings:
    """Return findings with only the numbers of patients and events and, with clusters, of rows and clusters."""
    n_rows, n_clusters, unweighted, rows_of_copies = 0, 0, None, 0
    if data.rows.cluster is not None:
        n_rows, n_clusters = len(data.X), int(data.clusters.max()) + 1
    if data.weight is not None and (data.weight % 1 != 0).any():
        alone = replace(data, weight=None)
        unweighted = int(alone.n_patients), int(alone.n_events)
    elif data.weight is not None and (data.weight != 1).any():
        rows_of_copies = len(data.X)
    return Findings(
        float(data.n_patients),
        float(data.n_events),
        {},
        n_rows=n_rows,
        n_clusters=n_clusters,
        unweighted=unweighted,
        rows_of_copies=rows_of_copies,
    )


def check_linear(model: Any, asked: str) -> None:
    """Raise unless the model is fitted and has coefficients."""
    check_is_fitted(model)
    if not hasattr(model, "coef_"):
        raise ArgumentError(
            "network", f"{asked} needs coefficients, which {arg('network', model.network)} does not have."
        )


def maximises_likelihood(model: Any) -> bool:
    """Whether the coefficients are those of plain Cox, which maximise the partial likelihood."""
    return model.capabilities.objective == "partial likelihood" and not model._recalibrates


def title(model: Any) -> str:
    """Return the name of a model for the caption of its table."""
    alpha = getattr(model, "alpha", None)
    name = type(model).__name__
    if hasattr(model, "recalibration_"):
        name = f"recalibrated {name}"
    return name if alpha is None else f"{name} (alpha = {alpha:g})"


def feature_names(model: Any) -> list[str]:
    """Return the names of a model's features; x0, x1, ... if it has none."""
    numbered = [f"x{j}" for j in range(model.n_features_in_)]
    return [str(name) for name in getattr(model, "feature_names_in_", numbered)]


def infinite_coefficients(coef: FloatArray, fit: FittedCox) -> BoolArray:
    """Return which coefficients (d,) have no finite maximum likelihood estimate; the solver stops at a large number."""
    far: BoolArray = np.zeros(len(coef), dtype=np.bool_)
    # If no two scores are far apart, no coefficient is infinite.
    if np.ptp(fit.scores) > _FAR:
        far = abs(coef) * np.ptp(fit.X, axis=0) > _FAR
    if not far.any():
        return far
    # The standard error of a large finite coefficient is small, that of an infinite one huge.
    return far & (np.sqrt(np.diag(fit.covariance)) > abs(coef))


def encoder_notes(encoder: Any) -> list[str]:
    """Return notes on reference levels, filled-in values and unused columns of a TableEncoder; none for other steps."""
    if not isinstance(encoder, TableEncoder):
        return []
    used = [column for column in encoder.columns_ if column.features]
    levels = [f"{c.name} {c.reference!r}" for c in used if isinstance(c, CategoryColumn)]
    filled = [f"{column.name} ({column.n_missing:,})" for column in used if column.n_missing]
    notes = []
    if levels:
        notes.append(f"Reference levels: {', '.join(levels)}.")
    if filled:
        notes.append(
            f"Missing values were filled in: {', '.join(filled)}. R and lifelines leave such patients out: train "
            f"without their rows ({call('X.dropna()', 'drosurv fit ... --complete-cases')})."
        )
    unused = [f"{c.name} ({c.reason})" for c in encoder.columns_ if isinstance(c, LeftOutColumn)]
    if unused:
        notes.append(f"Not used: {', '.join(unused)}.")
    return notes


def summary(model: Any, level: float = 0.95, method: str = "auto", **options: Any) -> CoxTable:
    """Return the Cox table of a fitted linear model, or of a Pipeline that ends in one, in the original units.

    A model without hazard ratios has no columns ``exp(coef)``.
    Hazard ratios are per unit of the feature before the Pipeline scaled it, such as a year, or of a category relative
    to the reference category.

    Parameters
    ----------
    model : estimator or Pipeline
        Steps may be a :class:`drosurv.tables.TableEncoder`, or scikit-learn's scalers, also in a
        ``ColumnTransformer``. What other steps make, such as principal components, has their units.
    level, method, **options
        As in :meth:`drosurv.CoxPH.summary`.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import drosurv
    >>> data = drosurv.datasets.make_hidden_minority(n_samples=500, random_state=0)
    >>> scaled = make_pipeline(StandardScaler(), drosurv.CoxPH()).fit(data.X, data.y)
    >>> plain = drosurv.CoxPH().fit(data.X, data.y)
    >>> bool(abs(drosurv.summary(scaled)["coef"] - plain.summary()["coef"]).max() < 1e-6)
    True
    """
    last = model[-1] if hasattr(model, "steps") else model
    if not hasattr(last, "summary"):
        raise InputError(
            f"{type(last).__name__} has no table of coefficients: summary is for linear models of drosurv."
        )
    if not hasattr(model, "steps"):
        plain: CoxTable = model.summary(level=level, method=method, **options)
        return plain
    steps = list(_working(model[:-1]))
    names, scale, center = _units(steps)
    if hasattr(last, "feature_names_in_"):
        names = None
    if hasattr(last, "partial_effect") and center is not None:
        options["center"] = center
    table: CoxTable = last.summary(level=level, method=method, scale=scale, names=names, **options)
    table.notes = (*table.notes, *(note for step in steps for note in encoder_notes(step)))
    if "contrast" in table.columns:
        for step in steps:
            name_references(table, step)
    return table


def name_references(table: CoxTable, encoder: Any) -> None:
    """Write the reference level of each category of a TableEncoder as its contrast."""
    for column in encoder.columns_ if isinstance(encoder, TableEncoder) else ():
        if isinstance(column, CategoryColumn):
            table.loc[list(column.features), "contrast"] = f"against {column.reference}"


def _working(steps: Any) -> Iterator[Any]:
    """Yield the steps of a Pipeline, including those of nested Pipelines, without "passthrough" steps."""
    for step in steps:
        if hasattr(step, "steps"):
            yield from _working(step)
        elif step not in (None, "passthrough"):
            yield step


def _units(steps: list[Any]) -> tuple[list[str] | None, FloatArray | None, FloatArray | None]:
    """Return names, scale and center (d,) of the transformed features: the original value is center + scale * feature.

    They are None if unknown. A feature with a new name, such as a principal component, has scale 1 and center 0.
    """
    names: list[str] | None = None
    known: dict[str, tuple[float, float]] = {}
    for step in steps:
        if not hasattr(step, "get_feature_names_out"):
            names, known = None, {}
            continue
        names = [str(name) for name in step.get_feature_names_out(names)]
        scale, center = _scaling(step, len(names))
        before = [known.get(name, (1.0, 0.0)) for name in names]
        known = {
            name: (s * factor, c + s * shift)
            for name, (s, c), factor, shift in zip(
                names, before, scale.tolist(), center.tolist(), strict=True
            )
        }
    if names is None:
        return None, None, None
    scales, centers = np.array([known[name] for name in names]).reshape(-1, 2).T
    return names, scales, centers


def _scaling(step: Any, d: int) -> tuple[FloatArray, FloatArray]:
    """Return the scale and center (d,) of the features that a step makes."""
    scale = _fitted_array(step, ("scale_",), d, 1.0)
    center = _fitted_array(step, ("mean_", "center_"), d, 0.0)
    # Imported here because it imports all linear models of scikit-learn.
    from sklearn.compose import ColumnTransformer

    if isinstance(step, MinMaxScaler):
        scale = 1.0 / scale
        center = -scale * _fitted_array(step, ("min_",), d, 0.0)
    if isinstance(step, ColumnTransformer):
        for name, inner, _ in step.transformers_:
            place = step.output_indices_[name]
            _, scales, centers = _units([one for one in _working([inner]) if one != "drop"])
            if scales is not None and len(scales) == place.stop - place.start:
                scale[place], center[place] = scales, centers
    return scale, center


def _fitted_array(step: Any, attributes: Sequence[str], d: int, default: float) -> FloatArray:
    """Return the first of the attributes that has one number per feature, (d,); the default if none has."""
    for attribute in attributes:
        values = getattr(step, attribute, None)
        if values is not None and np.shape(values) == (d,):
            return np.asarray(values, dtype=np.float64)
    return np.full(d, default)
