"""One thread for each unit of work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def one_thread(*, with_torch: bool) -> Iterator[None]:
    """Keep numerical libraries and joblib to one thread: tensors here are small, and parallelism is across units.

    Scoring takes no torch, and does not load it: its libraries would be most of a worker's memory.
    """
    from joblib import parallel_config
    from threadpoolctl import threadpool_limits

    with ExitStack() as after, threadpool_limits(1), parallel_config("sequential"):
        if with_torch:
            import torch

            after.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)
        yield
