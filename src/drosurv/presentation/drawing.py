"""What is drawn: figures, with axes and files, and progress bars."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

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
    """Write a figure in the format of the suffix, whole or not at all; equal figures give equal SVG files."""
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


class ProgressCallback(Protocol):
    """A function that is called after each step and updates the progress bar."""

    def __call__(self, done: int | None = None, doing: str | None = None, of: int | None = None) -> None:
        """Show that `done` steps (by default one more) of `of` are finished, and what is `doing` now."""
        ...


@contextmanager
def bar(doing: str, of: int | None = None, *, shown: bool | None = None) -> Iterator[ProgressCallback]:
    """Show a progress bar on standard error, by default in a terminal; yield the function to call after each step."""
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda done=None, doing=None, of=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=console, transient=console.is_terminal)
    task = progress.add_task(doing, total=of)

    def update(done: int | None = None, doing: str | None = None, of: int | None = None) -> None:
        step = 1 if done is None else None
        progress.update(task, advance=step, completed=done, description=doing, total=of)

    with progress:
        yield update
