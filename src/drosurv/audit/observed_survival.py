"""How uncertain the observed survival of every group is: Kaplan-Meier bands, the same for every model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd

from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.target import FloatArray, Target

if TYPE_CHECKING:
    from drosurv.evaluation.attributes import Attribute

# Attribute and group to the table of the group's curve.
Bands: TypeAlias = "dict[tuple[str, str], pd.DataFrame]"


def kaplan_meier_bands(
    target: Target, attributes: Sequence[Attribute], times: FloatArray, level: float
) -> Bands:
    """Kaplan-Meier with its log-log interval at the times, of everybody and of every group.

    Parameters
    ----------
    target : Target
        What happened to the patients.
    attributes : sequence of Attribute
        Their groups.
    times : (k,) float64
        Where to read the curves.
    level : float
        Of the intervals.

    Returns
    -------
    dict
        Attribute and group to a DataFrame with ``observed``, ``low`` and ``high``.
    """
    import pandas as pd

    def band(members: Target) -> pd.DataFrame:
        curve = KaplanMeier.of(members)
        low, high = curve.interval(times, level)
        return pd.DataFrame({"observed": curve.at(times), "low": low, "high": high})

    found = {("overall", "all"): band(target)}
    for attribute in attributes:
        for label, rows in zip(attribute.labels, attribute.rows, strict=True):
            if len(rows):
                found[attribute.name, label] = band(target.take(rows))
    return found
