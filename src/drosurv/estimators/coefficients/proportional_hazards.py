"""The test of proportional hazards: whether coefficients change with time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import chi2, f, rankdata

from drosurv.errors import InputError
from drosurv.estimators.coefficients.fitted_cox import (
    FittedCox,
    scaled_schoenfeld,
    schoenfeld,
    score,
    squares,
)
from drosurv.metrics.intervals import holm
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.patients.target import FloatArray, IntArray, Target
from drosurv.presentation import axes_or_new, counted, p_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Transform = Callable[[FloatArray], FloatArray]
ALL = "all together"
# The test takes n d^2 and d^4 operations. With more features, or more work, it runs only if a user asks for it.
MOST_TESTED, _MOST_WORK = 60, 1e9
UNTESTED = "Proportional hazards were not tested: "


def takes_long(n: int, d: int) -> bool:
    """Whether the test of d features of n patients takes long."""
    return d > MOST_TESTED or n * d**2 > _MOST_WORK


@dataclass(frozen=True, eq=False)
class ProportionalHazardsTest:
    """Score tests of whether coefficients change with a function g of time.

    Attributes
    ----------
    names : tuple of str
        Names of the d features.
    chi_square, p : (d + 1,) float64
        Statistic and p-value for each feature and, last, for all together; NaN for a constant feature.
    df : (d + 1,) int
        Degrees of freedom: one for each feature, and the number of linearly independent features for all together.
    time, transformed : (E,) float64
        Times of the events, and g at these times.
    residuals : (E, d) float64
        Scaled Schoenfeld residuals: estimates of the coefficients at each event.
    coef : (d,) float64
        The coefficients of the model, constant in time.
    by_cluster : tuple of str
        Rows of :meth:`to_frame` whose variance is that of sums over the clusters, and `p` that of an F distribution
        with ``df`` and ``n_clusters - 1`` degrees of freedom.
    n_clusters : int
        Number of clusters; 0 without.
    """

    names: tuple[str, ...]
    chi_square: FloatArray
    p: FloatArray
    df: IntArray
    time: FloatArray
    transformed: FloatArray
    residuals: FloatArray
    coef: FloatArray
    by_cluster: tuple[str, ...] = ()
    n_clusters: int = 0

    def to_frame(self) -> pd.DataFrame:
        """Return one row per feature and one for all together: ``chi_square``, ``df``, ``p``."""
        return pd.DataFrame(
            {"chi_square": self.chi_square, "df": self.df, "p": self.p},
            index=pd.Index([*self.names, ALL], name="covariate"),
        )

    def changing(self, level: float = 0.05) -> dict[str, float]:
        """Return the features whose effect changes with time, with p-values after Holm's correction."""
        known = np.flatnonzero(np.isfinite(self.p[:-1]))
        adjusted = zip(known.tolist(), holm(self.p[known].tolist()), strict=True)
        return {self.names[j]: p for j, p in adjusted if p < level}

    def sentence(self, level: float = 0.05) -> str:
        """Return the result as a sentence."""
        changing = self.changing(level)
        if changing:
            named = ", ".join(f"{name} ({p_text(p)})" for name, p in changing.items())
            tested = counted(int(np.isfinite(self.p[:-1]).sum()), "feature")
            change = (
                f"the effect of {named} changes" if len(changing) == 1 else f"the effects of {named} change"
            )
            return (
                f"Hazards are not proportional: {change} with time (test of scaled Schoenfeld "
                f"residuals, corrected for {tested}). Stratify by such a feature, or interpret its hazard ratio as an "
                "average over time."
            )
        if np.isnan(self.p[-1]):
            return (
                "Proportional hazards cannot be tested: all events have the same time, or no feature varies within "
                "risk sets."
            )
        if self.p[-1] < level:
            return (
                f"The test of all features together rejects proportional hazards ({p_text(self.p[-1])}); no test of a "
                "single feature does after correction for their number."
            )
        return f"No evidence against proportional hazards ({p_text(self.p[-1])} for all features together)."

    def __str__(self) -> str:
        note = (
            f"\n{', '.join(self.by_cluster)}: variance of sums over the {self.n_clusters:,} clusters, and p of "
            f"chi_square / df by an F distribution with df and {self.n_clusters - 1:,} degrees of freedom."
        )
        return f"{self.to_frame()}{note * bool(self.by_cluster)}\n{self.sentence()}"

    def plot(self, feature: str, ax: Axes | None = None) -> Axes:
        """Plot the residuals of a feature over time, their running mean, and the coefficient of the model.

        Parameters
        ----------
        feature : str
            One of ``names``.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure if not given.
        """
        if feature not in self.names:
            raise InputError(f"feature must be one of {list(self.names)}, got {feature!r}.")
        ax = axes_or_new(ax)
        j = self.names.index(feature)
        order = np.argsort(self.time, kind="stable")
        residuals, time = self.residuals[order, j], self.time[order]
        ax.plot(time, residuals, ".", color="0.6", markersize=4)
        width = max(5, len(residuals) // 5)
        if len(residuals) >= width:
            mean = np.convolve(residuals, np.ones(width) / width, mode="valid")
            ax.plot(np.convolve(time, np.ones(width) / width, mode="valid"), mean, color="C0")
        ax.axhline(self.coef[j], color="C1", linestyle="--")
        ax.set_xlabel("time")
        ax.set_ylabel(f"coefficient of {feature}")
        return ax


def proportional_hazards_test(
    fit: FittedCox,
    transform: str | Transform = "km",
    names: Sequence[str] | None = None,
    clusters: IntArray | None = None,
) -> ProportionalHazardsTest:
    """Test each coefficient for a change with time.

    In the model with coefficients beta_j + gamma_j g(t), the hypothesis gamma = 0 is tested by the score test. With the
    Schoenfeld residuals r_e, the covariances V_e of the features in the risk sets and the weights w_e of the events,

    .. math:: U = sum_e w_e g_e r_e,  I = sum_e w_e (1, g_e)' (1, g_e) (x) V_e

    and the statistic of a set of features is U' I^{-1} U over beta and the gamma of the set. The results equal those of
    ``cox.zph`` in R's survival package since version 3. The function g is "km", one minus the Kaplan-Meier survival
    just before t, the "rank" of t, t itself ("identity"), its logarithm ("log"), or a function of all n times.

    With k `clusters` (n,) of rows, the variance of U is also that of sums over clusters of its score residuals, less
    their projection on those of beta, and the reference an F distribution with k - 1 degrees of freedom. Of the two
    tests, the one with the larger p-value counts.

    References
    ----------
    Grambsch and Therneau (1994). Proportional hazards tests and diagnostics based on weighted residuals.
    """
    d, rows = fit.X.shape[1], fit.rows
    transformed = _transformed(fit.target, transform)
    # Centring g does not change the statistics, and reduces rounding errors.
    g = transformed[rows] - transformed[rows].mean()
    plain, mixed, square = fit.observed_information, fit.information(g), fit.information(g * g)
    information = np.block([[plain, mixed], [mixed, square]])
    slope = schoenfeld(fit).T @ (fit.case_weight[rows] * g)
    sets = [np.array([j]) for j in range(d)] + [np.arange(d)]
    statistic = np.array([_score_statistic(information, slope, features) for features in sets])
    degrees = np.array([1] * d + [fit.degrees])
    p, k = np.asarray(chi2.sf(statistic, degrees)), 0
    labels = tuple(f"x{j}" for j in range(d)) if names is None else tuple(names)
    by_cluster: tuple[str, ...] = ()
    if clusters is not None:
        k, own = len(np.unique(clusters)), score(fit, g) - score(fit) @ np.linalg.pinv(plain) @ mixed
        variance = k / max(k - 1, 1) * squares(fit.case_weight[:, None] * own, clusters)
        known = np.diag(square) > 0
        robust = np.array([_statistic(variance, slope, features[known[features]]) for features in sets])
        larger = np.asarray(f.sf(robust / np.maximum(degrees, 1), degrees, max(k - 1, 1)))
        by_cluster = tuple(name for name, used in zip((*labels, ALL), larger > p, strict=True) if used)
        statistic, p = np.where(larger > p, robust, statistic), np.fmax(p, larger)
    return ProportionalHazardsTest(
        labels,
        statistic,
        p,
        degrees,
        fit.target.time[rows],
        transformed[rows],
        scaled_schoenfeld(fit),
        fit.coef,
        by_cluster,
        k,
    )


def _score_statistic(information: FloatArray, slope: FloatArray, features: IntArray) -> float:
    d, size = len(slope), np.diag(information)
    # Features without information cannot be tested.
    tested = d + features[size[d + features] > 0]
    if not len(tested):
        return float("nan")
    kept = np.concatenate([np.flatnonzero(size[:d] > 0), tested])
    return _statistic(information, np.concatenate([np.zeros(d), slope]), kept)


def _statistic(variance: FloatArray, slope: FloatArray, kept: IntArray) -> float:
    """Return U' V^{-1} U of the `kept` entries; NaN if none has a variance."""
    kept = kept[np.diag(variance)[kept] > 0]
    if not len(kept):
        return float("nan")
    scale = np.sqrt(np.diag(variance)[kept])
    scaled = variance[np.ix_(kept, kept)] / np.outer(scale, scale)
    # The pseudoinverse leaves out directions without information of linearly dependent features.
    return float(
        slope[kept] / scale @ np.linalg.pinv(scaled, rcond=1e-12, hermitian=True) @ (slope[kept] / scale)
    )


def _transformed(target: Target, transform: str | Transform) -> FloatArray:
    """Return the times (n,) on the scale on which effects may change."""
    if callable(transform):
        return np.asarray(transform(target.time), dtype=np.float64)
    if transform == "identity":
        return target.time
    if transform == "rank":
        return np.asarray(rankdata(target.time), dtype=np.float64)
    if transform == "log":
        if (target.time <= 0).any():
            raise InputError("transform='log' needs times above 0; use 'km', 'rank' or 'identity'.")
        return np.log(target.time)
    if transform == "km":
        # One minus the Kaplan-Meier survival just before each patient's time, with strata pooled.
        curve = KaplanMeier.of(target, entry=target.entry)
        before = np.append(1.0, curve.survival)
        return 1.0 - before[np.searchsorted(curve.times, target.time, side="left")]
    raise InputError(
        f"transform must be 'km', 'rank', 'identity', 'log' or a function of the times, got {transform!r}."
    )
