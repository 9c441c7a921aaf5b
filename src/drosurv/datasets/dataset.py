"""A dataset: features, target and sensitive attributes of the same patients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_float_dtype, is_string_dtype

from drosurv.target import Target, parse_target


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features, target and sensitive attributes of n patients, row by row.

    Parameters
    ----------
    name : str
        What tables and reports call the data.
    X : DataFrame, (n, d)
        Features: numbers as float, NaN where one is missing; categories as text, None where one is.
    y : structured array, (n,)
        Fields ``event`` (bool) and ``time`` (float).
    sensitive_features : DataFrame, (n, J)
        One column of labels per sensitive attribute.
    truth : DataFrame, (n, ...), optional
        What a simulation knows and no model may see.

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
            raise ValueError(f"X must hold floats and text; convert the columns {', '.join(wrong)}.")
        lengths = {name: len(part) for name, part in self._parts().items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(
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
        """The given rows (indices or a mask), in the given order; DataFrames keep their row labels."""
        return replace(
            self,
            y=self.y[rows],
            **{name: part.iloc[rows] for name, part in self._parts().items() if name != "y"},
        )

    def _parts(self) -> dict[str, Any]:
        parts = {"X": self.X, "y": self.y, "sensitive_features": self.sensitive_features}
        return parts if self.truth is None else {**parts, "truth": self.truth}
