"""Error rates of ``drosurv.certify`` on simulated patients: false alarms, coverage of the bounds, and power.

"cross_fitted": false alarms of a Cox model that is right, trained in folds and judged on the patients left out.

    python -m experiments.studies.subgroup_bounds --runs 500 --jobs 8 -o subgroup_bounds.json

Required: at most 7.4 % of runs with any significant subgroup where predictions are right; bounds beyond every true
value in at least 93 %; power of at least 90 % for a subgroup of 16 % of 1,500 patients with 1.65 times the events.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drosurv import CoxPH, Surv, certify
from drosurv.audit.cross_fit import cross_fitted, fold_parts
from drosurv.evaluation import Predictions
from drosurv.evaluation.predictions import gains_over_null
from drosurv.metrics import FollowUp
from drosurv.repairs.rules import CodedTable
from drosurv.repairs.subgroup_bounds import (
    BRIER,
    GAIN,
    LEAST,
    MOST,
)
from drosurv.repairs.subgroups import Subgroups
from drosurv.target import parse_target

ALPHA = 0.05
POPULATION = 100_000
SETTINGS = [(n, events) for n in (400, 1500, 4000) for events in (0.55, 0.2)]
# Rates of censoring that give the shares of events, found by bisection on a large sample.
CENSORING = {0.55: 0.747, 0.2: 3.458}
SHAPE = 1.3
RATIO = 1.65
# 40 % of a standard normal variable lies above it.
CUT = 0.2533


@dataclass(frozen=True)
class Simulated:
    """Patients, what was observed of them, the model's cumulative hazard at time 1, and who belongs to the subgroup."""

    X: pd.DataFrame
    y: Any
    rate: np.ndarray
    time: np.ndarray
    subgroup: np.ndarray

    def predictions(self) -> Predictions:
        """Weibull curves of shape 1.3 with the model's rates."""
        return Predictions(survival=WeibullCurves(self.rate))


@dataclass(frozen=True, eq=False)
class WeibullCurves:
    """Smooth survival curves exp(-rate t^1.3) of n patients."""

    rate: np.ndarray
    curve_type = "smooth"
    jumps = None

    def __len__(self) -> int:
        return len(self.rate)

    def at(self, times: np.ndarray) -> np.ndarray:
        """Survival at common times, (n, k)."""
        return np.exp(-np.outer(self.rate, times**SHAPE))

    def at_own(self, times: np.ndarray) -> np.ndarray:
        """Survival of each patient at one time, (n,)."""
        return np.exp(-self.rate * times**SHAPE)

    def take(self, rows: slice) -> WeibullCurves:
        """Curves of some patients."""
        return WeibullCurves(self.rate[rows])


def simulate(n: int, events: float, rng: np.random.Generator, ratio: float = 1.0) -> Simulated:
    """Seven columns, among them a skewed one, a flag and a category; the subgroup has `ratio` times the events."""
    normal = rng.normal(size=(n, 4))
    X = pd.DataFrame(normal, columns=["a", "b", "c", "d"])
    X["skewed"] = rng.exponential(size=n)
    X["flag"] = (rng.random(n) < 0.3).astype(float)
    X["site"] = rng.choice(["north", "south", "east", "west"], size=n, p=[0.4, 0.3, 0.2, 0.1])
    score = (
        0.6 * normal[:, 0] - 0.4 * normal[:, 1] + 0.3 * X["skewed"].to_numpy() + 0.4 * X["flag"].to_numpy()
    )
    rate = np.exp(score - 0.42)
    subgroup = (normal[:, 2] > CUT) & (normal[:, 3] > CUT)
    time = (rng.exponential(size=n) / np.where(subgroup, ratio, 1.0) / rate) ** (1 / SHAPE)
    end = np.minimum(rng.exponential(size=n) / CENSORING[events], 3.0)
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    return Simulated(X, y, rate, time, subgroup)


def false_alarm(n: int, events: float, replicates: int, seed: int) -> dict[str, Any]:
    """Right predictions: whether any subgroup, or everybody, is significant."""
    data = simulate(n, events, np.random.default_rng([seed, n]))
    found = certify(
        data.predictions(), data.X, data.y, alpha=ALPHA, n_replicates=replicates, random_state=seed
    )
    # A model that is wrong for everybody is also judged after it was rescaled.
    return {
        "significant": len(found.significant) > 0,
        "overall": found.overall["p"] <= 0.05,
        "share_of_events": float(np.mean(data.y["event"])),
        "most": float(found.bounds.loc[MOST, "bound"]),
        "subgroups": found.n_subgroups,
    }


