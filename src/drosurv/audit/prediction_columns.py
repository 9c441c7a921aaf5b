"""Which columns of a table are predictions: survival at times, or a risk score, whichever program wrote them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.presentation import counted
from drosurv.tables.values import row_number
from drosurv.target import FloatArray

# "365", "S365", "S(365)", "survival_365", "surv.12", and "X365", which R makes of a column called 365.
_SURVIVAL = re.compile(r"(?:x|s|t|surv|survival|prob|pred)?[\s_.(=]*(\d+(?:\.\d+)?)\)?", re.IGNORECASE)
# Called like predictions; "surv_1y" or "pred365d" may count in other units than the times do, so it is not guessed.
_PERHAPS = re.compile(r"(?:surv|prob|pred)[a-z]*[\s_.(=-]*\d", re.IGNORECASE)
_RISKS = ("risk", "risk_score", "log_risk", "lp", "linear_predictor", "score", "prediction")
# A text column with more levels names patients rather than kinds of them.
MOST_LEVELS = 20


@dataclass(frozen=True, eq=False)
class PredictionColumns:
    """Predictions found in a table.

    Attributes
    ----------
    survival : (n, k) float64 or None
        At `times`.
    times : (k,) float64 or None
        Increasing.
    risk : (n,) float64 or None
    names : tuple of str
        The columns that they stand in.
    unread : tuple of str
        Columns of numbers that are called like predictions, but whose times are not plain.
    features : DataFrame, (n, d)
        Other columns, which rules may speak about.
    """

    survival: FloatArray | None
    times: FloatArray | None
    risk: FloatArray | None
    names: tuple[str, ...]
    unread: tuple[str, ...]
    features: pd.DataFrame


def prediction_columns(
    frame: pd.DataFrame, *, survival: Sequence[str] = (), risk: str | None = None
) -> PredictionColumns:
    """Find the predictions of a table.

    Parameters
    ----------
    frame : DataFrame, (n, ...)
        Predictions beside whatever else is known of the patients, without time and event.
    survival : sequence of str
        Columns of predicted survival, whose names end in their times, or ``COLUMN=TIME``; by default those whose
        names are times (``365``, ``S365``, ``S(365)``, ``survival_365``) and whose values can be survival.
    risk : str, optional
        Column of risk scores; by default one that is called so.

    Examples
    --------
    >>> import pandas as pd
    >>> from drosurv.audit import prediction_columns
    >>> found = prediction_columns(pd.DataFrame({"S365": [0.9, 0.8], "S730": [0.7, 0.6], "age": [50, 60]}))
    >>> found.names, found.times.tolist(), list(found.features)
    (('S365', 'S730'), [365.0, 730.0], ['age'])
    """
    frame = frame.rename(columns=str)
    if risk is not None and risk not in frame.columns:
        raise ArgumentError("risk", f"risk={risk!r} is not a column; the table has {[*frame.columns]}.")
    scores = risk or next((name for name in frame.columns if name.lower() in _RISKS), None)
    # Where nothing else can be the predictions, missing values are told of.
    at = (
        _given(frame, survival)
        if survival
        else _recognised(frame if scores is None else frame.dropna(axis=1))
    )
    if not at and scores is None:
        raise ArgumentError(
            "survival",
            "no column of the table is recognised as predictions: name columns of predicted survival in "
            "survival, such as S365=365,S730=730, or the column of risk scores in risk.",
        )
    ordered = sorted(at, key=lambda name: at[name])
    names = (*ordered, *([] if scores is None else [scores]))
    others = frame.drop(columns=list(names))
    numbers = others.select_dtypes("number")
    unread = tuple(name for name in numbers.columns if _PERHAPS.match(name))
    return PredictionColumns(
        survival=as_numbers(frame[ordered]) if at else None,
        times=np.array([at[name] for name in ordered]) if at else None,
        risk=None if scores is None else as_numbers(frame[[scores]])[:, 0],
        names=names,
        unread=unread,
        features=others[[name for name in others.columns if name not in unread and _speaks(others[name])]],
    )


def _given(frame: pd.DataFrame, entries: Sequence[str]) -> dict[str, float]:
    found = {}
    for entry in entries:
        name, _, time = entry.rpartition("=") if entry not in frame.columns else (entry, "", "")
        match = re.search(r"(\d+(?:\.\d+)?)\)?\s*$", time or name)
        if name not in frame.columns or match is None:
            raise ArgumentError(
                "survival",
                f"survival={entry!r} must be a column whose name ends in its time, or COLUMN=TIME; the "
                f"table has {[*frame.columns]}.",
            )
        found[name] = float(match[1])
    return found


def _recognised(frame: pd.DataFrame) -> dict[str, float]:
    """The most columns that are named alike by times and whose values fall from 1 towards 0 as the times rise.

    Only columns named alike are read together: a hormone called T3 says nothing about S365 and S730.
    """
    alike: dict[str, dict[str, float]] = {}
    for name in frame.columns:
        match = _SURVIVAL.fullmatch(name)
        if match is not None and pd.api.types.is_numeric_dtype(frame[name]):
            alike.setdefault(name[: match.start(1)].lower(), {})[name] = float(match[1])
    # Percentages are recognised after all others, so that they are refused with the remedy.
    for most in (1.0, 100.0):
        fit = [named for named in alike.values() if _falls(frame, named, most)]
        if fit:
            return max(fit, key=lambda named: (len(named), frame[[*named]].notna().all(axis=None)))
    return {}


def _falls(frame: pd.DataFrame, named: dict[str, float], most: float) -> bool:
    """Whether columns hold what can be survival at their times, on a scale up to `most`."""
    ordered: list[str] = sorted(named, key=lambda name: named[name])
    values = frame[ordered].to_numpy(dtype=np.float64, na_value=np.nan)
    # A column of nothing but 0 and 1 answers a question; a single one up to 100, such as x1, is an amount.
    if np.isin(values[~np.isnan(values)], (0.0, 1.0)).all() or (most > 1 and len(named) == 1):
        return False
    outside, rising = (values < 0) | (values > most), np.diff(values, axis=1) > 1e-6
    return not (outside.any() or rising.any())


def as_numbers(predictions: Any) -> FloatArray:
    """Predictions (n, k) as numbers, none of them missing."""
    named = isinstance(predictions, pd.DataFrame)
    frame = predictions if named else pd.DataFrame(np.asarray(predictions))
    try:
        values: FloatArray = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        where = f": the columns {[*predictions.columns]}" if named else ""
        raise ArgumentError(
            "predictions",
            f"predictions{where} must hold numbers alone. If a comma is the decimal mark, pass decimal=','.",
        ) from None
    if np.isnan(values).any():
        rows = np.flatnonzero(np.isnan(values).any(axis=1))
        first = row_number(predictions.index, rows[0]) if named else rows[0]
        raise ArgumentError(
            "predictions",
            f"predictions are missing for {counted(len(rows), 'patient')}, the first in row {first}: "
            "leave such patients out, and say so.",
        )
    return values


def _speaks(column: pd.Series[Any]) -> bool:
    """Whether a rule about the column would tell a reader something."""
    levels = column.nunique()
    return levels > 1 and bool(pd.api.types.is_numeric_dtype(column) or levels <= MOST_LEVELS)
