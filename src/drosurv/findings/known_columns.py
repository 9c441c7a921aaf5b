"""Columns that are known when a prediction is made: all but those that give the outcome away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from drosurv.any_model import columns_used
from drosurv.errors import arg, warn_caller
from drosurv.observation import in_pandas
from drosurv.presentation import listing
from drosurv.tables.leaks import LeakWarning, find_leaks


@dataclass(frozen=True)
class KnownColumns:
    """Tables without columns that give the outcome away.

    `X` keeps those that the model uses; `features`, the columns that may define subgroups, has none of them, and is
    None if it was not given and X has none. `used` and `left_out` are such columns with the reason: those that the
    model uses, and others that would define subgroups.
    """

    X: Any
    features: Any
    used: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def problem(self) -> str:
        """Which columns of the model give the outcome away; empty if none does."""
        return _sentence(self.used, ", which the model uses, may give the outcome away")

    @property
    def note(self) -> str:
        """Which other columns were left out; empty if none was."""
        was = "was" if len(self.left_out) == 1 else "were"
        return _sentence(self.left_out, f" may give the outcome away, and {was} not used to find subgroups")

    def warn(self) -> None:
        """Warn of columns that give the outcome away."""
        if self.problem:
            warn_caller(self.problem, category=LeakWarning, argument="keep_columns")
        if self.note:
            warn_caller(self.note, argument="keep_columns")


def known_columns(
    model: Any, X: Any, y: Any, features: Any = None, *, entry: Any = None, keep_columns: Sequence[str] = ()
) -> KnownColumns:
    """Return the tables `X` and `features` of the patients without columns that give the outcome away.

    Columns of arrays are not looked at, nor `keep_columns`, which are known when a prediction is made.
    """
    given = {"X": in_pandas(X), "features": in_pandas(features)}
    tables = [
        table.reset_index(drop=True)
        for table in given.values()
        if isinstance(table, pd.DataFrame) and len(table) == len(y) and table.columns.is_unique
    ]
    if not tables:
        return KnownColumns(X, features)
    frame = pd.concat(tables, axis=1)
    looked_at = frame.loc[:, ~frame.columns.duplicated() & ~frame.columns.isin(list(keep_columns))]
    # A level whose patients all had the event is no reason to condemn a model: it may be a good marker.
    found = find_leaks(looked_at, y, entry, of_levels=False)
    if not found:
        return KnownColumns(X, features)
    own = set(columns_used(model, given["X"]))
    rules = given["X"] if features is None else given["features"]
    rule_names = {str(name) for name in getattr(rules, "columns", ())}
    return KnownColumns(
        _without(given["X"], [name for name in found if name not in own]),
        _without(rules, found),
        {name: why for name, why in found.items() if name in own},
        {name: why for name, why in found.items() if name not in own and name in rule_names},
    )


def _without(table: Any, names: Sequence[str] | dict[str, str]) -> Any:
    """Return a table without the named columns; an array as it is."""
    if not isinstance(table, pd.DataFrame):
        return table
    return table.loc[:, [str(name) not in names for name in table.columns]]


def _sentence(columns: dict[str, str], what: str) -> str:
    """Return what holds for some columns, with the reasons and the remedy; empty without columns."""
    if not columns:
        return ""
    called, one = ("column", "it") if len(columns) == 1 else ("columns", "one")
    named = listing([f"{name!r} ({why})" for name, why in columns.items()])
    remedy = f"Name {one} in {arg('keep_columns')} if it is known when a prediction is made."
    return f"{called} {named}{what}. {remedy}"
