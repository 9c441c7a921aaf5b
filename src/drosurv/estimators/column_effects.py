"""Effects of columns in a Cox model with splines: unpenalised estimates, tests of nonlinearity, and their table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import chi2

from drosurv.estimators.coefficient_inference import infinite_coefficients
from drosurv.estimators.coefficients import CoxTable, FittedCox
from drosurv.estimators.coefficients.fitted_cox import sandwich
from drosurv.estimators.coefficients.summary import interval_names
from drosurv.estimators.spline_design import SplineDesign
from drosurv.losses.loss import constant_features
from drosurv.patients.draws import draw_folds
from drosurv.patients.target import FloatArray
from drosurv.presentation import Column, Table
from drosurv.solvers import TrainingData
from drosurv.solvers.ridge_path import ridge_path

#: What tables and plots call estimates of the unpenalised model, from which a jackknife's bias is subtracted.
UNPENALISED = "unpenalised, bias-corrected"
# Groups of patients of the jackknife.
_GROUPS = 10
# The bias of p coefficients is about p / events of a coefficient, a negligible part of its standard error if this
# number times p squared is at most the number of events.
_NEGLIGIBLE = 16
# Newton's steps for unpenalised models stop when the gain in log likelihood is smaller.
_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Unpenalised:
    """The unpenalised Cox model with given design columns, fitted to the training patients.

    `mle` (p,) maximises the partial likelihood of the standardised columns and `coef` (p,) is corrected for bias; both
    are NaN for columns whose coefficient the data do not determine. The `covariance` (p, p) is that of
    :meth:`drosurv.CoxPH.summary`: robust with weights or clusters.
    """

    mle: FloatArray
    coef: FloatArray
    covariance: FloatArray

    @classmethod
    def fit(cls, training: TrainingData, design: SplineDesign, ties: str) -> Unpenalised | None:
        """Fit the model; None if it has more columns than events, or no finite optimum."""
        X, loss = design.standardised(training.X), training.cox_loss(ties)
        # Columns that are equal within strata have no coefficient either.
        used = np.asarray(X.any(axis=0) & ~constant_features(X, loss.compared))
        if used.sum() >= training.target.n_events:
            return None
        mle, converged = _maximise(X[:, used], training, ties)
        if not converged:
            return None
        fit = FittedCox(X[:, used], loss, mle)
        covariance = training_covariance(fit, training)
        unknown = np.isnan(np.diag(covariance)) | infinite_coefficients(mle, fit)
        mle[unknown] = covariance[unknown, :] = covariance[:, unknown] = np.nan
        corrected = mle - _bias(mle, np.sqrt(np.diag(covariance)), X[:, used], training, ties)
        # A nonlinear column that others determine is zero; a column of X that is constant has no coefficient.
        first, last = np.where(design.nonlinear, 0.0, np.nan), np.where(design.nonlinear, 0.0, np.nan)
        first[used], last[used] = mle, corrected
        whole = np.diag(np.where(design.nonlinear, 0.0, np.nan))
        whole[np.ix_(used, used)] = covariance
        return cls(first, last, whole)

    def nonlinearity(self, design: SplineDesign) -> FloatArray:
        """Return p-values (d,) of Wald tests that the effect of a column is linear; NaN for columns without a test."""
        out = np.full(len(design.knots), np.nan)
        for j in np.unique(design.feature[design.nonlinear]):
            nonlinear = (design.feature == j) & design.nonlinear & (np.diag(self.covariance) != 0)
            part = self.covariance[np.ix_(nonlinear, nonlinear)]
            if nonlinear.any() and np.isfinite(part).all():
                statistic = float(self.mle[nonlinear] @ np.linalg.solve(part, self.mle[nonlinear]))
                out[j] = chi2.sf(statistic, int(nonlinear.sum()))
        return out


def training_covariance(fit: FittedCox, training: TrainingData) -> FloatArray:
    """Return the covariance of the coefficients; robust with weights, clusters or several events of a patient."""
    if training.weight is None and not training.rows.depend(training.target):
        return fit.covariance
    return sandwich(fit, None if training.rows.cluster is None else training.clusters)


def _maximise(X: FloatArray, training: TrainingData, ties: str) -> tuple[FloatArray, bool]:
    """Return the coefficients (p,) that maximise the partial likelihood, and whether the solver converged."""
    no_penalty, loss = np.zeros((1, X.shape[1])), training.cox_loss(ties)
    coef, status = ridge_path(X, loss, training.mass, no_penalty, tol=_TOLERANCE)
    return coef[0], status[0] == "converged"


def _bias(mle: FloatArray, error: FloatArray, X: FloatArray, training: TrainingData, ties: str) -> FloatArray:
    """Estimate the bias (p,) of maximum likelihood by a jackknife that leaves out a tenth of the patients at a time.

    Maximum likelihood exaggerates effects: of 20 columns and 200 events by 7 %, half a standard error of a strong
    effect. The bias is at most one standard error, and taken as 0 if a fit to part of the patients fails or does not
    determine a coefficient, as that of a level that only a patient left out has.
    """
    zero = np.zeros(len(mle))
    if _NEGLIGIBLE * len(mle) ** 2 <= training.target.n_events:
        return zero
    target = training.target
    folds = draw_folds(
        len(X),
        _GROUPS,
        np.random.default_rng(0),
        target.event,
        training.clusters,
        target.stratum,
        training.order,
    )
    total = zero.copy()
    for k in range(_GROUPS):
        rows = np.flatnonzero(folds != k)
        if not target.event[rows].any():
            return zero
        some = training.take(rows)
        part, converged = _maximise(X[rows], some, ties)
        if not converged:
            return zero
        determined = np.isfinite(np.diag(FittedCox(X[rows], some.cox_loss(ties), part).covariance))
        if not determined[np.isfinite(mle)].all():
            return zero
        total += part
    bias = (_GROUPS - 1) * (total / _GROUPS - mle)
    return np.asarray(np.clip(bias, -error, error))


@dataclass(frozen=True, eq=False)
class ColumnInference:
    """What the summary of a model says besides its own coefficients, in the units of the columns; NaN where unknown.

    `coef` (p,) are the coefficients of the unpenalised model, corrected for bias, `covariances` (m, m) those of the
    coefficients of each column of X, and `p_nonlinear` (d,) the p-values of tests of nonlinearity.
    """

    coef: FloatArray
    covariances: tuple[FloatArray, ...]
    p_nonlinear: FloatArray

    @classmethod
    def unknown(cls, design: SplineDesign) -> ColumnInference:
        """Return an inference in which nothing is known."""
        sizes = [len(basis) for basis in design.basis]
        blocks = tuple(np.full((m, m), np.nan) for m in sizes)
        return cls(np.full(sum(sizes), np.nan), blocks, np.full(len(sizes), np.nan))

    @classmethod
    def of(cls, training: TrainingData, design: SplineDesign, ties: str, most_knots: int) -> ColumnInference:
        """Fit the unpenalised model with the columns of a design, and that with `most_knots` knots for the tests."""
        found, fitted = cls.unknown(design), Unpenalised.fit(training, design, ties)
        if fitted is not None:
            blocks = []
            for j, basis in enumerate(design.basis):
                columns = design.feature == j
                blocks.append(basis @ fitted.covariance[np.ix_(columns, columns)] @ basis.T)
            found = cls(design.in_units(fitted.coef), tuple(blocks), found.p_nonlinear)
        splined = SplineDesign.learn(training.X, training.weight, most_knots) if most_knots else design
        if not splined.nonlinear.any():
            return found
        same = all(np.array_equal(a, b) for a, b in zip(splined.knots, design.knots, strict=True))
        tested = fitted if same else Unpenalised.fit(training, splined, ties)
        p = found.p_nonlinear if tested is None else tested.nonlinearity(splined)
        return cls(found.coef, found.covariances, p)

    @property
    def known(self) -> bool:
        """Whether any coefficient has an interval."""
        return bool(np.isfinite(self.coef).any())


class EffectTable(CoxTable):
    """One row per column of X: the contrast, its hazard ratio with interval, and the test of nonlinearity.

    It prints like :class:`drosurv.estimators.CoxTable`. ``coef``, ``exp(coef)``, ``se(coef)`` and their bounds are of
    the unpenalised model, corrected for bias, ``shrunken coef`` and ``shrunken exp(coef)`` those with which the model
    predicts; the other columns are ``contrast`` and ``p nonlinear``.
    """

    _label, _beside = UNPENALISED, ("shrunken exp(coef)", "this model, shrunken")
    _of_what = "\nof the second value to the first, or as named"

    def to_table(self) -> Table:
        """Return the table in the form used by reports."""
        percent, bounds = f"{100 * self.level:g} %", interval_names("exp(coef)", self.level)
        columns = [
            Column("covariate", "column"),
            Column("contrast", "contrast"),
            Column("shrunken exp(coef)", f"{self.ratio}, shrunken", "value"),
            Column("exp(coef)", f"{UNPENALISED} ({percent} interval)", "value", bounds),
            Column("p nonlinear", "p nonlinear", "p"),
        ]
        frame = pd.DataFrame(self).rename_axis("covariate").reset_index()
        return Table.of("effects", self.caption, columns, frame, self.notes)

    @property
    def _row_labels(self) -> list[str]:
        return [f"{name}, {contrast}" for name, contrast in zip(self.index, self["contrast"], strict=True)]
