"""How right a model of competing causes is, by cause and group, and what counting the others as censored would do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from drosurv.metrics import brier_score_by_cause, calibration_by_cause, concordance_by_cause
from drosurv.target import parse_competing_target

EVERYBODY = "everybody"


def evaluate_by_cause(
    model: Any, X: Any, y: Any, at: ArrayLike, *, sensitive_features: Any = None, **given: Any
) -> pd.DataFrame:
    """Calibration, Brier score and concordance of predicted incidences, for every cause, group and time.

    Parameters
    ----------
    model : CauseSpecificCox
        Fitted.
    X, y
        Test patients, as in :meth:`drosurv.CauseSpecificCox.fit`.
    at : (k,) array
        Times to judge at.
    sensitive_features : Series or DataFrame, optional
        Group labels; each column is an attribute.
    **given
        ``strata`` and ``offset`` for the predictions.

    Returns
    -------
    DataFrame
        ``cause``, ``attribute``, ``group``, ``horizon``, mean ``predicted`` and ``observed`` (Aalen-Johansen) incidence
        with the interval ``low`` to ``high``, their ``difference``, what counting other causes as censored would claim
        (``others_censored``) and by how much that is too high (``overstated``), ``brier``, ``c_index``, ``at_risk``
        and ``patients``.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv import CauseSpecificCox, Surv
    >>> from drosurv.competing import evaluate_by_cause
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(300, 2)), Surv.competing(rng.integers(0, 3, 300), rng.exponential(size=300))
    >>> table = evaluate_by_cause(CauseSpecificCox().fit(X, y), X, y, at=[0.5])
    >>> bool((table["overstated"] >= 0).all())
    True
    """
    target, times = parse_competing_target(y), np.atleast_1d(np.asarray(at, dtype=np.float64))
    rows = []
    for cause in range(1, model.n_causes_ + 1):
        incidence = model.predict_cumulative_incidence(X, times=times, cause=cause, **given)
        risk = model.predict(X, cause)
        for attribute, group, own in _groups(sensitive_features, len(target)):
            causes, seen = target.cause[own], target.time[own]
            table = calibration_by_cause(causes, seen, incidence[own], times, of=cause)
            table["overstated"] = table["others_censored"] - table["observed"]
            table["brier"] = brier_score_by_cause(
                model.follow_up_, causes, seen, incidence[own], times, of=cause
            )
            compared = (causes == cause).any() and len(own) > 1
            table["c_index"] = concordance_by_cause(causes, seen, risk[own], of=cause) if compared else np.nan
            table["patients"] = len(own)
            rows.append(table.assign(cause=cause, attribute=attribute, group=group))
    found = pd.concat(rows, ignore_index=True)
    first = ["cause", "attribute", "group", "horizon"]
    return found[[*first, *(name for name in found.columns if name not in first)]]


def _groups(sensitive_features: Any, n: int) -> list[tuple[str, str, Any]]:
    """Attribute, label and rows of everybody and of every group."""
    found = [(EVERYBODY, EVERYBODY, np.arange(n))]
    if sensitive_features is None:
        return found
    frame = pd.DataFrame(sensitive_features)
    if len(frame) != n:
        raise ValueError(
            f"sensitive_features must have one row per patient, got {len(frame)} for {n} patients."
        )
    for name in frame.columns:
        labels = frame[name].astype(str).to_numpy()
        found += [(str(name), label, np.flatnonzero(labels == label)) for label in np.unique(labels)]
    return found
