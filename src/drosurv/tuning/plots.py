"""Pictures of a search: the accuracy-disparity front with intervals, and the shrinkage control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from drosurv.presentation import axes_or_new
from drosurv.target import FloatArray
from drosurv.tuning.candidates import in_words, numbers
from drosurv.tuning.pareto import pareto_front
from drosurv.tuning.rules import SelectionRule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, told apart with any colour vision.
_SETTING, _FRONT, _CHOSEN, _PLAIN = "#56B4E9", "#0072B2", "#D55E00", "#000000"
_LABELS = {"gain_share": "share of the unregularised model's gain in log partial likelihood"}


class SearchPlots:
    """Pictures of a finished search, from its tables, its rule and its choice."""

    results_: pd.DataFrame
    control_: pd.DataFrame
    reference_: pd.Series[Any]
    rule_: SelectionRule
    best_index_: int

    def plot_front(self, ax: Axes | None = None, *, minimise: str = "concordance_imparity") -> Axes:
        """Draw the c-index against a disparity.

        Every setting is a point with its 95 % interval, where one is known; the line joins those that no other
        beats on both; the chosen one is ringed. The cross is the unregularised model, the dotted line its scores
        multiplied by c < 1, which moves disparities of hazards and leaves the c-index and concordance imparity where
        they are. The vertical line is the accuracy budget, where the rule has one.
        """
        check_is_fitted(self, "results_")
        ax = axes_or_new(ax)
        results = _with(self.results_, "concordance_index", minimise)
        x, y = numbers(results, "concordance_index", minimise)
        reach = _reach(results, "concordance_index")
        ax.errorbar(
            x, y, xerr=reach, yerr=_reach(results, minimise),
            fmt="o", markersize=4, color=_SETTING, elinewidth=0.6, zorder=1,
            label="settings" if reach is None else "settings, 95 % interval",
        )  # fmt: skip
        front = pareto_front(results, minimise=minimise)
        ax.plot(
            *numbers(front, "concordance_index", minimise), "o-", color=_FRONT, markersize=5, zorder=2,
            label="no other setting beats both",
        )  # fmt: skip
        control = self.control_
        if minimise in control:
            accuracy, heights = numbers(control, "concordance_index", minimise)
            ax.plot(accuracy, heights, ":", color=_PLAIN, label="unregularised model x c")
            ax.plot(accuracy[:1], heights[:1], "x", color=_PLAIN, markersize=8, label="unregularised model")
        rule: Any = self.rule_
        if hasattr(rule, "least") and rule.metric == "concordance_index":
            ax.axvline(rule.least(self.results_), color="grey", linewidth=0.8, label="accuracy budget")
        return self._finished(ax, results, "concordance_index", minimise)

    def plot_shrinkage(self, ax: Axes | None = None, *, minimise: str = "group_disparity") -> Axes:
        """Draw a disparity against the share of the unregularised model's gain over no model at all.

        The line is the unregularised model with its scores multiplied by c from 1 down to 0. A setting on or above
        the line has bought its low disparity by saying less, and nothing else; one below it has done better.
        """
        check_is_fitted(self, "results_")
        ax = axes_or_new(ax)
        results = _with(self.results_, "gain_share", minimise)
        control = _with(self.control_, "gain_share", minimise)
        ax.plot(
            *numbers(control, "gain_share", minimise), "x-", color=_PLAIN, markersize=5,
            label="unregularised model x c",
        )  # fmt: skip
        x, y = numbers(results, "gain_share", minimise)
        ax.errorbar(
            x, y, yerr=_reach(results, minimise),
            fmt="o", markersize=4, color=_SETTING, elinewidth=0.6, label="settings",
        )  # fmt: skip
        ax.axvline(0.0, color="grey", linewidth=0.8)
        return self._finished(ax, results, "gain_share", minimise)

    def _finished(self, ax: Axes, results: pd.DataFrame, x: str, y: str) -> Axes:
        """The picture with a ring around the chosen setting, where it is among the results, and words."""
        if self.best_index_ in results.index:
            row = results.loc[self.best_index_]
            ax.plot(
                [row[x]], [row[y]], "o", markersize=11, markerfacecolor="none", markeredgecolor=_CHOSEN, zorder=3,
                label="chosen",
            )  # fmt: skip
        ax.set(xlabel=_LABELS.get(x, in_words(x)), ylabel=_LABELS.get(y, in_words(y)))
        ax.legend(fontsize="small")
        return ax


def _with(table: pd.DataFrame, *names: str) -> pd.DataFrame:
    for name in names:
        if name not in table:
            raise ValueError(
                f"minimise: the search did not measure {name!r}; it has {list(table.columns)}. Name it in metrics."
            )
    known = table.dropna(subset=list(names))
    if known.empty:
        raise ValueError(
            f"there is nothing to draw: no setting has a number for {' and '.join(map(in_words, names))}. Groups may "
            "be too small to be compared."
        )
    return known


def _reach(table: pd.DataFrame, name: str) -> FloatArray | None:
    """Distances (2, settings) from a value to the ends of its interval; None where no interval is known."""
    if f"{name}_low" not in table:
        return None
    value, low, high = numbers(table, name, f"{name}_low", f"{name}_high")
    return np.nan_to_num(np.maximum(np.stack([value - low, high - value]), 0.0))
