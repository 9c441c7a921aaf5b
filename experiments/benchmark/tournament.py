"""The whole benchmark: plan, work through what is missing, compare, and write."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from drosurv._version import __version__
from drosurv.errors import as_whole, require
from drosurv.files import write_file
from experiments.benchmark.contenders import CONTENDERS, find_contenders
from experiments.benchmark.encoded_part import EncodedPart, split_in_two
from experiments.benchmark.measures import MEASURES, judge, time_grid
from experiments.datasets import available
from experiments.datasets.catalog import EVERY, load_each
from experiments.fingerprint import data_fingerprint
from experiments.runs import Outcome, Progress, Task, command_line, one_thread, run_units

# The second set can be asked for by name.
card, load = EVERY.card, EVERY.load

# Raise whenever splits, encoding or measures mean something else.
SCHEMA = 2


@dataclass(frozen=True)
class Match(Task):
    """One method on one split, from 0, of one dataset; with the benchmark's seed the number draws the split."""

    dataset: str
    method: str
    split: int
    seed: int
    data_fingerprint: str

    def determinants(self) -> dict[str, Any]:
        """Everything that the result depends on."""
        return {
            "schema": SCHEMA,
            "version": __version__,
            "dataset": self.dataset,
            "data_fingerprint": self.data_fingerprint,
            "method": self.method,
            "settings": CONTENDERS[self.method].settings,
            "split": self.split,
            "seed": self.seed,
        }

    @property
    def address(self) -> tuple[str, str, str, int]:
        """Dataset, method and split."""
        return self.dataset, self.method, "split", self.split


def evaluate_match(match: Match) -> dict[str, Any]:
    """Fit the method and judge it.

    A method that fails has a result too, with the ``error``: it is not tried again, and hides no other.
    """
    with one_thread(with_torch=True), warnings.catch_warnings(action="ignore"):
        # Fits that do not converge are judged by what they predict.
        train, test = _parts(match.dataset, match.seed * 1000 + match.split)
        start = time.perf_counter()
        try:
            model = CONTENDERS[match.method].fit(train, match.split)
            seconds = time.perf_counter() - start
            times = time_grid(train)
            risk = np.asarray(model.predict(test.X), dtype=np.float64)
            survival = np.asarray(model.predict_survival_function(test.X, times=times), dtype=np.float64)
            found = judge(train, test, risk, survival, times, match.split)
        except (ImportError, MemoryError):
            # A fault of this machine, not of the method: to be tried again elsewhere.
            raise
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
    return {**found, "seconds_to_fit": seconds}


@lru_cache(maxsize=1)
def _parts(dataset: str, seed: int) -> tuple[EncodedPart, EncodedPart]:
    """Every method of a split comes before the next split."""
    return split_in_two(load(dataset), seed)


SPLITS = 10
# The patients of support are those of support2, which has more of their columns.
DATASETS = tuple(name for name in available() if name != "support")
# Small, and of every kind: cancer, infection, transplants, prisons, many and few events.
QUICK_DATASETS = ("colon", "mgus2", "actg", "kidtran", "std", "rossi")
QUICK_SPLITS = 3


@dataclass(frozen=True, eq=False)
class Benchmark:
    """What a run did, found and wrote to the file `path`.

    `results` have one row per dataset, method and split: every measure, and the error of a method that failed.
    `unavailable` tells why a dataset could not be loaded, and `missing` counts the units that are not there yet,
    because the time was up or they failed.
    """

    outcome: Outcome
    results: pd.DataFrame
    path: Path
    unavailable: dict[str, str]
    missing: int
    wall_seconds: float


def run_benchmark(
    output: str | Path,
    *,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    splits: int | None = None,
    seed: int = 0,
    quick: bool = False,
    jobs: int | None = None,
    minutes: float | None = None,
    report: Callable[[Progress], None] | None = None,
) -> Benchmark:
    """Run every method on every split of every dataset, compare them with Cox, and rank them.

    Finished units are kept under ``output/units``: a run that was stopped continues, on this machine or on one that
    was given a copy of the folder.

    `datasets` and `methods` are names, all by default; the null model and Cox are always run. `seed` draws the
    `splits`, 10 by default. `quick` means six small datasets and three splits, unless others are asked for. There are
    `jobs` processes, by default one per processor core. No unit is started after so many `minutes`; what is missing is
    done by the next run. `report` is called with the progress.
    """
    datasets = datasets or (QUICK_DATASETS if quick else None)
    names = list(datasets or DATASETS)
    contenders = find_contenders(None if methods is None else list(methods))
    splits = (QUICK_SPLITS if quick else SPLITS) if splits is None else splits
    require(as_whole(splits) >= 1, "splits", "be a whole number, at least 1", splits)
    fingerprints, unavailable = load_each(names, lambda name: data_fingerprint(load(name)))
    # Large datasets first: the last units to end should be short ones.
    ordered = sorted(fingerprints, key=lambda name: -card(name).patients * card(name).features)
    matches = [
        Match(name, contender.name, split, seed, fingerprints[name])
        for split in range(splits)
        for name in ordered
        for contender in contenders
    ]
    asked = {"datasets": datasets, "methods": methods, "splits": splits, "seed": seed}
    run = run_units(
        output,
        matches,
        evaluate_match,
        command=command_line("benchmark", **asked),
        jobs=joblib.effective_n_jobs(-1) if jobs is None else jobs,
        seconds=None if minutes is None else 60 * minutes,
        report=report,
    )
    missing = len(matches) - len(run.finished)
    results, path = gather_matches(run.finished, names), Path(output) / "results.csv"
    write_file(path, results.to_csv(index=False, lineterminator="\n"))
    return Benchmark(run.outcome, results, path, unavailable, missing, run.wall_seconds)


def gather_matches(finished: Sequence[tuple[Match, dict[str, Any]]], order: Sequence[str]) -> pd.DataFrame:
    """One row per finished unit, dataset by dataset in the given order."""
    rows = [
        {"dataset": match.dataset, "method": match.method, "split": match.split, "error": "", **result}
        for match, result in sorted(finished, key=lambda found: order.index(found[0].dataset))
    ]
    table = pd.DataFrame(rows, columns=["dataset", "method", "split", *MEASURES, "error"])
    return table.astype(dict.fromkeys(MEASURES, float))
