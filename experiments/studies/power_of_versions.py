"""How often two versions find the same wrong predictions, where both are valid.

    PYTHONPATH=src:. python -m experiments.studies.power_of_versions run this.jsonl --runs 500 --jobs 16
    PYTHONPATH=OTHER/src:. python -m experiments.studies.power_of_versions run other.jsonl --runs 500 --jobs 16
    python -m experiments.studies.power_of_versions table other.jsonl this.jsonl

OTHER is a checkout of 0.3.0. Hazards are proportional, times continuous, each patient has one row, and predictions are
known at 100 times, or are those of a Cox model that was fitted to 2,000 patients of another population. Two groups, 30
and 70 % of the patients. Patients are the same for both versions. Subgroups are not searched. 0.3.0 multiplies p-values
of events and gains by 6, that of the slope of everybody by 8, and has no others here but that of ranking, which is not
made; the slope's standard error is that of the partial likelihood, in place of a bootstrap.
"""

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
import pandas as pd

from drosurv import CoxPH, Surv, evaluate
from drosurv.evaluation import Predictions

AT = np.linspace(0.06, 6, 100)


class Kind(NamedTuple):
    """How the truth differs from the predictions: factors of hazards, and slopes of log hazards."""

    level: float = 1.0
    level_of_group: float = 1.0
    slope: float = 1.0
    slope_of_group: float = 1.0


KINDS = {
    "right": Kind(),
    "level 1.3": Kind(level=1.3),
    "level 0.77": Kind(level=0.77),
    "level 1.15": Kind(level=1.15),
    "group, level 1.5": Kind(level_of_group=1.5),
    "group, level 0.67": Kind(level_of_group=0.67),
    "slope 0.65": Kind(slope=0.65),
    "slope 0.85": Kind(slope=0.85),
    "slope 1.5": Kind(slope=1.5),
    "group, slope 0.4": Kind(slope_of_group=0.4),
    "level 1.15, slope 0.75": Kind(level=1.15, slope=0.75),
    "no effect": Kind(slope=0.0),
    "slope -1": Kind(slope=-1.0),
}
FITTED = {"Cox": "right", "Cox, level 1.3": "level 1.3", "Cox, slope 0.65": "slope 0.65"}
# Numbers of patients by kind.
SIZES = {
    (300, 1_000, 2_000): ("right",),
    (300, 1_000): (
        "level 1.3",
        "group, level 1.5",
        "slope 0.65",
        "slope 1.5",
        "group, slope 0.4",
        "level 1.15, slope 0.75",
        "no effect",
        "Cox, level 1.3",
    ),
    (1_000, 2_000): ("level 1.15", "slope 0.85"),
    (300,): ("level 0.77", "group, level 0.67", "slope -1", "Cox, slope 0.65"),
    (1_000,): ("Cox",),
}
FOUND = ("level", "slope", "gain", "any problem", "benefit shown")


def outcomes(log_hazard, rng):
    """Draw outcomes of patients with constant hazards."""
    n = len(log_hazard)
    time, left = rng.exponential(size=n) / np.exp(log_hazard), np.minimum(rng.exponential(8, n), 6.0)
    return Surv.from_arrays(time <= left, np.minimum(time, left))


def drawn(kind, n, seed):
    """Predictions with their features, outcomes, groups and log hazards of a run."""
    rng = np.random.default_rng([seed, n])
    factor, of_group, slope, slope_of_group = KINDS[FITTED.get(kind, kind)]
    if kind in FITTED:
        X_train, X = rng.normal(size=(2_000, 3)), rng.normal(size=(n, 3))
        effects = np.array([0.6, 0.4, 0.2])
        model = CoxPH().fit(X_train, outcomes(np.log(0.3) + X_train @ effects, rng))
        y = outcomes(np.log(0.3 * factor) + slope * X @ effects, rng)
        return model, X, y, X[:, 2] > 0.5, model.predict(X)
    group, x = rng.random(n) < 0.3, rng.normal(size=n)
    # Predicted effects are 0.8; without an effect, and against it, smaller ones are wrong enough.
    effect = 0.8 if slope > 0 else 0.4
    predicted = np.log(0.3) + effect * x
    true = np.log(0.3 * factor) + slope * effect * x
    true = np.where(group, np.log(0.3 * factor * of_group) + slope * slope_of_group * effect * x, true)
    y = outcomes(true, rng)
    return Predictions(predicted, np.exp(-np.exp(predicted)[:, None] * AT), AT), None, y, group, predicted


def found(task):
    """What is found in one run, adjusted for all tests; with "at 5 %", the single test of everybody."""
    kind, n, seed = task
    model, X, y, group, risk = drawn(kind, n, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = evaluate(model, X, y, sensitive_features={"group": group.astype(str)})
    known = {"kind": kind, "n": n, "seed": seed}
    if hasattr(result, "findings"):
        from drosurv.judging.verdict import PROBLEMS

        rows = result.findings
        wrong = rows[rows["status"].isin(PROBLEMS)]
        everybody = wrong[wrong["attribute"] == "overall"]
        gain = rows[(rows["question"] == "gain") & (rows["attribute"] == "overall")]
        return known | {
            "level": bool((wrong["question"] == "level").any()),
            "slope": bool((everybody["question"] == "slope").any()),
            "gain": bool((wrong["question"] == "gain").any()),
            "any problem": len(wrong) > 0,
            "benefit shown": bool((gain["low"] > 0).any()),
        }
    from drosurv.metrics import calibration_slope_interval

    groups, slope = result.groups, calibration_slope_interval(y, risk)
    tests = int(groups[["ratio_p", "gain_p"]].notna().sum().sum())
    rows = {
        "level": bool((groups["concern"] == "calibration").any()),
        "slope": bool(slope.p_value * (tests + 2) < 0.05 and slope.estimate > 0),
        "gain": bool((groups["gain_high"] < 0).any()),
    }
    return (
        known | rows | {"any problem": any(rows.values()), "benefit shown": bool(groups["gain_low"][0] > 0)}
    )


def table(other, this):
    """Percent of runs in which each version finds a problem: the other one / this one."""
    parts = []
    for path in (other, this):
        with open(path) as file:
            parts.append(pd.DataFrame(map(json.loads, file)).set_index(["kind", "n", "seed"]))
    both = parts[0].index.intersection(parts[1].index)
    shares = [100 * part.loc[both, list(FOUND)].groupby(["kind", "n"], sort=False).mean() for part in parts]
    text = shares[0].round().astype(int).astype(str) + " / " + shares[1].round().astype(int).astype(str)
    return text.assign(runs=parts[1].loc[both].groupby(["kind", "n"], sort=False).size()).reset_index()


def main():
    """Run one version, or print a table of two."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.studies.power_of_versions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument(
        "files", nargs="+", help="file of results; for a table, those of the other and this version"
    )
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    if given.what == "table":
        rows = table(*given.files)
        print("| " + " | ".join(rows.columns) + " |\n|" + "---|" * len(rows.columns))
        for row in rows.itertuples(index=False):
            print("| " + " | ".join(map(str, row)) + " |")
        return
    cells = [(kind, n) for sizes, kinds in SIZES.items() for kind in kinds for n in sizes]
    tasks = [(*cell, seed) for seed in range(given.runs) for cell in cells]
    with ProcessPoolExecutor(given.jobs) as pool, open(given.files[0], "w") as file:
        for row in pool.map(found, tasks, chunksize=20):
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
