"""How often shown intervals hold the truth: ``python -m experiments.studies.coverage --jobs 16``.

- "table": of the Cox table. Exponential times with known log hazard ratios, a third of the patients censored. Plain
  Cox's truth is what was simulated. A robust model's truth is its own coefficient in a population, taken from one fit
  to very many patients.
- "metrics": all intervals that `evaluate` shows, of everybody and of two groups, with 80, 200 and 600 patients: see
  `DESIGNS`. The truth is the mean over populations of 20,000 patients. The groups do not differ, so that a gap between
  them should be significant in 5 % of the samples.
- "tests": of the tests of the same patients, which need no bootstrap: gain, observed over expected events, calibration
  slope.
- "fresh": the same in settings in which no constant of the tests was chosen: other numbers of patients, hazards, shares
  of events, ties, censoring, and two or six rows of each patient as clusters.
"""

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm

from drosurv import CoxPH, DROCox, Surv, evaluate
from drosurv.judging.from_predictions import judged_patients
from drosurv.judging.residual_tests import level, mean
from drosurv.judging.residual_tests import slope as slope_of
from drosurv.metrics.decisions import DECISION_METRICS, implied_decisions
from drosurv.metrics.risk_strata import followed_until
from drosurv.patients.observation import Rows
from drosurv.patients.target import parse_target
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


# Mean censoring times, spread of the predictions over the true one, and whether only whole years are known.
SETTINGS = {
    "right, 55 % events": (1.0, 1.0, False),
    "right, 30 % events": (0.35, 1.0, False),
    "right, 13 % events": (0.12, 1.0, False),
    "right, whole years": (1.0, 1.0, True),
    "spread 1.3, 55 % events": (1.0, 1.3, False),
    "spread 1.3, 13 % events": (0.12, 1.3, False),
    "spread 1.3, whole years": (1.0, 1.3, True),
    "spread 0.6, 55 % events": (1.0, 0.6, False),
    "spread 0.6, 13 % events": (0.12, 0.6, False),
}


@dataclass(frozen=True)
class Fresh:
    """Patients of a setting: Weibull or log-logistic times of a shape, in whole units, with rows as clusters."""

    n: int
    shape: float = 1.0
    log_logistic: bool = False
    until: float = 2.0
    effect: float = 1.0
    spread: float = 1.0
    unit: float = 0.0
    rows: int = 1


FRESH = {
    "right, 150 patients, 60 % events": Fresh(150),
    "right, 700, 75 % events": Fresh(700, until=4.0),
    "right, 700, 8 % events": Fresh(700, until=0.16),
    "right, 300, falling hazard": Fresh(300, shape=0.5),
    "right, 300, rising hazard, 20 % events": Fresh(300, shape=2.5, until=1.0),
    "right, 300, log-logistic": Fresh(300, shape=2.0, log_logistic=True),
    "right, 500, four times": Fresh(500, unit=0.5),
    "right, 500, two times": Fresh(500, unit=1.0),
    "right, 150 x 2 rows": Fresh(150, rows=2),
    "right, 80 x 6 rows": Fresh(80, rows=6),
    "one right curve, 300": Fresh(300, effect=0.0),
    "one right curve, 300, 10 % events": Fresh(300, until=0.2, effect=0.0),
    "one right curve, 500, four times": Fresh(500, unit=0.5, effect=0.0),
    "one right curve, 80 x 6 rows": Fresh(80, effect=0.0, rows=6),
    "spread 1.5, 300": Fresh(300, spread=1.5),
    "spread 1.5, 700, 8 % events": Fresh(700, until=0.16, spread=1.5),
    "spread 0.4, 300": Fresh(300, spread=0.4),
    "spread 0.4, 300, log-logistic": Fresh(300, shape=2.0, log_logistic=True, spread=0.4),
    "spread 0.4, 500, four times": Fresh(500, unit=0.5, spread=0.4),
    "spread 0.4, 150 x 2 rows": Fresh(150, spread=0.4, rows=2),
}
# Populations of 20,000 patients whose mean is the truth.
POPULATIONS = 20


