"""Tables beside the metrics: calibration, survival curves and concordance between groups, by attribute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from drosurv.evaluation.attributes import ALL, EVERYONE
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.engine import Panel, Sheet
from drosurv.evaluation.patients import Patients
from drosurv.metrics import calibration_at, d_calibration
from drosurv.metrics.inference import Draws
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.target import FloatArray


def group_tables(panel: Panel, sheet: Sheet, level: float) -> dict[str, pd.DataFrame]:
    """The tables of an evaluation by name; those of survival curves are empty for a model without any."""
    horizons, times = panel.everyone.scoring.calibration_times, panel.everyone.scoring.curve_times

    def calibration(some: Patients) -> dict[Any, Any]:
        """Kaplan-Meier against mean predicted survival at every horizon; the difference has a bootstrap interval."""
        table = calibration_at(some.target, some.curves, horizons, level=level)
        predicted = some.curves.at(horizons)

        def difference(weight: FloatArray) -> FloatArray:
            if not weight.any():
                return np.full(len(horizons), np.nan)
            mean: FloatArray = weight @ predicted / weight.sum()
            return mean - KaplanMeier.of(some.target, weight).at(horizons)

        rows: Any = slice(None) if some.rows is None else some.rows
        draws = np.array([difference(weight[rows].astype(np.float64)) for weight in sheet.weights])
        bounds = CATALOGUE["calibration_difference"].bounds
        sure = [
            Draws(value, own, *bounds).interval(level)
            for value, own in zip(table["difference"], draws.reshape(-1, len(horizons)).T, strict=True)
        ]
        ends = np.array([(one.low, one.high) for one in sure])
        # Before the first event survival is 1 in every replicate, which says nothing.
        ends[~(table["low"] < table["high"])] = np.nan
        return {**table.to_dict("list"), "difference_low": ends[:, 0], "difference_high": ends[:, 1]}

    def tenths(some: Patients) -> dict[Any, Any]:
        """Share of patients in each tenth of predicted survival at the event, a tenth each being right."""
        shares = d_calibration(some.target, some.curves).shares
        edges = np.arange(len(shares) + 1) / len(shares)
        return {"bin_low": edges[:-1], "bin_high": edges[1:], "share": shares}

    def curves(some: Patients) -> dict[Any, Any]:
        """Mean predicted survival and, while somebody is observed, Kaplan-Meier."""
        observed = KaplanMeier.of(some.target)
        low, high = observed.interval(times, level)
        return {
            "time": times,
            "predicted": some.curves.at(times).mean(axis=0),
            "observed": observed.at(times),
            "low": low,
            "high": high,
            "at_risk": len(some) - np.searchsorted(np.sort(some.target.time), times, side="left"),
        }

    return {
        "calibration": _by_group(panel, calibration),
        "d_calibration": _by_group(panel, tenths),
        "survival": _by_group(panel, curves),
        "cross_group": _cross_group(panel),
    }


def _cross_group(panel: Panel) -> pd.DataFrame:
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
