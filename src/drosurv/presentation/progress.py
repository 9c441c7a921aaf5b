"""A progress bar."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class ProgressCallback(Protocol):
    """A function that is called after each step and updates the progress bar."""

    def __call__(self, done: int | None = None, doing: str | None = None, of: int | None = None) -> None:
        """Show that `done` steps (by default one more) of `of` are finished, and what is `doing` now."""
        ...


@contextmanager
def bar(doing: str, of: int | None = None, *, shown: bool | None = None) -> Iterator[ProgressCallback]:
    """Show a progress bar on standard error; yield the function to call after each step.

    By default it is shown if standard error is a terminal.
    """
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
