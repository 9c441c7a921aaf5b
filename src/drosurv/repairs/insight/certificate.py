"""How badly off a subgroup can be under a model: an estimate over covariates, and a guarantee over everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from drosurv.errors import ArgumentError, as_number, require, warn_caller
from drosurv.presentation import Column, Table, axes_or_new, moment, written
from drosurv.repairs.insight.curves import follow_up_of, predicted_curves
from drosurv.repairs.insight.rules import readable_table
from drosurv.repairs.insight.subgroup_curve import Censoring, SubgroupCurve, outcomes_at, subgroup_curve
from drosurv.target import FloatArray, as_numbers, of_any_cause, parse_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_PATIENTS = 50
FEW_AT_RISK = 30
# Rows of the table that is printed.
_SHOWN = 6


def certify(
    model: Any,
    X: Any,
    y: Any,
    *,
    horizon: float,
    y_train: Any = None,
    features: Any = None,
    censoring: Censoring = "ipcw",
    alphas: ArrayLike | None = None,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
) -> Certificate:
    """Bound the loss of every subgroup of held-out patients, for all group sizes at once.

    The loss is the squared error of the predicted survival at the horizon (Brier). Two curves over the size
    alpha of the smallest subgroup are drawn: an *estimate* of the loss of the worst subgroup that covariates
    define, with a confidence band, and a *guarantee* that holds for subgroups defined in any way.

    Parameters
    ----------
    model : fitted survival model, or a pair (times, survival)
        Anything with scikit-survival's ``predict_survival_function`` or ``predict_cumulative_hazard_function``,
        or survival probabilities (n, p) at p increasing times.
    X : array or DataFrame, (n, d)
        Features, as the model takes them, of patients it was not trained on.
    y : structured array, (n,)
        Events and times of the same patients; any cause is the event where there are several.
    horizon : float
        Time at which predictions are judged.
    y_train : structured array or FollowUp, optional
        Target of the training set, for the censoring distribution; by default what the model keeps of it, else
        ``y``, and then the guarantee holds only approximately.
    features : DataFrame or array, (n, d'), optional
        Columns that may define subgroups of the estimate; ``X`` by default.
    censoring : {"ipcw", "worst_case"}
        What patients censored before the horizon count for. "ipcw" weighs the others up, which is right on
        average if censoring is independent of survival and its distribution is known. "worst_case" gives them
        the larger of their two possible losses: no assumption at all, but a higher curve.
    alphas : array, optional
        Group sizes of the curves, in (0, 1].
    confidence : float
        Of the band and, separately, of the guarantee.
    random_state : int, Generator or None
        Seed or source of folds, trees and band.

    Returns
    -------
    Certificate
        With ``.guarantee(alpha)``, ``.smallest_alpha(tolerance)``, ``.to_frame()`` and ``.plot(ax=...)``.

    Examples
    --------
    >>> from sksurv.linear_model import CoxPHSurvivalAnalysis
    >>> from drosurv.datasets import make_hidden_minority
    >>> from drosurv.repairs.insight import certify
    >>> train, test = make_hidden_minority(random_state=0), make_hidden_minority(random_state=1)
    >>> model = CoxPHSurvivalAnalysis().fit(train.X, train.y)
    >>> certificate = certify(model, test.X, test.y, horizon=0.5, y_train=train.y)
    >>> round(certificate.smallest_alpha(0.35), 2)
    0.62
    """
    target = parse_target(of_any_cause(y))
    require(0.5 <= as_number(confidence) < 1, "confidence", "lie in [0.5, 1)", confidence)
    if len(target) < LEAST_PATIENTS:
        raise ArgumentError(
            "y",
            f"{len(target)} held-out patients say too little about subgroups: give at least {LEAST_PATIENTS}.",
        )
    require(0 < as_number(horizon) < np.inf, "horizon", "be a time above 0, such as 24", horizon)
    at_risk = int((target.time > horizon).sum())
    if 0 < at_risk < FEW_AT_RISK:
        warn_caller(
            f"only {at_risk} of the {len(target)} patients are still observed at the horizon {horizon:g}: what "
            "happened by then is hardly known, and little can be estimated or guaranteed; choose an earlier horizon."
        )
    survival = predicted_curves(model, X, len(target)).at(np.array([horizon], dtype=np.float64))[:, 0]
    follow_up = follow_up_of(model, y_train, target)
    outcomes = outcomes_at(horizon, target, follow_up, censoring, survival)
    covariates = pd.get_dummies(readable_table(X, len(target), features=features), dtype=np.float64)
    curve = subgroup_curve(
        covariates.to_numpy(dtype=np.float64, na_value=np.nan),
        survival,
        outcomes,
        alphas=np.linspace(0.05, 1.0, 39) if alphas is None else np.unique(_shares("alphas", alphas)),
        confidence=confidence,
        random_state=random_state,
    )
    return Certificate(
        curve=curve,
        losses=np.sort(outcomes.losses(survival))[::-1],
        bound=outcomes.bound,
        horizon=float(horizon),
        confidence=confidence,
        censoring=censoring,
    )


def _shares(name: str, values: ArrayLike) -> FloatArray:
    shares = as_numbers(values)
    require(
        shares.size and ((shares > 0) & (shares <= 1)).all(), name, "be shares of patients in (0, 1]", values
    )
    return shares


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    r"""How badly off subgroups are, over the size alpha of the smallest subgroup counted.

    **Estimate** (``curve``): the loss of the worst subgroup of share alpha that trees find from covariates,
    measured on patients it did not learn from. It says what was found; a worse subgroup may have been missed.

    **Guarantee**: with probability at least `confidence` over the n held-out patients, no subpopulation of
    mass alpha or more, defined by covariates, outcomes or anything else, has a mean loss above

    .. math:: U(\alpha) = \frac{1}{\alpha} \Bigl( \min(\epsilon, \alpha) B
              + \int_{1-(\alpha-\epsilon)_+}^1 F_n^{-1}(u)\,du \Bigr),
              \quad \epsilon = \sqrt{\log(1/\delta) / (2n)}, \quad \delta = 1 - \mathrm{confidence}

    for all alpha at once: U(alpha) is the CVaR of the observed losses after the best share epsilon of them
    was raised to the largest possible loss B. Proof: by the Dvoretzky-Kiefer-Wolfowitz inequality with
    Massart's constant, with probability 1 - delta the distribution F of losses satisfies
    F(z) >= F_n(z) - epsilon for every z, so its quantiles satisfy F^{-1}(u) <= F_n^{-1}(u + epsilon), and <= B
    where u + epsilon > 1. A subpopulation of mass alpha has a density of at most 1/alpha, so its mean loss is
    at most CVaR_alpha(F), the mean of F^{-1} over the top alpha; put the bound on F^{-1} under that integral. One
    event serves every alpha. It needs independent patients and losses in [0, B], nothing else. With
    censoring="ipcw" the loss is weighted; its mean over patients chosen by covariates and survival times, not by
    who was censored, is the mean squared error if the censoring distribution, estimated on the training set,
    is right. A mean squared error is at most 1, and so is the guarantee: 1 guarantees nothing.

    Parameters
    ----------
    curve : SubgroupCurve
        The estimate and its band.
    losses : (n,)
        Held-out losses, largest first.
    bound : float
        B, the largest loss possible.
    horizon, confidence, censoring
        As given to :func:`certify`.
    """

    curve: SubgroupCurve
    losses: FloatArray
    bound: float
    horizon: float
    confidence: float
    censoring: Censoring

    @property
    def margin(self) -> float:
        """Epsilon, the mass by which the observed distribution of losses may flatter the true one."""
        return float(np.sqrt(np.log(1 / (1 - self.confidence)) / (2 * len(self.losses))))

    def guarantee(self, alpha: ArrayLike) -> FloatArray:
        """Upper bound (...), at most 1, on the loss of every subpopulation of mass alpha (...) or more."""
        sizes, n = _shares("alpha", alpha), len(self.losses)
        counted = np.maximum(sizes - self.margin, 0)
        top = np.interp(counted, np.arange(n + 1) / n, np.append(0.0, np.cumsum(self.losses)) / n)
        return np.minimum((np.minimum(self.margin, sizes) * self.bound + top) / sizes, 1.0)

    def smallest_alpha(
        self, tolerance: float, which: Literal["guarantee", "estimate"] = "guarantee"
    ) -> float | None:
        """Smallest share alpha such that all subgroups of that size or more stay within the tolerance.

        Parameters
        ----------
        tolerance : float
            Largest mean loss that is acceptable.
        which : {"guarantee", "estimate"}
            Under the guarantee (for any subpopulation, exact), or where the estimate's upper band stays
            within the tolerance (subgroups by covariates, on the grid of ``curve.alphas``).

        Returns
        -------
        float or None
            None if not even the whole population stays within it.
        """
        require(np.isfinite(tolerance), "tolerance", "be a finite mean loss", tolerance)
        require(which in ("guarantee", "estimate"), "which", 'be "guarantee" or "estimate"', which)
        if which == "estimate":
            within = self.curve.high <= tolerance
            kept = np.flatnonzero(np.logical_and.accumulate(within[::-1])[::-1])
            return float(self.curve.alphas[kept[0]]) if len(kept) else None
        if self.guarantee(1.0) > tolerance:
            return None
        low, high = 0.0, 1.0
        # The guarantee falls in alpha without jumps, so halving finds where it meets the tolerance.
        while high - low > 1e-9:
            middle = (low + high) / 2
            low, high = (low, middle) if self.guarantee(middle) <= tolerance else (middle, high)
        return high

    def summary(self, tolerance: float | None = None) -> str:
        """What is guaranteed, in words; with a tolerance, also from which share of the patients on it is kept.

        Examples
        --------
        >>> import numpy as np
        >>> from drosurv.repairs.insight import Certificate, SubgroupCurve
        >>> curve = SubgroupCurve(*np.array([[1.0], [0.3], [0.2], [0.4]]))
        >>> print(Certificate(curve, np.full(60, 0.3), 9.0, 2.0, 0.95, "ipcw").summary())
        With confidence 95 %, nothing can be guaranteed for any group of patients.
        """
        sure = f"With confidence {100 * self.confidence:g} %,"
        everyone = float(self.guarantee(1.0))
        if everyone >= 1:
            told = f"{sure} nothing can be guaranteed for any group of patients."
        else:
            told = (
                f"{sure} all patients together have a Brier loss of at most {_up(everyone):g}; nothing can be "
                f"guaranteed for groups of less than {written(self.smallest_alpha(1.0 - 1e-6), 'share')} of them."
            )
        if tolerance is None:
            return told
        smallest = self.smallest_alpha(tolerance)
        kept = (
            f"no group size is guaranteed to stay under {tolerance:g}"
            if smallest is None
            else f"every group of at least {written(_up(smallest), 'share')} of the patients stays under {tolerance:g}"
        )
        return f"{told}\n{sure} {kept}."

    def to_frame(self) -> pd.DataFrame:
        """One row per alpha: the estimate with its band, and the guarantee."""
        curve = self.curve
        columns = {"alpha": curve.alphas, "estimate": curve.estimate, "low": curve.low, "high": curve.high}
        return pd.DataFrame({**columns, "guarantee": self.guarantee(curve.alphas)})

    def to_table(self) -> Table:
        """What a reader sees: some shares, the worst subgroup found there, and what is guaranteed of any."""
        columns = (
            Column("alpha", "subgroups of at least", "share"),
            Column("estimate", "worst found", "value", ("low", "high")),
            Column("guarantee", "none is above", "value"),
        )
        caption = (
            f"Mean Brier loss at {moment(self.horizon)}, on {len(self.losses):,} patients, with "
            f"{100 * self.confidence:g} % confidence"
        )
        frame = self.to_frame().assign(guarantee=lambda curves: _up(curves["guarantee"]))
        shown = np.unique(np.linspace(0, len(frame) - 1, _SHOWN).round().astype(int))
        return Table.of("certificate", caption, columns, frame.iloc[shown], (self.summary(),))

    def __repr__(self) -> str:
        return self.to_table().to_text()

    def _repr_html_(self) -> str:
        return self.to_table().to_html()

    def plot(self, ax: Axes | None = None, *, tolerance: float | None = None, time_unit: str = "") -> Axes:
        """Both curves over alpha; with a tolerance, also the share from which the guarantee holds it.

        Times count a unit such as "days", if it is given.
        """
        ax = axes_or_new(ax)
        curve, percent = self.curve, f"{100 * self.confidence:g} %"
        ax.plot(curve.alphas, curve.estimate, color="C0", label="worst subgroup by covariates (estimate)")
        ax.fill_between(
            curve.alphas, curve.low, curve.high, color="C0", alpha=0.2, label=f"its {percent} band"
        )
        ax.plot(
            curve.alphas, self.guarantee(curve.alphas), "C3--", label=f"any subgroup ({percent} guarantee)"
        )
        if tolerance is not None:
            ax.axhline(tolerance, color="0.5", linewidth=0.8, label=f"tolerance {tolerance:g}")
            if (smallest := self.smallest_alpha(tolerance)) is not None:
                label = f"guaranteed from {written(_up(smallest), 'share')} on"
                ax.axvline(smallest, color="0.5", linewidth=0.8, linestyle=":", label=label)
        ax.set_xlabel("share of patients in the subgroup, at least")
        ax.set_ylabel(f"Brier loss at {moment(self.horizon, time_unit)}")
        ax.legend()
        return ax


def _up(bound: Any) -> Any:
    """A bound to three decimals, never below itself: rounded to the nearest it would promise too much."""
    return np.ceil(1000 * bound) / 1000
