"""Evidence for find and repair: planted groups, null data, frozen models, other bases, and what each part is worth.

python -m experiments.studies.repair --jobs 16 --output results/repair   # resumable: keeps finished units
python -m experiments.studies.repair --jobs 16 --minutes 8 --part an      # stops after 8 minutes; run again
python -m experiments.studies.repair_document results/repair                  # writes docs/repair.md
"""

import time
from itertools import product
from types import SimpleNamespace

import numpy as np

from experiments.studies.repair_data import (
    NULLS,
    SETTINGS,
    BoostedTrees,
    GroupCox,
    draw,
    draw_level,
    draw_null,
)
from experiments.studies.repair_frozen import frozen
from experiments.studies.repair_scores import found_by, measured
from experiments.studies.rows import load, measure, parser

N_TEST = 4000
FAMILIES = list(NULLS)
ABLATIONS = {
    "as it is": {},
    "tau .25": {"tau": 0.25},
    "tau 1": {"tau": 1.0},
    "evidence 5": {"evidence": 5.0},
    "evidence 100": {"evidence": 100.0},
    "3 folds": {"folds": 3},
    "10 folds": {"folds": 10},
    "one condition": {"max_conditions": 1},
    "three conditions": {"max_conditions": 3},
    "the base's baseline": {},
}
ABLATED = ["default", "n = 500", "x5 > .5 and x6 > .5", "no group", "no group, n = 500"]
ON_BASES = ["default", "minority 5 %", "nonlinear membership", "no group"]
BASES = ["boosted trees", "random forest"]
FROZEN = ["right", "right, in steps", "level off", "slope off", "another place", "another place, no group"]
SIZES = [
    (1000, 1.5),
    (1000, 1.8),
    (1000, 2.2),
    (4000, 1.3),
    (4000, 1.4),
    (4000, 1.6),
    (20000, 1.15),
    (20000, 1.2),
]


def units(parts, seeds, null_seeds):
    """Every unit: which part, which setting, which variant, which seed."""
    if "a" in parts:
        yield from (("a", s, "", seed) for seed, s in product(range(seeds), SETTINGS))
    if "n" in parts:
        yield from (("n", f, "", seed) for seed, f in product(range(null_seeds), FAMILIES))
    if "c" in parts:
        yield from (("c", s, v, seed) for seed, s, v in product(range(min(seeds, 30)), ABLATED, ABLATIONS))
    if "b" in parts:
        yield from (("b", s, b, seed) for seed, s, b in product(range(min(seeds, 20)), ON_BASES, BASES))
    if "f" in parts:
        counts = {"right": null_seeds, "right, in steps": null_seeds}
        yield from (("f", s, "", seed) for s in FROZEN for seed in range(counts.get(s, 4 * seeds)))
    if "d" in parts:
        yield from (("d", f"{n}", f"{rho}", seed) for seed, (n, rho) in product(range(seeds), SIZES))


def fitted(model, X, y):
    start = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - start


def run_planted(setting, _, seed):
    from drosurv import CoxPH, RepairedCox, SubgroupRobustCox

    train, test, inside = draw(setting, seed, N_TEST)
    models = {
        "Cox": CoxPH(),
        "SubgroupRobust": SubgroupRobustCox(random_state=0, recalibrate=False),
        "boosted trees": BoostedTrees(),
        "repair": RepairedCox(CoxPH(), random_state=seed),
    }
    if inside[0].any():
        models["knows the group"] = GroupCox(inside)
    rows, follow_up = [], None
    for name, model in models.items():
        model, seconds = fitted(model, train.X, train.y)
        follow_up = follow_up or model.follow_up_
        rows.append(measured(name, model, follow_up, test, inside[1], seconds))
    return rows


def run_null(family, _, seed):
    from drosurv import RepairedCox

    X, y, base = draw_null(family, seed)
    model, seconds = fitted(RepairedCox(base, random_state=seed), X, y)
    es = [attempt.e for attempt in model.attempts_ if np.isfinite(attempt.e)]
    return [
        {
            "method": "repair",
            "repairs": len(model.repairs_),
            "largest_e": max(es, default=np.nan),
            "attempts": len(model.attempts_),
            "rules": "; ".join(repair.who for repair in model.repairs_),
            "seconds": seconds,
        }
    ]


def run_ablation(setting, variant, seed):
    from drosurv import CoxPH, RepairedCox

    train, test, inside = draw(setting, seed, N_TEST)
    model, seconds = fitted(RepairedCox(CoxPH(), random_state=seed, **ABLATIONS[variant]), train.X, train.y)
    if variant == "the base's baseline":
        model._factor = None
    return [measured("repair", model, model.follow_up_, test, inside[1], seconds)]


def run_base(setting, name, seed):
    from sksurv.ensemble import RandomSurvivalForest

    from drosurv import CoxPH, RepairedCox

    train, test, inside = draw(setting, seed, N_TEST)
    forest = RandomSurvivalForest(60, min_samples_leaf=30, max_features=0.5, random_state=0, low_memory=False)
    base = BoostedTrees() if name == "boosted trees" else forest
    follow_up = CoxPH().fit(train.X, train.y).follow_up_
    model, seconds = fitted(RepairedCox(base, random_state=seed), train.X, train.y)
    return [
        measured(name, model.base_, follow_up, test, inside[1]),
        measured(f"{name}, repaired", model, follow_up, test, inside[1], seconds),
    ]


def run_frozen(setting, _, seed):
    return frozen(setting, seed)


def run_size(n, rho, seed):
    """A tenth of the patients have rho times as many events as a model predicts that is right for the others."""
    from drosurv import repair
    from drosurv.repairs.repair_views import detectable

    X, y, inside, predicted = draw_level(int(n), float(rho), seed)
    start = time.perf_counter()
    model = repair(predicted, X, y, frozen=True, random_state=seed)
    seconds = time.perf_counter() - start
    found = found_by(model, SimpleNamespace(X=X), inside)
    return [
        {"method": "repair", "seconds": seconds, "detectable": detectable(0.1 * y["event"].sum())[1], **found}
    ]


RUN = {"a": run_planted, "n": run_null, "c": run_ablation, "b": run_base, "f": run_frozen, "d": run_size}


def work(part, setting, variant, seed):
    """The rows of one unit."""
    return RUN[part](setting, variant, seed)


def main():
    options = parser(__doc__, "repair", seeds=50, nulls=500)
    options.add_argument("--part", default="ancbfd", help="any of a, n, c, b, f, d")
    options.add_argument("--only", help="settings that hold this text")
    options = options.parse_args()
    keys = "part", "setting", "variant", "seed"
    wanted = [
        dict(zip(keys, unit, strict=True))
        for unit in units(options.part, options.seeds, options.nulls)
        if not options.only or options.only in unit[1]
    ]
    measure(options.output, wanted, work, options.jobs, options.minutes)
    load(options.output).to_csv(options.output / "rows.csv", index=False)


if __name__ == "__main__":
    main()
