"""The audit of a model of which only predictions are known: from R, lifelines, a vendor, or an EHR export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from drosurv.audit.evidence import Evidence
from drosurv.audit.prediction_columns import as_numbers
from drosurv.audit.report import AuditReport
from drosurv.audit.stops import Stop
from drosurv.errors import ArgumentError
from drosurv.evaluation import Predictions
from drosurv.evaluation.observed import curve_times
from drosurv.metrics import FollowUp
from drosurv.presentation import counted, moment
from drosurv.repairs.curves import PredictionGrid, log_mean_hazard, reference_times
from drosurv.target import FloatArray, Target, parse_target

OWN_FOLLOW_UP = (
    "The training patients are not known. What no model would predict, and how patients are censored, is taken from "
    "the audited patients themselves, for which the likelihood gain allows.",
    "Whether the model was trained on any of these patients cannot be seen from its predictions. If it was, every "
    "number here is too good.",
)


def audit_predictions(
    predictions: Any,
    y: Any,
    *,
    times: Any = None,
    risk: Any = None,
    sensitive_features: Any = None,
    y_train: Any = None,
    features: pd.DataFrame | None = None,
    reference: Any = None,
    reference_name: str = "the reference",
    name: str = "Predictions",
    title: str | None = None,
    data_name: str = "",
    time_title: str = "time",
    n_bootstrap: int = 500,
    level: float = 0.95,
    search_rules: bool = True,
    random_state: int = 0,
    also: Mapping[str, Any] | None = None,
    warnings: Sequence[Mapping[str, str]] = (),
) -> AuditReport:
    """Audit predictions, whichever program made them.

    Parameters
    ----------
    predictions : (n, k) array or DataFrame, Predictions, (n,) array, or None
        Predicted survival at k times, one column each (a DataFrame's column names may be the times); or
        :class:`~drosurv.evaluation.Predictions`; or risk scores, higher meaning sooner.
    y : structured array, (n,)
        What happened to the patients.
    times : (k,) array, optional
        Times of the columns.
    risk : (n,) array, optional
        Risk scores to rank by, where survival is given too; by default the log of the mean predicted cumulative
        hazard.
    sensitive_features : DataFrame, Series, mapping, (n,) or (n, J) labels, optional
        One column of group labels per attribute.
    y_train : structured array or FollowUp, optional
        Training target, if it is known; by default the audited patients stand in for the training patients.
    features : DataFrame, (n, d), optional
        Columns that the rules may speak about; without them no rules are searched.
    reference : Predictions or (n,) array, optional
        Another model's predictions for the same patients, to compare with.
    reference_name, name : str
        What readers call the reference, and the audited model.
    title, data_name, time_title, n_bootstrap, level, search_rules, random_state, also, warnings
        As in :func:`~drosurv.audit.audit`.

    Returns
    -------
    AuditReport

    Examples
    --------
    >>> from drosurv import CoxPH
    >>> from drosurv.audit import audit_predictions
    >>> from drosurv.datasets import make_hidden_minority
    >>> data = make_hidden_minority(400, random_state=0)
    >>> survival = CoxPH().fit(data.X, data.y).predict_survival_function(data.X, times=[0.5, 1.0, 2.0])
    >>> report = audit_predictions(
    ...     survival, data.y, times=[0.5, 1.0, 2.0], sensitive_features=data.sensitive_features, n_bootstrap=20
    ... )
    >>> report.audited.name
    'Predictions'
    """
    said, missing = as_predictions(predictions, times, risk, len(parse_target(y))), []
    horizons: FloatArray | None = None
    ends: tuple[str, ...] = ()
    if isinstance(said, PredictionGrid):
        end = float(said.times[-1])
        y, ends = until(y, end, "" if time_title == "time" else time_title)
        target = parse_target(y)
        horizons = nearest_quartiles(target, said.times[said.times > 0])
        said = between_times(said, target, risk)
    if features is None:
        missing.append("Rules for the worst off need columns to speak about: none were given.")
    if reference is None:
        missing.append("The model is not compared with another one: no other predictions were given.")
    facts: dict[str, Any] = {"Audited": "predictions alone; the model itself was not seen"}
    if horizons is not None:
        facts["Times looked at"] = horizons.tolist()
    return AuditReport.of(
        Evidence(
            stops=(Stop(name, None, said),),
            y=y,
            follow_up=FollowUp.standing_in(parse_target(y)) if y_train is None else y_train,
            sensitive_features=sensitive_features,
            reference=None if reference is None else (reference, None),
            reference_name=reference_name,
            features=features,
            model=facts,
            missing=tuple(missing),
            limits=(*ends, *(OWN_FOLLOW_UP if y_train is None else OWN_FOLLOW_UP[1:])),
            horizons=horizons,
            until=end if ends else None,
            title=title,
            data_name=data_name,
            time_title=time_title,
            n_bootstrap=n_bootstrap,
            level=level,
            search_rules=search_rules,
            random_state=random_state,
            also=dict(also or {}),
            warnings=tuple(warnings),
        )
    )


def as_predictions(predictions: Any, times: Any, risk: Any, n: int) -> Predictions | PredictionGrid:
    """Predictions as they were given, checked."""
    if isinstance(predictions, Predictions):
        return predictions
    if times is None and hasattr(predictions, "columns"):
        times = _times_of(predictions.columns)
    if predictions is None or np.ndim(predictions) == 1:
        scores = risk if predictions is None else predictions
        if scores is None:
            raise ArgumentError(
                "predictions",
                "predictions or risk is needed: pass predicted survival at times, or risk scores.",
            )
        return Predictions(scores)
    if times is None:
        raise ArgumentError("times", "times is needed: pass the time of each column of predictions.")
    return PredictionGrid.parse((times, as_numbers(predictions)), n)


def until(y: Any, end: float, time_unit: str) -> tuple[Any, tuple[str, ...]]:
    """What happened up to the last predicted time, where those still there are censored; and a limit that says so."""
    event, time = y.dtype.names
    later = y[time] > end
    if not later.any():
        return y, ()
    cut = y.copy()
    cut[event] &= ~later
    cut[time] = np.minimum(y[time], end)
    if not cut[event].any():
        raise ArgumentError(
            "predictions",
            f"predictions end at {moment(end, time_unit)}, before the first event: predict later times, "
            "in the unit of the observed ones.",
        )
    return cut, (
        f"The predictions end at {moment(end, time_unit)}. What happened later to "
        f"{counted(int(later.sum()), 'patient')} is not looked at.",
    )


def nearest_quartiles(target: Target, times: FloatArray) -> FloatArray:
    """The predicted times nearest to the quartiles of the event times, so that no interpolation is judged."""
    return np.unique(times[np.abs(times - reference_times(target)[:, None]).argmin(axis=1)])


def between_times(grid: PredictionGrid, target: Target, risk: Any = None) -> Predictions:
    """Curves also between the predicted times, where the hazard is taken to be constant.

    A curve at a few times, read as a step function, would say that nobody dies between them.
    """
    own = grid.times[grid.times > 0]
    times = np.union1d(own, curve_times(target.time[target.event]))
    return Predictions(
        log_mean_hazard(grid.at(own)) if risk is None else risk, np.exp(-grid.at(times)), times
    )


def _times_of(columns: Any) -> FloatArray:
    try:
        return np.array([float(name) for name in columns])
    except (TypeError, ValueError):
        raise ArgumentError(
            "times",
            f"times is needed: the columns of predictions are not named by times: "
            f"{[str(name) for name in columns]}.",
        ) from None
