"""A unit of the benchmark: one method on one split of one dataset."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from drosurv._version import __version__
from drosurv.benchmark.contenders import CONTENDERS
from drosurv.benchmark.encoded_part import EncodedPart, split_in_two
from drosurv.benchmark.measures import MEASURES, judge, time_grid
from drosurv.datasets import load
from drosurv.runs import Task, one_thread

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


def check_match(match: Match, result: Any) -> None:
    """Raise unless the result has every measure, or an error."""
    wanted = {measure.name for measure in MEASURES}
    if "error" not in result and (missing := wanted - set(result)):
        raise ValueError(f"the result of {match} lacks {', '.join(sorted(missing))}.")


@lru_cache(maxsize=1)
def _parts(dataset: str, seed: int) -> tuple[EncodedPart, EncodedPart]:
    """Every method of a split comes before the next split."""
    return split_in_two(load(dataset), seed)
