"""How often an audit condemns predictions that are exactly right, at a few times only and without training patients.

Run ``python -m experiments.studies.false_verdicts [RUNS] [SEED]``: for each shape of a Weibull hazard it prints the
share of runs in which a right model is called harmful or miscalibrated.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter

import numpy as np

from drosurv import Surv
from drosurv.audit import audit_predictions

TIMES = np.array([0.25, 0.5, 1.0, 1.5, 2.0])
N = 1000


def status(shape: float, seed: int) -> str:
    """Status of the verdict on the true survival probabilities of one simulated cohort."""
    rng = np.random.default_rng(seed)
    rate = np.exp(0.7 * rng.normal(size=N))
    time, censored = (rng.exponential(size=N) / rate) ** (1 / shape), rng.uniform(0, 3, N)
    y = Surv.from_arrays(time <= censored, np.minimum(time, censored))
    truth = np.exp(-np.outer(rate, TIMES**shape))
    groups = {"site": rng.integers(0, 4, N), "sex": rng.integers(0, 2, N)}
    with warnings.catch_warnings(action="ignore"):
        report = audit_predictions(
            truth, y, times=TIMES, sensitive_features=groups, n_bootstrap=0, search_rules=False
        )
    return str(report.parts["verdict"].facts["status"])


def main(runs: int = 100, seed: int = 0) -> None:
    """Print the share of each status by shape of the hazard."""
    for shape in (0.5, 1.0, 2.0):
        found = Counter(status(shape, 10_000 * seed + k) for k in range(runs))
        print(f"shape {shape}: {dict(found)} of {runs}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
