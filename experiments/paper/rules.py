"""Rules of the published protocol that choose one setting of a grid from its scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd

from drosurv.errors import InputError
from drosurv.presentation import counted

_NAMES = {"concordance_index": "c-index"}


@dataclass(frozen=True)
class Choice:
    """The setting that a rule chose: index label of its row, the reason, and whether no setting met the rule."""

    index: Any
    reason: str
    fallback: bool = False


class SelectionRule(Protocol):
    """An object with a method ``choose`` that returns a :class:`Choice` from a table of scores."""

    def choose(self, results: pd.DataFrame) -> Choice:
        """Choose a row of ``results``, which has one row per setting."""
        ...


@dataclass(frozen=True)
class BestScore:
    """Take the setting with the highest c-index; ties go to the first row."""

    def choose(self, results: pd.DataFrame) -> Choice:
        """Choose the best row."""
        scores = _finite(results, ["concordance_index"])["concordance_index"]
        best = scores.idxmax()
        return Choice(best, f"highest c-index ({scores[best]:.4g}) of {counted(len(scores), 'setting')}")


@dataclass(frozen=True)
class FixedSetting:
    """Take the setting with given parameter values, whatever its scores; exactly one row must match."""

    parameters: Mapping[str, Any] = field(hash=False)

    def choose(self, results: pd.DataFrame) -> Choice:
        """Choose the matching row."""
        wanted = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        match = np.ones(len(results), dtype=bool)
        for name, value in self.parameters.items():
            match &= (results[name] == value).to_numpy(dtype=bool)
        if match.sum() != 1:
            raise InputError(
                f"parameters {wanted} match {int(match.sum())} of {len(results)} settings; exactly one must."
            )
        return Choice(results.index[match][0], f"fixed in advance: {wanted}")


@dataclass(frozen=True)
class AccuracyBudget:
    """Choose the lowest disparity among settings that lose little accuracy: the paper's rule.

    Among settings with a c-index of at least ``(1 - tolerance) * reference``, choose the one with the lowest
    ``minimise``; ties go to the higher c-index, then to the first row. If there is none, choose the highest c-index and
    set ``fallback``. `reference` is the c-index of the unregularised method on the same patients.
    """

    reference: float
    minimise: str = "concordance_imparity"
    tolerance: float = 0.05

    def choose(self, results: pd.DataFrame) -> Choice:
        """Choose the row with the lowest disparity within the budget."""
        if not np.isfinite(self.reference):
            raise InputError("the unregularised method has no c-index, so there is no budget.")
        usable = _finite(results, ["concordance_index", self.minimise])
        least = (1 - self.tolerance) * self.reference
        budget = f"c-index >= {1 - self.tolerance:g} x {self.reference:.4f} = {least:.4f}"
        inside = usable.loc[usable["concordance_index"] >= least]
        if inside.empty:
            best = BestScore().choose(usable)
            return Choice(best.index, f"no setting with {budget}, so the {best.reason}", fallback=True)
        accuracy, disparity = (
            inside[name].to_numpy(dtype=float) for name in ("concordance_index", self.minimise)
        )
        row = int(np.lexsort((-accuracy, disparity))[0])
        return Choice(
            inside.index[row],
            f"lowest {_words(self.minimise)} ({disparity[row]:.4g}) of the {len(inside)} of "
            f"{counted(len(usable), 'setting')} with {budget}",
        )


def _finite(results: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """Return the rows of the settings for which all given metrics are finite; raise if there is none."""
    usable: pd.DataFrame = results.loc[np.isfinite(results[metrics].to_numpy(dtype=float)).all(axis=1)]
    if usable.empty:
        raise InputError(
            f"none of the {len(results)} settings has a finite {' and '.join(map(_words, metrics))}: training diverged "
            "(lower the learning rate), or a validation set has no patients or events of a group."
        )
    return usable


def _words(column: str) -> str:
    return _NAMES.get(column, column.replace("_", " "))
