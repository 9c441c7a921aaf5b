"""Plots of an evaluation: methods of :class:`~drosurv.evaluation.EvaluationResult`, and partial effects.

Each draws on the given axes, or on new ones, and returns them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from drosurv.errors import ArgumentError, arg, require
from drosurv.evaluation.attributes import whose
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.reference import disparity_column
from drosurv.observation import in_pandas
from drosurv.predictions import final_step, unwrapped
from drosurv.presentation import axes_or_new, moment, written
from drosurv.solvers.arrays import on_host
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GREY = "0.45"


def groups_plot(result: Any, metric: str = "concordance_index", *, ax: Axes | None = None) -> Axes:
    """Draw a forest plot of a metric: everybody and every group, with intervals."""
    rows = [row for row in result.select(metric=metric) if row.kind != "gap"][::-1]
    if not any(row.kind == "group" for row in rows):
        known = sorted({row.metric for row in result.rows if row.kind == "group"})
        raise ArgumentError.must("metric", f"be one that groups have, {known}", metric)
    from matplotlib.ticker import MaxNLocator

    ax = axes_or_new(ax, height=1.2 + 0.35 * len(rows))
    for y, row in enumerate(rows):
        colour = "C0" if row.kind == "group" else "black"
        # Without an interval only the point is drawn.
        xerr = np.nan_to_num([[row.value - row.low], [row.high - row.value]]).clip(min=0.0)
        ax.errorbar(row.value, y, xerr=xerr, fmt="o", color=colour, capsize=3, lw=1.2)
        if row.kind == "overall":
            ax.axvline(row.value, color=_GREY, lw=0.8, ls=":")
    names = [f"{row.whose}  ({row.n:,} patients, {row.events:,} events)" for row in rows]
    # A dollar sign in a name does not start a formula.
    ax.set_yticks(range(len(rows)), names, parse_math=False)
    ax.set_ylim(-0.6, len(rows) - 0.4)
    better = rows[0].better
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.set_xlabel(CATALOGUE[metric].label + (f" ({better} is better)" if better else ""))
    return ax


def calibration_plot(
    result: Any,
    attribute: str | None = None,
    *,
    horizon: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw observed (Kaplan-Meier, with its interval) against mean predicted survival, a point per group and horizon.

    By default the groups are those of the first attribute; "overall" is everybody. By default all horizons are drawn.
    """
    attribute = attribute or _first_attribute(result.calibration)
    rows = _of_attribute(result.calibration, attribute)
    if horizon is not None:
        rows = rows[rows["horizon"] == horizon]
        require(len(rows) != 0, "horizon", f"be one of {list(result.settings.horizons)}", horizon)
    ax = axes_or_new(ax, width=4.5, height=4.5)
    ax.plot([0, 1], [0, 1], color=_GREY, lw=0.8, ls=":")
    for k, (group, part) in enumerate(rows.groupby("group", sort=False)):
        _points_with_intervals(ax, part, f"C{k}", _who(attribute, str(group)))
    low = float(np.nanmin(rows[["predicted", "observed", "low"]].to_numpy(dtype=float)))
    shown = max(0.0, low - 0.05), 1.0
    ax.set(xlim=shown, xlabel="mean predicted survival")
    ax.set(ylim=shown, ylabel="observed survival (Kaplan-Meier)")
    ax.legend(frameon=False)
    return ax


def tenths_plot(result: Any, attribute: str = "overall", *, ax: Axes | None = None) -> Axes:
    """Draw observed (with its interval) against mean predicted risk by the horizon, in tenths of predicted risk.

    By default of everybody; with an attribute, of each of its groups.
    """
    rows = _of_attribute(result.tenths, attribute)
    ax = axes_or_new(ax, width=4.5, height=4.5)
    ax.plot([0, 1], [0, 1], color=_GREY, lw=0.8, ls=":")
    for k, (group, part) in enumerate(rows.groupby("group", sort=False)):
        _points_with_intervals(ax, part, f"C{k}", _who(attribute, str(group)))
    high = float(np.nanmax(rows[["predicted", "observed", "high"]].to_numpy(dtype=float)))
    shown = 0.0, min(1.0, high + 0.05)
    ax.set(xlim=shown, xlabel=f"predicted risk by {moment(result.settings.horizon)}")
    ax.set(ylim=shown, ylabel="observed risk (Kaplan-Meier)")
    ax.legend(frameon=False)
    return ax


