"""Work on an accelerator recorded once and replayed: a step of many small launches then costs one launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

# Calls that run as they are: libraries choose their kernels and take their workspace, which a recording cannot hold.
_WARM_UP = 3


class Replay:
    """Work without arguments that reads and writes the same tensors in every call.

    The first calls run as they are and count like all others. Then the work is recorded as a CUDA graph, which runs
    nothing, so that no tensor needs to be put back; from then on the recording is replayed. Nothing in the work may
    wait for the device: no number is read, no size depends on one. Call it inside of :func:`beside_the_default_stream`.
    """

    def __init__(self, work: Callable[[], Tensor]) -> None:
        self.work, self.calls = work, 0
        self._graph: Any = None
        self._out: Any = None

    def __call__(self) -> Tensor:
        """The work's result, which later calls leave as it is."""
        self.calls += 1
        if self.calls <= _WARM_UP:
            return self.work()
        if self._graph is None:
            self._record()
        self._graph.replay()
        out: Tensor = self._out.clone()
        return out

    def _record(self) -> None:
        import torch

        self._graph = torch.cuda.CUDAGraph()
        # Other threads may go on with what they do on the device.
        stream, errors = torch.cuda.current_stream(), "thread_local"
        with torch.cuda.graph(self._graph, stream=stream, capture_error_mode=errors):
            self._out = self.work()


@contextmanager
def beside_the_default_stream(device: Any) -> Iterator[None]:
    """On CUDA a stream of its own, as the default one cannot be recorded; elsewhere nothing changes."""
    if not str(device).startswith("cuda"):
        yield
        return
    import torch

    place = torch.device(device)
    with torch.cuda.device(place):
        outer, own = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        own.wait_stream(outer)
        with torch.cuda.stream(own):
            yield
        outer.wait_stream(own)
