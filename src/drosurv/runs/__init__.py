"""Runs: long work cut into units, each stored when finished, so that it can be stopped, continued and shared out."""

from drosurv.runs.run import RunLog, RunRecord, command_line, run_units
from drosurv.runs.schedule import Outcome, Progress, one_thread, torch_on_one_thread, work_through
from drosurv.runs.store import Store, Task

__all__ = [
    "Outcome",
    "Progress",
    "RunLog",
    "RunRecord",
    "Store",
    "Task",
    "command_line",
    "one_thread",
    "run_units",
    "torch_on_one_thread",
    "work_through",
]
