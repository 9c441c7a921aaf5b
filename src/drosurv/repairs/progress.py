"""A progress bar over the steps of finding repairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from drosurv.presentation import progress

_DOING = {
    "base model": "fitting the model in folds",
    "everyone": "is it off for everyone?",
    "effects": "looking for a group with other effects",
    "level": "looking for a group with more or fewer events",
}


@contextmanager
def bar(shown: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Yields a function to be told what is being done, how many steps of it are done, and of how many."""
    with progress.bar("", shown=shown) as told:
        yield lambda what, done, total: told(done, _DOING.get(what, what), total)
