"""Figures: axes to draw on, and files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from drosurv.files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def axes_or_new(ax: Axes | None, width: float = 6.4, height: float = 4.2) -> Axes:
    """Return the given axes, or those of a new figure; width and height are in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


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
