"""How often models that are right are called wrong, and how often intervals of the Brier score hold the truth.

    python -m experiments.studies.false_alarms --runs 500 --jobs 16 -o false_alarms.jsonl

Every run draws 1,000 patients to train on and 600 others who are judged, in two groups that differ in nothing but, in
half of the settings, how long they are observed. Eight kinds of right models are judged, and the share of runs is
counted in which

- "events": observed and expected events differ for everybody or for a group (the group table, adjusted),
- "harm": everybody or a group is called worse predicted than by no model (the same),
- "slope": the calibration slope differs from 1, allowing for the model's own estimation error (unadjusted),
- "by cause": incidences of a cause differ from those predicted (adjusted),
- "IBS gap", "gain gap", "Uno gap": the groups differ (unadjusted).

Further settings: whether `repair` changes a right model that it may not train ("repair"), and whether the interval of
the integrated Brier score misses the truth ("IBS interval"). Whole audits are in `false_verdicts`.

Results are written in parts of 25 runs, one JSON object per line. Started again with the same file, parts that are in
it are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.integrate import trapezoid
from scipy.stats import norm

from drosurv import AcceleratedFailureTime, CauseSpecificCox, CoxPH, DiscreteTimeHazard, Surv
from drosurv.curves import parse_survival
from drosurv.evaluation import Predictions
from drosurv.evaluation.by_cause import evaluate_by_cause, judged_by_cause
from drosurv.evaluation.evaluate import prepare
from drosurv.evaluation.evaluator import rows_of
from drosurv.evaluation.from_entry import predict_from_entry
from drosurv.evaluation.groups import group_table
from drosurv.metrics import FollowUp, brier_contributions, brier_weight_error
from drosurv.metrics.follow_up import brier_times
from drosurv.metrics.inference import Draws
from drosurv.observation import Inference, Rows
from drosurv.predictions import as_predictions
from drosurv.target import of_any_cause, parse_target
from experiments.studies import curve_types

TRAINED, JUDGED = 1_000, 600
REPLICATES = 99
LEVEL = 0.05
PART = 25
EFFECTS = np.array([0.7, -0.4])
# Rates of censoring in the two groups, where hazards are near 1.
CENSORING = {"same follow-up": (0.5, 0.5), "different follow-up": (0.2, 2.0)}
COARSE = np.array([0.25, 0.5, 1.0, 1.5, 2.0])


class Cohort(NamedTuple):
    """Patients: features, target, groups, and what else a model of their kind is given; rates of their hazards."""

    X: np.ndarray
    y: Any
    group: np.ndarray
    given: dict[str, np.ndarray]
    rate: np.ndarray


def cohort(rng: np.random.Generator, kind: str, rates: tuple[float, float], n: int) -> Cohort:
    """Draw patients whose cumulative hazard is rate * t^shape, with another shape in each stratum."""
    X, stratum, group = rng.normal(size=(n, 2)), rng.integers(2, size=n), rng.integers(2, size=n)
    rate, shape = np.exp(X @ EFFECTS), np.full(n, {"AFT": 1.5, "discrete time": 1.3}.get(kind, 1.0))
    if kind == "forest":
        # Four leaves.
        rate = np.array([0.4, 0.8, 1.5, 3.0])[2 * (X[:, 0] > 0) + (X[:, 1] > 0)]
    if kind == "strata":
        shape = np.where(stratum == 0, 0.6, 1.6)
    if kind == "coarse times":
        shape = np.full(n, 0.5)
    entry = rng.uniform(0, 0.6, n) if kind == "late entry" else np.zeros(n)
    # Times given no event before entry.
    event = ((rate * entry**shape + rng.exponential(size=n)) / rate) ** (1 / shape)
    other = rng.exponential(np.exp(-X[:, 0])) if kind == "causes" else np.full(n, np.inf)
    end = entry + rng.exponential(1 / np.asarray(rates)[group])
    if kind == "whole times":
        # Years of which each is a quarter of the unit of time.
        rate, event, end = rate / 4, np.ceil(4 * event), np.ceil(4 * end)
    last = np.minimum(np.minimum(event, other), end)
    cause = np.where(event == last, 1, np.where(other == last, 2, 0))
    y = Surv.competing(cause, last) if kind == "causes" else Surv.from_arrays(cause == 1, last)
    given = {"strata": {"strata": stratum}, "late entry": {"entry": entry}}.get(kind, {})
    return Cohort(X, y, group, given, rate)


def fitted(model: Any, train: Cohort, test: Cohort) -> Any:
    """A model fitted to the training patients."""
    return model().fit(train.X, train.y, **train.given)


def exact(
    times: np.ndarray | None, shape: float, curve_type: Any, score_type: Any, train: Cohort, test: Cohort
) -> Predictions:
    """The true survival of the judged patients, at all times of the training patients or at those given."""
    at = np.unique(train.y["time"]) if times is None else times
    hazard = test.rate[:, None] * at**shape
    # As random survival forests do, a score that is no log hazard sums the cumulative hazard over times.
    risk = np.log(test.rate) if score_type == "log hazard" else hazard.sum(axis=1)
    return Predictions(risk, np.exp(-hazard), at, curve_type=curve_type, score_type=score_type)


KINDS: dict[str, Callable[[Cohort, Cohort], Any]] = {
    "plain": partial(fitted, CoxPH),
    "strata": partial(fitted, CoxPH),
    "late entry": partial(fitted, CoxPH),
    "causes": partial(fitted, CauseSpecificCox),
    "AFT": partial(fitted, partial(AcceleratedFailureTime, "weibull")),
    "discrete time": partial(fitted, partial(DiscreteTimeHazard, 20, "cloglog")),
    "forest": partial(exact, None, 1.0, "smooth", "other"),
    "coarse times": partial(exact, COARSE, 0.5, "points", "log hazard"),
    "whole times": partial(exact, np.arange(1.0, 41.0), 1.0, "points", "log hazard"),
}
WANTED = ("integrated_brier_score", "likelihood_gain", "uno_concordance", "calibration_slope")
GAPS = {"integrated_brier_score": "IBS gap", "likelihood_gain": "gain gap", "uno_concordance": "Uno gap"}


def judged(kind: str, rates: tuple[float, float], seed: int) -> dict[str, bool]:
    """Judge a right model as `evaluate` and the audit do, by the metrics that decide something."""
    rng = np.random.default_rng(seed)
    train, test = (cohort(rng, kind, rates, n) for n in (TRAINED, JUDGED))
    model, y, y_train, X = KINDS[kind](train, test), test.y, None, test.X
    found = {}
    if kind == "causes":
        table = evaluate_by_cause(model, X, y, sensitive_features={"group": test.group})
        found["by cause"] = bool(judged_by_cause(table, 1 - LEVEL)["off"].any())
    if isinstance(model, Predictions):
        X, y_train = None, train.y
    elif test.given or kind == "causes":
        observed = Rows.parse(parse_target(of_any_cause(y)), **test.given)
        seen = predict_from_entry(as_predictions(model, X, len(y), rows=observed), y)
        model, y, y_train = seen.predictions, seen.y, seen.follow_up
    groups = {"group": test.group}
    predicted = as_predictions(model, X, len(y))
    evaluator = prepare(predicted, y, y_train=y_train, sensitive_features=groups, wanted=WANTED)
    inference = Inference(n_bootstrap=REPLICATES, random_state=seed, n_jobs=1)
    drawn = evaluator.draw(inference)
    p_values = evaluator.p_values(inference)
    table, _ = group_table(evaluator, {}, level=1 - LEVEL)
    found |= {name: bool((table["concern"] == what).any()) for name, what in CONCERNS.items()}
    slope = drawn.numbers["overall", "all", "calibration_slope"].interval(1 - LEVEL)
    error = slope.standard_error
    trained = evaluator.everyone.data.follow_up.training_events
    if trained is not None and kind not in EXACT:
        error *= np.sqrt(1 + evaluator.everyone.target.n_events / trained)
    found["slope"] = bool(2 * norm.sf(abs(slope.estimate - 1) / error) < LEVEL)
    for row in rows_of(evaluator, drawn, p_values, set(), 1 - LEVEL):
        if row.kind == "gap" and row.metric in GAPS:
            found[GAPS[row.metric]] = row.p_value < LEVEL
    return found


CONCERNS = {"events": "calibration", "harm": "worse than no model"}
EXACT = ("forest", "coarse times", "whole times")


def repaired(case: str, seed: int) -> dict[str, bool]:
    """Whether a right model was changed by a repair that may not train it."""
    return {"changed": bool(curve_types.changed(case, seed)["changed"])}


def interval(rate: float, seed: int) -> dict[str, bool]:
    """Whether the 95 % interval of the integrated Brier score of the true model misses the truth."""
    rng, n = np.random.default_rng(seed), TRAINED

    def patients() -> tuple[np.ndarray, Any]:
        x = rng.normal(scale=0.7, size=n)
        event, end = rng.exponential(np.exp(-x)), rng.exponential(1 / rate, n)
        return x, Surv.from_arrays(event <= end, np.minimum(event, end))

    (_, train), (x, y) = patients(), patients()
    follow_up = FollowUp.parse(train)
    at = brier_times(follow_up, parse_target(y))
    curves = parse_survival(np.exp(-np.exp(x)[:, None] * at), n, at)
    many = np.exp(-np.exp(np.random.default_rng(0).normal(scale=0.7, size=20_000))[:, None] * at)
    truth = trapezoid((many * (1 - many)).mean(axis=0), at) / (at[-1] - at[0])
    values = brier_contributions(follow_up, y, curves, at)
    replicates = rng.multinomial(n, np.full(n, 1 / n), size=300) @ values / n
    missed = {}
    for name, error in (
        ("patients alone", 0.0),
        ("and weights", brier_weight_error(follow_up, y, curves, at)),
    ):
        found = Draws(values.mean(), replicates, further_error=error).interval(1 - LEVEL)
        missed[name] = not found.low <= truth <= found.high
    return missed


SETTINGS: dict[str, Callable[[int], dict[str, bool]]] = {
    **{
        f"{kind}, {name}": partial(judged, kind, rates) for kind in KINDS for name, rates in CENSORING.items()
    },
    **{f"repair, {case}": partial(repaired, case) for case in curve_types.CASES},
    **{f"IBS interval, censoring {rate:g}": partial(interval, rate) for rate in (0.3, 0.5)},
}


def part_of(setting: str, first: int, runs: int) -> dict[str, Any]:
    """Count false alarms of one setting over seeds from the first on."""
    begun = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        rows = [SETTINGS[setting](seed) for seed in range(first, first + runs)]
    alarms = {name: sum(row[name] for row in rows) for name in rows[0]}
    seconds = time.process_time() - begun
    return {"setting": setting, "first": first, "runs": runs, "alarms": alarms, "seconds": round(seconds, 1)}


def summarized(parts: list[dict[str, Any]]) -> pd.DataFrame:
    """Percent of runs with a false alarm, one row per setting."""
    rows = []
    for setting in SETTINGS:
        own = [part for part in parts if part["setting"] == setting]
        runs = sum(part["runs"] for part in own)
        if runs:
            counts = pd.DataFrame([part["alarms"] for part in own]).sum()
            seconds = sum(part["seconds"] for part in own)
            rows.append(
                {"setting": setting, "runs": runs, **(100 * counts / runs).round(1), "seconds": seconds}
            )
    return pd.DataFrame(rows).set_index("setting")


def main() -> None:
    """Run what is not in the file yet, and print the rates."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.studies.false_alarms",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runs", type=int, default=500, help="runs of each setting")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    parser.add_argument("--settings", nargs="*", default=[], help="only those that begin with one of these")
    parser.add_argument("-o", "--output", type=Path, default=Path("false_alarms.jsonl"))
    options = parser.parse_args()
    parts = []
    if options.output.exists():
        parts = [json.loads(line) for line in options.output.read_text().splitlines()]
    known = {(part["setting"], part["first"], part["runs"]) for part in parts}
    chosen = [name for name in SETTINGS if name.startswith(tuple(options.settings) or "")]
    end = options.seed + options.runs
    # Seeds in the outer loop, so that whatever is finished has about as many runs of every setting.
    units = [
        (name, first, min(PART, end - first)) for first in range(options.seed, end, PART) for name in chosen
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(part_of, *unit) for unit in units if unit not in known]
        for done in as_completed(waiting):
            parts.append(done.result())
            with options.output.open("a") as file:
                file.write(json.dumps(parts[-1]) + "\n")
    print(summarized(parts).to_string(na_rep=""))
    print(f"{sum(part['seconds'] for part in parts) / 60:.0f} core-minutes")


if __name__ == "__main__":
    main()
