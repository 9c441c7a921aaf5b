"""A progress bar over training steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def maybe_bar(estimator: Any, steps: int) -> Iterator[Callable[[int], None] | None]:
    """Yields a function to be told each finished step, which moves a bar to `steps` if the estimator is verbose."""
    if not estimator.verbose:
        yield None
        return
    from rich.progress import Progress

    with Progress() as progress:
        task = progress.add_task(type(estimator).__name__, total=steps)
        yield lambda step: progress.update(task, completed=step)
