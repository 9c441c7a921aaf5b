"""Error rates of ``drosurv.certify`` on simulated patients: false alarms, coverage of the bounds, and power.

    python -m experiments.studies.subgroup_bounds --runs 500 --jobs 16 --replicates 199 -o subgroup_bounds.json

"right": false alarms of right predictions and models of many kinds: clusters, weights, few times, rounding, entry,
strata, causes, whole years (``--what right --replicates 119``);
"cross_fitted": false alarms of a Cox model that is right, trained in folds and judged on the patients left out;
"cross_fitted_power": the same where a subgroup has more events;
"shape_power": a subgroup of 16 % of 2,000 patients with the predicted number of events, at other times;
"methods_false_alarm", "methods_power": the test of certify and, on the same patients, a search on half of the patients
with a test on the other half.
Required: at most 7.4 % of runs with any significant subgroup where predictions are right; bounds beyond every true
value in at least 93 %; power of at least 90 % for a subgroup of 16 % of 1,500 patients with 1.65 times the events.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from drosurv import CoxPH, Surv, certify
from drosurv.curves import FittedCurves, ScoreValues, SmoothCurves
from drosurv.evaluation import Predictions
from drosurv.judging.adjustment import SEARCH_SHARE
from drosurv.judging.rules import CodedTable
from drosurv.judging.simultaneous_tests import (
    LEAST,
    LEAST_EXPECTED,
    MOST,
    MOST_LEVELS,
    N_CUTS,
    signed_root_deviance,
)
from drosurv.judging.subgroup_bounds import BRIER, GAIN, SubgroupBounds
from drosurv.judging.subgroup_sums import Subgroups
from drosurv.metrics import FollowUp, observed_over_expected
from drosurv.metrics.likelihood_gain import likelihood_gains
from drosurv.patients.target import parse_target, with_fields
from drosurv.report.cross_fit import cross_fitted, fold_parts
from experiments.studies.false_alarms import MODELS, cohort
from experiments.studies.repeated import parser, repeat

ALPHA = 0.05
POPULATION = 20_000
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
    censored_at: np.ndarray
    subgroup: np.ndarray
    shape: float = SHAPE

    def predictions(self) -> Predictions:
        """Weibull curves with the model's rates, and log hazards."""
        return Predictions(np.log(self.rate), weibull_curves(self.rate, self.shape))


@dataclass(frozen=True, eq=False)
class Weibull(FittedCurves):
    """Cumulative hazards rate t^shape of patients, given their rates as scores."""

    shape: float

    def cumulative_hazard(self, scores: np.ndarray, times: np.ndarray | None = None) -> np.ndarray:
        """Return cumulative hazards (n, k) at common times (k,), or at each patient's own (n, k)."""
        return scores[:, None] * times**self.shape


def weibull_curves(rate: np.ndarray, shape: float = SHAPE) -> SmoothCurves:
    """Return smooth survival curves exp(-rate t^shape) of n patients."""
    return SmoothCurves(ScoreValues(Weibull(shape), rate))


def simulate(
    n: int, events: float, rng: np.random.Generator, ratio: float = 1.0, shape: float = SHAPE
) -> Simulated:
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
    time = (rng.exponential(size=n) / np.where(subgroup, ratio, 1.0) / rate) ** (1 / shape)
    end = np.minimum(rng.exponential(size=n) / CENSORING[events], 3.0)
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    return Simulated(X, y, rate, end, subgroup, shape)


def wrong_without_search(found: SubgroupBounds) -> bool:
    """Whether the number of everybody's events is wrong at 5 %, adjusted for the test of timing, not for the search."""
    return found.overall["p"] * (1 - SEARCH_SHARE) <= 0.05


def false_alarm(n: int, events: float, replicates: int, seed: int) -> dict[str, Any]:
    """Right predictions: whether any subgroup, or everybody, is significant."""
    data = simulate(n, events, np.random.default_rng([seed, n]))
    found = certify(
        data.predictions(), data.X, data.y, alpha=ALPHA, n_bootstrap=replicates, random_state=seed
    )
    # A model that is wrong for everybody is also judged after it was rescaled.
    return {
        "significant": len(found.significant) > 0,
        "overall": wrong_without_search(found),
        "share_of_events": float(np.mean(data.y["event"])),
        "most": float(found.bounds.loc[MOST, "bound"]),
        "subgroups": found.n_subgroups,
    }


