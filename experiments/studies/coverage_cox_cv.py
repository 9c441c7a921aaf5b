"""How often intervals of CoxPHCV hold the truth: ``python -m experiments.studies.coverage_cox_cv --jobs 16``.

Exponential times, independent normal columns, one of them with an effect, about a third of the patients censored.
Three intervals of that effect are compared: around the shrunken estimate with the standard error of the penalised fit,
that of plain Cox, and that of ``CoxPHCV.summary()``, which corrects plain Cox for bias. ``--clusters`` gives each
patient five copies.
"""

import argparse
import itertools
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from drosurv import CoxPH, CoxPHCV, Surv
from drosurv.patients.target import with_fields

SIZES, COLUMNS, EFFECTS = (300, 1000), (7, 20), (0.1, 0.5, 0.8)
INTERVALS = ("around the shrunken estimate", "unpenalised", "unpenalised, bias-corrected")
COPIES = 5


def patients(n, d, effect, seed):
    """Features and target of n patients."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    time, left = rng.exponential(np.exp(-effect * X[:, 0])), rng.exponential(2.0, n)
    return X, Surv.from_arrays(time <= left, np.minimum(time, left))


def covered(case):
    """Whether each of the three intervals holds the truth, on one sample."""
    n, d, effect, seed, clusters = case
    X, y = patients(n, d, effect, seed)
    if clusters:
        rows = np.repeat(np.arange(n), COPIES)
        X, y = X[rows], with_fields(y[rows], clusters=rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CoxPHCV(splines=False).fit(X, y)
        ours, plain = model.summary().iloc[0], CoxPH().fit(X, y).summary().iloc[0]
        penalised = model.estimator_.summary()["se(coef)"].iloc[0] / X[:, 0].std()
    centres = ours["shrunken coef"], plain["coef"], ours["coef"]
    errors = penalised, plain["se(coef)"], ours["se(coef)"]
    return [abs(c - effect) < 1.96 * e for c, e in zip(centres, errors, strict=True)]


def main():
    """Print a table of coverages in per cent."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.studies.coverage_cox_cv", description=__doc__
    )
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--clusters", action="store_true", help="five copies of each patient, clusters given")
    given = parser.parse_args()
    print(
        f"{given.samples} samples; chance moves a coverage of 95 % by {196 * np.sqrt(0.0475 / given.samples):.1f}."
    )
    print(f"| patients | columns | true log hazard ratio | {' | '.join(INTERVALS)} |")
    print("|---|---|---|---|---|---|")
    with ProcessPoolExecutor(given.jobs) as pool:
        for n, d, effect in itertools.product(SIZES, COLUMNS, EFFECTS):
            cases = [(n, d, effect, seed, given.clusters) for seed in range(given.samples)]
            shares = 100 * np.mean(list(pool.map(covered, cases, chunksize=10)), axis=0)
            cells = " | ".join(f"{share:.1f}" for share in shares)
            print(f"| {n:,} | {d} | {effect} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
