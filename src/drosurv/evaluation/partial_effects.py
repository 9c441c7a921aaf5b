"""Survival curves over the values of one feature, everything else as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from drosurv.errors import require
from drosurv.evaluation.predictions import final_step, unwrapped
from drosurv.groups import in_pandas
from drosurv.presentation import axes_or_new, written
from drosurv.solvers.arrays import on_host
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class PartialEffects:
    """Mean predicted survival (values, T) of the same patients, had they all had one of the values of a feature."""

    feature: str
    values: tuple[Any, ...]
    times: FloatArray
    survival: FloatArray

    def to_frame(self) -> pd.DataFrame:
        """Times in the rows, values of the feature in the columns."""
        columns = pd.Index(self.values, name=self.feature)
        return pd.DataFrame(self.survival.T, index=pd.Index(self.times, name="time"), columns=columns)

    def __repr__(self) -> str:
        # Thousands of times are for plots: a reader sees five of them.
        shown = self.to_frame().iloc[np.unique(np.linspace(0, len(self.times) - 1, 5).astype(int))]
        return f"Mean predicted survival by {self.feature}; plot() draws it\n{shown.round(3)}"

    def plot(self, ax: Axes | None = None) -> Axes:
        """One survival curve for each value, in a new figure if no axes are given."""
        ax = axes_or_new(ax)
        for value, curve in zip(self.values, self.survival, strict=True):
            ax.step(self.times, curve, where="post", label=f"{self.feature} = {written(value)}")
        ax.set(xlabel="time", ylabel="mean predicted survival", ylim=(0, 1))
        ax.legend()
        return ax


def partial_effects(
    model: Any,
    X: Any,
    feature: str | int,
    values: Sequence[Any],
    *,
    times: ArrayLike | None = None,
    **given: Any,
) -> PartialEffects:
    """Survival curves over the values of one feature, averaged over the patients' other features.

    Parameters
    ----------
    model : fitted estimator or Pipeline
        With ``predict_survival_function``.
    X : (n, d) array or DataFrame
        Patients to average over.
    feature : str or int
        Column of a DataFrame, or number of an array's column.
    values : sequence
        The feature's values to predict at.
    times : (T,) array, optional
        Times of the curves, the model's ``unique_times_`` if not given.
    **given
        Goes on to ``predict_survival_function``, such as ``strata``.

    Examples
    --------
    >>> from drosurv import CoxPH, datasets
    >>> from drosurv.evaluation import partial_effects
    >>> data = datasets.make_hidden_minority(n_samples=500, random_state=0)
    >>> model = CoxPH().fit(data.X, data.y)
    >>> partial_effects(model, data.X, data.X.columns[0], [-1, 0, 1], times=[0.5, 1.0]).survival.shape
    (3, 2)
    """
    model, X = unwrapped(model), in_pandas(on_host(X))
    is_frame = isinstance(X, pd.DataFrame)
    # Between whole numbers there are values too.
    table = X if is_frame else pd.DataFrame(np.asarray(X, dtype=np.float64))
    named = f"be a column of X, one of {list(table.columns)}"
    numbered = f"be the number of a column of X, from 0 to {table.shape[1] - 1}"
    require(feature in table.columns, "feature", named if is_frame else numbered, feature)
    if times is None:
        times = final_step(model).unique_times_
    at = np.asarray(times, dtype=np.float64)
    curves = []
    for value in values:
        changed = table.copy()
        changed[feature] = value
        patients = changed if is_frame else changed.to_numpy()
        curves.append(np.asarray(model.predict_survival_function(patients, times=at, **given)).mean(axis=0))
    return PartialEffects(str(feature), tuple(values), at, np.stack(curves))
