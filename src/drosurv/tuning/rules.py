"""Rules that choose one setting of a grid from its scores, and the Pareto front of accuracy and disparity."""

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
    """The setting that a rule chose.

    Parameters
    ----------
    index : hashable
        Index label of the row in ``results`` (value of ``candidate`` for results by fold).
    reason : str
        Why it was chosen, with the numbers that the rule compared.
    fallback : bool
        Whether no setting met the rule's condition, so that the rule used its alternative.
    """

    index: Any
    reason: str
    fallback: bool = False


class SelectionRule(Protocol):
    """An object with a method ``choose`` that returns a :class:`Choice` from a table of scores."""

    def choose(self, results: pd.DataFrame) -> Choice:
        """Choose a row of ``results`` (one row per setting, or per setting and fold)."""
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
        """Choose the best row."""
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
        """Choose the matching row."""
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
    """Choose the lowest disparity among settings that lose little accuracy: the paper's rule.

    Among settings with ``metric >= (1 - tolerance) * reference``, choose the one with the lowest ``minimise``;
    ties go to the higher ``metric``, then to the first row. If there is none, choose the highest ``metric``
    and set ``fallback``.

    Parameters
    ----------
    metric : str
        Accuracy column; higher is better and positive.
    tolerance : float in [0, 1)
        Share of the reference that may be lost.
    minimise : str
        Column to minimise, such as ``concordance_imparity`` or ``average_disparity``.
    reference : float, "unregularised" or "best"
        The accuracy with which settings are compared: a number; "best", the highest value in the table; or
        "unregularised", the paper's choice, the accuracy of the plain model on the same patients. The table does not
        contain it: a search computes it and passes it to :meth:`against`.

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
    # The paper chooses only among the settings of the grid.
    may_choose_plain: ClassVar[bool] = False

    def against(self, reference: float) -> AccuracyBudget:
        """Return the same rule with the score of the unregularised model as reference."""
        return replace(self, reference=float(reference))

    def choose(self, results: pd.DataFrame) -> Choice:
        """Choose the row with the lowest disparity within the budget."""
        check_share("tolerance", self.tolerance)
        usable = candidates(results, [self.metric, self.minimise])
        reference, least = self._reference(usable), self.least(usable)
        budget = f"{in_words(self.metric)} >= {1 - self.tolerance:g} x {reference:.4f} = {least:.4f}"
        accuracy, disparity = numbers(usable, self.metric, self.minimise)
        inside = accuracy >= least
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
        """Return the lowest accuracy that the budget allows."""
        return (1 - self.tolerance) * self._reference(results)

    def _reference(self, usable: pd.DataFrame) -> float:
        if self.reference == "unregularised":
            raise ValueError(
                "reference is 'unregularised', and this table does not contain the score of the plain model; pass "
                f"its {self.metric} with rule.against(score), or use reference='best'."
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
    """Choose the lowest disparity among settings whose accuracy is within one standard error of the best.

    The standard error is that of the best setting.

    Parameters
    ----------
    metric : str
        Accuracy column; its standard error comes from folds, or from a column ``<metric>_se``.
    minimise : str
        Column to minimise among these settings; ties go to the better ``metric``, then to the first row.
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
        """Choose the row with the lowest disparity within one standard error of the best."""
        usable = candidates(results, [self.metric, self.minimise])
        error_column = f"{self.metric}_se"
        if error_column not in usable.columns:
            raise ValueError(
                f"results has neither folds nor a column {error_column!r}, so the standard error is unknown. "
                "Pass results by fold, or add that column (for example from a bootstrap)."
            )
        accuracy, disparity = numbers(usable, self.metric, self.minimise)
        # Change the sign if lower is better, so that a higher score is better.
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
    """Raise unless a tolerance is a share in [0, 1)."""
    require(0 <= as_number(share) < 1, name, "be in [0, 1)", share, "it is the share that may be lost")


def lowest(disparity: FloatArray, score: FloatArray, inside: BoolArray) -> int:
    """Return the row of the lowest disparity among those `inside`; ties go to the higher score, then the first."""
    rows = np.flatnonzero(inside)
    return int(rows[np.lexsort((-score[rows], disparity[rows]))[0]])


