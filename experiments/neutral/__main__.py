"""Our models on the datasets, folds and scores of a published comparison. Stop it at any time: it continues.

python -m experiments.neutral PATH --jobs 16                          # PATH: the publication's repository
python -m experiments.neutral PATH --datasets veteran,nwtco --iterations 3 --document trial.md
python -m experiments.neutral docs/neutral_fits.csv                   # the document from finished fits
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import joblib
import pandas as pd

from drosurv.errors import ArgumentError
from experiments.neutral.document import read_fits, write_document
from experiments.neutral.fits import METHODS, Fit, evaluate
from experiments.neutral.repository import dataset_names, published_scores, table, test_rows
from experiments.runs import Progress, run_units

DOCS = Path(__file__).parents[2] / "docs"
PUBLISHED = DOCS / "neutral_published.csv"
SECONDS_BETWEEN_LINES = 30.0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    options = argparse.ArgumentParser(
        prog="python -m experiments.neutral",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument(
        "path",
        type=Path,
        help="checkout of slds-lmu/paper_2023_survival_benchmark, or a CSV file of finished fits",
    )
    options.add_argument("--methods", default=",".join(METHODS), help=f"of {', '.join(METHODS)}")
    options.add_argument("--datasets", default="", help="names, separated by commas; all by default")
    options.add_argument("--iterations", type=int, help="at most so many of each dataset; all by default")
    options.add_argument("--jobs", type=int, default=joblib.cpu_count(), help="processes")
    options.add_argument("--minutes", type=float, help="begin no fit after so many minutes")
    options.add_argument("--output", type=Path, default=Path("results", "neutral"), help="folder of results")
    options.add_argument("--document", type=Path, default=DOCS / "neutral.md", help="Markdown file to write")
    return options


def chosen(names: str, known: list[str], argument: str) -> list[str]:
    """Return the names, separated by commas, of those known; all if none is given."""
    wanted = [name for name in names.split(",") if name]
    if unknown := [name for name in wanted if name not in known]:
        raise ArgumentError(argument, f"{argument}: {unknown} is not one of {', '.join(known)}.")
    return wanted or known


def plan(path: Path, datasets: list[str], methods: list[str], most: int | None) -> list[Fit]:
    """All fits, those of large tables first, so that the last ones to end are short."""
    by_size = sorted(datasets, key=lambda name: -table(path, name).size)
    return [
        Fit(path, name, method, iteration)
        for name in by_size
        for iteration in sorted(test_rows(path, name))[:most]
        for method in methods
    ]


def main() -> int:
    """Run what is missing and write the document."""
    options = parser().parse_args()
    path = options.path.resolve()
    if path.is_file():
        _write(options.document, read_fits(path))
        return 0
    datasets = chosen(options.datasets, dataset_names(path), "datasets")
    methods = chosen(options.methods, list(METHODS), "methods")
    # Everything is compared with Cox.
    methods = list(dict.fromkeys(["cox", *methods]))
    fits = plan(path, datasets, methods, options.iterations)
    last = 0.0

    def report(step: Progress) -> None:
        nonlocal last
        if time.monotonic() - last > SECONDS_BETWEEN_LINES or step.done == step.total:
            last = time.monotonic()
            left = "" if step.seconds_left is None else f"; about {step.seconds_left / 60:.0f} min left"
            print(f"{step.done} of {step.total} fits{left}", file=sys.stderr, flush=True)

    run = run_units(
        options.output,
        fits,
        evaluate,
        command=f"python -m experiments.neutral PATH --jobs {options.jobs}",
        jobs=options.jobs,
        seconds=None if options.minutes is None else 60 * options.minutes,
        report=report,
    )
    for failure in run.outcome.failures:
        print(f"{failure.unit} failed: {failure.error}", file=sys.stderr)
    rows = pd.DataFrame(
        [
            {"dataset": fit.dataset, "method": fit.method, "iteration": fit.iteration, "error": "", **result}
            for fit, result in run.finished
        ]
    )
    rows["rules"] = [rules if isinstance(rules, list) else [] for rules in rows["rules"]]
    order = {method: k for k, method in enumerate(METHODS)}
    rows = rows.sort_values(
        ["dataset", "method", "iteration"],
        key=lambda found: found.str.lower() if found.name == "dataset" else found.replace(order),
    )
    _write(options.document, rows)
    return int(len(run.finished) < len(fits))


def _write(document: Path, rows: pd.DataFrame) -> None:
    for file in write_document(document, rows, published_scores(PUBLISHED)):
        print(f"written: {file}")


if __name__ == "__main__":
    sys.exit(main())
