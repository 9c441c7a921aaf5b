"""How often a model is repaired where nothing is to be repaired: noise, correlated rows, right models.

Noise: columns and times are independent; the base is CoxPHCV. Copies: noise, with 5 equal rows of each of 300 patients.
Clusters: 100 clusters of 6 rows, of which some columns are those of the cluster, and correlated times; Cox is right for
each row. Frozen clusters: the same with the true curves as given predictions. Right: the generator of repair_by_size
without a group, base CoxPH.

python -m experiments.studies.repair_null --seeds 200 --jobs 16    # resumable; results/repair_null
python -m experiments.studies.repair_null --write                  # docs/tables/repair_null.csv
"""

import warnings
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import norm

from drosurv import CoxPH, CoxPHCV, RepairedCox, Surv, repair
from drosurv.metrics import log_partial_likelihood
from drosurv.patients.target import with_fields
from experiments.studies import repair_by_size
from experiments.studies.pages import table, write_table
from experiments.studies.rows import load, measure, parser

FIRST_SEED = 1000
NOISE = [f"noise, {p} columns, n = {n}" for p, n in product((3, 10, 30), (150, 300, 1000))]
CLUSTERS = [f"clusters, correlation {rho}" for rho in (0.0, 0.5, 0.8)]
FROZEN = [f"frozen, {name}" for name in CLUSTERS]
RIGHT = [f"right, n = {n}" for n in repair_by_size.SIZES]
SCENARIOS = [*NOISE, "copies", *CLUSTERS, *FROZEN, *RIGHT]
# Correlation of the scores before and after, below which a ranking is reversed; it is near 0 if effects were removed.
REVERSED = -0.5
# Patients on whom a repair is judged.
N_TEST = 3000


def noise(n, p, rng):
    """Columns that say nothing about the times; seven in ten patients have the event."""
    X = pd.DataFrame(rng.normal(size=(n, p)).round(3), columns=[f"x{j}" for j in range(p)])
    return X, Surv.from_arrays(rng.random(n) < 0.7, rng.exponential(500, n))


def correlated(n, rho, rng, size=6):
    """Rows, true log hazards, target and cluster; a Gaussian copula keeps each row's distribution."""
    cluster = np.arange(n) // size
    k = cluster[-1] + 1
    frame = pd.DataFrame(
        {
            "age": rng.normal(60, 10, k)[cluster].round(1),
            "lab": rng.normal(size=k)[cluster].round(2),
            "ward": rng.choice(list("ABCD"), k)[cluster],
            "x": rng.normal(size=n).round(2),
        }
    )
    risk = (0.03 * (frame["age"] - 60) + 0.3 * frame["lab"] + 0.3 * frame["x"]).to_numpy()
    shared = np.sqrt(rho) * rng.normal(size=k)[cluster] + np.sqrt(1 - rho) * rng.normal(size=n)
    time, end = -np.log(norm.sf(shared)) * np.exp(-risk), rng.uniform(0.3, 3, n)
    return frame, risk, Surv.from_arrays(time <= end, np.minimum(time, end)), cluster


def work(scenario, seed):
    """One run: the repairs, and what they change in the log partial likelihood per event of new patients."""
    rng = np.random.default_rng([FIRST_SEED + seed, SCENARIOS.index(scenario)])
    with warnings.catch_warnings(action="ignore"):
        model, new = _fitted(scenario, seed, rng)
        found = [(attempt.kind, attempt.e) for attempt in model.attempts_ if np.isfinite(attempt.e)]
        row = {
            "repairs": len(model.repairs_),
            "rules": "; ".join(fixed.who for fixed in model.repairs_),
            "kinds": "; ".join(fixed.kind for fixed in model.repairs_),
            "largest_e": max((e for _, e in found), default=np.nan),
            "change": 0.0,
            "agreement": 1.0,
        }
        if model.repairs_ and new is not None and model.base_ is not None:
            X, y = new
            scores = [np.asarray(one.predict(X)) for one in (model, model.base_)]
            change = [log_partial_likelihood(y, score) / y["event"].sum() for score in scores]
            row |= {"change": change[0] - change[1], "agreement": float(np.corrcoef(*scores)[0, 1])}
    return [row]


def _fitted(scenario, seed, rng):
    """The repaired model of a run, and new patients."""
    kind, *rest = scenario.replace("frozen, ", "").split(", ")
    base = CoxPHCV(random_state=seed)
    if kind == "noise":
        p, n = int(rest[0].split()[0]), int(rest[1].split()[-1])
        X, y = noise(n, p, rng)
        return RepairedCox(base, random_state=seed).fit(X, y), noise(N_TEST, p, rng)
    if kind == "copies":
        X, y = noise(300, 3, rng)
        rows = np.tile(np.arange(300), 5)
        X, y, new = X.iloc[rows].reset_index(drop=True), y[rows], noise(N_TEST, 3, rng)
        return RepairedCox(base, random_state=seed).fit(X, with_fields(y, clusters=rows)), new
    if kind == "clusters":
        rho = float(rest[0].split()[-1])
        X, risk, y, cluster = correlated(600, rho, rng)
        if scenario.startswith("frozen"):
            times = np.linspace(0, 3, 301)[1:]
            given = times, np.exp(-np.outer(np.exp(risk), times))
            return repair(given, X, with_fields(y, clusters=cluster), frozen=True, random_state=seed), None
        new, _, y_new, _ = correlated(N_TEST, 0.0, rng)
        return RepairedCox(base, random_state=seed).fit(X, with_fields(y, clusters=cluster)), (new, y_new)
    n = int(rest[0].split()[-1])
    data, _ = repair_by_size.draw("no group", "level", n, FIRST_SEED + seed)
    other, _ = repair_by_size.draw("no group", "level", N_TEST, 100_000 + seed)
    model = RepairedCox(CoxPH(l2=1e-4, recalibrate=False), random_state=seed).fit(data.X, data.y)
    return model, (other.X, other.y)


def summary(rows):
    """Header and rows: how often something was repaired, and what that did to new patients."""
    body = []
    for scenario in SCENARIOS:
        runs = rows[rows["scenario"] == scenario]
        if runs.empty:
            continue
        acted = runs[runs["repairs"] > 0]
        reversed_ = int((acted["agreement"] < REVERSED).sum())
        body.append(
            [
                scenario,
                f"{len(acted)} of {len(runs)} ({len(acted) / len(runs):.1%})",
                f"{acted['change'].mean():+.4f} ({acted['change'].min():+.4f})" if len(acted) else "–",
                str(reversed_),
                f"{runs['largest_e'].max():.1f}",
            ]
        )
    header = [
        "nothing to repair",
        "repaired",
        "change of new patients' log likelihood per event, mean (lowest)",
    ]
    return [*header, "rankings reversed", "largest e-value"], body


def main():
    options = parser(__doc__, "repair_null", seeds=200)
    options.add_argument("--scenarios", default="", help="those that begin so, separated by semicolons")
    options = options.parse_args()
    wanted = tuple(part.strip() for part in options.scenarios.split(";") if part.strip())
    if not options.write:
        units = [
            {"scenario": scenario, "seed": seed}
            for seed, scenario in product(range(options.seeds), SCENARIOS)
            if not wanted or scenario.startswith(wanted)
        ]
        measure(options.output, units, work, options.jobs, options.minutes)
    rows = load(options.output)
    header, body = summary(rows)
    print("\n".join(table(header, body)))
    if options.write:
        write_table("repair_null", header, body)


if __name__ == "__main__":
    main()
