"""Peak memory of a run: this process and its workers together, and the accelerator's."""

from __future__ import annotations

import sys
from multiprocessing import active_children
from threading import Event, Thread
from types import TracebackType
from typing import Self

SAMPLE_SECONDS = 0.5


class PeakMemory:
    """The most memory that this process and its workers hold at one moment while the block runs.

    Pages that processes share, such as those of libraries, are counted once: the kernel gives each process its share
    of them (Linux's proportional set size), twice a second. Elsewhere the peaks of this process and of its largest
    worker, as many times as there are workers, bound it from above. `megabytes` are of main memory, NaN where the
    system does not tell; `device_megabytes` what torch allocates on the accelerator, None without one.
    """

    def __init__(self, jobs: int, device: str = "cpu") -> None:
        self.jobs = jobs
        self.device = device
        self.megabytes = float("nan")
        self.device_megabytes: float | None = None
        self._peak = 0.0
        self._over = Event()
        self._watch = Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        if self.device.startswith("cuda"):
            import torch

            torch.cuda.reset_peak_memory_stats(self.device)
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._watch.join()
        self.megabytes = self._peak or _bound_megabytes(self.jobs)
        if self.device.startswith("cuda"):
            import torch

            self.device_megabytes = torch.cuda.max_memory_allocated(self.device) / 2**20

    def _sample(self) -> None:
        while True:
            self._peak = max(self._peak, _held_megabytes())
            if self._over.wait(SAMPLE_SECONDS):
                return


def _held_megabytes() -> float:
    """What this process and its workers hold now; 0 where the system does not tell."""
    kilobytes = 0
    for process in ("self", *(child.pid for child in active_children())):
        try:
            with open(f"/proc/{process}/smaps_rollup", encoding="ascii") as file:
                kilobytes += next((int(line.split()[1]) for line in file if line.startswith("Pss:")), 0)
        except OSError:
            # No such file system, or a worker that has ended since it was listed.
            continue
    return kilobytes / 1024


def _bound_megabytes(jobs: int) -> float:
    try:
        import resource
    except ImportError:
        return float("nan")
    own, worker = (
        resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    # Linux counts kilobytes, macOS bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return float((own + (jobs * worker if jobs > 1 else 0)) * unit / 2**20)
