"""What ``drosurv.plan`` promises, against simulated audits of as many patients as it asks for.

    python -m experiments.studies.plan --runs 500 --jobs 16 -o plan.json

Widths and factors (their logarithms) are divided by what was promised: within 0.9 and 1.1 are required, and within 0.8
and 1.2 for the square of the error of the c-index. Powers stand beside the promised ones. "search" gives the rates at
which the largest and smallest deviation among the subgroups of a right model exceed the critical value of
``drosurv.planning.subgroup_search`` (0.025 each), whose constants were chosen by these numbers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from drosurv import Surv, certify, plan
from drosurv.evaluation import Predictions
from drosurv.metrics import calibration_slope_interval, concordance_index
from drosurv.metrics.inference.intervals import observed_over_expected
from drosurv.planning.risk_spread import NormalLogRisks
from drosurv.planning.subgroup_search import SubgroupSearch
from drosurv.repairs.rules import CodedTable
from drosurv.repairs.simultaneous_tests import MOST, MOST_LEVELS, N_CUTS, signed_root_deviance
from drosurv.repairs.subgroups import Subgroups
from experiments.studies.repeated import parser, repeat
from experiments.studies.subgroup_bounds import weibull_curves

# Event rate, spread of the log risks, and share of the group.
COHORTS = ((0.25, 1.0, 0.4), (0.6, 0.7, 0.15))
# Event rate, share and ratio of the subgroup, and columns.
SEARCHES = ((0.5, 0.1, 2.0, 6), (0.3, 0.1, 2.0, 10))
SPREAD, LEVEL = 0.7, 0.95


def cohort(
    n: int, event_rate: float, spread: float, rng: np.random.Generator, ratio: Any = 1.0
) -> tuple[Any, ...]:
    """Normal log risks of n patients, and their events with `ratio` times the hazard, until one end of follow-up."""
    risks = NormalLogRisks.with_spread(spread, event_rate)
    log_risk = risks.deviation * rng.standard_normal(n)
    end = risks.hazard[len(risks.hazard) // 2]
    time = rng.exponential(size=n) / np.exp(log_risk) / ratio
    return log_risk, Surv.from_arrays(time <= end, np.minimum(time, end))


def needed(found: Any, words: str) -> int:
    """Patients that a plan asks for to answer the question with these words."""
    table = found.table
    return int(table.loc[table["question"].str.contains(words, regex=False), "patients"].iloc[0])


def widths(event_rate: float, spread: float, share: float, seed: int) -> dict[str, Any]:
    """Half-width of the interval of a group's observed / expected events, width of the slope's, and a c-index."""
    found = plan(event_rate=event_rate, spread=spread, groups={"group": share})
    rng = np.random.default_rng([seed, 1])
    n = needed(found, "factor of 1.2, group")
    log_risk, y = cohort(n, event_rate, spread, rng)
    group = rng.random(n) < share
    expected = (np.exp(log_risk) * y["time"])[group].sum()
    interval = observed_over_expected(y["event"][group].sum(), expected)
    log_risk, y = cohort(needed(found, "slope"), event_rate, spread, rng)
    slope = calibration_slope_interval(y, log_risk)
    true = NormalLogRisks.with_spread(spread, event_rate).c_index
    risk, of_index = cohort(needed(found, "c-index"), event_rate, spread, rng)
    return {
        "factor_of_group": np.log(interval.high / interval.low) / 2 / np.log(1.2),
        "width_of_slope": (slope.high - slope.low) / 0.2,
        "squared_error_of_c_index": ((concordance_index(of_index, risk) - true) * 2 * norm.ppf(0.975) / 0.1)
        ** 2,
    }


def power_of_group(event_rate: float, spread: float, share: float, seed: int) -> dict[str, Any]:
    """Whether a group with 1.2 times the expected events is found, where a power of 0.8 is promised."""
    found = plan(event_rate=event_rate, spread=spread, groups={"group": share})
    rng = np.random.default_rng([seed, 2])
    n = needed(found, "found, group")
    group = rng.random(n) < share
    log_risk, y = cohort(n, event_rate, spread, rng, np.where(group, 1.2, 1.0))
    expected = (np.exp(log_risk) * y["time"])[group].sum()
    return {"power": observed_over_expected(y["event"][group].sum(), expected).p_value <= 1 - LEVEL}


def search_data(
    n: int, event_rate: float, share: float, ratio: float, columns: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, Any, Predictions]:
    """Independent columns, and a subgroup of two of them, cut at deciles, with `ratio` times the expected events."""
    X = pd.DataFrame(rng.normal(size=(n, columns)), columns=[f"x{j}" for j in range(columns)])
    # Shares of one half and of twice the subgroup's share give the subgroup.
    rank = X.rank(pct=True)
    inside = (rank["x0"] > 0.5) & (rank["x1"] > 1 - 2 * share)
    risks = NormalLogRisks.with_spread(SPREAD, event_rate)
    rate = np.exp(risks.deviation * X["x2"].to_numpy())
    time = rng.exponential(size=n) / rate / np.where(inside, ratio, 1.0)
    end = risks.hazard[len(risks.hazard) // 2]
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    return X, y, Predictions(np.log(rate), weibull_curves(rate, 1.0))


def power_of_search(
    event_rate: float, share: float, ratio: float, columns: int, replicates: int, seed: int
) -> dict[str, Any]:
    """Whether certify finds a subgroup (Jaccard overlap of one half), where a power of 0.8 is promised."""
    found = plan(
        event_rate=event_rate, spread=SPREAD, subgroup_share=share, subgroup_ratio=ratio, n_columns=columns
    )
    n = needed(found, "found in a subgroup")
    X, y, predictions = search_data(n, event_rate, share, ratio, columns, np.random.default_rng([seed, 3]))
    bounds = certify(predictions, X, y, alpha=share, n_bootstrap=replicates, random_state=seed)
    rank = X.rank(pct=True)
    true = (rank["x0"] > 0.5) & (rank["x1"] > 1 - 2 * share)
    overlaps = [(rule.holds(X) & true).sum() / (rule.holds(X) | true).sum() for rule in bounds.rules]
    return {"power": max(overlaps, default=0.0) >= 0.5, "any": len(overlaps) > 0}


def bound_of_search(
    event_rate: float, share: float, ratio: float, columns: int, replicates: int, seed: int
) -> dict[str, Any]:
    """Bound of certify for a right model, where the ratio is promised to be excluded in the median."""
    found = plan(
        event_rate=event_rate, spread=SPREAD, subgroup_share=share, subgroup_ratio=ratio, n_columns=columns
    )
    n = needed(found, "excluded in all subgroups")
    X, y, predictions = search_data(n, event_rate, share, 1.0, columns, np.random.default_rng([seed, 4]))
    bounds = certify(predictions, X, y, alpha=share, n_bootstrap=replicates, random_state=seed)
    return {"factor": np.log(bounds.bounds.loc[MOST, "bound"]) / np.log(ratio)}


def deviations(columns: int, share: float, seed: int) -> dict[str, Any]:
    """Whether the largest deviation among subgroups of a right model exceeds the critical value; one side each."""
    rng = np.random.default_rng([seed, 5])
    n, event_rate = 3000, 0.4
    X = pd.DataFrame(rng.normal(size=(n, columns)), columns=[f"x{j}" for j in range(columns)])
    subgroups = Subgroups(CodedTable.from_table(X, N_CUTS, MOST_LEVELS))
    subgroups.keep(subgroups.sums(np.ones((n, 1)))[:, 0] >= share * n - 1e-9)
    reached, end = rng.exponential(size=n), -np.log(1 - event_rate)
    sums = subgroups.sums(np.column_stack([reached <= end, np.minimum(reached, end)]).astype(float)).T
    z = signed_root_deviance(*sums, np.ones(len(subgroups)))
    critical = SubgroupSearch(columns, share, LEVEL).critical_value
    return {"above": z.max() > critical, "below": z.min() < -critical, "largest": z.max()}


def main() -> None:
    """Run the simulations, print rates and quotients, and write them as JSON."""
    options = parser(__doc__)
    options.add_argument("--replicates", type=int, default=199, help="Draws of certify.")
    parts = ("widths", "groups", "certify", "search")
    options.add_argument("--what", nargs="*", choices=parts, default=parts)
    given = options.parse_args()
    simulations: list[Any] = []
    for event_rate, spread, share in COHORTS:
        setting = {"event_rate": event_rate, "spread": spread, "share": share}
        if "widths" in given.what:
            simulations.append(({"study": "widths", **setting}, partial(widths, event_rate, spread, share)))
        if "groups" in given.what:
            run = partial(power_of_group, event_rate, spread, share)
            simulations.append(({"study": "group", "promised": 0.8, **setting}, run))
    for event_rate, share, ratio, columns in SEARCHES if "certify" in given.what else ():
        setting = {"event_rate": event_rate, "share": share, "ratio": ratio, "columns": columns}
        arguments = (event_rate, share, ratio, columns, given.replicates)
        simulations.append(
            ({"study": "subgroup found", "promised": 0.8, **setting}, partial(power_of_search, *arguments))
        )
        simulations.append(({"study": "subgroups excluded", **setting}, partial(bound_of_search, *arguments)))
    for columns in (2, 5, 10, 20) if "search" in given.what else ():
        for share in (0.05, 0.1, 0.3):
            setting = {"study": "search", "columns": columns, "share": share}
            simulations.append((setting, partial(deviations, columns, share)))
    repeat(simulations, given)


if __name__ == "__main__":
    main()
