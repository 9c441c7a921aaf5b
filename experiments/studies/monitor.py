"""How often `drosurv.monitor` calls a right model wrong, how often it finds a wrong one, and how long that takes.

    python -m experiments.studies.monitor --runs 500 --jobs 16 -o docs/monitor.csv

In every run 600 patients enter over ten years, one group in four each, with exponential times of 0.12 events per
patient and year. About a quarter are lost before the end of the tenth year. Each run is monitored with the
tolerances 1 and 1.1. Columns of the file, in percent of the runs: "alarm" and "change" (a recent one), for everybody or
any group; "found", either of them for the patients whose hazards change, after that; "years" is the median time from
the change until then.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from drosurv import CoxPH, Surv, monitor
from drosurv.evaluation import Predictions
from drosurv.presentation import DAYS
from experiments.studies.repeated import parser, repeat
from experiments.studies.subgroup_bounds import weibull_curves

PATIENTS, YEARS, GROUPS = 600, 10, 4
YEAR = DAYS["years"]
FIRST_DAY = pd.Timestamp("2015-01-01")
# Days between two visits, and a lag that exceeds them.
BETWEEN_VISITS, LAG = 182.0, 190.0
TRAINED = 2000


@dataclass(frozen=True)
class Setting:
    """How patients are followed, and how wrong the model is: `ratio` times the hazards from a year on.

    The ratio is that of everybody, or of one group. `seen` is how survivors are known: "always", until their last of
    the "visits" only, at "whole days", or lost "by risk".
    """

    every: str = "month"
    seen: str = "always"
    lag: float = 0.0
    fitted: bool = False
    ratio: float = 1.0
    from_year: float = 0.0
    group: int | None = None


RIGHT = {
    "daily looks": Setting("day"),
    "monthly looks": Setting(),
    "yearly looks": Setting("year"),
    "survivors known until their last visit, lag of 190 days": Setting(seen="visits", lag=LAG),
    "lost sooner at high risk": Setting(seen="by risk"),
    "whole-day dates, daily looks": Setting("day", seen="whole days"),
    f"Cox model of {TRAINED:,} patients": Setting(fitted=True),
}
WRONG = {
    **{f"{ratio:g} times": Setting(ratio=ratio) for ratio in (0.5, 0.67, 0.8, 1.25, 1.5, 2.0)},
    **{f"{ratio:g} times in one of four groups": Setting(ratio=ratio, group=0) for ratio in (0.5, 1.5, 2.0)},
    **{f"{ratio:g} times from year 5 on": Setting(ratio=ratio, from_year=5.0) for ratio in (0.5, 1.5, 2.0)},
}


def draw(setting: Setting, rng: np.random.Generator) -> tuple[Any, ...]:
    """Log risks, entries and groups of the patients, days until their ends, and whether these are events."""
    n = PATIENTS
    entry, log_risk, group = (
        rng.uniform(0, YEARS * YEAR, n),
        rng.normal(0, 0.7, n),
        rng.integers(GROUPS, size=n),
    )
    hazard = 0.12 / YEAR * np.exp(log_risk)
    changed = np.ones(n, bool) if setting.group is None else group == setting.group
    before = np.maximum(setting.from_year * YEAR - entry, 0.0)
    reached = rng.exponential(size=n) / hazard
    later = before + (reached - before) / np.where(changed, setting.ratio, 1.0)
    time = np.where(reached <= before, reached, later)
    lost = rng.exponential(8 * YEAR, n)
    if setting.seen == "by risk":
        lost = rng.exponential(3 * YEAR * np.exp(-log_risk))
    end = np.minimum(lost, YEARS * YEAR - entry)
    if setting.seen == "visits":
        # Patients are lost at a visit; those who are not have their next one after the last day of the table.
        end = np.minimum(np.floor(lost / BETWEEN_VISITS) * BETWEEN_VISITS, YEARS * YEAR - entry)
        last_visit = np.floor(end / BETWEEN_VISITS) * BETWEEN_VISITS
        return log_risk, entry, group, np.where(time <= end, time, last_visit), time <= end
    event, time = time <= end, np.minimum(time, end)
    if setting.seen == "whole days":
        time, entry = np.floor(entry + time) - np.floor(entry), np.floor(entry)
    return log_risk, entry, group, time, event


def model_of(log_risk: np.ndarray, fitted: bool, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return the true curves of the patients, or a Cox model of other patients with the features of these."""
    rate = 0.12 / YEAR
    if not fitted:
        return Predictions(log_risk, weibull_curves(rate * np.exp(log_risk), 1.0)), None
    x = rng.normal(0, 0.7, TRAINED)
    time = rng.exponential(size=TRAINED) / rate / np.exp(x)
    end = rng.uniform(0, 12 * YEAR, TRAINED)
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    return CoxPH().fit(x[:, None], y), log_risk[:, None]


def run(setting: Setting, tolerance: float, seed: int) -> dict[str, Any]:
    """Monitor the patients of one seed, and return which alarms there are."""
    rng = np.random.default_rng(seed)
    log_risk, entry, group, time, event = draw(setting, rng)
    with warnings.catch_warnings(action="ignore"):
        found = monitor(
            *model_of(log_risk, setting.fitted, rng),
            Surv.from_arrays(event, time),
            start=FIRST_DAY + pd.to_timedelta(entry, unit="D"),
            sensitive_features=pd.DataFrame({"group": group.astype(str)}),
            every=setting.every,
            tolerance=tolerance,
            lag=setting.lag,
        )
    both = pd.concat([found.alarms, found.changes])
    years = ((both["date"] - FIRST_DAY) / pd.Timedelta(days=YEAR)).to_numpy(float)
    whose = "all" if setting.group is None else str(setting.group)
    own = years[(both["group"] == whose).to_numpy() & (years > setting.from_year)]
    return {
        "alarm": len(found.alarms) > 0,
        "change": len(found.changes) > 0,
        "found": len(own) > 0 if setting.ratio != 1 else np.nan,
        "delay": own.min() - setting.from_year if len(own) else np.nan,
    }


def rates(_: Any, rows: pd.DataFrame) -> dict[str, Any]:
    """Return percents of alarms; of a change, also how often it is found, and after how many years in the median."""
    found: dict[str, Any] = {name: round(100 * float(rows[name].mean()), 1) for name in ("alarm", "change")}
    if rows["found"].notna().all():
        found["found"] = round(100 * float(rows["found"].mean()), 1)
        # Runs without an alarm count as infinitely late.
        years = float(rows["delay"].fillna(np.inf).median())
        found["years"] = round(years, 1) if np.isfinite(years) else None
    return found


def main() -> None:
    """Run all settings with both tolerances, print the rates and write them."""
    options = parser(__doc__)
    options.add_argument(
        "--settings", nargs="*", default=[], help="Only those whose name holds one of these."
    )
    given = options.parse_args()
    chosen = [
        ({"patients": patients, "setting": name, "tolerance": tolerance}, partial(run, setting, tolerance))
        for patients, settings in (("right model", RIGHT), ("wrong model", WRONG))
        for name, setting in settings.items()
        for tolerance in (1.0, 1.1)
        if not given.settings or any(part in name for part in given.settings)
    ]
    repeat(chosen, given, rates)


if __name__ == "__main__":
    main()
