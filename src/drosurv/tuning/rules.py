"""Rules that pick one setting of a grid from its scores, and the accuracy-disparity front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import pandas as pd

from drosurv.errors import as_number, require
from drosurv.presentation import counted
from drosurv.target import BoolArray, FloatArray
from drosurv.tuning.results import PLAIN, candidates, in_words, numbers


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
        Column to rank by.
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
    """Take the lowest disparity among settings whose accuracy does not differ from the best beyond chance.

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


@dataclass(frozen=True)
class CarefulBudget:
    """Keep the plain model unless a setting lowers the disparity beyond chance, within two budgets.

    The plain model is one of the candidates. A setting is preferred to it only if

    - its disparity is lower by more than the standard error of the paired difference,
    - its accuracy is at least ``(1 - tolerance)`` of the plain model's, and
    - its gain in log partial likelihood over no model is at least ``(1 - likelihood_tolerance)`` of the plain
      model's. The c-index does not notice scores that are all too timid; the likelihood does.

    Of those, the one with the lowest disparity is taken; ties go to the higher accuracy, then to the first row.
    The paper's rule is :class:`AccuracyBudget`.

    Parameters
    ----------
    metric : str
        Accuracy column; higher is better and positive.
    tolerance : float in [0, 1)
        Share of the plain model's accuracy that may be given up.
    minimise : str
        Disparity column; also needed are ``<minimise>_difference`` from the plain model and its
        ``<minimise>_difference_se``, which a search computes on the same folds or replicates.
    likelihood_tolerance : float in [0, 1)
        Share of the plain model's likelihood gain that may be given up.

    Examples
    --------
    >>> import pandas as pd
    >>> grid = pd.DataFrame(
    ...     {
    ...         "concordance_index": [0.70, 0.70, 0.71],
    ...         "gain_over_null": [0.30, 0.10, 0.31],
    ...         "concordance_imparity": [0.01, 0.005, 0.04],
    ...         "concordance_imparity_difference": [-0.03, -0.035, 0.0],
    ...         "concordance_imparity_difference_se": [0.01, 0.01, 0.0],
    ...         "plain": [False, False, True],
    ...     }
    ... )
    >>> CarefulBudget().choose(grid).index
    0
    """

    metric: str = "concordance_index"
    tolerance: float = 0.05
    minimise: str = "concordance_imparity"
    likelihood_tolerance: float = 0.1

    maximise: ClassVar[bool] = True
    may_choose_plain: ClassVar[bool] = True

    def least(self, results: pd.DataFrame) -> float:
        """The least accuracy that the budget allows."""
        return (1 - self.tolerance) * float(results.loc[results[PLAIN].astype(bool), self.metric].iloc[0])

    def choose(self, results: pd.DataFrame) -> Choice:
        """Pick the plain row, or the fairest of those that are surely fairer and cost little."""
        check_share("tolerance", self.tolerance)
        check_share("likelihood_tolerance", self.likelihood_tolerance)
        if PLAIN not in results.columns or int(results[PLAIN].sum()) != 1:
            raise ValueError(
                f"results must mark the plain model's row in a column {PLAIN!r}; a GridSearch with this rule does."
            )
        usable = candidates(results, [self.metric, self.minimise, "gain_over_null"])
        plain = usable[PLAIN].to_numpy(dtype=bool)
        if not plain.any():
            raise ValueError("the plain model has no finite scores, so nothing can be held against it.")
        accuracy, disparity, gain = numbers(usable, self.metric, self.minimise, "gain_over_null")
        difference, error = numbers(usable, f"{self.minimise}_difference", f"{self.minimise}_difference_se")
        own = int(np.flatnonzero(plain)[0])
        bar = self.least(usable)
        least = gain[own] - self.likelihood_tolerance * max(gain[own], 0.0)
        affordable = (accuracy >= bar) & (gain >= least) & ~plain
        # Without a standard error nothing is known to be better.
        surer = affordable & (difference < -error)
        metric, minimise = in_words(self.metric), in_words(self.minimise)
        budgets = f"{metric} at least {bar:.4f} and likelihood gain at least {least:.4f}"
        if surer.any():
            row = lowest(disparity, accuracy, surer)
            return Choice(
                usable.index[row],
                f"{minimise} {disparity[row]:.4g}, lower than the plain model's by {-difference[row]:.4g} (standard "
                f"error {error[row]:.4g}); {metric} {accuracy[row]:.4f} against {accuracy[own]:.4f}; likelihood gain "
                f"{gain[row]:.4f} against {gain[own]:.4f}; the lowest of {surer.sum()} such settings with {budgets}",
            )
        reason = f"the plain model: {affordable.sum()} of {len(usable) - 1} settings have {budgets}"
        if affordable.any():
            best = lowest(difference, accuracy, affordable)
            reason += (
                f", and in none of them is the {minimise} lower by more than the standard error of the difference "
                f"(the best is {abs(difference[best]):.4g} {'lower' if difference[best] < 0 else 'higher'}, standard "
                f"error {error[best]:.4g})"
            )
        return Choice(usable.index[own], reason)


