"""What a study measures, in one file of JSON lines: units that are finished are kept, so that it can be continued."""

import argparse
import json
import time
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits


def parser(description, output, **counts):
    """A parser with the options that all such studies share, and numbers such as ``seeds=20``."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--output", type=Path, default=Path("results", output), help="folder of results")
    options.add_argument("--jobs", type=int, default=1, help="processes")
    options.add_argument("--minutes", type=float, default=np.inf, help="begin no unit after so many minutes")
    options.add_argument("--write", action="store_true", help="put what is measured into the documentation")
    for name, number in counts.items():
        options.add_argument(f"--{name}", type=int, default=number)
    return options


def load(folder):
    """All rows that were measured so far."""
    path = Path(folder) / "rows.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return pd.DataFrame(map(json.loads, lines))


def measure(folder, units, work, jobs, minutes=np.inf):
    """Add the rows of units that have none yet; begin no unit after so many minutes.

    A unit is a dict that each of its rows begins with, and that `work` takes as arguments to give the rest of the rows.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = load(folder)
    done = {tuple(row.values()) for row in kept[list(units[0])].to_dict("records")} if len(kept) else set()
    wanted = [unit for unit in units if tuple(unit.values()) not in done]
    deadline = time.time() + 60 * minutes
    print(f"{len(done)} units are done, {len(wanted)} to do", flush=True)
    finished = 0
    pool = Parallel(jobs, return_as="generator_unordered")
    with (folder / "rows.jsonl").open("a") as file:
        # One unit alone, so that kernels are compiled once before the workers load them.
        first = (_worked(unit, work, deadline) for unit in wanted[:1])
        for rows in chain(first, pool(delayed(_worked)(unit, work, deadline) for unit in wanted[1:])):
            file.writelines(json.dumps(row, default=float) + "\n" for row in rows)
            file.flush()
            finished += bool(rows)
    print(f"{finished} units finished, {len(wanted) - finished} left", flush=True)


def _worked(unit, work, deadline):
    """The rows of one unit, on one thread; none when the time is up."""
    if time.time() > deadline:
        return []
    with threadpool_limits(1):
        return [{**unit, **row} for row in work(**unit)]
