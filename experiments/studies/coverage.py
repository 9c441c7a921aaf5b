"""How often the intervals of the Cox table hold the truth: ``python -m experiments.studies.coverage``.

Exponential times with known log hazard ratios, a third of the patients censored. Plain Cox's truth is what was
simulated. A robust model's truth is its own coefficient in a population, taken from one fit to very many patients.
"""

import argparse
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from drosurv import CoxPH, DROCox, Surv

EFFECTS = np.array([0.8, -0.4, 0.0])
# Name in the table, model, method.
CASES = (
    ("CoxPH, information", CoxPH(), "information"),
    ("CoxPH, sandwich", CoxPH(), "sandwich"),
    ("CoxPH, bootstrap", CoxPH(), "bootstrap"),
    ("DROCox (alpha 0.5), bootstrap", DROCox(alpha=0.5, recalibrate=False), "bootstrap"),
)


def patients(n, seed):
    """Features and target of n patients."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 2] = rng.random(n) < 0.4
    time, left = rng.exponential(np.exp(-X @ EFFECTS)), rng.exponential(2.0, n)
    return X, Surv.from_arrays(time <= left, np.minimum(time, left))


def truth(model, n=200_000):
    """Coefficients in the population."""
    if type(model) is CoxPH:
        return EFFECTS
    X, y = patients(n, seed=10**6)
    return model.fit(X, y).coef_


def covered(model, method, true, n, n_bootstrap, level, seed):
    """Whether the interval of each coefficient holds the truth, on one sample."""
    X, y = patients(n, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = (
            type(model)(**model.get_params())
            .fit(X, y)
            .summary(level, method, n_bootstrap=n_bootstrap, n_jobs=1)
        )
    percent = f"{100 * level:g}%"
    return (table[f"coef lower {percent}"] <= true) & (true <= table[f"coef upper {percent}"])


def main():
    """Print the share of samples whose interval holds the truth, by case and coefficient."""
    parser = argparse.ArgumentParser(prog="python -m experiments.studies.coverage", description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--n", type=int, default=400, help="patients of a sample")
    parser.add_argument("--boot", type=int, default=200, help="refits of a bootstrap")
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    noise = 1.96 * np.sqrt(given.level * (1 - given.level) / given.samples)
    print(f"{given.samples} samples of {given.n} patients; chance moves a share by {100 * noise:.1f} points.")
    for name, model, method in CASES:
        true = truth(model)
        with ThreadPoolExecutor(given.jobs) as pool:
            found = pool.map(
                lambda seed: covered(model, method, true, given.n, given.boot, given.level, seed),  # noqa: B023
                range(given.samples),
            )
        shares = 100 * np.mean(list(found), axis=0)
        print(f"{name}: " + ", ".join(f"{share:.1f}" for share in shares), flush=True)


if __name__ == "__main__":
    main()