def _points_with_intervals(ax: Axes, part: pd.DataFrame, colour: str, label: str) -> None:
    """Draw observed against predicted, one point per row, with the interval of the observed value."""
    lengths = np.vstack([part["observed"] - part["low"], part["high"] - part["observed"]])
    yerr = np.nan_to_num(lengths).clip(min=0.0)
    x, y = part["predicted"], part["observed"]
    ax.errorbar(x, y, yerr=yerr, fmt="o-", color=colour, capsize=3, lw=1.0, label=label)


def survival_plot(result: Any, attribute: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw mean predicted survival (lines) and Kaplan-Meier (steps).

    By default the groups are those of the first attribute; "overall" is everybody.
    """
    attribute = attribute or _first_attribute(result.survival)
    rows = _of_attribute(result.survival, attribute)
    ax = axes_or_new(ax)
    for k, (group, part) in enumerate(rows.groupby("group", sort=False)):
        ax.plot(part["time"], part["predicted"], color=f"C{k}", lw=1.5, label=_who(attribute, str(group)))
        ax.step(part["time"], part["observed"], where="post", color=f"C{k}", lw=1.0, ls="--")
    ax.plot([], [], color=_GREY, lw=1.0, ls="--", label="observed (Kaplan-Meier)")
    ax.set(xlabel="time", ylabel="survival", ylim=(0.0, 1.02))
    ax.legend(frameon=False)
    return ax


def control_plot(
    result: Any,
    metric: str = "individual_disparity",
    attribute: str = "overall",
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw a disparity against the share of the reference's likelihood gain, for the model and for "reference x c".

    A model on or above the curve is no fairer than shrinking alone makes it. The metric is "individual_disparity",
    "intersectional_disparity" or, with an attribute, "group_disparity".
    """
    control = result.control
    if control is None:
        raise ArgumentError(
            "metric",
            f"there is no shrinkage control without a reference: pass {arg('reference')} or {arg('X_train')}.",
        )
    column = disparity_column(attribute, metric)
    if column not in control.curve:
        known = control.at_equal_gain[["metric", "attribute"]].itertuples(index=False, name=None)
        raise ArgumentError(
            "metric", f"metric and attribute must be one of {list(known)}, got {(metric, attribute)}."
        )
    ax = axes_or_new(ax)
    curve = control.curve
    label = f"{result.settings.reference} x c"
    ax.plot(curve["share_of_gain"], curve[column], "o-", color=_GREY, ms=3, lw=1.0, label=label)
    of_model = control.at_equal_gain.set_index(["attribute", "metric"])["model"]
    point = result.value("share_of_gain"), float(of_model[attribute, metric])
    ax.plot(*point, "D", color="C3", ms=7, label=result.settings.model)
    ax.set_xlabel(f"share of {result.settings.reference}'s likelihood gain kept")
    heading = result.headings.get(attribute)
    ax.set_ylabel(CATALOGUE[metric].label + (f" ({heading})" if heading else ""))
    ax.legend(frameon=False)
    return ax


def _first_attribute(table: pd.DataFrame) -> str:
    """Return the first attribute that has groups; "overall" if there is none."""
    return next((name for name in table.get("attribute", ()) if name != "overall"), "overall")


def _of_attribute(table: pd.DataFrame, attribute: str) -> pd.DataFrame:
    if len(table) == 0:
        raise ArgumentError("metric", "the model gave no survival curves to draw.")
    rows = table[table["attribute"] == attribute]
    require(len(rows) != 0, "attribute", f"be one of {table['attribute'].unique().tolist()}", attribute)
    return rows


def _who(attribute: str, group: str) -> str:
    return whose(attribute, group).replace("$", r"\$")


@dataclass(frozen=True, eq=False, repr=False)
class PartialEffects:
    """Mean predicted survival (values, T) of the same patients if one feature had the same value in all of them."""

    feature: str
    values: tuple[Any, ...]
    times: FloatArray
    survival: FloatArray

    def to_frame(self) -> pd.DataFrame:
        """Return the curves, times in the rows and values of the feature in the columns."""
        columns = pd.Index(self.values, name=self.feature)
        return pd.DataFrame(self.survival.T, index=pd.Index(self.times, name="time"), columns=columns)

    def __repr__(self) -> str:
        # Five of the times, of which there may be thousands.
        shown = self.to_frame().iloc[np.unique(np.linspace(0, len(self.times) - 1, 5).astype(int))]
        return f"Mean predicted survival by {self.feature}; plot() draws it\n{shown.round(3)}"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw one survival curve for each value, in a new figure if no axes are given."""
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
    """Predict survival for several values of one feature, averaged over the patients' other features.

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
        Arguments of ``predict_survival_function``, such as ``strata``.

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
    # As floats, because a column of whole numbers may be set to a fraction.
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
