"""Rules that pick one setting of a grid from its scores: each states what it looked at and why it chose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import pandas as pd

from drosurv.errors import as_number, require
from drosurv.presentation import counted
from drosurv.target import BoolArray, FloatArray
from drosurv.tuning.candidates import candidates, in_words, numbers


@dataclass(frozen=True)
class Choice:
    """Which setting a rule took.

    Parameters
    ----------
    index : hashable
        Index label of the row in ``results`` (value of ``candidate`` where results come by fold).
    reason : str
        Why this one, with the numbers the rule compared.
    fallback : bool
        True when no setting met the rule's condition and its second best was taken instead.
    """

    index: Any
    reason: str
    fallback: bool = False


class SelectionRule(Protocol):
    """Anything with ``choose``: a table of scores in, one :class:`Choice` out."""

    def choose(self, results: pd.DataFrame) -> Choice:
        """Pick a row of ``results`` (one row per setting, or per setting and fold)."""
        ...


@dataclass(frozen=True)
class BestScore:
    """Take the setting with the best value of one metric; ties go to the first row.

    Parameters
    ----------
    metric : str
        Column to judge by.
    maximise : bool
        Whether higher is better.

    Examples
    --------
    >>> import pandas as pd
    >>> BestScore().choose(pd.DataFrame({"concordance_index": [0.7, 0.8]})).index
    1
    """

    metric: str = "concordance_index"
    maximise: bool = True

    def choose(self, results: pd.DataFrame) -> Choice:
        """Pick the best row."""
        usable = candidates(results, [self.metric])
        scores = usable[self.metric].to_numpy(dtype=float)
        row = int(np.argmax(scores if self.maximise else -scores))
        word = "highest" if self.maximise else "lowest"
        return Choice(
            usable.index[row],
            f"{word} {in_words(self.metric)} ({scores[row]:.4g}) of {counted(len(usable), 'setting')}",
        )


@dataclass(frozen=True)
class FixedSetting:
    """Take the setting with given parameter values, whatever its scores.

    Parameters
    ----------
    parameters : mapping of str to value
        Columns and the values they must have; exactly one row must match.

    Examples
    --------
    >>> import pandas as pd
    >>> grid = pd.DataFrame({"alpha": [0.1, 0.2], "concordance_index": [0.7, 0.8]})
    >>> FixedSetting({"alpha": 0.1}).choose(grid).index
    0
    """

    parameters: Mapping[str, Any] = field(hash=False)

    def choose(self, results: pd.DataFrame) -> Choice:
        """Pick the matching row."""
        wanted = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        usable = candidates(results, [])
        match = np.ones(len(usable), dtype=bool)
        for name, value in self.parameters.items():
            if name not in usable.columns:
                raise ValueError(f"results has no column {name!r}; it has {list(usable.columns)}.")
            match &= (usable[name] == value).to_numpy(dtype=bool)
        if match.sum() != 1:
            raise ValueError(
                f"parameters {wanted} match {int(match.sum())} of {len(usable)} settings; exactly one must. "
                "Name every parameter of the grid with a value it contains."
            )
        return Choice(usable.index[match][0], f"fixed in advance: {wanted}")


@dataclass(frozen=True)
class AccuracyBudget:
    """Give up a little accuracy for the lowest disparity: the paper's rule.

    Among settings with ``metric >= (1 - tolerance) * reference``, take the one with the lowest ``minimise``;
    ties go to the higher ``metric``, then to the first row. If none qualifies, take the highest ``metric``
    and say so (``fallback``).

    Parameters
    ----------
    metric : str
        Accuracy column; higher is better and positive.
    tolerance : float in [0, 1)
        Share of the reference that may be given up.
    minimise : str
        Column to make small, such as ``concordance_imparity`` or ``average_disparity``.
    reference : float, "unregularised" or "best"
        The accuracy that the budget is a share of. A number is used as it is; "best" is the highest value
        in the table itself; "unregularised", the paper's choice, is the plain model's score on the same
        patients, which a table of robust models does not hold: a search measures it, then calls
        :meth:`against`.

    Examples
    --------
    >>> import pandas as pd
    >>> accuracy, disparity = [0.80, 0.78, 0.60], [0.03, 0.01, 0.0]
    >>> grid = pd.DataFrame({"concordance_index": accuracy, "concordance_imparity": disparity})
    >>> AccuracyBudget(reference=0.8).choose(grid).index
    1
    """

    metric: str = "concordance_index"
    tolerance: float = 0.05
    minimise: str = "concordance_imparity"
    reference: float | Literal["unregularised", "best"] = "unregularised"

    maximise: ClassVar[bool] = True
    # The paper chooses among the settings of the grid alone.
    may_choose_plain: ClassVar[bool] = False

    def against(self, reference: float) -> AccuracyBudget:
        """The same rule with the unregularised model's score filled in."""
        return replace(self, reference=float(reference))

    def choose(self, results: pd.DataFrame) -> Choice:
        """Pick the row with the lowest disparity inside the budget."""
        check_share("tolerance", self.tolerance)
        usable = candidates(results, [self.metric, self.minimise])
        reference, bar = self._reference(usable), self.least(usable)
        budget = f"{in_words(self.metric)} >= {1 - self.tolerance:g} x {reference:.4f} = {bar:.4f}"
        accuracy, disparity = numbers(usable, self.metric, self.minimise)
        inside = accuracy >= bar
        if not inside.any():
            best = BestScore(self.metric).choose(usable)
            return Choice(best.index, f"no setting with {budget}, so the {best.reason}", fallback=True)
        row = lowest(disparity, accuracy, inside)
        return Choice(
            usable.index[row],
            f"lowest {in_words(self.minimise)} ({disparity[row]:.4g}) "
            f"of the {inside.sum()} of {counted(len(usable), 'setting')} with {budget}",
        )

    def least(self, results: pd.DataFrame) -> float:
        """The least accuracy that the budget allows."""
        return (1 - self.tolerance) * self._reference(results)

    def _reference(self, usable: pd.DataFrame) -> float:
        if self.reference == "unregularised":
            raise ValueError(
                "reference is 'unregularised', a score that this table does not hold; give the plain model's "
                f"{self.metric} with rule.against(score), or use reference='best'."
            )
        best = self.reference == "best"
        try:
            reference = float(usable[self.metric].max() if best else self.reference)
        except ValueError:
            raise ValueError(
                f"reference must be a number, 'unregularised' or 'best', got {self.reference!r}."
            ) from None
        if not (np.isfinite(reference) and reference > 0):
            raise ValueError(
                f"reference must be finite and positive, got {reference}: the budget is a share of it. "
                f"Use a positive score such as concordance_index instead of {self.metric!r}."
            )
        return reference


