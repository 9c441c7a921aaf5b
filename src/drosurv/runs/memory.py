"""Peak memory of a run: this process and its workers together, and the accelerator's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children
from threading import Event, Thread

SAMPLE_SECONDS = 0.5


@dataclass
class PeakMemory:
    """Megabytes of main memory, and of what torch allocates on the accelerator; None where it is not known."""

    megabytes: float | None = None
    device_megabytes: float | None = None


@contextmanager
def peak_memory(device: str = "cpu") -> Iterator[PeakMemory]:
    """The most memory that this process and its workers hold at one moment while the block runs.

    Pages that processes share, such as those of libraries, are counted once: Linux gives each process its share of
    them (its proportional set size). It is asked twice a second.
    """
    peak, over = PeakMemory(), Event()

    def watch() -> None:
        while True:
            peak.megabytes = max(peak.megabytes or 0.0, _held_megabytes()) or None
            if over.wait(SAMPLE_SECONDS):
                return

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        if device.startswith("cuda"):
            import torch

            torch.cuda.reset_peak_memory_stats(device)
            yield peak
            peak.device_megabytes = torch.cuda.max_memory_allocated(device) / 2**20
        else:
            yield peak
    finally:
        over.set()
        watcher.join()


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
