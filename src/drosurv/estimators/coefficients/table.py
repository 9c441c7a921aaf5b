"""The Cox table of papers: coefficients, hazard ratios, standard errors, intervals and p-values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from drosurv.errors import as_number, require
from drosurv.presentation import Column, Table, axes_or_new
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class CoxTable(pd.DataFrame):
    """A Cox regression table: a DataFrame with one row per feature, on the units of the features.

    Columns are called as in lifelines: ``coef``, ``exp(coef)``, ``se(coef)``, ``coef lower 95%``, ``coef upper 95%``,
    ``exp(coef) lower 95%``, ``exp(coef) upper 95%``, ``z``, ``p``. For a robust model ``plain coef``,
    ``plain exp(coef)`` and ``change`` follow: the coefficients of plain Cox on the same patients, and the difference of
    the robust ones from them. Slices of it, and results of computations, are plain DataFrames.

    Attributes
    ----------
    caption : str
        Title of the table.
    notes : tuple of str
        Notes below the table.
    level : float
        Confidence level of the intervals.
    ratio : str
        Name of ``exp(coef)``.
    """

    _metadata = ["caption", "notes", "level", "ratio"]  # noqa: RUF012  (pandas reads it from the class)

    caption: str
    notes: tuple[str, ...]
    level: float
    ratio: str

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    def to_table(self) -> Table:
        """Return it as a table for reports."""
        low, high = _bounds("exp(coef)", self.level)
        percent = f"{100 * self.level:g} %"
        columns = [
            Column("covariate", "feature"),
            Column("coef", "coefficient", "value"),
            Column("exp(coef)", f"{self.ratio} ({percent} interval)", "value", (low, high)),
            Column("se(coef)", "standard error", "value"),
            Column("z", "z", "value"),
            Column("p", "p", "p_value"),
        ]
        if "change" in self.columns:
            columns.append(Column("plain exp(coef)", "hazard ratio, plain Cox", "value"))
        frame = pd.DataFrame(self).rename_axis("covariate").reset_index()
        return Table.of("cox_table", self.caption, columns, frame, self.notes)

    def to_markdown(self) -> str:  # type: ignore[override]
        """Return it as GitHub-flavoured Markdown, with its notes."""
        return self.to_table().to_markdown()

    def to_latex(self) -> str:  # type: ignore[override]
        """Return it as a LaTeX table; the document needs the package booktabs."""
        return self.to_table().to_latex()

    def to_html(self) -> str:  # type: ignore[override]
        """Return it as an HTML table."""
        return self.to_table().to_html()

    def __repr__(self) -> str:
        return self.to_table().to_text()

    def _repr_html_(self) -> str:
        return self.to_table().to_html()

    def forest_plot(self, ax: Axes | None = None) -> Axes:
        """Plot every hazard ratio with its interval on a log scale; for a robust model with plain Cox's.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure if not given.
        """
        from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

        ax = axes_or_new(ax, 6.0, 0.8 + 0.35 * len(self))
        height = np.arange(len(self))[::-1]
        low, high = _bounds("exp(coef)", self.level)
        ax.hlines(height, self[low], self[high], color="C0")
        ax.plot(self["exp(coef)"], height, "s", color="C0", label="this model")
        if "plain exp(coef)" in self.columns:
            ax.plot(self["plain exp(coef)"], height, "o", color="0.4", fillstyle="none", label="plain Cox")
            ax.legend()
        ax.axvline(1.0, color="0.6", linestyle="--", linewidth=1)
        ax.set_xscale("log")
        # Ticks at 0.5, 1, 2, 5, written as numbers and not as powers of ten.
        wide = ax.get_xlim()[1] > 10 * ax.get_xlim()[0]
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if wide else (1, 1.5, 2, 3, 5, 7)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_yticks(height, [str(name) for name in self.index])
        ax.set_xlabel(self.ratio)
        return ax


def _bounds(quantity: str, level: float) -> tuple[str, str]:
    percent = f"{100 * level:g}%"
    return f"{quantity} lower {percent}", f"{quantity} upper {percent}"


def cox_table(
    names: Sequence[str],
    coef: FloatArray,
    standard_error: FloatArray,
    *,
    level: float = 0.95,
    caption: str = "",
    notes: Sequence[str] = (),
    plain_coef: FloatArray | None = None,
    ratio: str = "hazard ratio",
) -> CoxTable:
    """Return the table of coefficients (d,) with standard errors (d,), NaN where unknown.

    Intervals are coef +- z se with normal quantiles z, so that they agree with the p-values.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.estimators.coefficients import cox_table
    >>> print(cox_table(["age"], np.array([0.05]), np.array([0.01]), caption="CoxPH"))
    CoxPH
    feature  coefficient  hazard ratio (95 % interval)  standard error      z            p
    age            0.050        1.051 (1.031 to 1.072)           0.010  5.000  below 0.001
    """
    require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
    reach = norm.ppf(0.5 + level / 2) * standard_error
    z = coef / standard_error
    low, high = coef - reach, coef + reach
    with np.errstate(over="ignore"):
        columns = {
            "coef": coef,
            "exp(coef)": np.exp(coef),
            "se(coef)": standard_error,
            **dict(zip(_bounds("coef", level), (low, high), strict=True)),
            **dict(zip(_bounds("exp(coef)", level), (np.exp(low), np.exp(high)), strict=True)),
            "z": z,
            "p": 2 * norm.sf(np.abs(z)),
        }
        if plain_coef is not None:
            columns |= {
                "plain coef": plain_coef,
                "plain exp(coef)": np.exp(plain_coef),
                "change": coef - plain_coef,
            }
    table = CoxTable(columns, index=pd.Index(list(names), name="covariate"))
    table.caption, table.notes, table.level, table.ratio = caption, tuple(notes), level, ratio
    return table
