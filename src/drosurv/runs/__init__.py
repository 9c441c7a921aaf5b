"""Runs: long work cut into units, each stored when finished, so that it can be stopped, continued and shared out."""

from drosurv.runs.memory import PeakMemory, peak_memory
from drosurv.runs.run import Run, RunLog, RunRecord, command_line, run_units
from drosurv.runs.schedule import Failure, Outcome, Progress, work_through
from drosurv.runs.store import Store
from drosurv.runs.task import Task
from drosurv.runs.threads import one_thread, torch_on_one_thread

__all__ = [
    "Failure",
    "Outcome",
    "PeakMemory",
    "Progress",
    "Run",
    "RunLog",
    "RunRecord",
    "Store",
    "Task",
    "command_line",
    "one_thread",
    "peak_memory",
    "run_units",
    "torch_on_one_thread",
    "work_through",
]
