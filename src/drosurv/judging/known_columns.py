"""Columns that are known when a prediction is made: all but those that give the outcome away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from drosurv.errors import arg, as_names, warn_caller
from drosurv.patients.observation import in_pandas
from drosurv.predictions.any_model import columns_used
from drosurv.presentation import listing
from drosurv.tables.leaks import LeakWarning, find_leaks
from drosurv.tables.reading import require_columns


@dataclass(frozen=True)
class KnownColumns:
    """Tables without columns that give the outcome away.

    `X` keeps those that the model uses; `features`, the columns that may define subgroups, has none of them, and is
    None if it was not given and X has none. `used` and `left_out` are such columns with the reason: those that the
    model uses, and others that would define subgroups. `kept` are those that look like the outcome, but are known when
    a prediction is made, as the user said.
    """

    X: Any
    features: Any
    used: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)

    @property
    def problem(self) -> str:
        """Which columns of the model give the outcome away; empty if none does."""
        return _sentence(self.used, ", which the model uses, may give the outcome away")

    @property
    def note(self) -> str:
        """Which other columns were left out; empty if none was."""
        was = "was" if len(self.left_out) == 1 else "were"
        return _sentence(self.left_out, f" may give the outcome away, and {was} not used to find subgroups")

    @property
    def fact(self) -> str:
        """Which columns look like the outcome and are used all the same; empty if there are none."""
        are = "it is" if len(self.kept) == 1 else "they are"
        used = f" may give the outcome away; {are} used as known when a prediction is made"
        return _sentence(self.kept, used, remedy=False)

    def warn(self) -> None:
        """Warn of columns that give the outcome away."""
        if self.problem:
            warn_caller(self.problem, category=LeakWarning, argument="keep_columns")
        if self.note:
            warn_caller(self.note, argument="keep_columns")


def known_columns(
    model: Any,
    X: Any,
    y: Any,
    features: Any = None,
    *,
    entry: Any = None,
    keep_columns: str | Sequence[str] = (),
) -> KnownColumns:
    """Return the tables `X` and `features` of the patients without columns that give the outcome away.

    Arrays have no named columns and are not searched. Columns named in `keep_columns` stay, since they are known when a
    prediction is made; a name that is in neither table is an error.
    """
    given = {"X": in_pandas(X), "features": in_pandas(features)}
    kept_names = as_names(keep_columns)
    names = dict.fromkeys(str(name) for table in given.values() for name in getattr(table, "columns", ()))
    require_columns(pd.DataFrame(columns=list(names)), kept_names, "keep_columns")
    tables = [
        table.reset_index(drop=True)
        for table in given.values()
        if isinstance(table, pd.DataFrame) and len(table) == len(y) and table.columns.is_unique
    ]
    if not tables:
        return KnownColumns(X, features)
    frame = pd.concat(tables, axis=1)
    stays = frame.columns.map(str).isin(kept_names)
    searched = ~stays & ~frame.columns.duplicated()
    # X may be standardised; features are in units that readers know.
    stated = stays & ~frame.columns.duplicated(keep="last")
    # Levels whose patients all had the event are left out: such a column may be a good marker.
    found, kept = (find_leaks(frame.loc[:, some], y, entry, of_levels=False) for some in (searched, stated))
    if not found:
        return KnownColumns(X, features, kept=kept)
    own = set(columns_used(model, given["X"]))
    rules = given["X"] if features is None else given["features"]
    rule_names = {str(name) for name in getattr(rules, "columns", ())}
    return KnownColumns(
        _without(given["X"], [name for name in found if name not in own]),
        _without(rules, found),
        {name: why for name, why in found.items() if name in own},
        {name: why for name, why in found.items() if name not in own and name in rule_names},
        kept,
    )


def _without(table: Any, names: Sequence[str] | dict[str, str]) -> Any:
    """Return a table without the named columns; an array as it is."""
    if not isinstance(table, pd.DataFrame):
        return table
    return table.loc[:, [str(name) not in names for name in table.columns]]


def _sentence(columns: dict[str, str], what: str, *, remedy: bool = True) -> str:
    """Return a sentence that names columns, each with its reason, and says `what` about them; empty for no column."""
    if not columns:
        return ""
    called, one = ("column", "it") if len(columns) == 1 else ("columns", "one")
    named = listing([f"{name!r} ({why})" for name, why in columns.items()])
    name_it = f" Name {one} in {arg('keep_columns')} if it is known when a prediction is made."
    return f"{called} {named}{what}.{name_it if remedy else ''}"