@dataclass(frozen=True)
class OneStandardError:
    """Take the lowest disparity among settings whose accuracy cannot be told from the best.

    Settings qualify whose ``metric`` is within one standard error (that of the best setting) of the best.

    Parameters
    ----------
    metric : str
        Accuracy column; its standard error comes from folds, or from a column ``<metric>_se``.
    minimise : str
        Column to make small among those that qualify; ties go to the better ``metric``, then to the first
        row.
    maximise : bool
        Whether a higher ``metric`` is better.

    Examples
    --------
    >>> import pandas as pd
    >>> grid = pd.DataFrame({"concordance_index": [0.80, 0.79], "concordance_index_se": [0.02, 0.02],
    ...                      "concordance_imparity": [0.03, 0.01]})
    >>> OneStandardError().choose(grid).index
    1
    """

    metric: str = "concordance_index"
    minimise: str = "concordance_imparity"
    maximise: bool = True

    def choose(self, results: pd.DataFrame) -> Choice:
        """Pick the row with the lowest disparity within one standard error of the best."""
        usable = candidates(results, [self.metric, self.minimise])
        error_column = f"{self.metric}_se"
        if error_column not in usable.columns:
            raise ValueError(
                f"results has neither folds nor a column {error_column!r}, so a standard error is not known. "
                "Score by folds, or add that column (for example from a bootstrap)."
            )
        accuracy, disparity = numbers(usable, self.metric, self.minimise)
        # The sign turns "lower is better" into "higher is better".
        score = accuracy if self.maximise else -accuracy
        best = int(np.argmax(score))
        error = float(usable[error_column].to_numpy(dtype=float)[best])
        if not np.isfinite(error):
            raise ValueError(
                f"{error_column} of the best setting is {error}: a standard error needs at least two folds."
            )
        inside = score >= score[best] - error
        row = lowest(disparity, score, inside)
        return Choice(
            usable.index[row],
            f"lowest {in_words(self.minimise)} ({disparity[row]:.4g}) of the {inside.sum()} of {len(usable)} "
            f"settings with {in_words(self.metric)} within one standard error ({error:.4g}) of the best, "
            f"{accuracy[best]:.4f}",
        )


def check_share(name: str, share: float) -> None:
    """Refuse a budget that is no share."""
    require(0 <= as_number(share) < 1, name, "be in [0, 1)", share, "it is the share to give up")


def lowest(disparity: FloatArray, score: FloatArray, inside: BoolArray) -> int:
    """Position of the lowest disparity inside; ties go to the higher score, then to the first row."""
    rows = np.flatnonzero(inside)
    return int(rows[np.lexsort((-score[rows], disparity[rows]))[0]])
