"""One thread for each unit of work, and for small tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext


@contextmanager
def one_thread(*, with_torch: bool) -> Iterator[None]:
    """Keep numerical libraries and joblib to one thread: tensors here are small, and parallelism is across units.

    Scoring takes no torch, and does not load it: its libraries would be most of a worker's memory.
    """
    from joblib import parallel_config
    from threadpoolctl import threadpool_limits

    torch_too = torch_on_one_thread() if with_torch else nullcontext()
    with torch_too, threadpool_limits(1), parallel_config("sequential"):
        yield


@contextmanager
def torch_on_one_thread() -> Iterator[None]:
    """Keep torch to one thread: several take longer over small tensors, and sum in another order."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