def patients(kind: str, n: int, rng: np.random.Generator) -> dict[str, Any]:
    """Patients with five columns and true probabilities, as arguments of certify: kinds that need no fitted model."""
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    X["flag"] = (rng.random(n) < 0.4).astype(float)
    eta = 0.6 * X["a"].to_numpy() - 0.4 * X["b"].to_numpy() + 0.3 * X["flag"].to_numpy()
    if kind == "weights":
        X, eta = X.round(0), np.round(eta)
    time, end = (rng.exponential(size=n) / np.exp(eta)) ** (1 / SHAPE) / 0.3, rng.uniform(0.5, 7, n)
    entry = rng.uniform(0, 2, n) if kind == "late entry" else np.zeros(n)
    if kind == "late entry":
        end, kept = end + entry, time > entry
        X, eta, time, end, entry = X[kept], eta[kept], time[kept], end[kept], entry[kept]
    times = {"one time": [3.0], "three times": [1.0, 3.0, 5.0], "whole years": np.arange(1.0, 8.0)}
    times["three times, 2 decimals"] = times["three times"]
    at = np.array(times.get(kind, np.linspace(0.05, 7, 140)))
    if kind in ("whole years", "weights"):
        parts = 2 if kind == "weights" else 1
        time, end = np.ceil(parts * time) / parts, np.ceil(parts * end) / parts
    S = np.exp(-np.exp(eta)[:, None] * (0.3 * at) ** SHAPE)
    S = S.round(2) if kind.endswith("decimals") else S
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    if kind in COPIES:
        rows = np.repeat(np.arange(n), COPIES[kind])
        return {"model": (at, S[rows]), "X": X.iloc[rows], "y": with_fields(y[rows], id=rows)}
    if kind == "weights":
        # Patients with equal columns and outcomes: rows that stand for several.
        table = X.assign(event=y["event"], time=y["time"], eta=eta)
        table = table.groupby(list(table.columns), as_index=False).size()
        X, y = table[list(X.columns)], Surv.from_arrays(table["event"].to_numpy(), table["time"].to_numpy())
        at = np.arange(0.5, 8.0, 0.5)
        S = np.exp(-np.exp(table["eta"].to_numpy())[:, None] * (0.3 * at) ** SHAPE)
        y = with_fields(y, weight=table["size"].to_numpy(dtype=float))
    if kind == "late entry":
        y = with_fields(y, entry=entry)
    if kind == "hospitals":
        y = with_fields(y, clusters=rng.integers(25, size=n))
    return {"model": (at, S), "X": X, "y": y}


COPIES = {"2 rows per patient": 2, "5 rows per patient": 5}
KINDS = (
    "many times",
    "three times",
    "one time",
    "three times, 2 decimals",
    "whole years",
    "late entry",
    "weights",
    "hospitals",
    *COPIES,
)
FITTED = ("strata", "late entry", "causes", "cause 1", "whole years", "AFT")


def right(kind: str, replicates: int, seed: int) -> dict[str, Any]:
    """Right predictions of a kind, or a right model fitted to other patients: whether any subgroup is significant."""
    rng = np.random.default_rng(seed)
    if kind in KINDS:
        n = {"5 rows per patient": 200, "2 rows per patient": 400}.get(kind, 600)
        given = patients(kind, n, rng)
    else:
        name = kind.removeprefix("fitted, ")
        drawn = "causes" if name == "cause 1" else name
        (X, y, known), (X_test, y_test, test) = (cohort(drawn, n, rng) for n in (1_000, 600))
        model = MODELS.get(drawn, CoxPH)().fit(X, y, **known)
        given = {"model": model, "X": X_test, "y": y_test, **test}
        given |= {"cause": 1} if name == "cause 1" else {}
    found = certify(**given, n_bootstrap=replicates, random_state=seed)
    overall = wrong_without_search(found)
    return {"significant": len(found.significant) > 0, "overall": overall}


