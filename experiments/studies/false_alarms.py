"""How often an exactly right model is called wrong: gaps between groups, calibration, and coverage of intervals.

python -m experiments.studies.false_alarms gaps        # groups with different follow-up
"""

import argparse

import numpy as np
import pandas as pd

from drosurv.groups import parse_groups
from drosurv.metrics import FollowUp, GroupFollowUp, brier_contributions, likelihood_gains
from drosurv.metrics.inference import bootstrap, largest_difference, permutation_test, studentized_ratio
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


def main():
    """Print one of the tables."""
    parser = argparse.ArgumentParser(prog="python -m experiments.studies.false_alarms", description=__doc__)
    parser.add_argument("what", choices=("gaps",))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--patients", type=int, default=1000)
    given = parser.parse_args()
    print({"gaps": run_gaps}[given.what](given.runs, given.patients).round(3).to_string())


if __name__ == "__main__":
    main()
