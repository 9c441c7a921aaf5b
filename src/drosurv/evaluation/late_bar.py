"""A progress bar that appears only when the work takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS = 3.0


@contextmanager
def late_bar(label: str, total: int, *, show: bool | None = None) -> Iterator[Callable[[], None]]:
    """Yield what to call after each finished piece of work; after three seconds a bar shows them.

    Parameters
    ----------
    label : str
        What stands before the bar.
    total : int
        How many pieces there are.
    show : bool, optional
        Whether a bar may appear; by default where standard error is a terminal.
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=console.is_terminal)
    task = bar.add_task(label, total=total)
    start, started = time.monotonic(), False

    def advance() -> None:
        nonlocal started
        bar.advance(task)
        if not started and time.monotonic() - start > SECONDS:
            started = True
            bar.start()

    try:
        yield advance
    finally:
        if started:
            bar.stop()
