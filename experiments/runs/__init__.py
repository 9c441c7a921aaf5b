"""Runs: long work cut into units, each stored when finished, so that it can be stopped, continued and shared out."""

from experiments.runs.run import RunLog, RunRecord, command_line, run_units
from experiments.runs.schedule import Outcome, Progress, one_thread, work_through
from experiments.runs.store import Store, Task

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
    "work_through",
]
