"""Run the benchmark: ``python -m experiments.speed``, parts of it with ``--only core metrics``.

``--against REVISION`` times the code of a git revision beside this one, and nothing else unless ``--only`` is given.
"""

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
    metrics,
    penalties,
    repairs,
    report,
    subgroup,
    trees,
    versions,
)

RESULTS = Path(__file__).parent / "results"


PARTS = {
    "clinical": clinical.rows,
    "core": core.rows,
    "cox_cv": cox_cv.rows,
    "devices": devices.rows,
    "metrics": metrics.rows,
    "penalties": penalties.rows,
    "repairs": repairs.rows,
    "subgroup": subgroup.rows,
    "trees": trees.rows,
}


def main():
    """Measure what is asked for, show it and store it."""
    parser = argparse.ArgumentParser(prog="python -m experiments.speed", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, help="parts to run")
    parser.add_argument("--against", metavar="REVISION", help="git revision to time in the same run")
    given = parser.parse_args()
    parts = given.only or ([] if given.against else list(PARTS))
    # One thread for everybody, the programs that run as processes of their own included.
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    with threadpool_limits(1):
        rows = measure(parts, given.against)
    report.show(rows)
    named = [*parts, *([versions.PART] if given.against else [])]
    name = "bench" if named == list(PARTS) else "bench-" + "-".join(named)
    report.write(rows, RESULTS, name)
    print(f"written to {RESULTS.name}/{name}.md and .json")


def measure(parts, against=None):
    """The rows of these parts, and of the comparison with another revision, each printed as soon as it is known."""
    rows = []
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, transient=True) as progress:
        makers = {part: PARTS[part] for part in parts}
        if against:
            makers[versions.PART] = lambda: versions.rows(against)
        for part, make in makers.items():
            task = progress.add_task(part)
            for row in make():
                rows.append(row)
                progress.console.print(f"{row.what}: {row.measured or row.note} ({row.verdict})")
            progress.remove_task(task)
    return rows


if __name__ == "__main__":
    main()