def cross_fitted_false_alarm(n: int, events: float, replicates: int, seed: int) -> dict[str, Any]:
    """A right Cox model trained in five folds, each judged on the patients left out, as ``drosurv check`` does."""
    data = simulate(n, events, np.random.default_rng([seed, n]))
    X = pd.get_dummies(data.X, columns=["site"], drop_first=True, dtype=float)
    parts = fold_parts(data.y["event"], 5, seed)
    predictions = cross_fitted(CoxPH(), X, data.y, parts).predictions
    found = certify(
        predictions, X, data.y, features=data.X, alpha=ALPHA, n_replicates=replicates, random_state=seed
    )
    return {"significant": len(found.significant) > 0, "overall": found.overall["p"] <= 0.05}


def power(n: int, events: float, replicates: int, seed: int) -> dict[str, Any]:
    """A subgroup of 16 % with 1.65 times the events: whether a significant one overlaps with it by half (Jaccard)."""
    data = simulate(n, events, np.random.default_rng([seed, n]), RATIO)
    found = certify(
        data.predictions(), data.X, data.y, alpha=ALPHA, n_replicates=replicates, random_state=seed
    )
    overlaps = []
    for rule in found.rules:
        inside = rule.holds(data.X)
        overlaps.append((inside & data.subgroup).sum() / (inside | data.subgroup).sum())
    return {"found": max(overlaps, default=0.0) >= 0.5, "any": len(overlaps) > 0}


def coverage(n: int, events: float, replicates: int, seed: int) -> dict[str, Any]:
    """Whether each bound is beyond the true values of all subgroups, for a model that is wrong in a subgroup."""
    rng = np.random.default_rng([seed, n])
    data, all_patients = simulate(n, events, rng, RATIO), simulate(POPULATION, events, rng, RATIO)
    horizon = 0.6
    found = certify(
        data.predictions(),
        data.X,
        data.y,
        alpha=ALPHA,
        horizon=horizon,
        n_replicates=replicates,
        random_state=seed,
    )
    population = Subgroups(same_codes(found.subgroups.table, all_patients.X))
    population.kept = found.subgroups.kept
    y = all_patients.y
    observed = y["event"] & (y["time"] <= horizon)
    expected = all_patients.rate * np.minimum(y["time"], horizon) ** SHAPE
    brier = ((all_patients.time > horizon) - np.exp(-all_patients.rate * horizon**SHAPE)) ** 2
    target = parse_target(y)
    predictions = all_patients.predictions()
    gain = gains_over_null(predictions, predictions.survival, FollowUp.of(target), target)
    size, o, e, b, g = population.sums(
        np.column_stack([np.ones(POPULATION), observed, expected, brier, gain])
    ).T
    bound = found.bounds["bound"]
    true = {MOST: (o / e).max(), LEAST: (o / e).min(), BRIER: (b / size).max(), GAIN: (g / size).min()}
    beyond = {
        name: bool(bound[name] >= value if name in (MOST, BRIER) else bound[name] <= value)
        for name, value in true.items()
    }
    return {**beyond, "all": all(beyond.values())}


def same_codes(table: CodedTable, X: pd.DataFrame) -> CodedTable:
    """Other patients coded with the thresholds and levels of a table."""
    codes = []
    for name, values, numeric in zip(table.names, table.values, table.numeric, strict=True):
        if numeric:
            codes.append(np.searchsorted(values, X[name].to_numpy(), side="left"))
        else:
            codes.append(pd.Index(values, dtype=object).get_indexer(X[name].astype(object)))
    return CodedTable(table.names, np.array(codes, dtype=np.int16), table.values, table.numeric)


def main() -> None:
    """Run the simulations, print rates, and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--replicates", type=int, default=999)
    parser.add_argument("--first", type=int, default=0, help="First seed.")
    parser.add_argument("--what", nargs="*", default=["false_alarm", "coverage", "power", "cross_fitted"])
    parser.add_argument("--sizes", nargs="*", type=int, default=[400, 1500, 4000])
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    studies = {
        "false_alarm": false_alarm,
        "coverage": coverage,
        "power": power,
        "cross_fitted": cross_fitted_false_alarm,
    }
    seeds = range(options.first, options.first + options.runs)
    results = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in options.what:
            for n, events in SETTINGS if name not in ("power", "cross_fitted") else [(1500, 0.55)]:
                if n not in options.sizes:
                    continue
                rows = pd.DataFrame(pool.map(partial(studies[name], n, events, options.replicates), seeds))
                means = {column: float(rows[column].mean()) for column in rows}
                results.append({"study": name, "n": n, "events": events, "runs": len(rows), **means})
                print(json.dumps(results[-1]), flush=True)
    if options.output is not None:
        options.output.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
