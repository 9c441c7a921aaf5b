"""Threads: small tensors are faster on one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


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
