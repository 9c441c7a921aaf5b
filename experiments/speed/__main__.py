"""Run the benchmark: ``python -m experiments.speed``, parts of it with ``--only core metrics``."""

import argparse
import os
from pathlib import Path

import torch
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from threadpoolctl import threadpool_limits

from experiments.speed import (
    clinical,
    core,
    cox_cv,
    devices,
    growth,
    metrics,
    penalties,
    repairs,
    report,
    subgroup,
    trees,
)

RESULTS = Path(__file__).parent / "results"


def growth_rows():
    """Growth with n; leaves a plot."""
    found = growth.curves()
    RESULTS.mkdir(exist_ok=True)
    growth.plot(found, RESULTS / "growth.png")
    return growth.growth_rows(found)


PARTS = {
    "clinical": clinical.rows,
    "core": core.rows,
    "cox_cv": cox_cv.rows,
    "devices": devices.rows,
    "growth": growth_rows,
    "metrics": metrics.rows,
    "penalties": penalties.rows,
    "repairs": repairs.rows,
    "subgroup": subgroup.rows,
    "trees": trees.rows,
}


def main():
    """Measure what is asked for, show it and store it."""
    parser = argparse.ArgumentParser(prog="python -m experiments.speed", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to run")
    parts = parser.parse_args().only
    # One thread for everybody, the programs that run as processes of their own included.
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    with threadpool_limits(1):
        rows = measure(parts)
    report.show(rows)
    name = "bench" if parts == list(PARTS) else "bench-" + "-".join(parts)
    report.write(rows, RESULTS, name)
    print(f"written to {RESULTS.name}/{name}.md and .json")


def measure(parts):
    """The rows of these parts, each printed as soon as it is known."""
    rows = []
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, transient=True) as progress:
        for part in parts:
            task = progress.add_task(part)
            for row in PARTS[part]():
                rows.append(row)
                progress.console.print(f"{row.what}: {row.measured or row.note} ({row.verdict})")
            progress.remove_task(task)
    return rows


if __name__ == "__main__":
    main()
