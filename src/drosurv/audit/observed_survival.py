"""How uncertain the observed survival of every group is: Kaplan-Meier bands, the same for every model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from drosurv.metrics import calibration_at
from drosurv.target import FloatArray, Target

if TYPE_CHECKING:
    import pandas as pd

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

    def band(members: Target) -> pd.DataFrame:
        # Only what was observed is read; the survival to compare it with may be anything.
        anything = np.ones((len(members), 1))
        return calibration_at(members, anything, times, times=[0.0], level=level)[["observed", "low", "high"]]

    found = {("overall", "all"): band(target)}
    for attribute in attributes:
        for label, rows in zip(attribute.labels, attribute.rows, strict=True):
            if len(rows):
                found[attribute.name, label] = band(target.take(rows))
    return found