def pareto_front(
    results: pd.DataFrame, *, maximise: str = "concordance_index", minimise: str = "concordance_imparity"
) -> pd.DataFrame:
    """Rows that no other row beats in one column without losing in the other.

    `results` have one row per setting, or per setting and fold (averaged first); of an accuracy higher is better, of a
    disparity lower. The front goes from the most accurate setting to the one with the least disparity, and keeps all
    rows that are equal in both columns.

    Examples
    --------
    >>> import pandas as pd
    >>> accuracy, disparity = [0.8, 0.7, 0.6], [0.02, 0.01, 0.03]
    >>> grid = pd.DataFrame({"concordance_index": accuracy, "concordance_imparity": disparity})
    >>> pareto_front(grid).index.tolist()
    [0, 1]
    """
    ordered = candidates(results, [maximise, minimise]).sort_values(
        [maximise, minimise], ascending=[False, True], kind="stable"
    )
    gain, harm = numbers(ordered, maximise, minimise)
    # Rows before this one are at least as accurate, so it survives only if its disparity is below all of
    # theirs, or if it equals the last survivor in both.
    lowest_before = np.concatenate([[np.inf], np.minimum.accumulate(harm)[:-1]])
    better = harm < lowest_before
    block = np.cumsum(better) - 1
    first = np.flatnonzero(better)[block]
    twin = (gain == gain[first]) & (harm == harm[first])
    front: pd.DataFrame = ordered.loc[better | twin]
    return front


@dataclass(frozen=True)
class ParetoPoint:
    """Take one point of the accuracy-disparity front.

    Both columns are scaled to [0, 1] over the front, a_i for accuracy and u_i for disparity; the point with
    the largest ``weight * a_i - (1 - weight) * u_i`` is taken. Equal weights give the knee: scaled, the chord
    between the ends of the front runs from (0, 0) to (1, 1), so a_i - u_i is the height above it, and past
    the highest point a little more of one costs a lot of the other.

    Parameters
    ----------
    maximise, minimise : str
        Accuracy column (higher is better) and disparity column (lower is better).
    weight : float in [0, 1]
        How much accuracy counts; 0.5 is the knee.

    Examples
    --------
    >>> import pandas as pd
    >>> accuracy, disparity = [0.80, 0.79, 0.60], [0.05, 0.01, 0.0]
    >>> grid = pd.DataFrame({"concordance_index": accuracy, "concordance_imparity": disparity})
    >>> ParetoPoint().choose(grid).index
    1
    """

    maximise: str = "concordance_index"
    minimise: str = "concordance_imparity"
    weight: float = 0.5

    def choose(self, results: pd.DataFrame) -> Choice:
        """Pick a row on the front."""
        require(
            0 <= as_number(self.weight) <= 1, "weight", "be in [0, 1]", self.weight, "it is accuracy's share"
        )
        front = pareto_front(results, maximise=self.maximise, minimise=self.minimise)
        gain, harm = numbers(front, self.maximise, self.minimise)
        row = int(np.argmax(self.weight * _unit(gain) - (1 - self.weight) * _unit(harm)))
        how = "knee" if self.weight == 0.5 else f"point at accuracy weight {self.weight:g}"
        return Choice(
            front.index[row],
            f"{how} of a front of {counted(len(front), 'setting')}: {in_words(self.maximise)} {gain[row]:.4f}, "
            f"{in_words(self.minimise)} {harm[row]:.4g}",
        )


def _unit(values: FloatArray) -> FloatArray:
    """Scaled to [0, 1]; a constant column carries no preference and becomes 0."""
    width = values.max() - values.min()
    return (values - values.min()) / width if width > 0 else np.zeros_like(values)
