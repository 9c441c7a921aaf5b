"""How often two versions find the same wrong predictions of everybody, adjusted for all tests.

    PYTHONPATH=OTHER/src:. python -m experiments.studies.power_of_versions run other.jsonl --jobs 16
    PYTHONPATH=src:. python -m experiments.studies.power_of_versions run this.jsonl --jobs 16
    python -m experiments.studies.power_of_versions table other.jsonl this.jsonl -o docs/tables/power_of_versions.csv

OTHER is a checkout of 0.4.0. Patients are the same for both versions, with two groups of 30 and 70 %, and each version
judges with its defaults. Predictions are known at 100 times or at three, or are those of a Cox model that was fitted to
2,000 patients of another population. Subgroups are not searched.
"""

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from drosurv import CoxPH, Surv, __version__, evaluate
from drosurv.evaluation import Predictions

TIMES = {"100 times": np.linspace(0.06, 6, 100), "three times": np.array([1.0, 3.0, 5.0])}
PREDICTED = (*TIMES, "fitted Cox model")
HAZARD, EFFECTS = 0.3, np.array([0.6, 0.4, 0.2])
# The cumulative hazard by this time does not depend on the shape.
MIDDLE = 3.0
QUESTIONS = ("level", "slope", "timing")


class Kind(NamedTuple):
    """How the truth differs from the predictions: a factor of hazards, of log hazard ratios, and a Weibull shape."""

    asked: str
    level: float = 1.0
    slope: float = 1.0
    shape: float = 1.0


KINDS = {
    "right": Kind("any"),
    "1.15 times the hazard": Kind("level", level=1.15),
    "1.2 times the hazard": Kind("level", level=1.2),
    "0.85 times the hazard": Kind("level", level=0.85),
    "0.8 times the effects": Kind("slope", slope=0.8),
    "0.7 times the effects": Kind("slope", slope=0.7),
    "1.25 times the effects": Kind("slope", slope=1.25),
    "shape 1.15": Kind("timing", shape=1.15),
    "shape 0.85": Kind("timing", shape=0.85),
}


def outcomes(log_hazard, rng, shape=1.0):
    """Draw outcomes of patients with Weibull times."""
    n = len(log_hazard)
    time = MIDDLE * (rng.exponential(size=n) / np.exp(log_hazard) / MIDDLE) ** (1 / shape)
    left = np.minimum(rng.exponential(8, n), 6.0)
    return Surv.from_arrays(time <= left, np.minimum(time, left))


def drawn(kind, predicted, n, seed):
    """Predictions with their features, outcomes and groups of a run."""
    rng = np.random.default_rng([seed, n])
    _, level, slope, shape = KINDS[kind]
    if predicted not in TIMES:
        X_train, X = rng.normal(size=(2_000, 3)), rng.normal(size=(n, 3))
        model = CoxPH().fit(X_train, outcomes(np.log(HAZARD) + X_train @ EFFECTS, rng))
        true = np.log(HAZARD * level) + slope * X @ EFFECTS
        return model, X, outcomes(true, rng, shape), X[:, 2] > 0.5
    group, effect = rng.random(n) < 0.3, 0.8 * rng.normal(size=n)
    y = outcomes(np.log(HAZARD * level) + slope * effect, rng, shape)
    risk, at = np.log(HAZARD) + effect, TIMES[predicted]
    return Predictions(risk, np.exp(-np.exp(risk)[:, None] * at), at), None, y, group


def found(task):
    """Which questions about everybody are problems in one run, and whether anything is."""
    kind, predicted, n, seed = task
    model, X, y, group = drawn(kind, predicted, n, seed)
    # Findings of 0.4 do not depend on its resampling.
    quick = {"n_bootstrap": 0} if __version__.startswith("0.4") else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = evaluate(model, X, y, sensitive_features={"group": group.astype(str)}, **quick).findings
    wrong = rows[rows["status"] == "miscalibrated"]
    everybody = wrong.loc[wrong["attribute"] == "overall", "question"]
    # At few times the level is tested at each.
    asked = {question: bool(everybody.str.startswith(question).any()) for question in QUESTIONS}
    return {"kind": kind, "predicted": predicted, "n": n, "seed": seed, **asked, "any": len(wrong) > 0}


def table(other, this):
    """Percent of runs in which each version names the problem of everybody."""
    keys = ["kind", "predicted", "n", "seed"]
    parts = [pd.read_json(path, lines=True).set_index(keys) for path in (other, this)]
    both = parts[0].index.intersection(parts[1].index)
    rows = []
    for (kind, predicted, n), own in parts[1].loc[both].groupby(keys[:3], sort=False):
        asked = KINDS[kind].asked
        before, now = (100 * part.loc[own.index, asked].mean() for part in parts)
        row = {"truth": kind, "predictions": predicted, "patients": n, "question": asked}
        rows.append({**row, "0.4.0": round(before, 1), __version__: round(now, 1), "runs": len(own)})
    return pd.DataFrame(rows)


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
    parser.add_argument("--n", type=int, default=1_000, help="patients of a run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, help="file for the table")
    given = parser.parse_args()
    if given.what == "table":
        rows = table(*given.files)
        print(rows.to_string(index=False))
        if given.output:
            rows.to_csv(given.output, index=False)
        return
    cells = [(kind, predicted, given.n) for kind in KINDS for predicted in PREDICTED]
    tasks = [(*cell, seed) for seed in range(given.runs) for cell in cells]
    with ProcessPoolExecutor(given.jobs) as pool, open(given.files[0], "w") as file:
        for row in pool.map(found, tasks, chunksize=20):
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
