"""How often an exactly right model is called wrong: gaps between groups, calibration, and coverage of intervals.

python -m experiments.studies.false_alarms gaps        # groups with different follow-up
python -m experiments.studies.false_alarms evaluated   # the same gaps and the sentences of evaluate
python -m experiments.studies.false_alarms fitted      # calibration of Cox models fitted to as many patients
python -m experiments.studies.false_alarms coverage    # intervals of the integrated Brier score
"""

import argparse
import warnings

import numpy as np
import pandas as pd

from drosurv import CauseSpecificCox, CoxPH, evaluate
from drosurv.evaluation import Predictions
from drosurv.groups import parse_groups
from drosurv.metrics import (
    FollowUp,
    GroupFollowUp,
    brier_contributions,
    brier_weight_error,
    calibration_slope_interval,
    likelihood_gains,
    observed_over_expected,
)
from drosurv.metrics.follow_up import brier_times
from drosurv.metrics.inference import (
    Draws,
    bootstrap,
    largest_difference,
    permutation_test,
    studentized_ratio,
)
from drosurv.metrics.pair_order import PairOrder
from drosurv.target import Surv, parse_target

LEVEL = 0.05


class Exponential:
    """Curves of the true model with hazards exp(x)."""

    jumps = None
    curve_type = "smooth"

    def __init__(self, x):
        self.x = x

    def __len__(self):
        return len(self.x)

    def at(self, times):
        return np.exp(-np.asarray(times) * np.exp(self.x)[:, None])

    def at_own(self, times):
        return np.exp(-times * np.exp(self.x))

    def take(self, rows):
        return Exponential(self.x[rows])


def patients(rng, n, rates):
    """Score, target and group of patients whose hazard is exp(x), censored at the rate of their group."""
    x, group = rng.normal(scale=0.7, size=n), rng.integers(len(rates), size=n)
    time, censored = rng.exponential(np.exp(-x)), rng.exponential(1 / np.asarray(rates)[group])
    return x, Surv.from_arrays(time <= censored, np.minimum(time, censored)), group


def p_of_mean(values, groups, seed):
    """Studentized permutation test that groups have the same mean."""
    return permutation_test(
        studentized_ratio(values, 1.0), groups, permutations=199, random_state=seed
    ).p_value


def p_of_concordance(target, risk, weights, groups, seed):
    """Bootstrap test that groups have the same concordance with squared inverse probability weights (n,)."""
    parts = [np.flatnonzero(groups.codes == k) for k in range(len(groups))]
    orders = [PairOrder.for_harrell(target.take(rows), risk[rows]) for rows in parts]

    def values(weight):
        return [
            order.concordance(weight[rows], weights[rows] ** 2)
            for order, rows in zip(orders, parts, strict=True)
        ]

    draws = bootstrap(values, len(target), replicates=199, random_state=seed, threads=1)
    return largest_difference(draws.estimate, draws.draws).p_value


def gaps(seed, n, rates):
    """p-values of gaps of the true model between groups that differ in follow-up only."""
    rng = np.random.default_rng(seed)
    _, train, _ = patients(rng, n, rates)
    x, y, group = patients(rng, n, rates)
    target, groups, curves = parse_target(y), parse_groups(group), Exponential(x)
    follow_up, by_group = FollowUp.parse(train), GroupFollowUp.parse(target, group)
    found = {}
    for name, labels, weight in (
        ("one distribution", None, follow_up.inverse_probability(target)),
        ("by group", group, by_group.inverse_probability(target)),
    ):
        brier = brier_contributions(follow_up, y, curves, groups=labels)
        gain = likelihood_gains(follow_up, y, curves, groups=labels)
        found[name, "IBS"] = p_of_mean(brier, groups, seed)
        found[name, "gain"] = p_of_mean(gain, groups, seed)
        found[name, "Uno's C"] = p_of_concordance(target, x, weight, groups, seed)
    return found


def run_gaps(runs, n):
    """Share of runs in which a gap is called significant."""
    rows = []
    for rates in ((0.2, 2.0), (0.5, 0.5)):
        found = pd.DataFrame([gaps(seed, n, rates) for seed in range(runs)])
        share = (found < LEVEL).mean()
        share.index = pd.MultiIndex.from_tuples(share.index, names=["censoring weights", "gap"])
        table = share.rename("share").reset_index().pivot_table("share", "censoring weights", "gap")
        rows.append(table.assign(rates=str(rates)))
    return pd.concat(rows)


GAPS = ("integrated_brier_score", "likelihood_gain", "uno_concordance")


def evaluated(seed, n, rates):
    """Whether an evaluation of the true model calls a gap significant, a group worst served, or predictions wrong."""
    rng = np.random.default_rng(seed)
    _, train, _ = patients(rng, n, rates)
    x, y, group = patients(rng, n, rates)
    times = np.linspace(0, y["time"].max(), 400)
    model = Predictions(x, Exponential(x).at(times), times)
    with warnings.catch_warnings(action="ignore"):
        result = evaluate(
            model, None, y, y_train=train, sensitive_features={"group": group}, n_bootstrap=100, threads=1
        )
    table = result.table.query("kind == 'gap'").set_index("metric")["p_value"]
    text = result.summary()
    found = {name: table[name] < LEVEL for name in GAPS}
    worst = "served worst" in text or "more than chance" in text
    return {**found, "worst served": worst, "a concern": bool((result.groups["concern"] != "").any())}