@dataclass(frozen=True)
class CarefulBudget:
    """Choose the plain model unless a setting has a disparity that is lower by more than its standard error.

    The plain model is one of the candidates. A setting is preferred to it only if

    - its disparity is lower by more than the standard error of the paired difference,
    - its accuracy is at least ``(1 - tolerance)`` times that of the plain model, and
    - its gain in log partial likelihood over the null model is at least ``(1 - likelihood_tolerance)`` times that of
      the plain model. The likelihood falls if all scores are shrunk, the c-index does not.

    Of these settings, choose the one with the lowest disparity; ties go to the higher accuracy, then to the first row.
    The paper's rule is :class:`AccuracyBudget`.

    Parameters
    ----------
    metric : str
        Accuracy column; higher is better and positive.
    tolerance : float in [0, 1)
        Share of the plain model's accuracy that may be lost.
    minimise : str
        Disparity column. The columns ``<minimise>_difference`` (from the plain model) and
        ``<minimise>_difference_se`` are also needed; a search computes them on the same folds or replicates.
    likelihood_tolerance : float in [0, 1)
        Share of the plain model's likelihood gain that may be lost.

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
        """Return the lowest accuracy that the budget allows."""
        return (1 - self.tolerance) * float(results.loc[results[PLAIN].astype(bool), self.metric].iloc[0])

    def choose(self, results: pd.DataFrame) -> Choice:
        """Choose the plain model, or the setting with the lowest disparity that meets the conditions."""
        check_share("tolerance", self.tolerance)
        check_share("likelihood_tolerance", self.likelihood_tolerance)
        if PLAIN not in results.columns or int(results[PLAIN].sum()) != 1:
            raise ValueError(
                f"results must mark the row of the plain model in a column {PLAIN!r}, as GridSearch does."
            )
        usable = candidates(results, [self.metric, self.minimise, "gain_over_null"])
        plain = usable[PLAIN].to_numpy(dtype=bool)
        if not plain.any():
            raise ValueError("the plain model has no finite scores, so settings cannot be compared with it.")
        accuracy, disparity, gain = numbers(usable, self.metric, self.minimise, "gain_over_null")
        difference, error = numbers(usable, f"{self.minimise}_difference", f"{self.minimise}_difference_se")
        reference = int(np.flatnonzero(plain)[0])
        least_accuracy = self.least(usable)
        least_gain = gain[reference] - self.likelihood_tolerance * max(gain[reference], 0.0)
        within = (accuracy >= least_accuracy) & (gain >= least_gain) & ~plain
        # Without a standard error (NaN) a setting does not count as better.
        better = within & (difference < -error)
        metric, minimise = in_words(self.metric), in_words(self.minimise)
        budgets = f"{metric} at least {least_accuracy:.4f} and likelihood gain at least {least_gain:.4f}"
        if better.any():
            row = lowest(disparity, accuracy, better)
            return Choice(
                usable.index[row],
                f"{minimise} {disparity[row]:.4g}, lower than the plain model's by {-difference[row]:.4g} (standard "
                f"error {error[row]:.4g}); {metric} {accuracy[row]:.4f} against {accuracy[reference]:.4f}; likelihood "
                f"gain {gain[row]:.4f} against {gain[reference]:.4f}; the lowest of {better.sum()} such settings with "
                f"{budgets}",
            )
        reason = f"the plain model: {within.sum()} of {len(usable) - 1} settings have {budgets}"
        if within.any():
            best = lowest(difference, accuracy, within)
            reason += (
                f", and in none of them is the {minimise} lower by more than the standard error of the difference "
                f"(the best is {abs(difference[best]):.4g} {'lower' if difference[best] < 0 else 'higher'}, standard "
                f"error {error[best]:.4g})"
            )
        return Choice(usable.index[reference], reason)


def pareto_front(
    results: pd.DataFrame, *, maximise: str = "concordance_index", minimise: str = "concordance_imparity"
) -> pd.DataFrame:
    """Return the Pareto front: the rows that no other row beats in one column without losing in the other.

    `results` has one row per setting, or per setting and fold (averaged first). Higher accuracy (`maximise`) and lower
    disparity (`minimise`) are better. The front is sorted from the most accurate setting to the one with the lowest
    disparity, and contains all rows that are equal in both columns.

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
    # Earlier rows are at least as accurate, so a row is on the front only if its disparity is lower than all of
    # theirs, or if it equals the last row of the front in both columns.
    lowest_before = np.concatenate([[np.inf], np.minimum.accumulate(harm)[:-1]])
    better = harm < lowest_before
    block = np.cumsum(better) - 1
    first = np.flatnonzero(better)[block]
    twin = (gain == gain[first]) & (harm == harm[first])
    front: pd.DataFrame = ordered.loc[better | twin]
    return front


@dataclass(frozen=True)
class ParetoPoint:
    """Choose one point of the Pareto front of accuracy and disparity.

    Both columns are scaled to [0, 1] over the front, a_i for accuracy and u_i for disparity; the point with the largest
    ``weight * a_i - (1 - weight) * u_i`` is chosen. With equal weights this is the knee of the front, the point
    farthest from the line between its ends.

    Parameters
    ----------
    maximise, minimise : str
        Accuracy column (higher is better) and disparity column (lower is better).
    weight : float in [0, 1]
        Weight of accuracy; 0.5 is the knee.

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
        """Choose a row of the front."""
        require(
            0 <= as_number(self.weight) <= 1, "weight", "be in [0, 1]", self.weight, "it is that of accuracy"
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
    """Scale values to [0, 1]; equal values become 0."""
    width = values.max() - values.min()
    return (values - values.min()) / width if width > 0 else np.zeros_like(values)