def predicted(setting, n, seed):
    """Predictions, outcomes and groups of n patients."""
    censoring, spread, years = SETTINGS[setting]
    rng = np.random.default_rng([seed, n])
    eta, group = 0.8 * rng.normal(size=n), rng.random(n) < 0.3
    time, left = rng.exponential(np.exp(-eta)), rng.exponential(censoring, n)
    # Close together, so that curves are known throughout.
    at = -np.log1p(-np.linspace(0.002, 0.9, 400)) * (1.5 if censoring > 0.2 else 0.2)
    if years:
        # A mean time is five years. An event in a year is known at its end; patients leave at the ends of years.
        time, left, at = np.ceil(5 * time) / 5, np.ceil(5 * left) / 5, np.arange(1, 16) / 5
    y = Surv.from_arrays(time <= left, np.minimum(time, left))
    return Predictions(spread * eta, np.exp(-np.exp(spread * eta)[:, None] * at), at), y, group


def fresh_patients(of, n, seed):
    """Return what `predicted` does, and the clusters of the rows; censoring is uniform."""
    rng = np.random.default_rng([seed, n, 1])
    eta, group = of.effect * rng.uniform(-1.4, 1.4, n), rng.random(n) < 0.4
    odds = rng.exponential(size=n) if not of.log_logistic else 1 / rng.random(n) - 1
    time = (odds / np.exp(eta)) ** (1 / of.shape)
    left = of.until * rng.uniform(0.1, 1, n)
    at = of.until * (np.arange(400) + 1) / 400
    if of.unit:
        time, left = (np.ceil(one / of.unit) * of.unit for one in (time, left))
        at = np.arange(1, round(of.until / of.unit) + 1) * of.unit
    powers = np.exp(of.spread * eta)[:, None] * at**of.shape
    survival = 1 / (1 + powers) if of.log_logistic else np.exp(-powers)
    i = np.repeat(np.arange(n), of.rows)
    y = Surv.from_arrays(time <= left, np.minimum(time, left))
    return Predictions(survival=survival[i], times=at), y[i], group[i], i if of.rows > 1 else None


@dataclass(frozen=True)
class Design:
    """How patients of the study of metrics are drawn: means of censoring times, and what is special about them.

    Predictions have `spread` times the true spread. `unit` is the time to which times are rounded up, `depends` the
    effect of the risk on the hazard of censoring, `cluster` the number of patients who share a factor of the hazard.
    Patients who enter `late` do so at a random time. With `causes`, a second cause has half of the hazard. At the
    `horizon`, at least a tenth of the patients is at risk, as at the default one.
    """

    censoring: float = 1.0
    spread: float = 1.0
    unit: float = 0.0
    depends: float = 0.0
    cluster: int = 1
    late: bool = False
    causes: bool = False
    horizon: float = 0.6
    threshold: float = 0.4


DESIGNS = {
    "plain": Design(),
    "spread 0.6": Design(spread=0.6),
    "spread 1.3": Design(spread=1.3),
    "tied": Design(unit=0.2),
    "two thirds censored": Design(censoring=0.5),
    "13 % events": Design(censoring=0.15, horizon=0.2, threshold=0.2),
    "dependent censoring": Design(depends=1.0),
    "clusters": Design(cluster=4),
    "late entry": Design(late=True),
    "two causes": Design(causes=True),
}
SIZES = (80, 200, 600)


