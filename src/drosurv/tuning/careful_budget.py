"""The rule a search uses by default: the plain model, unless a setting is fairer beyond chance and costs little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from drosurv.tuning.candidates import PLAIN, candidates, in_words, numbers
from drosurv.tuning.rules import Choice, check_share, lowest


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
