"""How often shown intervals hold the truth: ``python -m experiments.studies.coverage --jobs 16``.

- "table": of the Cox table. Exponential times with known log hazard ratios, a third of the patients censored. Plain
  Cox's truth is what was simulated. A robust model's truth is its own coefficient in a population, taken from one fit
  to very many patients.
- "metrics": of `evaluate`, for everybody and two groups: c-index, Uno's C, AUC, gain, ICI, observed over expected
  events, calibration slope. Predictions are right, or have 1.3 times the spread; 13 to 55 % have the event. The truth
  is the value in a population of 20,000 patients.
"""

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np

from drosurv import CoxPH, DROCox, Surv, evaluate
from drosurv.findings.from_predictions import judged_patients
from drosurv.findings.residual_tests import level
from drosurv.findings.residual_tests import spread as slope_of
from drosurv.predictions import Predictions, as_predictions

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


METRICS = (
    "concordance_index",
    "uno_concordance",
    "dynamic_auc",
    "likelihood_gain",
    "integrated_calibration_index",
)
# Mean censoring times, and spread of the predictions over the true one.
SETTINGS = {
    "right, 55 % events": (1.0, 1.0),
    "right, 13 % events": (0.12, 1.0),
    "spread 1.3, 55 % events": (1.0, 1.3),
    "spread 1.3, 13 % events": (0.12, 1.3),
}


def evaluated(setting, n, seed, n_bootstrap):
    """Values with intervals of one sample, by metric and group; not adjusted, as if each were the only one."""
    censoring, spread = SETTINGS[setting]
    rng = np.random.default_rng([seed, n])
    eta, group = 0.8 * rng.normal(size=n), rng.random(n) < 0.3
    time, left = rng.exponential(np.exp(-eta)), rng.exponential(censoring, n)
    y = Surv.from_arrays(time <= left, np.minimum(time, left))
    # Close together, so that curves are known throughout.
    at = np.quantile(rng.exponential(1.0, 10**5), np.linspace(0.002, 0.9, 400)) * (
        1.5 if censoring > 0.5 else 0.2
    )
    given = Predictions(spread * eta, np.exp(-np.exp(spread * eta)[:, None] * at), at)
    found = {}
    with warnings.catch_warnings(action="ignore"):
        result = evaluate(
            given, None, y, sensitive_features={"group": group}, n_bootstrap=n_bootstrap, n_jobs=1
        )
        judged = judged_patients(as_predictions(given, None, n), y)
    for row in result.rows:
        if row.metric in METRICS and row.kind in ("overall", "group"):
            found[row.metric, str(row.group or "all")] = (row.value, row.low, row.high)
    for name, mask in (("all", np.ones(n, bool)), ("True", group), ("False", ~group)):
        ratio = level(judged.residuals.sums(mask * 1.0))
        found["observed / expected", name] = (ratio.value, *ratio.interval(0.05))
        slope = slope_of(judged.residuals, judged.score, mask)
        found["calibration slope", name] = (slope.value, *slope.interval(0.05))
    return found


def shown(setting, given):
    """Print the shares of intervals that hold the truth."""
    true = {key: value for key, (value, *_) in evaluated(setting, 20_000, 10**6, 0).items()}
    with ProcessPoolExecutor(given.jobs) as pool:
        runs = list(
            pool.map(partial(evaluated, setting, given.n, n_bootstrap=given.boot), range(given.samples))
        )
    for key, value in true.items():
        held = [run[key][1] <= value <= run[key][2] for run in runs if key in run]
        print(f"{setting}, {', '.join(key)} ({value:.3f}): {100 * np.mean(held):.1f}", flush=True)


def main():
    """Print the share of samples whose interval holds the truth, by case and coefficient."""
    parser = argparse.ArgumentParser(prog="python -m experiments.studies.coverage", description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--n", type=int, default=400, help="patients of a sample")
    parser.add_argument("--boot", type=int, default=200, help="refits of a bootstrap")
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--what", nargs="*", choices=("table", "metrics"), default=("table", "metrics"))
    given = parser.parse_args()
    noise = 1.96 * np.sqrt(given.level * (1 - given.level) / given.samples)
    print(f"{given.samples} samples of {given.n} patients; chance moves a share by {100 * noise:.1f} points.")
    for setting in SETTINGS if "metrics" in given.what else ():
        shown(setting, given)
    for name, model, method in CASES if "table" in given.what else ():
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