def drawn(of, n, seed):
    """Predictions, outcomes, groups and the judged cause of n patients of a design."""
    rng = np.random.default_rng([seed, n, 2])
    # More than needed: some have the event before they enter.
    m = 3 * n if of.late else n
    eta, shared = 0.8 * rng.normal(size=m), np.ones(m)
    if of.cluster > 1:
        clusters = np.arange(m) // of.cluster
        shared = rng.gamma(4.0, 0.25, clusters.max() + 1)[clusters]
        eta = 0.4 * rng.normal(size=clusters.max() + 1)[clusters] + 0.7 * eta
    time = rng.exponential(1 / (shared * np.exp(eta)))
    other = rng.exponential(2.0, m) if of.causes else np.full(m, np.inf)
    left = rng.exponential(of.censoring * np.exp(-of.depends * eta))
    cause = np.where(time <= other, 1, 2)
    time = np.minimum(time, other)
    if of.unit:
        time, left = (np.ceil(one / of.unit) * of.unit for one in (time, left))
    seen = np.minimum(time, left)
    cause = np.where(time <= left, cause, 0)
    fields = {}
    entry = np.where(rng.random(m) < 0.5, rng.uniform(0, 0.5, m), 0.0) if of.late else np.zeros(m)
    some = np.flatnonzero(seen > entry)[:n]
    if of.late:
        fields["entry"] = entry[some]
    if of.cluster > 1:
        fields["clusters"] = clusters[some]
    at = of.unit * np.arange(1, 16) if of.unit else -np.log1p(-np.linspace(0.002, 0.95, 400))
    hazard = np.exp(of.spread * eta[some])[:, None]
    group = rng.random(n) < 0.4
    if of.causes:
        # Constant hazards: the incidence of a cause is its share of all events.
        total = hazard + 0.5
        any_event = -np.expm1(-total * at)
        incidence = {1: hazard / total * any_event, 2: 0.5 / total * any_event}
        y = Surv.competing(cause[some], seen[some], **fields)
        return Predictions(incidence=incidence, times=at), y, group, 1
    y = Surv.from_arrays(cause[some] == 1, seen[some], **fields)
    return Predictions(of.spread * eta[some], np.exp(-hazard * at), at), y, group, None


def evaluated(of, n, seed):
    """Values with intervals of one sample, by metric and group, and p-values of gaps.

    Intervals are not adjusted, but those of the calibration slope and the gain, which are for all tests.
    """
    given, y, group, cause = drawn(of, n, seed)
    with warnings.catch_warnings(action="ignore"):
        result = evaluate(
            given,
            None,
            y,
            sensitive_features={"group": group},
            horizon=of.horizon,
            threshold=of.threshold,
            cause=cause,
            relevance=1.0,
        )
    found = {}
    for row in result.rows:
        if row.kind == "gap":
            found[row.metric, "gap"] = (row.value, row.p, row.p)
        elif not row.adjusted:
            # The log partial likelihood falls with the logarithm of the number of patients.
            added = np.log(len(y)) if row.metric == "log_partial_likelihood" else 0.0
            values = (row.value + added, row.low + added, row.high + added)
            found[row.metric, str(row.group or "all")] = values
    for row in result.times.itertuples():
        if abs(row.time - of.horizon) < 1e-9:
            # Of the patients who are judged: a population leaves out others.
            values = np.array([row.observed, row.low, row.high]) - row.predicted
            found["observed less predicted risk", row.group] = tuple(values)
    followed = decisions_of_followed(of, given, y, group) if of.depends else {}
    for row in result.decisions.itertuples():
        # The interval of a net benefit is the band of its curve: see `curve_bands`.
        if row.metric == "net_benefit":
            continue
        values = np.array([row.value, row.low, row.high])
        if row.group == "gap":
            # Below 5 % where the difference is significant.
            values[1:] = np.where(np.isnan(row.low), np.nan, row.low <= 0)
        elif of.depends:
            values -= followed[row.group][row.metric]
        found[row.metric, row.group] = tuple(values)
    return found


def decisions_of_followed(of, given, y, group):
    """True values of decisions by group where high risks may be left out because they are censored early.

    Predictions are right, and normal log hazard ratios have a standard deviation of 0.8.
    """
    risk, every = (
        -np.expm1(-of.horizon * np.exp(eta))
        for eta in (given.risk, 0.8 * norm.ppf((np.arange(100_000) + 0.5) / 100_000))
    )
    found = {}
    for name, own in {"all": np.ones(len(y), bool), "True": group, "False": ~group}.items():
        followed = followed_until(of.horizon, parse_target(y[own]), risk[own])
        below = every[every <= risk[own][followed].max(initial=0.0)]
        found[name] = implied_decisions(below, of.threshold, np.ones(len(below)))
    return found


def truth_of_metrics(of, seed):
    """Values of a population of 20,000 patients; those of decisions are of patients who are not censored."""
    values = evaluated(of, 20_000, seed)
    if of.depends:
        return values
    known = evaluated(replace(of, censoring=1e9), 20_000, seed)
    return values | {key: one for key, one in known.items() if key[0] in DECISION_METRICS}


