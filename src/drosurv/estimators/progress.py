"""A progress bar over training steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def step_bar(label: str, steps: int) -> Iterator[Callable[[int], None]]:
    """Show a bar while the context lasts; yields a function to be told each finished step."""
    from rich.progress import Progress

    with Progress() as progress:
        task = progress.add_task(label, total=steps)
        yield lambda step: progress.update(task, completed=step)
