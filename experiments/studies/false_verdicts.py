"""How often an audit calls a right model wrong: the whole verdict, of named groups, further tests and the search.

    python -m experiments.studies.false_verdicts --runs 500 --jobs 16 --first 1000 -o false_verdicts.json

Models of 1,000 patients in four attributes, of which "high" are the patients with a high value of the strongest
predictor, each of the models right:

- "exact": the true survival curves.
- "few times": the true survival at five times, as another program would give it, under hazards that fall and rise;
  without training patients.
- "fitted": a Cox model trained on 1,000 other patients.
- "cross-fitted": a Cox model trained in five folds of the patients themselves.

The rates printed are of audits with any problem, and with each problem; "search" is that of a significant subgroup.
Required: at most 5 %. With ``--ratio 1.65`` a subgroup of 16 % has so many times the predicted events; the rates are
then those of finding a problem.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from drosurv import CoxPH
from drosurv.findings.verdict import PROBLEMS
from drosurv.report import AuditReport, audit
from experiments.studies.repeated import parser, repeat
from experiments.studies.subgroup_bounds import Simulated, simulate

N = 1000
TIMES = np.array([0.2, 0.4, 0.8, 1.2, 1.8])
CASES = ("exact", "few times, shape 0.5", "few times, shape 2", "fitted", "cross-fitted")
EVENTS = (0.55, 0.2)


def problems(case: str, events: float, ratio: float, replicates: int, seed: int) -> dict[str, bool]:
    """Return the problems that one audit names."""
    rng = np.random.default_rng([seed, N])
    shape = float(case.rpartition(" ")[2]) if case.startswith("few times") else 1.3
    data = simulate(N, events, rng, ratio, shape)
    groups = {
        "flag": data.X["flag"],
        "site": data.X["site"],
        "sex": rng.integers(0, 2, N),
        "high": data.X["a"] > 0.5,
    }
    how: dict[str, Any] = {
        "sensitive_features": groups,
        "features": data.X,
        "n_bootstrap": replicates,
        "random_state": seed,
    }
    with warnings.catch_warnings(action="ignore"):
        report = _audited(case, data, simulate(N, events, rng, 1.0, shape), how)
    facts = report.parts["verdict"].facts
    found = {problem["status"] for problem in facts["problems"]}
    bounds = report.parts["missed"].facts["bounds"]
    chosen = bounds["significant"] if bounds["rescaled"] is None else bounds["rescaled"]
    return {
        "any": bool(found),
        **{status: status in found for status in PROBLEMS},
        "search": len(chosen) > 0,
        "clear": facts["status"] == "clear",
    }


def _audited(case: str, data: Simulated, others: Simulated, how: dict[str, Any]) -> AuditReport:
    if case.startswith("few times"):
        survival = data.predictions().survival.survival(TIMES)
        return audit((TIMES, survival), None, data.y, **how)
    if case == "exact":
        return audit(data.predictions(), None, data.y, **how)
    X, X_train = (
        pd.get_dummies(one.X, columns=["site"], drop_first=True, dtype=float) for one in (data, others)
    )
    if case == "fitted":
        return audit(CoxPH().fit(X_train, others.y), X, data.y, **how)
    return audit(CoxPH(), X, data.y, folds=5, **how)


def main() -> None:
    """Print the share of audits with each problem."""
    options = parser(__doc__)
    options.add_argument("--cases", nargs="*", choices=CASES, default=CASES)
    options.add_argument("--events", nargs="*", type=float, choices=EVENTS, default=EVENTS[:1])
    options.add_argument(
        "--ratio", type=float, default=1.0, help="Events of the subgroup over the predicted."
    )
    options.add_argument("--replicates", type=int, default=40, help="Bootstrap replicates of an audit.")
    given = options.parse_args()
    repeat(
        [
            (
                {"case": case, "events": events, "ratio": given.ratio},
                partial(problems, case, events, given.ratio, given.replicates),
            )
            for case in given.cases
            for events in given.events
        ],
        given,
    )


if __name__ == "__main__":
    main()
