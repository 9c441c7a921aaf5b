"""The metrics that a set of patients can have on its own: their names, directions and definitions.

Each is a function of patients and of patient weights, so that one definition serves the whole test set,
every group, and every bootstrap replicate of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from drosurv.evaluation.patients import Patients
from drosurv.inference import Method
from drosurv.metrics import (
    calibration_slope,
    d_calibration,
    dynamic_auc,
    gain_over_null,
    integrated_calibration_index,
    log_partial_likelihood,
    share_of_gain,
)
from drosurv.metrics.kaplan_meier import kaplan_meier
from drosurv.target import FloatArray

Better = Literal["higher", "lower", "near 1", "near 0"]


@dataclass(frozen=True)
class Measure:
    """One metric of a set of patients.

    Parameters
    ----------
    name : str
        As in tables; also that of the function in ``drosurv.metrics`` where there is one.
    label : str
        Short heading.
    better : "higher", "lower", "near 1" or "near 0"
        Which values are good.
    function : callable
        Patients and their weights (n,) to a value; NaN where undefined.
    by_group : bool
        Whether it can be read by group. Partial likelihood cannot: a right model loses partial likelihood on
        low-risk groups, whose merit stands in other patients' risk sets.
    needs : "risk", "survival" or "reference"
        What the model must have said, or that a reference is there.
    resampled : bool
        Whether a bootstrap interval makes sense; a p-value has none.
    interval : "percentile" or "basic"
        Kind of interval. "basic" mirrors the replicates at the estimate, for a mean of absolute values, which
        resampling noise alone makes larger.
    lowest : float
        The lowest value there can be, where intervals are cut.
    """

    name: str
    label: str
    better: Better
    function: Callable[[Patients, FloatArray], float]
    by_group: bool = True
    needs: Literal["risk", "survival", "reference"] = "risk"
    resampled: bool = True
    interval: Method = "percentile"
    lowest: float = -np.inf

    def applies_to(self, patients: Patients) -> bool:
        """Whether the patients carry what the metric needs."""
        if self.needs == "survival":
            return patients.curves is not None
        return self.needs == "risk" or patients.reference_risk is not None

    def __call__(self, patients: Patients, weight: FloatArray) -> float:
        """Value of the metric; NaN if nobody has weight, or no finite value is best."""
        if not weight.any():
            return float("nan")
        value = float(self.function(patients, weight))
        return value if np.isfinite(value) else float("nan")


def _ratio(above: float, below: float) -> float:
    return above / below if below != 0 else float("nan")


def _concordance_index(patients: Patients, weight: FloatArray) -> float:
    return _ratio(*patients.harrell.harrell_sums(weight))


def _uno_concordance(patients: Patients, weight: FloatArray) -> float:
    return _ratio(*patients.harrell.harrell_sums(weight, patients.uno_weight))


def _dynamic_auc(patients: Patients, weight: FloatArray) -> float:
    at = patients.valid_auc_times
    if len(at) == 0:
        return float("nan")
    return dynamic_auc(patients.follow_up, patients.target, patients.risk, at, sample_weight=weight)


def _log_partial_likelihood(patients: Patients, weight: FloatArray) -> float:
    return log_partial_likelihood(patients.target, patients.risk, sample_weight=weight)


def _integrated_brier_score(patients: Patients, weight: FloatArray) -> float:
    assert patients.brier is not None
    return _ratio(float(weight @ patients.brier.model), float(weight.sum()))


def _brier_skill(patients: Patients, weight: FloatArray) -> float:
    assert patients.brier is not None
    return 1.0 - _ratio(float(weight @ patients.brier.model), float(weight @ patients.brier.null))


def _likelihood_gain(patients: Patients, weight: FloatArray) -> float:
    assert patients.gains is not None
    return _ratio(float(weight @ patients.gains), float(weight.sum()))


def _calibration_slope(patients: Patients, weight: FloatArray) -> float:
    return calibration_slope(patients.target, patients.risk, sample_weight=weight)


def _calibration_difference(patients: Patients, weight: FloatArray) -> float:
    predicted = float(weight @ patients.survival_at_horizon) / float(weight.sum())
    return predicted - float(kaplan_meier(patients.target, np.array([patients.horizon]), weight)[0])


def _integrated_calibration_index(patients: Patients, weight: FloatArray) -> float:
    # Whole-number weights count copies, and the index takes patients, not weights.
    rows = np.repeat(np.arange(len(patients)), weight.astype(np.intp))
    survival = patients.survival_at_horizon[rows, None]
    return integrated_calibration_index(
        patients.target.take(rows), survival, patients.horizon, times=[patients.horizon]
    )


def _d_calibration_p(patients: Patients, weight: FloatArray) -> float:
    assert patients.curves is not None
    return d_calibration(patients.target, patients.curves).p_value


def _gain_over_null(patients: Patients, weight: FloatArray) -> float:
    return gain_over_null(patients.target, patients.risk, sample_weight=weight)


def _share_of_gain(patients: Patients, weight: FloatArray) -> float:
    return share_of_gain(patients.target, patients.risk, patients.reference_risk, sample_weight=weight)


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure("concordance_index", "c-index", "higher", _concordance_index),
        Measure("uno_concordance", "Uno's C", "higher", _uno_concordance),
        Measure("dynamic_auc", "AUC", "higher", _dynamic_auc),
        Measure("log_partial_likelihood", "LPL", "higher", _log_partial_likelihood, by_group=False),
        Measure("integrated_brier_score", "IBS", "lower", _integrated_brier_score, needs="survival"),
        Measure("brier_skill", "Brier skill", "higher", _brier_skill, needs="survival"),
        Measure("likelihood_gain", "likelihood gain", "higher", _likelihood_gain, needs="survival"),
        Measure("calibration_slope", "slope", "near 1", _calibration_slope),
        Measure(
            "calibration_difference",
            "predicted - observed",
            "near 0",
            _calibration_difference,
            needs="survival",
        ),
        Measure(
            "integrated_calibration_index",
            "ICI",
            "lower",
            _integrated_calibration_index,
            needs="survival",
            interval="basic",
            lowest=0.0,
        ),
        Measure(
            "d_calibration_p",
            "D-calibration p",
            "higher",
            _d_calibration_p,
            needs="survival",
            resampled=False,
        ),
        Measure("gain_over_null", "LPL gain", "higher", _gain_over_null, by_group=False),
        Measure(
            "share_of_gain",
            "share of Cox's gain",
            "higher",
            _share_of_gain,
            by_group=False,
            needs="reference",
        ),
    )
}
