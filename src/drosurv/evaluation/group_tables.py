"""Tables beside the metrics: calibration, survival curves and concordance between groups, by attribute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from drosurv.evaluation.attributes import ALL, EVERYONE
from drosurv.evaluation.engine import Panel
from drosurv.evaluation.patients import Patients
from drosurv.metrics import calibration_at, d_calibration
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.target import FloatArray


def calibration_table(panel: Panel, horizons: FloatArray, level: float) -> pd.DataFrame:
    """Kaplan-Meier against mean predicted survival at every horizon, of everybody and of every group."""
    return _by_group(
        panel, lambda some: calibration_at(some.target, some.curves, horizons, level=level).to_dict("list")
    )


def d_calibration_table(panel: Panel) -> pd.DataFrame:
    """Share of patients in each tenth of predicted survival at the event, a tenth each being right."""

    def bins(some: Patients) -> dict[Any, Any]:
        shares = d_calibration(some.target, some.curves).shares
        edges = np.arange(len(shares) + 1) / len(shares)
        return {"bin_low": edges[:-1], "bin_high": edges[1:], "share": shares}

    return _by_group(panel, bins)


def survival_table(panel: Panel, times: FloatArray, level: float) -> pd.DataFrame:
    """Mean predicted survival and, while somebody is observed, Kaplan-Meier, of everybody and of every group."""

    def curves(some: Patients) -> dict[Any, Any]:
        observed = KaplanMeier.of(some.target)
        low, high = observed.interval(times, level)
        predicted = some.curves.at(times).mean(axis=0)
        return {
            "time": times,
            "predicted": predicted,
            "observed": observed.at(times),
            "low": low,
            "high": high,
            "at_risk": len(some) - np.searchsorted(np.sort(some.target.time), times, side="left"),
        }

    return _by_group(panel, curves)


def cross_group_table(panel: Panel) -> pd.DataFrame:
    """Concordance of the pairs whose earlier event is in one group and whose other patient in another."""
    rows = []
    for attribute in panel.attributes if panel.everyone.scoring.has_risk else ():
        patients = panel.kept[attribute.name]
        codes = attribute.kept_groups.codes
        sums = patients.harrell.harrell_between(codes, len(attribute.labels), np.ones(len(patients)))
        for a, first in enumerate(attribute.labels):
            for b, other in enumerate(attribute.labels):
                pairs = float(sums.denominator[a, b])
                value = float(sums.numerator[a, b]) / pairs if pairs else float("nan")
                rows.append((attribute.name, first, other, value, int(pairs)))
    return pd.DataFrame(rows, columns=["attribute", "event_first", "other", "value", "pairs"])


def _by_group(panel: Panel, columns: Callable[[Patients], dict[Any, Any]]) -> pd.DataFrame:
    """A table of everybody and of every group that holds a patient; empty without survival curves."""
    if not panel.everyone.scoring.has_curves:
        return pd.DataFrame()
    tables = [
        pd.DataFrame({"attribute": attribute, "group": group, **columns(patients)})
        for (attribute, group), patients in {(EVERYONE, ALL): panel.everyone, **panel.members}.items()
        if len(patients)
    ]
    return pd.concat(tables, ignore_index=True)
