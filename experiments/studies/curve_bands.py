"""How often bands hold the whole curve of a model: ``python -m experiments.studies.curve_bands --runs 1000``.

Where predictions are right, the curve of calibration is the diagonal; with ``--spread`` other than 1 or ``--shift``
other than 0 they are wrong, and only net benefit is judged. Censoring depends on the risk and the group, or
there is none. Exponential times, log-logistic ones, and whole years.
"""

import argparse
import itertools
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from drosurv.evaluation.calibration_curves import calibration_curves
from drosurv.evaluation.curves_by_group import decision_curves
from drosurv.judging.few_times import cloglog
from drosurv.metrics.risk_strata import ObservedRisk
from drosurv.patients.target import Target

SIZES, RATES, TRUTHS = (200, 500, 1000, 3000), (0.1, 0.4), ("exponential", "log-logistic", "whole years")
THRESHOLDS = np.arange(1, 15) / 20
MANY = 1_000_000
ALL = ("overall", "all")


def patients(n, rate, truth, censored, rng):
    """Risks by time 2, groups and outcomes of n patients."""
    x, group = rng.normal(size=n), rng.random(n) < 0.3
    scale = rate * np.exp(0.8 * x + 0.3 * group) / 2
    u = rng.random(n)
    if truth == "log-logistic":
        time, risk = np.sqrt(u / (1 - u) / scale), scale * 4 / (1 + scale * 4)
    else:
        time, risk = -np.log(u) / scale, 1 - np.exp(-2 * scale)
    left = rng.exponential(3 * np.exp(0.4 * group - 0.4 * x)) if censored else np.full(n, np.inf)
    if truth == "whole years":
        # An event in a year is known at its end; patients leave at the ends of years.
        time, left = np.ceil(time), np.ceil(left)
    return risk, group, Target(time <= left, np.minimum(time, left))


def predicted(risk, rate, wrong):
    """Return risks whose log cumulative hazards have another spread and level."""
    spread, shift = wrong
    middle = np.log(rate)
    return -np.expm1(-np.exp(middle + shift + spread * (cloglog(risk) - middle)))


def true_values(rate, truth, wrong):
    """Net benefit at the thresholds, from many patients."""
    risk = patients(MANY, rate, truth, False, np.random.default_rng(12345))[0]
    given = predicted(risk, rate, wrong)
    at_least = [given >= t for t in THRESHOLDS]
    odds = THRESHOLDS / (1 - THRESHOLDS)
    benefit = [
        (risk[own].sum() * (1 + w) - own.sum() * w) / MANY for own, w in zip(at_least, odds, strict=True)
    ]
    return np.array(benefit)


def covered(case):
    """Whether the bands of everybody and of a group hold the truth on one sample; nan where there is no spline."""
    n, rate, truth, censored, wrong, benefit, seed = case
    risk, group, target = patients(n, rate, truth, censored, np.random.default_rng(seed))
    given = predicted(risk, rate, wrong)
    rows = {ALL: np.arange(n), ("group", "1"): np.flatnonzero(group)}
    outcomes = {key: ObservedRisk.of(target, given, 2.0, rows=own) for key, own in rows.items()}
    curve = decision_curves({ALL: outcomes[ALL]}, THRESHOLDS)
    # Where no patient is above the threshold, the benefit is 0 and has no band.
    outside = (benefit < curve["low"]) | (curve["high"] < benefit)
    held = float(not outside.any())
    if wrong != (1.0, 0.0):
        return [*[np.nan] * 4, held]
    found = calibration_curves(outcomes)
    numbers = found.numbers.iloc[0]
    inside = []
    for who in rows:
        points = found.points[(found.points["attribute"] == who[0]) & (found.points["group"] == who[1])]
        near = ((points["low"] <= points["predicted"]) & (points["predicted"] <= points["high"])).all()
        inside.append(float(near) if points["kind"].iloc[0] == "spline" else np.nan)
    inside += [
        float(numbers[f"{key}_low"] <= 1 <= numbers[f"{key}_high"]) if numbers[key] >= 0 else np.nan
        for key in ("ratio", "slope")
    ]
    return [*inside, held]


def main():
    """Print a table of coverages in per cent."""
    parser = argparse.ArgumentParser(prog="python -m experiments.studies.curve_bands", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--truth", nargs="*", choices=TRUTHS, default=TRUTHS)
    parser.add_argument("--censored", nargs="*", choices=("no", "yes"), default=("no", "yes"))
    parser.add_argument("--n", nargs="*", type=int, default=SIZES)
    parser.add_argument("--rate", nargs="*", type=float, default=RATES)
    parser.add_argument("--spread", type=float, default=1.0)
    parser.add_argument("--shift", type=float, default=0.0)
    given = parser.parse_args()
    wrong = (given.spread, given.shift)
    seeds = range(given.first_seed, given.first_seed + given.runs)
    chance = 196 * np.sqrt(0.0475 / given.runs)
    print(f"{given.runs} runs; chance moves a coverage of 95 % by {chance:.1f}.")
    print("| truth | censored | patients | rate | curve | curve of a group | O/E | slope | net benefit |")
    print("|---|---|---|---|---|---|---|---|---|")
    true = {}
    with ProcessPoolExecutor(given.jobs) as pool:
        for truth, censored, n, rate in itertools.product(given.truth, given.censored, given.n, given.rate):
            if (rate, truth) not in true:
                true[rate, truth] = true_values(rate, truth, wrong)
            cases = [(n, rate, truth, censored == "yes", wrong, true[rate, truth], seed) for seed in seeds]
            held = np.array(list(pool.map(covered, cases, chunksize=10)))
            known = np.isfinite(held).sum(axis=0)
            shares = np.where(
                known > 0.5 * given.runs, np.nansum(held, axis=0) / np.maximum(known, 1), np.nan
            )
            cells = " | ".join("-" if np.isnan(share) else f"{100 * share:.1f}" for share in shares)
            print(f"| {truth} | {censored} | {n:,} | {rate} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
