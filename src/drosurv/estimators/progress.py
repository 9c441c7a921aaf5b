"""A progress bar over training steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def maybe_bar(name: str | None, steps: int) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that takes the number of steps done and moves the bar; None without a name."""
    if name is None:
        yield None
        return
    from rich.progress import Progress

    with Progress() as progress:
        task = progress.add_task(name, total=steps)
        yield lambda step: progress.update(task, completed=step)
