"""Figures: axes to draw on, and files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from drosurv.files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# More lines have their names beside the axes.
_MANY_LINES = 6


def axes_or_new(ax: Axes | None, width: float = 6.4, height: float = 4.2) -> Axes:
    """Return the given axes, or those of a new figure; width and height are in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def lines_or_new(ax: Axes | None, n: int) -> Axes:
    """Return the given axes, or those of a new figure, which is wider if n lines need a legend beside the axes."""
    return axes_or_new(ax, width=9.4 if n > _MANY_LINES else 6.4)


def line_style(k: int) -> str:
    """Return the style of the k-th line: there are ten colours, and then the same ones with dashes."""
    return "-" if k < 10 else "--"


def name_lines(ax: Axes) -> None:
    """Draw the legend; with many lines, to the right of the axes."""
    if len(ax.get_legend_handles_labels()[1]) > _MANY_LINES:
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    else:
        ax.legend(frameon=False)


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the suffix; the file appears whole or not at all.

    Equal figures give equal SVG files.
    """
    from matplotlib import rc_context

    kind = path.suffix.lower().removeprefix(".")
    # By default SVG files have random ids and the date.
    metadata = {
        "svg": {"Date": None, "Creator": "drosurv"},
        "png": {"Software": "drosurv"},
        "pdf": {"Creator": "drosurv"},
    }
    with rc_context({"svg.hashsalt": "drosurv"}), whole_file(path) as part:
        figure.savefig(part, format=kind, dpi=150, metadata=metadata.get(kind))