def run_evaluated(runs, n):
    """Share of evaluations of the true model with a false statement."""
    settings = ((0.2, 2.0), (0.5, 0.5))
    return pd.DataFrame(
        {str(rates): pd.DataFrame([evaluated(k, n, rates) for k in range(runs)]).mean() for rates in settings}
    ).T.rename_axis("censoring rates")


KINDS = ("plain", "strata", "entry", "cause")


def cohort(rng, kind, n):
    """Two columns, the target, and what else a model of the kind is given; hazards are proportional within strata."""
    X, stratum = rng.normal(size=(n, 2)), rng.integers(2, size=n)
    rate = np.exp(X @ [0.7, -0.4])
    shape = np.where(stratum == 0, 0.6, 1.6) if kind == "strata" else np.ones(n)
    entry = rng.uniform(0, 0.6, n) if kind == "entry" else np.zeros(n)
    time = ((rate * entry**shape + rng.exponential(size=n)) / rate) ** (1 / shape)
    end = entry + rng.exponential(2.0, size=n)
    other = rng.exponential(np.exp(-X[:, 0])) if kind == "cause" else np.full(n, np.inf)
    last = np.minimum(np.minimum(time, other), end)
    cause = np.where(time == last, 1, np.where(other == last, 2, 0))
    given = {"strata": {"strata": stratum}, "entry": {"entry": entry}}.get(kind, {})
    y = Surv.competing(cause, last) if kind == "cause" else Surv.from_arrays(cause == 1, last)
    return X, y, given


def hazards(model, X, time, given):
    """Predicted cumulative hazard of each patient from entry to the own time, and its log at one horizon."""
    strata = {name: value for name, value in given.items() if name == "strata"}
    entry = given.get("entry", np.zeros(len(X)))
    curves = model.predict_cumulative_hazard_function(X, return_array=True, **strata)
    steps, heights = np.asarray(model.unique_times_), np.column_stack([np.zeros(len(X)), np.asarray(curves)])
    rows = np.arange(len(X))

    def at(t):
        return heights[rows, np.searchsorted(steps, t, side="right")]

    return at(time) - at(entry), np.log(np.maximum(at(np.full(len(X), 1.0)), 1e-9))


def fitted(seed, kind, n):
    """p-values that a fitted Cox model of the right kind is calibrated: given, and with the error of its estimates."""
    rng = np.random.default_rng(seed)
    X, y, given = cohort(rng, kind, n)
    # Of the causes, the first is judged.
    model = CauseSpecificCox().fit(X, y).models_[0] if kind == "cause" else CoxPH().fit(X, y, **given)
    events = int((y["cause"] == 1).sum() if kind == "cause" else y["event"].sum())
    X, y, given = cohort(rng, kind, n)
    seen = (y["cause"] == 1 if kind == "cause" else y["event"]).astype(float)
    expected, log_risk = hazards(model, X, y["time"], given)
    found = {}
    for name, training in (("model as given", None), ("with its error", events)):
        told = {"training_events": training}
        found[name, "slope of curves"] = calibration_slope_interval(
            events=seen, expected=expected, log_risk=log_risk, **told
        ).p_value
        # Log hazards are judged without the model's baseline hazard, within strata and from entry on.
        found[name, "Cox slope"] = calibration_slope_interval(
            Surv.from_arrays(seen, y["time"]), model.predict(X), **given, **told
        ).p_value
        found[name, "observed/expected"] = observed_over_expected(seen.sum(), expected.sum(), **told).p_value
    return found


def run_fitted(runs, n):
    """Share of runs in which a fitted, rightly specified model is called wrong."""
    rows = []
    for kind in KINDS:
        found = pd.DataFrame([fitted(seed, kind, n) for seed in range(runs)])
        rows.append((found < LEVEL).mean().rename(kind))
    return pd.DataFrame(rows)


def covered(seed, n, rate):
    """Whether intervals of the integrated Brier score contain the truth, without and with the error of the weights."""
    rng = np.random.default_rng(seed)
    _, train, _ = patients(rng, n, (rate,))
    x, y, _ = patients(rng, n, (rate,))
    follow_up, curves = FollowUp.parse(train), Exponential(x)
    at = brier_times(follow_up, parse_target(y))
    survival = Exponential(np.random.default_rng(0).normal(scale=0.7, size=20_000)).at(at)
    truth = np.trapezoid((survival * (1 - survival)).mean(axis=0), at) / (at[-1] - at[0])
    values = brier_contributions(follow_up, y, curves)
    draws = Draws(values.mean(), rng.multinomial(n, np.full(n, 1 / n), size=300) @ values / n)
    both = draws, draws._replace(error=brier_weight_error(follow_up, y, curves))
    ends = [one.interval(1 - LEVEL) for one in both]
    return dict(zip(("before", "after"), (end.low <= truth <= end.high for end in ends), strict=True))


def run_coverage(runs, n):
    """Share of intervals that contain the truth."""
    rates = (0.3, 0.5)
    found = {rate: pd.DataFrame([covered(seed, n, rate) for seed in range(runs)]).mean() for rate in rates}
    return pd.DataFrame(found).T.rename_axis("censoring rate")


def main():
    """Print one of the tables."""
    parser = argparse.ArgumentParser(prog="python -m experiments.studies.false_alarms", description=__doc__)
    parser.add_argument("what", choices=("gaps", "evaluated", "fitted", "coverage"))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--patients", type=int, default=1000)
    given = parser.parse_args()
    run = {
        "gaps": run_gaps,
        "evaluated": run_evaluated,
        "fitted": run_fitted,
        "coverage": run_coverage,
    }[given.what]
    print(run(given.runs, given.patients).round(3).to_string())


if __name__ == "__main__":
    main()
