"""Simulations that are repeated with many seeds, in several processes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import pandas as pd

Run = Callable[[int], Mapping[str, Any]]


def parser(description: str | None, runs: int = 500) -> argparse.ArgumentParser:
    """Return a parser with the options that all simulations share."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--runs", type=int, default=runs, help="Runs of each simulation.")
    options.add_argument("--jobs", type=int, default=1, help="Processes.")
    options.add_argument("--first", type=int, default=0, help="First seed; the others follow.")
    options.add_argument("-o", "--output", type=Path, help="JSON or CSV file of the rates.")
    return options


def means(_: Mapping[str, Any], rows: pd.DataFrame) -> dict[str, float]:
    """Return the mean of each column; what is missing counts as 0."""
    return {column: round(float(rows[column].fillna(0.0).mean()), 4) for column in rows}


def repeat(
    simulations: Sequence[tuple[dict[str, Any], Run]],
    options: argparse.Namespace,
    summarised: Callable[[Mapping[str, Any], pd.DataFrame], Mapping[str, Any]] = means,
) -> None:
    """Run each simulation with every seed; print what `summarised` makes of setting and results, and write it."""
    seeds = range(options.first, options.first + options.runs)
    results = []
    with ProcessPoolExecutor(options.jobs, initializer=_in_one_thread) as pool:
        # All are handed over at once, so that no process waits for the last run of a simulation.
        handed = [(setting, pool.map(run, seeds)) for setting, run in simulations]
        for setting, found in handed:
            rows = pd.DataFrame(found)
            results.append({**setting, "runs": len(rows), **summarised(setting, rows)})
            print(json.dumps(results[-1]), flush=True)
    if options.output is None:
        return
    if options.output.suffix == ".csv":
        pd.DataFrame(results).to_csv(options.output, index=False)
    else:
        options.output.write_text(json.dumps(results, indent=1))


def _in_one_thread() -> None:
    joblib.parallel_config("sequential")
