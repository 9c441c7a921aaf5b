"""Where long work stands, for somebody who waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from drosurv.cli.messages import say

if TYPE_CHECKING:
    from drosurv.runs import Progress

_SECONDS_BETWEEN_LINES = 30.0
_INTERRUPTED = 130


@contextmanager
def stoppable(output: Path) -> Iterator[None]:
    """Ctrl-C ends the run at once: finished units are stored whole, and workers end with this process."""
    import os
    import shlex
    import signal
    import sys

    def stop(*_: Any) -> None:
        from rich.console import Console

        Console(stderr=True).show_cursor()
        again = shlex.join(["drosurv", *sys.argv[1:]])
        say("Stopped", f"what is finished is kept in {output}. To go on, run the same again: {again}")
        sys.stderr.flush()
        os._exit(_INTERRUPTED)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress(doing: str) -> Iterator[Callable[[Progress], None]]:
    """A bar with the time left in a terminal; in a log a line now and then."""
    import time

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not console.is_terminal:
        last = 0.0

        def line(step: Progress) -> None:
            nonlocal last
            if time.monotonic() - last > _SECONDS_BETWEEN_LINES or step.done == step.total:
                last = time.monotonic()
                typer.echo(f"{step.done} of {step.total} units; {_left(step)}", err=True)

        yield line
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(doing, total=None, left="")

        def show(step: Progress) -> None:
            bar.update(task, completed=step.done, total=step.total, left=_left(step))

        yield show


def _left(step: Progress) -> str:
    if step.done == step.total:
        return "done"
    return "time left not known yet" if step.seconds_left is None else f"{duration(step.seconds_left)} left"


def duration(seconds: float) -> str:
    """Seconds in words."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
