"""What CoxPHCV loses on columns without or with weak effects: ``python -m experiments.studies.noise --jobs 16``.

The log partial likelihood per event of 2,000 new patients, less that of no model. Wanted is at least -0.01.
"""

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from drosurv import CoxPHCV, Surv
from drosurv.losses.cox_partial import CoxPartial
from drosurv.patients.target import parse_target

# Patients, columns, and the log hazard ratio of the first 20 columns.
CASES = ((60, 30, 0.0), (80, 200, 0.1), (200, 100, 0.0), (100, 5, 0.0), (300, 5, 0.0), (80, 3, 0.0))


def patients(n, d, effect, seed):
    """Features and target of n patients, two fifths censored."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    time, left = rng.exponential(np.exp(-effect * X[:, :20].sum(axis=1))), rng.exponential(1.5, n)
    return X, Surv.from_arrays(time <= left, np.minimum(time, left))


def gain(case):
    """The gain on new patients after one fit, and the chosen penalty."""
    n, d, effect, seed = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CoxPHCV().fit(*patients(n, d, effect, seed))
    X, y = patients(2000, d, effect, 10**6 + seed)
    loss = CoxPartial(parse_target(y))
    null, losses = loss(np.zeros((1, 2000))).sum(), loss(model.predict(X)[None]).sum()
    return (null - losses) / len(loss.rows), model.l2_


def main():
    """Print a table of mean gains."""
    parser = argparse.ArgumentParser(prog="python -m experiments.studies.noise", description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    print(
        "| patients | columns | log hazard ratio of 20 | gain per event (standard error) | median penalty |"
    )
    print("|---|---|---|---|---|")
    with ProcessPoolExecutor(given.jobs) as pool:
        for n, d, effect in CASES:
            cases = [(n, d, effect, seed) for seed in range(given.runs)]
            gains, l2s = np.array(list(pool.map(gain, cases))).T
            error = gains.std(ddof=1) / np.sqrt(len(gains))
            print(
                f"| {n} | {d} | {effect} | {gains.mean():+.4f} ({error:.4f}) | {np.median(l2s):.3g} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
