"""Inference on the coefficients of linear models: the Cox table, residuals, and the proportional hazards test."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.validation import check_is_fitted

from drosurv.errors import ArgumentError, InputError, arg, check_choice
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
from drosurv.solvers import Options, Problem, TrainingData, solve
from drosurv.tables.columns import CategoryColumn
from drosurv.tables.encoder import TableEncoder
from drosurv.target import BoolArray, FloatArray, IntArray

METHODS = ("auto", "information", "sandwich", "bootstrap")
# A saved model contains the covariance of its coefficients if computing it takes at most this many operations.
_SAVED_WORK = 2e9
# A coefficient whose feature changes log hazards by more than this is large, or infinite.
_FAR = 10.0


class CoefficientInference:
    """Inference on the coefficients of one fitted linear model, from its training data.

    Results are stored as ``_findings`` of the model and saved with it; the training data are not saved.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def summary(
        self,
        level: float,
        method: str,
        *,
        scale: FloatArray | None = None,
        names: Sequence[str] | None = None,
        **bootstrap: Any,
    ) -> CoxTable:
        """Return the Cox table; parameters as in :meth:`drosurv.CoxPH.summary`."""
        model = self.model
        check_linear(model, "summary")
        check_choice("method", method, METHODS)
        if method == "bootstrap":
            model._findings = self._findings().with_bootstrap(self._bootstrap(**bootstrap))
        used = self._compute(method)
        table = findings_table(
            title(model),
            names or feature_names(model),
            model.coef_,
            self._findings(),
            used,
            level,
            scale,
            model.capabilities.exp_coef,
        )
        table.notes = (*table.notes, *encoder_notes(getattr(model, "encoder_", None)))
        return table

    def residuals(self, kind: str) -> FloatArray:
        """Return the residuals of plain Cox on its training rows."""
        check_choice("kind", kind, list(RESIDUALS))
        return RESIDUALS[kind](self._fitted_cox("residuals"))

    def check_proportional_hazards(self, transform: Any) -> ProportionalHazardsTest:
        """Test whether coefficients of plain Cox change with time."""
        fit = self._fitted_cox("check_proportional_hazards")
        return proportional_hazards_test(fit, transform, feature_names(self.model))

    def hazard_errors(
        self, X: FloatArray, log_risk: FloatArray, times: FloatArray, stratum: IntArray | None
    ) -> FloatArray:
        """Return standard errors (n, T) of cumulative hazards that plain Cox predicts."""
        fit, used = self._fitted_cox("level"), self._compute("auto")
        assert used is not None
        covariance = self._findings().covariances[used]
        if np.isnan(covariance).any():
            lost = [
                name
                for name, row in zip(feature_names(self.model), covariance, strict=True)
                if np.isnan(row).all()
            ]
            raise ArgumentError(
                "level",
                f"{arg('level')} needs coefficients with standard errors, which {', '.join(lost)} have not, because "
                "other "
                "features determine them, or they do not vary: leave them out, or leave level out.",
            )
        return hazard_errors(fit, covariance, X, log_risk, times, stratum)

    def findings_to_save(self) -> Findings | None:
        """Return the results that a saved model needs for its table; None if computing them would take too long."""
        data = self.model._kept_training
        if max(data.X.shape) * data.X.shape[1] ** 2 <= _SAVED_WORK:
            self._compute("auto")
        findings: Findings | None = self.model._findings
        return findings

    def _compute(self, method: str) -> str | None:
        """Compute the covariance of a method and return its name; None if only a bootstrap can give one."""
        model, used, known = self.model, self._method(method), self._findings()
        wanted = used in ("information", "sandwich") and used not in known.covariances
        if wanted or (maximises_likelihood(model) and known.log_likelihoods is None):
            # One evaluation gives the likelihoods and the covariance.
            fit, covariances = self._fitted_cox("summary"), dict(known.covariances)
            if used is not None and wanted:
                data = self._data("summary")
                clusters = None if data.observation.clusters is None else data.clusters
                covariances[used] = fit.covariance if used == "information" else sandwich(fit, clusters)
            model._findings = replace(
                known,
                log_likelihoods=fit.log_likelihoods,
                covariances=covariances,
                endless=infinite_coefficients(model.coef_, fit),
                degrees=None if model.l2 > 0 else fit.degrees,
                ties=model.ties if len(fit.likelihood.event_times) < len(fit.rows) else "",
            )
        return used

    def _method(self, method: str) -> str | None:
        model = self.model
        if method in ("information", "sandwich") and not maximises_likelihood(model):
            raise ArgumentError(
                "method",
                f"method={method!r} is defined for plain Cox, not for {title(model)}: use method='bootstrap'.",
            )
        if method != "auto":
            return method
        known, data = self._findings().covariances, model._kept_training
        if not maximises_likelihood(model):
            return "bootstrap" if "bootstrap" in known else None
        if data is None:
            return "sandwich" if "sandwich" in known else "information"
        correlated = data.weight is not None or data.observation.depend(data.target)
        return "sandwich" if correlated else "information"

    def _findings(self) -> Findings:
        """Return the results so far; the first call for a robust model also fits plain Cox to the same patients."""
        model = self.model
        if model._findings is None:
            data = self._data("summary")
            model._findings = initial_findings(data)
            # Coefficients without a ratio cannot be compared with log hazard ratios.
            if not maximises_likelihood(model) and model.capabilities.exp_coef is not None:
                X, counts = data.X, data.weight
                share = np.full(len(X), 1 / len(X)) if counts is None else counts / counts.sum()
                # Only models that minimise a worst case have a threshold eta_.
                weights = getattr(model, "worst_case_weights_", None) if hasattr(model, "eta_") else None
                worst_case = None if weights is None else weights[data.kept] / weights.sum()
                plain = Problem(data, data.cox_loss(model.ties))
                with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                    found = solve(plain, Options("convex", "CoxPH", l2=model.l2))
                beside = BesidePlain.of(X, share, found.network, worst_case)
                model._findings = replace(model._findings, plain=beside)
        findings: Findings = model._findings
        return findings

    def _bootstrap(self, **how: Any) -> FloatArray:
        """Return the coefficients (R, d) of refits to patients drawn with replacement."""
        model, data = self.model, self._data("summary(method='bootstrap')")

        def refit(counts: FloatArray) -> FloatArray:
            drawn = data.resample(counts)
            result = solve(model._problem(drawn, [model]), model._options([model]))
            found: FloatArray = model._recalibrated(result).network
            return found

        return bootstrap_coefficients(refit, data.clusters, **how)

    def _fitted_cox(self, asked: str) -> FittedCox:
        model = self.model
        check_linear(model, asked)
        if not maximises_likelihood(model):
            raise InputError(
                f"{asked} is defined for plain Cox, not for {title(model)}; fit a CoxPH to the same patients."
            )
        data = self._data(asked)
        return FittedCox(data.X, data.cox_loss(model.ties), model.coef_, model.l2)

    def _data(self, asked: str) -> TrainingData:
        data: TrainingData | None = self.model._kept_training
        if data is None:
            raise InputError(
                f"{asked} needs the training data, which a saved model does not contain: call it before saving, or "
                "fit again."
            )
        return data.in_double()


