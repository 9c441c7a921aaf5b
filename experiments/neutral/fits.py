"""One fit of the comparison: a method on one iteration of a dataset."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drosurv import CoxPH, CoxPHCV, RepairedCox
from drosurv._version import __version__
from drosurv.patients.target import parse_target
from experiments.neutral.repository import load_fold
from experiments.neutral.scores import harrell_c, integrated_brier
from experiments.runs import Task, one_thread

# Raise whenever encoding or scores mean something else.
SCHEMA = 1
# Efron's ties, as in the published Cox.
METHODS = {
    "cox": lambda: CoxPH(ties="efron"),
    "cox-cv": lambda: CoxPHCV(ties="efron", random_state=0),
    "repaired": lambda: RepairedCox(CoxPHCV(ties="efron", random_state=0), random_state=0),
}
LABELS = {
    "cox": "`CoxPH()`",
    "cox-cv": "`CoxPHCV()`",
    "repaired": "`RepairedCox(CoxPHCV())`",
}


@dataclass(frozen=True)
class Fit(Task):
    """A method on one iteration, from 1, of a dataset of the repository at `path`."""

    path: Path
    dataset: str
    method: str
    iteration: int

    def determinants(self) -> dict[str, Any]:
        """Everything that the result depends on."""
        return {
            "schema": SCHEMA,
            "version": __version__,
            "dataset": self.dataset,
            "method": self.method,
            "iteration": self.iteration,
        }

    @property
    def address(self) -> tuple[str, str, str, int]:
        """Dataset, method and iteration."""
        return self.dataset, self.method, "iteration", self.iteration


def evaluate(fit: Fit) -> dict[str, Any]:
    """Fit the method and score it; a method that fails has a result too, with the ``error``."""
    with one_thread(with_torch=False), warnings.catch_warnings(action="ignore"):
        fold = load_fold(fit.path, fit.dataset, fit.iteration)
        start = time.perf_counter()
        try:
            model = METHODS[fit.method]().fit(fold.X_train, fold.y_train)
            seconds = time.perf_counter() - start
            train, test = parse_target(fold.y_train), parse_target(fold.y_test)
            risk = np.asarray(model.predict(fold.X_test), dtype=np.float64)

            def survival(rows: slice, times: Any) -> Any:
                return model.predict_survival_function(fold.X_test.iloc[rows], times=times)

            scores = {"c": harrell_c(test, risk), "ibs": integrated_brier(train, test, survival)}
        except (ImportError, MemoryError):
            # A fault of this machine, not of the method.
            raise
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
    rules = [repair.who for repair in getattr(model, "repairs_", [])]
    return {**scores, "seconds_to_fit": seconds, "rules": rules}
