"""Forest plots of hazard ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def forest_plot(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Hazard ratios of a Cox table with their intervals, first feature on top, on a log scale.

    Parameters
    ----------
    table : DataFrame
        Of :func:`drosurv.coefficients.cox_table`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    """
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(6.0, 0.8 + 0.35 * len(table)), layout="constrained")
    place = np.arange(len(table))[::-1]
    low, high = (
        next(c for c in table.columns if c.startswith(f"exp(coef) {end}")) for end in ("lower", "upper")
    )
    ax.hlines(place, table[low], table[high], color="C0")
    ax.plot(table["exp(coef)"], place, "s", color="C0", label="this model")
    if "plain exp(coef)" in table.columns:
        ax.plot(table["plain exp(coef)"], place, "o", color="0.4", fillstyle="none", label="plain Cox")
        ax.legend()
    ax.axvline(1.0, color="0.6", linestyle="--", linewidth=1)
    ax.set_xscale("log")
    ax.set_yticks(place, [str(name) for name in table.index])
    ax.set_xlabel(getattr(table, "ratio", "hazard ratio"))
    return ax
