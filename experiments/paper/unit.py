"""A unit of work (one dataset, one method, one repeat), what its result holds, and all results in one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import pandas as pd

from drosurv._version import __version__
from experiments.paper.methods import METRIC_NAMES, Method
from experiments.runs import Task

# Raise whenever evaluate_unit starts to mean something else with the same settings.
RESULT_SCHEMA = 3
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


# Bootstrap replicates of CI on the test set, the same patients for every method, so that two methods are compared
# paired. A list in results, an object in tables.
DRAWS = "concordance_imparity_draws"


@dataclass(frozen=True)
class Protocol:
    """How every unit is trained and scored (paper, section 4 and appendix D).

    Data are imputed and ordered `as_published`. `test_seed` draws the test part and `initial_seed` the networks'
    initial weights, the same for every repeat. Adam takes `max_iter` steps, of which the last iterate is kept; the
    MLP has `hidden` units. `convention` is that of the disparity metrics, and `bootstrap` counts the replicates
    behind the interval of CI.
    """

    as_published: bool = True
    test_seed: int = 7
    initial_seed: int = 1
    max_iter: int = 500
    hidden: tuple[int, ...] = (24,)
    convention: Literal["paper", "table"] = "table"
    bootstrap: int = 200


@dataclass(frozen=True)
class Unit(Task):
    """One dataset, method and repeat: every grid point, scored on validation and test for every attribute.

    It has all the dataset's sensitive attributes, so that no table needs training of its own; the repeat, from 0,
    seeds the validation split; the fingerprint is that of the dataset before splitting.
    """

    dataset: str
    attributes: tuple[str, ...]
    method: Method
    repeat: int
    data_fingerprint: str
    protocol: Protocol = field(default_factory=Protocol)

    def determinants(self) -> dict[str, Any]:
        """Everything that the result depends on.

        The device is not among it: it changes rounding, not meaning. The library's version is, because a new
        release may train differently under the same settings.
        """
        return {
            "schema": RESULT_SCHEMA,
            "version": __version__,
            "dataset": self.dataset,
            "data_fingerprint": self.data_fingerprint,
            "attributes": list(self.attributes),
            "method": self.method.determinants(),
            "repeat": self.repeat,
            "protocol": asdict(self.protocol),
        }

    @property
    def address(self) -> tuple[str, str, str, int]:
        """Dataset, method and repeat."""
        return self.dataset, self.method.name, "repeat", self.repeat


def gather(results: Iterable[tuple[Unit, Mapping[str, Any]]]) -> pd.DataFrame:
    """One table of all checked results: a row per dataset, method, repeat, attribute, part and grid point.

    ``candidate`` is the number of the grid point. Then come the grid's parameters, the metrics with
    ``average_disparity`` = (F_I + F_G + F_cap)/3, the controls, and the replicates of CI.
    """
    numbers = [*PARAMETERS, *STORED_METRICS, *CONTROLS]
    records = []
    for unit, result in results:
        number = {_setting(setting): k for k, setting in enumerate(unit.method.settings())}
        key = {"dataset": unit.dataset, "method": unit.method.name, "repeat": unit.repeat}
        records += [{**key, **row, "candidate": number[_setting(row)]} for row in result["rows"]]
    columns = ["dataset", "method", "repeat", "attribute", "part", "candidate", *numbers, DRAWS]
    table = pd.DataFrame(records, columns=columns)
    table[numbers] = table[numbers].astype(float)
    thirds = ["individual_disparity", "group_disparity", "intersectional_disparity"]
    table["average_disparity"] = table[thirds].sum(axis="columns", skipna=False) / 3
    return table


def _setting(values: Mapping[str, Any]) -> tuple[float | None, ...]:
    return tuple(values.get(name) for name in PARAMETERS)
