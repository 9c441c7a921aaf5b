"""How right a model of competing causes is, by cause and group, and what counting the others as censored would do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.evaluation.attributes import parse_attributes
from drosurv.evaluation.patients import parse_horizons
from drosurv.evaluation.predictions import final_step, prepared
from drosurv.groups import Missing
from drosurv.metrics import brier_score_by_cause, calibration_by_cause, concordance_by_cause
from drosurv.target import parse_competing_target

EVERYBODY = "everybody"


def evaluate_by_cause(
    model: Any,
    X: Any,
    y: Any,
    at: ArrayLike | None = None,
    *,
    sensitive_features: Any = None,
    level: float = 0.95,
    missing: Missing = "group",
    **given: Any,
) -> pd.DataFrame:
    """Calibration, Brier score and concordance of predicted incidences, for every cause, group and time.

    Parameters
    ----------
    model : CauseSpecificCox
        Fitted; or a Pipeline that ends with one.
    X, y
        Test patients, as in :meth:`drosurv.CauseSpecificCox.fit`.
    at : (k,) array, optional
        Times to judge at; by default the quartiles of the training event times.
    sensitive_features : Series or DataFrame, optional
        Group labels; each column is an attribute.
    level : float
        Of the intervals.
    missing : "group" or "drop"
        Whether patients without a label form a group of their own or are left out of that attribute.
    **given
        ``strata`` and ``offset`` for the predictions.

    Returns
    -------
    DataFrame
        ``cause``, ``attribute``, ``group``, ``horizon``, mean ``predicted`` and ``observed`` (Aalen-Johansen) incidence
        with the interval ``low`` to ``high``, their ``difference``, what counting other causes as censored would claim
        (``others_censored``) and by how much that is too high (``overstated``), ``brier``, ``c_index``, ``at_risk``,
        ``patients`` and ``events`` of the cause. NaN where follow-up is too short to tell.

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
    target, final = parse_competing_target(y, complete=False), final_step(model)
    features = prepared(model, X)
    times = parse_horizons(at, final.follow_up_)
    # Nobody knows how many were censored later.
    known = times < final.follow_up_.end
    groups = [
        (attribute.name, label, rows)
        for attribute in parse_attributes(sensitive_features, len(target), missing=missing)
        for label, rows in zip(attribute.labels, attribute.rows, strict=True)
    ]
    rows = []
    for cause in range(1, final.n_causes_ + 1):
        incidence = final.predict_cumulative_incidence(features, times=times, cause=cause, **given)
        risk = final.predict(features, cause)
        for attribute, group, own in [(EVERYBODY, EVERYBODY, np.arange(len(target))), *groups]:
            causes, seen = target.cause[own], target.time[own]
            table = calibration_by_cause(causes, seen, incidence[own], times, of=cause, level=level)
            table["overstated"] = table["others_censored"] - table["observed"]
            table["brier"] = np.nan
            table.loc[known, "brier"] = brier_score_by_cause(
                final.follow_up_, causes, seen, incidence[np.ix_(own, known)], times[known], of=cause
            )
            with warnings.catch_warnings():
                # A group without a comparable pair has no number, which the table shows.
                warnings.simplefilter("ignore", UndefinedMetricWarning)
                table["c_index"] = concordance_by_cause(causes, seen, risk[own], of=cause)
            table["patients"], table["events"] = len(own), int((causes == cause).sum())
            rows.append(table.assign(cause=cause, attribute=attribute, group=group))
    found = pd.concat(rows, ignore_index=True)
    first = ["cause", "attribute", "group", "horizon"]
    return found[[*first, *(name for name in found.columns if name not in first)]]