def cross_fitted_bounds(n: int, events: float, replicates: int, seed: int, ratio: float) -> tuple[Any, Any]:
    """Patients, and bounds of a Cox model trained in five folds and judged as ``drosurv check`` does."""
    data = simulate(n, events, np.random.default_rng([seed, n]), ratio)
    X = pd.get_dummies(data.X, columns=["site"], drop_first=True, dtype=float)
    parts = fold_parts(data.y["event"], 5, seed)
    predictions = cross_fitted(CoxPH(), X, data.y, parts)
    return data, certify(
        predictions, X, data.y, features=data.X, alpha=ALPHA, n_bootstrap=replicates, random_state=seed
    )


def cross_fitted_false_alarm(n: int, events: float, replicates: int, seed: int) -> dict[str, Any]:
    """A right Cox model trained in five folds: whether any subgroup, or everybody, is significant."""
    _, found = cross_fitted_bounds(n, events, replicates, seed, 1.0)
    return {"significant": len(found.significant) > 0, "overall": wrong_without_search(found)}


def cross_fitted_power(n: int, events: float, replicates: int, seed: int) -> dict[str, Any]:
    """A Cox model trained in five folds of patients among whom a subgroup of 16 % has 1.65 times the events."""
    return overlap(*cross_fitted_bounds(n, events, replicates, seed, RATIO))


def power(n: int, events: float, replicates: int, seed: int) -> dict[str, Any]:
    """A subgroup of 16 % with 1.65 times the events: whether a significant one overlaps with it by half (Jaccard)."""
    data = simulate(n, events, np.random.default_rng([seed, n]), RATIO)
    found = certify(
        data.predictions(), data.X, data.y, alpha=ALPHA, n_bootstrap=replicates, random_state=seed
    )
    return overlap(data, found)


def shape_power(n: int, events: float, replicates: int, seed: int) -> dict[str, Any]:
    """The subgroup has 2.5 times the hazard until time 0.35, and 0.4 times later: whether it is found."""
    rng = np.random.default_rng([seed, n])
    data = simulate(n, events, rng)
    cut, (early, late) = 0.35**SHAPE, (np.where(data.subgroup, ratio, 1.0) for ratio in (2.5, 0.4))
    unit, first = rng.exponential(size=n), early * data.rate * cut
    hazard = np.where(unit < first, unit / early, data.rate * cut + (unit - first) / late)
    time = (hazard / data.rate) ** (1 / SHAPE)
    y = Surv.from_arrays(time <= data.censored_at, np.minimum(time, data.censored_at))
    found = certify(data.predictions(), data.X, y, alpha=ALPHA, n_bootstrap=replicates, random_state=seed)
    of_shape = (found.significant["question"] == "timing").to_numpy()
    rules = [rule for rule, shape in zip(found.rules, of_shape, strict=True) if shape]
    expected, inside = data.rate * y["time"] ** SHAPE, data.subgroup
    return {
        "found": any(jaccard(rule.holds(data.X), data) >= 0.5 for rule in rules),
        "any": len(found.rules) > 0,
        "ratio_of_events": float(y["event"][inside].sum() / expected[inside].sum()),
    }


def overlap(data: Simulated, found: Any) -> dict[str, Any]:
    """Whether a significant subgroup overlaps with the simulated one by half (Jaccard), and whether there is any."""
    overlaps = [jaccard(rule.holds(data.X), data) for rule in found.rules]
    return {"found": max(overlaps, default=0.0) >= 0.5, "any": len(overlaps) > 0}


def jaccard(inside: np.ndarray, data: Simulated) -> float:
    """Overlap of a group with the simulated subgroup."""
    return float((inside & data.subgroup).sum() / (inside | data.subgroup).sum())


