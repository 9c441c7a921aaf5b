"""From what a caller gives to what metrics need: checked once, predicted once, read at all times once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drosurv.evaluation.attributes import Attribute, Count, intersection_of, parse_attributes
from drosurv.evaluation.disparities import Disparities
from drosurv.evaluation.features import plain_cox_risk, standardised_features
from drosurv.evaluation.panel import EVERYONE, Panel
from drosurv.evaluation.patients import score_patients
from drosurv.evaluation.predictions import predict_risk
from drosurv.groups import Missing
from drosurv.metrics import FollowUp
from drosurv.metrics.fairness import Convention
from drosurv.target import FloatArray, parse_target

# Points of the mean survival curves that plots show.
_CURVE_POINTS = 60


@dataclass(frozen=True, eq=False)
class Prepared:
    """One model on one set of patients, ready for every metric.

    Parameters
    ----------
    panel : Panel
        The patients in all their groups.
    disparities : Disparities
        Definitions of the disparities of hazards.
    horizons : (h,) float64
        When calibration is looked at.
    curve_times : (k,) float64
        Times of mean survival curves.
    notes : tuple of str
        What is left out, and why.
    """

    panel: Panel
    disparities: Disparities
    horizons: FloatArray
    curve_times: FloatArray
    notes: tuple[str, ...]

    @property
    def counts(self) -> dict[tuple[str, str], Count]:
        """Attribute and label to the number of patients and events."""
        return {
            (attribute.name, label): count
            for attribute in self.panel.attributes
            for label, count in zip(
                attribute.labels, attribute.counts(self.panel.everyone.target), strict=True
            )
        }


def prepare(
    model: Any,
    X: Any,
    y: Any,
    *,
    y_train: Any,
    sensitive_features: Any,
    X_train: Any = None,
    reference: Any = None,
    horizons: Any = None,
    convention: Convention = "paper",
    scale: float = 0.01,
    missing: Missing = "group",
    labels: Mapping[str, Sequence[Any]] | None = None,
    intersections: bool = False,
    name: str = "model",
) -> Prepared:
    """Check everything and ask the model; parameters as in :func:`~drosurv.evaluation.evaluate`."""
    if convention not in ("paper", "table"):
        raise ValueError(f"convention must be 'paper' or 'table', got {convention!r}.")
    target = parse_target(y)
    follow_up = FollowUp.parse(y_train)
    at = parse_horizons(horizons, follow_up)
    attributes = parse_attributes(sensitive_features, len(target), missing=missing, labels=labels)
    if any(attribute.name == EVERYONE for attribute in attributes):
        raise ValueError(
            f"sensitive_features has an attribute called {EVERYONE!r}, which is what the tables call all patients: "
            "rename it."
        )
    intersection = intersection_of(attributes) if attributes else None
    features = standardised_features(X, X_train)
    why_no_reference = ""
    if reference is None:
        reference, why_no_reference = plain_cox_risk(features, y_train)
    else:
        reference = predict_risk(reference, X, len(target), name="reference")
    curve_times = np.linspace(0.0, min(float(target.time.max()), follow_up.end), _CURVE_POINTS)
    patients = score_patients(
        model,
        X,
        target,
        follow_up,
        horizons=at,
        curve_times=curve_times,
        grid="table" if convention == "table" else "inside",
        reference=reference,
        name=name,
    )
    shown: list[Attribute] = [*attributes]
    if intersections and intersection is not None and len(attributes) > 1:
        shown.append(intersection)
    panel = Panel(patients, shown, intersection, smooth=convention == "table")
    disparities = Disparities(features.test, shown, intersection, convention, scale)
    notes = [why_no_reference, features.note, *_left_out(panel)]
    if disparities.sample is not None and patients.reference_risk is not None:
        notes.append(f"the shrinkage control estimates F_I from {len(disparities.sample):,} of the patients.")
    return Prepared(panel, disparities, at, curve_times, tuple(note for note in notes if note))


def parse_horizons(horizons: Any, follow_up: FollowUp) -> FloatArray:
    """Times at which calibration is looked at, ascending; by default the quartiles of training event times."""
    if horizons is None:
        return np.unique(follow_up.event_percentiles[[25, 50, 75]])
    found = np.unique(np.atleast_1d(np.asarray(horizons, dtype=np.float64)))
    if len(found) == 0 or not np.isfinite(found).all() or found[0] < 0:
        raise ValueError(f"horizons must be finite times >= 0, got {horizons!r}.")
    return found


def _left_out(panel: Panel) -> list[str]:
    notes = []
    if panel.everyone.curves is None:
        notes.append(
            "Brier scores, likelihood gains and calibration are left out: the model gives no survival curves."
        )
    if not panel.has_hazards:
        risk = panel.everyone.risk
        notes.append(
            f"disparities of hazards are left out: exp overflows, or is 0, for scores of {risk.min():g} to "
            f"{risk.max():g}."
        )
    if not panel.attributes:
        notes.append("nothing is shown by group: no sensitive_features were given.")
    return notes
