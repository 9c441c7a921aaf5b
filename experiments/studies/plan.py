"""What ``drosurv.plan`` promises, against simulated audits of as many patients as it asks for.

    python -m experiments.studies.plan --runs 500 --jobs 16 -o docs/plan.csv

Each row of the file is a question of the plan: what it promises, and what the audits attain. Factors and widths are
medians, the width of the c-index is that of the middle 95 % of its values, and powers are shares of the runs.
"quotient" is attained over promised (of factors, their logarithms). ``--what search`` gives the rates at which the
largest and smallest deviation among the subgroups of a right model exceed the critical value of
``drosurv.judging.excluded_errors`` (0.025 each), whose constants were chosen by these numbers. ``--what audits`` runs
whole audits, with their search for subgroups and their adjustment, of as many patients as the plan asks for:

    python -m experiments.studies.plan --what audits --runs 400 --jobs 16 -o docs/plan_by_audits.csv
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from drosurv import Surv, audit, certify, plan
from drosurv.evaluation import Predictions
from drosurv.judging.excluded_errors import SubgroupSearch
from drosurv.judging.rules import CodedTable
from drosurv.judging.simultaneous_tests import MOST, MOST_LEVELS, N_CUTS, signed_root_deviance
from drosurv.judging.subgroup_sums import Subgroups
from drosurv.metrics import calibration_slope_interval, concordance_index
from drosurv.metrics.intervals import observed_over_expected
from drosurv.planning.audit_plan import NormalLogRisks
from experiments.studies.repeated import means, parser, repeat
from experiments.studies.subgroup_bounds import weibull_curves

# Event rate, spread of the log risks, and share of the group.
COHORTS = ((0.25, 1.0, 0.4), (0.6, 0.7, 0.15))
# Event rate, share and ratio of the subgroup, and columns.
SEARCHES = ((0.5, 0.1, 2.0, 6), (0.3, 0.1, 2.0, 10))
SPREAD, LEVEL = 0.7, 0.95
# Share of women, among whom an audit is to find too many events, and its event rate and c-index.
WOMEN, RATE, C_INDEX = 0.4, 0.25, 0.7
# What an audit need not compute here.
QUICK: dict[str, Any] = {"verbose": False}
# Without the adjustment of an audit.
ALONE: dict[str, Any] = {"n_tests": 1}


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


def factor_of_group(event_rate: float, spread: float, share: float, seed: int) -> dict[str, Any]:
    """Half-width of the interval of a group's observed / expected events, as a factor; 1.2 is promised."""
    rng = np.random.default_rng([seed, 1])
    n = needed(
        plan(event_rate=event_rate, spread=spread, groups={"group": share}, **ALONE), "factor of 1.2, group"
    )
    log_risk, y = cohort(n, event_rate, spread, rng)
    group = rng.random(n) < share
    expected = (np.exp(log_risk) * y["time"])[group].sum()
    interval = observed_over_expected(y["event"][group].sum(), expected)
    return {"factor": np.sqrt(interval.high / interval.low)}


def width_of_slope(event_rate: float, spread: float, seed: int) -> dict[str, Any]:
    """Width of the interval of the calibration slope; 0.2 is promised."""
    n = needed(plan(event_rate=event_rate, spread=spread, **ALONE), "slope")
    log_risk, y = cohort(n, event_rate, spread, np.random.default_rng([seed, 6]))
    slope = calibration_slope_interval(y, log_risk)
    return {"width": slope.high - slope.low}


def c_index(event_rate: float, spread: float, seed: int) -> dict[str, Any]:
    """The c-index, whose interval is promised to have a width of 0.1."""
    n = needed(plan(event_rate=event_rate, spread=spread, **ALONE), "c-index")
    log_risk, y = cohort(n, event_rate, spread, np.random.default_rng([seed, 7]))
    return {"c_index": concordance_index(y, log_risk)}


def power_of_group(event_rate: float, spread: float, share: float, seed: int) -> dict[str, Any]:
    """Whether a group with 1.2 times the expected events is found, where a power of 0.8 is promised."""
    found = plan(event_rate=event_rate, spread=spread, groups={"group": share}, **ALONE)
    rng = np.random.default_rng([seed, 2])
    n = needed(found, "found, group")
    group = rng.random(n) < share
    log_risk, y = cohort(n, event_rate, spread, rng, np.where(group, 1.2, 1.0))
    expected = (np.exp(log_risk) * y["time"])[group].sum()
    return {"power": observed_over_expected(y["event"][group].sum(), expected).p <= 1 - LEVEL}


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
        event_rate=event_rate,
        spread=SPREAD,
        subgroup_share=share,
        subgroup_ratio=ratio,
        n_columns=columns,
        **ALONE,
    )
    n = needed(found, "found in a subgroup")
    X, y, predictions = search_data(n, event_rate, share, ratio, columns, np.random.default_rng([seed, 3]))
    bounds = certify(predictions, X, y, alpha=share, n_bootstrap=replicates, random_state=seed)
    rank = X.rank(pct=True)
    true = (rank["x0"] > 0.5) & (rank["x1"] > 1 - 2 * share)
    overlaps = [(rule.holds(X) & true).sum() / (rule.holds(X) | true).sum() for rule in bounds.rules]
    return {"power": max(overlaps, default=0.0) >= 0.5}