def confirmed_on_other_half(data: Simulated, seed: int) -> list[np.ndarray]:
    """The subgroup with the largest deviation in half of the patients, if the other half has p <= 0.05 (exact test)."""
    n = len(data.X)
    values = np.column_stack([np.ones(n), data.y["event"], data.rate * data.y["time"] ** data.shape])
    first = np.random.default_rng([seed, n, 2]).permutation(n) < n // 2
    subgroups = Subgroups(CodedTable.from_table(data.X[first], N_CUTS, MOST_LEVELS))
    size, observed, expected = subgroups.sums(values[first]).T
    deviation = np.abs(signed_root_deviance(observed, expected, np.ones(len(size))))
    large = (size >= ALPHA * first.sum()) & (expected >= LEAST_EXPECTED)
    inside = subgroups.rule(int(np.where(large, deviation, -np.inf).argmax())).holds(data.X)
    _, events, predicted = values[inside & ~first].sum(axis=0)
    return [inside] if observed_over_expected(events, predicted).p <= 0.05 else []


def methods(n: int, events: float, replicates: int, seed: int, ratio: float) -> dict[str, Any]:
    """For each method whether it reports any subgroup, and one that overlaps with the simulated one by half."""
    data = simulate(n, events, np.random.default_rng([seed, n]), ratio)
    found = certify(
        data.predictions(), data.X, data.y, alpha=ALPHA, n_bootstrap=replicates, random_state=seed
    )
    reported = {
        "all_patients": [rule.holds(data.X) for rule in found.rules],
        "halves": confirmed_on_other_half(data, seed),
    }
    rates: dict[str, Any] = {f"{name}_any": len(groups) > 0 for name, groups in reported.items()}
    for name, groups in reported.items():
        rates[f"{name}_found"] = any(jaccard(group, data) >= 0.5 for group in groups)
    return rates


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
        n_bootstrap=replicates,
        random_state=seed,
    )
    population = Subgroups(same_codes(found.subgroups.table, all_patients.X))
    population.kept = found.subgroups.kept
    # Means over the event times of each patient, so that the truth has little noise of its own.
    rate, ratio = all_patients.rate, np.where(all_patients.subgroup, RATIO, 1.0)
    counted = -np.expm1(-ratio * rate * np.minimum(all_patients.censored_at, horizon) ** SHAPE)
    predicted, true_survival = (np.exp(-more * rate * horizon**SHAPE) for more in (1.0, ratio))
    brier = true_survival * (1 - predicted) ** 2 + (1 - true_survival) * predicted**2
    target = parse_target(all_patients.y)
    predictions = all_patients.predictions()
    gain = likelihood_gains(FollowUp.of(target), target, predictions.survival)
    size, o, e, b, g = population.sums(
        np.column_stack([np.ones(POPULATION), counted, counted / ratio, brier, gain])
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


STUDIES = {
    "right": right,
    "false_alarm": false_alarm,
    "coverage": coverage,
    "power": power,
    "shape_power": shape_power,
    "cross_fitted": cross_fitted_false_alarm,
    "cross_fitted_power": cross_fitted_power,
    "methods_false_alarm": partial(methods, ratio=1.0),
    "methods_power": partial(methods, ratio=RATIO),
}


def main() -> None:
    """Run the simulations, print rates, and write them as JSON."""
    options = parser(__doc__)
    options.add_argument("--replicates", type=int, default=999, help="Draws of a test.")
    options.add_argument("--what", nargs="*", choices=STUDIES, default=STUDIES)
    options.add_argument("--sizes", nargs="*", type=int, default=[400, 1500, 4000])
    given = options.parse_args()
    simulations = []
    for name in given.what:
        if name == "right":
            for kind in (*KINDS, *(f"fitted, {kind}" for kind in FITTED)):
                simulations.append(({"study": name, "kind": kind}, partial(right, kind, given.replicates)))
            continue
        one = [(2000, 0.55)] if name == "shape_power" else [(1500, 0.55)]
        for n, events in SETTINGS if name in ("false_alarm", "coverage") else one:
            if n in (*given.sizes, 2000):
                setting = {"study": name, "n": n, "events": events}
                simulations.append((setting, partial(STUDIES[name], n, events, given.replicates)))
    repeat(simulations, given)


if __name__ == "__main__":
    main()