def metrics_study(given):
    """Print coverage of all intervals in every design, and return the rows."""
    rows = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for name, of in DESIGNS.items():
            many = list(pool.map(partial(truth_of_metrics, of), range(10**6, 10**6 + POPULATIONS)))
            for n in SIZES:
                runs = list(pool.map(partial(evaluated, of, n), range(given.samples), chunksize=20))
                for key, (_, low, _) in many[0].items():
                    samples = np.array([run[key] for run in runs if key in run])
                    known = np.isfinite(samples[:, 1]) if len(samples) else np.zeros(0, bool)
                    if not np.isfinite(low) or known.mean() < 0.5:
                        continue
                    low, high = samples[known, 1:].T
                    true = float(np.nanmean([one[key][0] for one in many if key in one]))
                    share = (
                        np.mean(low < 0.05) if key[1] == "gap" else np.mean((low <= true) & (true <= high))
                    )
                    rows.append((name, n, *key, true, 100 * share, int(known.sum())))
                    print(", ".join(map(str, rows[-1])), flush=True)
    return pd.DataFrame(
        rows, columns=["design", "patients", "metric", "group", "truth", "percent", "samples"]
    )


def ranges(table):
    """Return the lowest and highest percentage over designs and groups, for each metric and number of patients."""
    called = table["metric"] + np.where(table["group"] == "gap", ", gap", "")
    found = table.groupby([called.rename("interval"), "patients"])["percent"].agg(["min", "max"])
    text = [f"{low:.1f} to {high:.1f}" for low, high in found.to_numpy()]
    wide = found.assign(text=text).reset_index().pivot_table("text", "interval", "patients", aggfunc="first")
    wide = wide.rename(columns="{} patients".format)
    return wide.loc[sorted(wide.index, key=lambda name: (name.endswith(", gap"), name))].reset_index()


def tested(setting, n, seed):
    """Return what `evaluated` does, of numbers whose interval inverts a test."""
    clusters = None
    if setting in FRESH:
        given, y, group, clusters = fresh_patients(FRESH[setting], n, seed)
    else:
        given, y, group = predicted(setting, n, seed)
    n = len(y)
    with warnings.catch_warnings(action="ignore"):
        judged = judged_patients(as_predictions(given, None, n), y, Rows(clusters=clusters))
    found = {}
    for name, mask in (("all", np.ones(n, bool)), ("True", group), ("False", ~group)):
        values = {
            "gain": mean(judged.gains, mask, clusters, judged.own_curve),
            "observed / expected": level(judged.residuals.sums(mask * 1.0)),
            "calibration slope": slope_of(
                judged.at_horizon if judged.few_times else judged.residuals, judged.score, mask
            ),
        }
        known = {key: value for key, value in values.items() if value is not None}
        found |= {(key, name): (value.value, *value.interval(0.05)) for key, value in known.items()}
    return found


def shown(setting, of, given):
    """Print the shares of intervals that hold the truth."""
    with ProcessPoolExecutor(given.jobs) as pool:
        many = list(pool.map(partial(of, setting, 20_000), range(10**6, 10**6 + POPULATIONS)))
        true = {key: float(np.mean([one[key][0] for one in many])) for key in many[0]}
        n = FRESH[setting].n if setting in FRESH else given.n
        runs = list(pool.map(partial(of, setting, n), range(given.samples)))
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
    parser.add_argument("--output", type=Path, help="file for the table of metrics")
    parser.add_argument("--ranges", type=Path, help="file for the lowest and highest coverage of each metric")
    kinds = ("table", "metrics", "tests", "fresh")
    parser.add_argument("--what", nargs="*", choices=kinds, default=kinds)
    given = parser.parse_args()
    noise = 1.96 * np.sqrt(given.level * (1 - given.level) / given.samples)
    print(f"{given.samples} samples; chance moves a share by {100 * noise:.1f} points.")
    if "metrics" in given.what:
        table = metrics_study(given)
        if given.output is not None:
            table.round(3).to_csv(given.output, index=False)
        if given.ranges is not None:
            ranges(table).to_csv(given.ranges, index=False)
    for name, of, settings in (
        ("tests", tested, SETTINGS),
        ("fresh", tested, FRESH),
    ):
        for setting in settings if name in given.what else ():
            shown(setting, of, given)
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
