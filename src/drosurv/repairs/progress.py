"""A progress bar over the steps of finding repairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(shown: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Yields a function to be told what is being done, how many steps of it are done, and of how many."""
    if not shown:
        yield lambda what, done, total: None
        return
    from rich.progress import Progress

    with Progress(transient=True) as progress:
        task = progress.add_task("", total=None)

        def told(what: str, done: int, total: int) -> None:
            progress.update(task, description=_DOING.get(what, what), completed=done, total=total)

        yield told


_DOING = {
    "base model": "fitting the model in folds",
    "everyone": "is it off for everyone?",
    "effects": "looking for a group with other effects",
    "level": "looking for a group with more or fewer events",
}
