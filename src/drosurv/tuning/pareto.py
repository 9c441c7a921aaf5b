"""The accuracy-disparity front: settings that no other beats on both, and a way to take one of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from drosurv.errors import as_number, require
from drosurv.presentation import counted
from drosurv.target import FloatArray
from drosurv.tuning.candidates import candidates, in_words, numbers
from drosurv.tuning.rules import Choice


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
