"""What the published running sum does to the log partial likelihood where times are tied.

python -m experiments.paper.ties --seer-file SEER.csv
"""

from __future__ import annotations

import argparse

import numpy as np

from drosurv import CoxPH
from drosurv.datasets import split
from drosurv.metrics import log_partial_likelihood
from drosurv.patients.target import FloatArray
from experiments.paper.run import load_dataset

REPEATS = 3


def running_sum_likelihood(event: FloatArray, time: FloatArray, risk: FloatArray) -> float:
    """Return the log partial likelihood per event as published: risk sets are running sums in a sort by time.

    Of patients tied in time each has only those before it in its risk set.
    """
    order = np.argsort(-time, kind="stable")
    sums = np.log(np.cumsum(np.exp(risk[order])))
    return float((risk[order] - sums)[event[order]].mean())


def effect(name: str, seer_file: str | None = None) -> float:
    """Return running sum minus exact value of plain Cox on the published test set, mean over repeats."""
    dataset = load_dataset(name, seer_file=seer_file)
    differences = []
    for repeat in range(REPEATS):
        train, _, test = split(dataset, repeat)
        risk = CoxPH().fit(train.X, train.y).predict(test.X)
        published = running_sum_likelihood(test.target.event, test.target.time, risk)
        differences.append(published - log_partial_likelihood(test.y, risk))
    return float(np.mean(differences))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m experiments.paper.ties", description=__doc__)
    parser.add_argument("--seer-file", help="copy of SEER in the authors' row order")
    given = parser.parse_args()
    for name in ("flc", "support", "seer"):
        print(f"{name}: {effect(name, given.seer_file):+.4f}")
