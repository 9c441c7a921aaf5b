"""What evaluating a unit hands back: its rows, checked before they are stored, gathered into one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from drosurv.paper.table_metrics import METRIC_NAMES
from drosurv.paper.unit import Unit

PARTS = ("validation", "test")
# Every grid parameter of any method; a method without one has NaN there.
PARAMETERS = ("lr", "alpha", "weight", "factor")
# F_A is the mean of three others, so it is derived when results are gathered and never stored.
STORED_METRICS = tuple(name for name in METRIC_NAMES if name != "average_disparity")
# Beside the tables' metrics: the interval that CI is never shown without, the shrinkage control's needs, and what
# the published IBS is compared with.
CONTROLS = (
    "concordance_imparity_se",
    "concordance_imparity_low",
    "concordance_imparity_high",
    "null_log_partial_likelihood",
    "calibration_slope",
    "misaligned_brier_score",
)


def check_result(unit: Unit, result: Mapping[str, Any]) -> None:
    """Raise unless ``result["rows"]`` holds one complete row per grid point, attribute and part.

    Each row is a mapping with ``part`` ("validation" or "test"), ``attribute``, the setting's parameters, the metrics
    of ``STORED_METRICS`` and the columns of ``CONTROLS``. A number that could not be computed is NaN or None; a key
    that is not there is an error, because it would be noticed only after hours of work.
    """
    rows = result.get("rows")
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise ValueError(f"the result of {unit} must have a list under 'rows', got {type(rows).__name__}.")
    for row in rows:
        missing = [name for name in ("part", "attribute", *STORED_METRICS, *CONTROLS) if name not in row]
        if missing:
            raise ValueError(f"a row of the result of {unit} has no {missing[0]!r}; it has {sorted(row)}.")
    expected = {
        (part, attribute, *_setting(setting))
        for setting in unit.method.settings()
        for attribute in unit.attributes
        for part in PARTS
    }
    found = [(row["part"], row["attribute"], *_setting(row)) for row in rows]
    if len(found) != len(expected) or set(found) != expected:
        raise ValueError(
            f"the result of {unit} must have one row per grid point, attribute and part, {len(expected)} in "
            f"all; got {len(found)}, with {len(expected - set(found))} missing and "
            f"{len(set(found) - expected)} foreign."
        )


def gather(results: Iterable[tuple[Unit, Mapping[str, Any]]]) -> pd.DataFrame:
    """One table of all checked results: a row per dataset, method, repeat, attribute, part and grid point.

    ``candidate`` is the number of the grid point. Then come the grid's parameters, the metrics with
    ``average_disparity`` = (F_I + F_G + F_cap)/3, and the controls.
    """
    numbers = [*PARAMETERS, *STORED_METRICS, *CONTROLS]
    records = []
    for unit, result in results:
        number = {_setting(setting): k for k, setting in enumerate(unit.method.settings())}
        key = {"dataset": unit.dataset, "method": unit.method.name, "repeat": unit.repeat}
        records += [{**key, **row, "candidate": number[_setting(row)]} for row in result["rows"]]
    columns = ["dataset", "method", "repeat", "attribute", "part", "candidate", *numbers]
    table = pd.DataFrame(records, columns=columns)
    table[numbers] = table[numbers].astype(float)
    thirds = ["individual_disparity", "group_disparity", "intersectional_disparity"]
    table["average_disparity"] = table[thirds].sum(axis="columns", skipna=False) / 3
    return table


def _setting(values: Mapping[str, Any]) -> tuple[float | None, ...]:
    return tuple(values.get(name) for name in PARAMETERS)
