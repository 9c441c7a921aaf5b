"""Patients with what happened to them and what a model said: all that the metrics of any subset need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from drosurv.evaluation.predictions import Predictions, ReadCurves, predict_curves, predict_risk, read_curves
from drosurv.metrics import BrierAgainstNull, FollowUp, brier_against_null, likelihood_gains
from drosurv.metrics.pair_order import PairOrder
from drosurv.metrics.time_grid import Grid, auc_times, auc_times_of, brier_times
from drosurv.target import FloatArray, Target

# Intervals of the piecewise constant hazard behind likelihood gains.
_INTERVALS = 20


@dataclass(frozen=True, eq=False)
class Patients:
    """n patients ready to be scored.

    What depends on the whole test set (time grids, Brier contributions, likelihood gains) is fixed before
    groups are taken out, so that all groups are scored over the same times.

    Parameters
    ----------
    target : Target
        What happened to them.
    risk : (n,) float64
        Risk scores.
    follow_up : FollowUp
        Training patients' follow-up.
    auc_times : (k,) float64
        Times of the dynamic AUC.
    horizon : float
        When calibration is judged.
    curves : ReadCurves, optional
        Predicted survival.
    brier : BrierAgainstNull, optional
        Brier contributions.
    gains : (n,) float64, optional
        Full-likelihood gains over the null model.
    reference_risk : (n,) float64, optional
        Risk scores of the reference model.
    """

    target: Target
    risk: FloatArray
    follow_up: FollowUp
    auc_times: FloatArray
    horizon: float
    curves: ReadCurves | None = None
    brier: BrierAgainstNull | None = None
    gains: FloatArray | None = None
    reference_risk: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.risk)

    @cached_property
    def harrell(self) -> PairOrder:
        """Their order for Harrell's and Uno's pairs."""
        return PairOrder.for_harrell(self.target, self.risk)

    @cached_property
    def imparity(self) -> PairOrder:
        """Their order for the pairs of Algorithm B.1."""
        return PairOrder.for_imparity(self.target, self.risk)

    @cached_property
    def uno_weight(self) -> FloatArray:
        """Squared inverse probability of having been observed, at each event."""
        squared: FloatArray = self.follow_up.inverse_probability(self.target) ** 2
        return squared

    @cached_property
    def hazard(self) -> FloatArray:
        """exp(risk); infinite where it overflows."""
        return hazard_of(self.risk)

    @cached_property
    def survival_at_horizon(self) -> FloatArray:
        """Predicted survival at the horizon; the patients must have curves."""
        assert self.curves is not None
        return self.curves.at(np.array([self.horizon]))[:, 0]

    @cached_property
    def valid_auc_times(self) -> FloatArray:
        """Those of `auc_times` at which one of these patients had had the event and another was still seen."""
        return auc_times_of(self.target, self.auc_times)

    def take(self, rows: Any) -> Patients:
        """The given rows (indices or a mask)."""

        def of(values: FloatArray | None) -> FloatArray | None:
            return None if values is None else values[rows]

        brier = self.brier and BrierAgainstNull(self.brier.model[rows], self.brier.null[rows])
        return Patients(
            self.target.take(rows),
            self.risk[rows],
            self.follow_up,
            self.auc_times,
            self.horizon,
            self.curves and self.curves.take(rows),
            brier,
            of(self.gains),
            of(self.reference_risk),
        )


def hazard_of(risk: FloatArray) -> FloatArray:
    """exp(risk), infinite where it overflows."""
    with np.errstate(over="ignore"):
        found: FloatArray = np.exp(risk)
    return found


def hazards_exist(risk: FloatArray) -> bool:
    """Whether every exp(risk) is finite and positive, so that hazards and the logs of their means have a value."""
    hazard = hazard_of(risk)
    return bool((np.isfinite(hazard) & (hazard > 0)).all())


def score_patients(
    model: Any,
    X: Any,
    target: Target,
    follow_up: FollowUp,
    *,
    horizons: FloatArray,
    curve_times: FloatArray | None = None,
    grid: Grid = "inside",
    reference: Any = None,
    name: str = "model",
) -> Patients:
    """Ask a model for all that its metrics need.

    Parameters
    ----------
    model : fitted model, Predictions, or (n,) array
        As in :func:`~drosurv.evaluation.evaluate`.
    X : (n, d) array or DataFrame, or None
        Features, as the model takes them.
    target : Target
        What happened to the patients.
    follow_up : FollowUp
        Training patients' follow-up.
    horizons : (h,) float64
        Where calibration is looked at; the middle one is the patients' `horizon`.
    curve_times : (k,) float64, optional
        Further times at which curves will be read.
    grid : "inside" or "table"
        Times of AUC and Brier scores.
    reference : fitted model, Predictions, or (n,) array, optional
        The reference model.
    name : str
        What error messages call the model.
    """
    n = len(target)
    risk = predict_risk(model, X, n, name=name)
    reference_risk = None if reference is None else predict_risk(reference, X, n, name="reference")
    at = auc_times(follow_up, target, None, grid) if target.event.any() else np.empty(0)
    scored = Patients(
        target, risk, follow_up, at, float(horizons[len(horizons) // 2]), reference_risk=reference_risk
    )
    curves = predict_curves(model, X, n)
    if curves is None:
        return scored
    brier_at = brier_times(follow_up, target, None, grid)
    edges = np.interp(np.linspace(0, 100, _INTERVALS + 1), np.arange(101), follow_up.event_percentiles)
    further = np.empty(0) if curve_times is None else curve_times
    read = read_curves(curves, np.concatenate([brier_at, [0.0], edges, horizons, further]), target.time)
    return Patients(
        target,
        risk,
        follow_up,
        at,
        scored.horizon,
        read,
        brier_against_null(follow_up, target, read, grid=grid),
        likelihood_gains(follow_up, target, read, n_intervals=_INTERVALS),
        reference_risk,
    )


def model_name(model: Any) -> str:
    """What a model is called in tables: its class, or what it was given as."""
    if isinstance(model, Predictions) or not hasattr(model, "predict"):
        return "predictions"
    return type(model).__name__
