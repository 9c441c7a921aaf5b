"""Tables beside the metrics: calibration, survival curves and concordance between groups, by attribute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from drosurv.evaluation.engine import ALL, EVERYONE, Panel
from drosurv.evaluation.patients import Patients
from drosurv.metrics import calibration_at, d_calibration
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.target import FloatArray

if TYPE_CHECKING:
    import pandas as pd


def calibration_table(panel: Panel, horizons: FloatArray, level: float) -> pd.DataFrame:
    """Kaplan-Meier against mean predicted survival at every horizon, of everybody and of every group.

    Returns
    -------
    DataFrame
        ``attribute``, ``group`` and the columns of :func:`~drosurv.metrics.calibration_at`; empty if the model
        gave no survival curves.
    """
    import pandas as pd

    tables = []
    for attribute, group, patients in _everybody_and_groups(panel):
        table = calibration_at(patients.target, patients.curves, horizons, level=level)
        table.insert(0, "group", group)
        table.insert(0, "attribute", attribute)
        tables.append(table)
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def d_calibration_table(panel: Panel) -> pd.DataFrame:
    """Share of patients in each tenth of predicted survival at the event, a tenth each being right.

    Returns
    -------
    DataFrame
        ``attribute``, ``group``, ``bin_low``, ``bin_high``, ``share``; empty without survival curves.
    """
    import pandas as pd

    rows = []
    for attribute, group, patients in _everybody_and_groups(panel):
        shares = d_calibration(patients.target, patients.curves).shares
        for k, share in enumerate(shares.tolist()):
            rows.append((attribute, group, k / len(shares), (k + 1) / len(shares), share))
    return pd.DataFrame(rows, columns=["attribute", "group", "bin_low", "bin_high", "share"])


def survival_table(panel: Panel, times: FloatArray, level: float) -> pd.DataFrame:
    """Mean predicted survival and Kaplan-Meier over time, of everybody and of every group.

    Returns
    -------
    DataFrame
        ``attribute``, ``group``, ``time``, ``predicted``, ``observed`` with its interval ``low`` to ``high``; NaN
        where nobody is observed any longer; empty without survival curves.
    """
    import pandas as pd

    tables = []
    for attribute, group, patients in _everybody_and_groups(panel):
        observed = KaplanMeier.of(patients.target)
        low, high = observed.interval(times, level)
        tables.append(
            pd.DataFrame(
                {
                    "attribute": attribute,
                    "group": group,
                    "time": times,
                    "predicted": patients.curves.at(times).mean(axis=0),
                    "observed": observed.at(times),
                    "low": low,
                    "high": high,
                }
            )
        )
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def cross_group_table(panel: Panel) -> pd.DataFrame:
    """Concordance of the pairs whose earlier event is in one group and whose other patient in another.

    Returns
    -------
    DataFrame
        ``attribute``, ``event_first``, ``other``, ``value``, ``pairs``; the value is NaN without a comparable
        pair.
    """
    import pandas as pd

    rows = []
    for attribute in panel.attributes:
        patients = panel.kept[attribute.name]
        codes = attribute.kept_groups.codes
        sums = patients.harrell.harrell_between(codes, len(attribute.labels), np.ones(len(patients)))
        for a, first in enumerate(attribute.labels):
            for b, other in enumerate(attribute.labels):
                pairs = float(sums.denominator[a, b])
                value = float(sums.numerator[a, b]) / pairs if pairs else float("nan")
                rows.append((attribute.name, first, other, value, int(pairs)))
    return pd.DataFrame(rows, columns=["attribute", "event_first", "other", "value", "pairs"])


def _everybody_and_groups(panel: Panel) -> Iterator[tuple[str, str, Patients]]:
    """Attribute, label and patients of all sets that have survival curves and a patient."""
    if not panel.everyone.scoring.has_curves:
        return
    yield EVERYONE, ALL, panel.everyone
    for (attribute, label), patients in panel.members.items():
        if len(patients):
            yield attribute, label, patients