def bound_of_search(
    event_rate: float, share: float, ratio: float, columns: int, replicates: int, seed: int
) -> dict[str, Any]:
    """Bound of certify for a right model, where the ratio is promised to be excluded in the median."""
    found = plan(
        event_rate=event_rate,
        spread=SPREAD,
        subgroup_share=share,
        subgroup_ratio=ratio,
        n_columns=columns,
        **ALONE,
    )
    n = needed(found, "excluded in all subgroups")
    X, y, predictions = search_data(n, event_rate, share, 1.0, columns, np.random.default_rng([seed, 4]))
    bounds = certify(predictions, X, y, alpha=share, n_bootstrap=replicates, random_state=seed)
    return {"factor": bounds.bounds.loc[MOST, "bound"]}


def audited_groups(n: int, number: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return women and men, and with ten groups also eight hospitals of equal size."""
    women = rng.random(n) < WOMEN
    groups = pd.DataFrame({"sex": np.where(women, "women", "men")})
    return (
        groups if number == 2 else groups.assign(hospital=[f"h{k}" for k in rng.integers(number - 2, size=n)])
    )


def planned_audit(ratio: float, number: int) -> int:
    """Return the patients with whom an audit of so many groups is to find women with `ratio` times the events."""
    shares = {"women": WOMEN, "men": 1 - WOMEN}
    shares |= {f"h{k}": 1 / (number - 2) for k in range(number - 2)}
    given = {"event_rate": RATE, "c_index": C_INDEX, "groups": shares, "ratio": ratio}
    return needed(plan(**given), "found, women")


def power_of_audit(ratio: float, number: int, seed: int) -> dict[str, Any]:
    """Whether an audit with a search finds women, who have `ratio` times the predicted hazard; 0.8 is promised."""
    rng, n = np.random.default_rng([seed, 8]), planned_audit(ratio, number)
    groups = audited_groups(n, number, rng)
    risks = NormalLogRisks.with_c_index(C_INDEX, RATE)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x0", "x1", "x2"])
    hazard = risks.hazard[len(risks.hazard) // 2] * np.exp(risks.deviation * X["x0"].to_numpy())
    reached = rng.exponential(size=n) / hazard / np.where(groups["sex"] == "women", ratio, 1.0)
    y = Surv.from_arrays(reached <= 1.0, np.minimum(reached, 1.0))
    times = np.linspace(0.02, 1.0, 50)
    predictions = times, np.exp(-hazard[:, None] * times)
    report = audit(predictions, None, y, features=X, sensitive_features=groups, random_state=seed, **QUICK)
    found = report.findings
    women = found[(found["question"] == "level") & (found["group"] == "women")]
    return {"power": bool((women["status"] == "miscalibrated").all())}


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
    return {"above": z.max() > critical, "below": z.min() < -critical}


def attained(setting: Mapping[str, Any], rows: pd.DataFrame) -> dict[str, Any]:
    """Return what was attained, and its quotient with what was promised; of the search, the two rates."""
    if "promised" not in setting:
        return means(setting, rows)
    ((measure, values),) = rows.items()
    if measure == "power":
        value = float(values.mean())
    elif measure == "c_index":
        value = float(2 * norm.ppf(0.975) * values.std())
    else:
        value = float(values.median())
    promised = setting["promised"]
    quotient = np.log(value) / np.log(promised) if measure == "factor" else value / promised
    return {"attained": round(value, 3), "quotient": round(float(quotient), 3)}


def main() -> None:
    """Run the simulations, print what is promised and attained, and write it."""
    options = parser(__doc__)
    options.add_argument("--replicates", type=int, default=239, help="Draws of certify.")
    options.add_argument(
        "--what", nargs="*", choices=("groups", "certify", "search", "audits"), default=("groups", "certify")
    )
    given = options.parse_args()
    simulations: list[Any] = []
    for event_rate, spread, share in COHORTS if "groups" in given.what else ():
        setting = f"event rate {event_rate:g}, spread {spread:g}"
        of_group = f"{setting}, {100 * share:g} % of the patients"
        cohort_of = event_rate, spread
        simulations += [
            ("factor of a group", of_group, 1.2, partial(factor_of_group, *cohort_of, share)),
            ("width of the slope", setting, 0.2, partial(width_of_slope, *cohort_of)),
            ("width of the c-index", setting, 0.1, partial(c_index, *cohort_of)),
            ("power, group with 1.2 times", of_group, 0.8, partial(power_of_group, *cohort_of, share)),
        ]
    for event_rate, share, ratio, columns in SEARCHES if "certify" in given.what else ():
        setting = f"event rate {event_rate:g}, {columns} columns, {100 * share:g} % of the patients"
        arguments = event_rate, share, ratio, columns, given.replicates
        simulations += [
            (f"power, subgroup with {ratio:g} times", setting, 0.8, partial(power_of_search, *arguments)),
            ("factor excluded in all subgroups", setting, ratio, partial(bound_of_search, *arguments)),
        ]
    for ratio in (1.2, 1.5) if "audits" in given.what else ():
        for number in (2, 10):
            setting = f"event rate {RATE:g}, {number} groups, {planned_audit(ratio, number):,} patients"
            simulations.append(
                (
                    f"power, women with {ratio:g} times, audit",
                    setting,
                    0.8,
                    partial(power_of_audit, ratio, number),
                )
            )
    for columns in (2, 5, 10, 20) if "search" in given.what else ():
        simulations += [
            ("search", f"{columns} columns, {100 * share:g} %", partial(deviations, columns, share))
            for share in (0.05, 0.1, 0.3)
        ]
    names = "question", "patients", "promised"
    settings = [dict(zip(names, setting, strict=False)) for *setting, _ in simulations]
    repeat(list(zip(settings, (run for *_, run in simulations), strict=True)), given, attained)


if __name__ == "__main__":
    main()