def initial_findings(data: TrainingData) -> Findings:
    """Return findings with only the numbers of patients and events and, with clusters, of rows and clusters."""
    n_rows, n_clusters = 0, 0
    if data.observation.clusters is not None:
        n_rows, n_clusters = len(data.X), int(data.clusters.max()) + 1
    return Findings(float(data.n_patients), float(data.n_events), {}, n_rows=n_rows, n_clusters=n_clusters)


def check_linear(model: Any, asked: str) -> None:
    """Raise unless the model is fitted and has coefficients."""
    check_is_fitted(model)
    if not hasattr(model, "coef_"):
        raise ArgumentError(
            "network",
            f"{asked} needs coefficients, which {arg('network', model.network)} does not have.",
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
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(len(model.coef_))] if names is None else [str(name) for name in names]


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
    """Return notes on the reference levels and filled-in values of a TableEncoder; none for other steps."""
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
            f"Missing values were filled in: {', '.join(filled)}. R and lifelines leave such patients out: drop the "
            "rows first, or train with `drosurv fit ... --complete-cases`."
        )
    return notes


def summary(model: Any, level: float = 0.95, method: str = "auto", **options: Any) -> CoxTable:
    """Return the Cox table of a fitted linear model, or of a Pipeline that ends in one, in the original units.

    A model without hazard ratios has no columns ``exp(coef)``.
    Hazard ratios are per unit of the feature before the Pipeline scaled it, such as a year, or of a category relative
    to the reference category.

    Parameters
    ----------
    model : estimator or Pipeline
        Steps may be a :class:`drosurv.tables.TableEncoder`, or scikit-learn's scalers.
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
        scale = _fitted_array(step, ("scale_",), len(names), 1.0)
        center = _fitted_array(step, ("mean_", "center_"), len(names), 0.0)
        if isinstance(step, MinMaxScaler):
            scale = 1.0 / scale
            center = -scale * _fitted_array(step, ("min_",), len(names), 0.0)
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


def _fitted_array(step: Any, attributes: Sequence[str], d: int, default: float) -> FloatArray:
    """Return the first of the attributes that has one number per feature, (d,); the default if none has."""
    for attribute in attributes:
        values = getattr(step, attribute, None)
        if values is not None and np.shape(values) == (d,):
            return np.asarray(values, dtype=np.float64)
    return np.full(d, default)
