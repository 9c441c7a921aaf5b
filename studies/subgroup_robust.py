"""Evidence for subgroup-robust Cox: synthetic minorities, three real datasets, null data, and how to set it.

python -m studies.subgroup_robust --jobs 16 --output results      # resumable: finished units are kept
python -m studies.subgroup_robust --render results                # writes docs/subgroup_robust.md
"""

import argparse
import json
import os
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

BASE = {"n": 4000, "d": 10, "minority": 0.15, "membership": "linear"}
VARIED = {
    "minority": [0.05, 0.1, 0.3],
    "membership": ["nonlinear"],
    "d": [5, 50],
    "n": [500, 2000, 20000],
}
ALPHAS, MIN_GROUPS = [0.05, 0.1, 0.2, 0.3, 0.5], [25, 50, 100, 150]
CHOICE = {"n": 4000, "kernel": "forest", "alpha": 0.1, "min_group": 50, "cross_fit": False}
# Shares of 1,000 and 20,000 patients too, because what counts as a small leaf may depend on their number.
MIN_GROUPS_OF = {1000: [12, 25, 50, 100], 20000: [50, 125, 250, 500, 1000]}
NEIGHBORS = [50, 100, 200, 400]
CHOICES = [
    *(
        {**CHOICE, "alpha": a, "min_group": g, "cross_fit": c}
        for a, g, c in product(ALPHAS, MIN_GROUPS, [False, True])
    ),
    *({**CHOICE, "n": n, "min_group": g} for n, sizes in MIN_GROUPS_OF.items() for g in sizes),
    *({**CHOICE, "kernel": "neighbors", "min_group": g} for g in NEIGHBORS),
]
REAL = ["flc", "support", "seer"]
N_TEST = 4000


def units(seeds, parts):
    settings = [BASE] + [{**BASE, name: level} for name, levels in VARIED.items() for level in levels]
    if "a" in parts:
        yield from ({"part": "a", **setting, "seed": s} for setting, s in product(settings, range(seeds)))
    if "b" in parts:
        yield from (
            {"part": "b", "data": name, "seed": s} for name, s in product(REAL, range(min(seeds, 10)))
        )
    if "c" in parts:
        sizes = product([BASE["n"], *VARIED["n"]], range(seeds))
        yield from ({"part": "c", **BASE, "minority": 0.0, "n": n, "seed": s} for n, s in sizes)
    if "d" in parts:
        for setting, s in product(CHOICES, range(min(seeds, 20))):
            yield {"part": "d", **setting, "seed": s}
    if "e" in parts:
        yield from (
            {"part": "e", "minority": m, "seed": s} for m, s in product([0.15, 0.0], range(2 * seeds))
        )


def models():
    from drosurv import CoxPH, DROCox, GroupDROCox, SubgroupRobustCox

    return {
        "plain Cox": CoxPH(),
        "DRO-COX, paper, alpha .2": DROCox(0.2, "paper"),
        "DRO-COX, tight, alpha .2": DROCox(0.2),
        "DRO-COX, CVaR, alpha .2": DROCox(0.2, "cvar"),
        "subgroup-robust": SubgroupRobustCox(random_state=0),
        "subgroup-robust, cross-fitted": SubgroupRobustCox(random_state=0, cross_fit=True),
        "told the groups": GroupDROCox(),
    }


def fitted(model, X, y, groups):
    if type(model).__name__ == "GroupDROCox":
        return model.fit(X, y, sensitive_features=groups)
    return model.fit(X, y)


def patient_gains(model, X, y):
    """Each patient's likelihood gain, the curves given wherever it reads them.

    The null model is read exactly, so a coarser grid of the model's curves would pass for a gain.
    """
    from drosurv.metrics import likelihood_gains

    parts = []
    for rows in np.array_split(np.arange(len(X)), -(-len(X) // 250)):
        times = np.unique(np.concatenate([y["time"][rows], model.follow_up_.event_percentiles]))
        curves = model.predict_survival_function(X.iloc[rows], times=times)
        parts.append(likelihood_gains(model.follow_up_, y[rows], curves, times))
    return np.concatenate(parts)


def scores(model, X, y, rows):
    """c-index and likelihood gain over the null model with their standard errors, for each named set of rows."""
    from drosurv.metrics import concordance_counts

    risk, gains = model.predict(X), patient_gains(model, X, y)
    out = {}
    for name, inside in rows.items():
        pairs = concordance_counts(y[inside], risk[inside], rule="harrell")
        c = pairs.numerator.sum() / pairs.denominator.sum()
        # A patient moves the c-index through all his pairs, each of which has two patients.
        influence = 2 * (pairs.numerator - c * pairs.denominator) / pairs.denominator.sum()
        out[name] = {
            "c": float(c),
            "c_se": float(np.sqrt((influence**2).sum())),
            "gain": float(gains[inside].mean()),
            "gain_se": float(gains[inside].std(ddof=1) / np.sqrt(inside.sum())),
            "n": int(inside.sum()),
        }
    return out, gains


def synthetic(setting, seed):
    from drosurv.datasets import make_hidden_minority

    made = [
        make_hidden_minority(
            n_samples=n,
            n_features=setting["d"],
            minority=setting["minority"],
            membership=setting["membership"],
            random_state=1000 * part + seed,
        )
        for part, n in enumerate((setting["n"], N_TEST))
    ]
    inside = (made[1].sensitive_features["membership"] == "minority").to_numpy()
    rows = {"everyone": np.ones(N_TEST, bool)} | ({"minority": inside} if inside.any() else {})
    return (*made, rows)


def run_synthetic(unit):
    train, test, rows = synthetic(unit, unit["seed"])
    found = models()
    if unit["minority"] == 0:
        del found["told the groups"]
    out = {}
    for name, model in found.items():
        fitted(model, train.X, train.y, train.sensitive_features)
        out[name] = scores(model, test.X, test.y, rows)[0]
    return out


def worst_found(X, gains, seed):
    """Gain of the worst 15 % that a forest, which never saw them, points to."""
    from sklearn.ensemble import RandomForestRegressor

    half = np.random.default_rng(seed).permutation(len(X)) < len(X) // 2
    forest = RandomForestRegressor(200, min_samples_leaf=25, random_state=0, n_jobs=1)
    predicted = forest.fit(X[half], gains[half]).predict(X[~half])
    worst = gains[~half][predicted <= np.quantile(predicted, 0.15)]
    return {
        "gain": float(worst.mean()),
        "gain_se": float(worst.std(ddof=1) / np.sqrt(len(worst))),
        "n": len(worst),
    }


def run_real(unit):
    from drosurv import datasets
    from drosurv.metrics import brier_against_null

    data = getattr(datasets, f"load_{unit['data']}")()
    train, _, test = datasets.split(data, unit["seed"])
    mean, deviation = train.X.mean(), train.X.std(ddof=0)
    X, X_test = (train.X - mean) / deviation, (test.X - mean) / deviation
    rows = {"everyone": np.ones(len(test), bool)}
    for attribute in test.sensitive_features:
        for label in sorted(test.sensitive_features[attribute].unique()):
            rows[f"{attribute} {label}"] = (test.sensitive_features[attribute] == label).to_numpy()
    out = {}
    for name, model in models().items():
        fitted(model, X, train.y, train.sensitive_features)
        measured, gains = scores(model, X_test, test.y, rows)
        # Everybody's contributions at the same times, so that groups can be compared.
        brier = brier_against_null(train.y, test.y, model.predict_survival_function(X_test))
        for label, inside in rows.items():
            own, null = brier.model[inside], brier.null[inside]
            share = own.sum() / null.sum()
            measured[label]["skill"] = float(1 - share)
            measured[label]["skill_se"] = float(np.sqrt(((own - share * null) ** 2).sum()) / null.sum())
        measured["worst 15 %"] = worst_found(X_test, gains, unit["seed"])
        out[name] = measured
    return out


def run_setting(unit):
    from drosurv import SubgroupRobustCox
    from drosurv.datasets import make_hidden_minority

    train, test, rows = synthetic({**BASE, "n": unit["n"]}, unit["seed"])
    model = SubgroupRobustCox(**{name: unit[name] for name in CHOICE if name != "n"}, random_state=0)
    model.fit(train.X, train.y)
    measured = scores(model, test.X, test.y, rows)[0]
    # What somebody who does not know the group can see: half as many patients again, and the worst found there.
    seen = make_hidden_minority(n_samples=N_TEST // 2, random_state=2000 + unit["seed"])
    measured["held out"] = worst_found(seen.X, patient_gains(model, seen.X, seen.y), unit["seed"])
    return {"subgroup-robust": measured}


def run_rules(unit):
    from drosurv import CoxPH
    from drosurv.insight import worst_off

    train, test, rows = synthetic({**BASE, "minority": unit["minority"]}, unit["seed"])
    found = worst_off(CoxPH().fit(train.X, train.y), test.X, test.y, y_train=train.y)
    reported = found.groups
    inside = np.zeros(N_TEST, bool)
    if reported:
        inside = np.asarray(reported[0].rule.holds(test.X), bool)
    truth = rows.get("minority", np.zeros(N_TEST, bool))
    either = (inside | truth).sum()
    return {"reported": bool(reported), "overlap": float((inside & truth).sum() / either) if either else 0.0}


RUN = {"a": run_synthetic, "b": run_real, "c": run_synthetic, "d": run_setting, "e": run_rules}


def work(unit, folder):
    name = "-".join(f"{key}={value}" for key, value in unit.items()).replace("/", "_")
    path = folder / f"{name}.json"
    if path.exists():
        return json.loads(path.read_text())["seconds"]
    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    with threadpool_limits(1):
        result = RUN[unit["part"]](unit)
    seconds = time.perf_counter() - start
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps({"unit": unit, "seconds": seconds, "result": result}))
    os.replace(part, path)
    return seconds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("results/subgroup_robust"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--part", default="abcde", help="any of a, b, c, d, e")
    parser.add_argument("--render", type=Path, help="write docs/subgroup_robust.md from this folder and stop")
    options = parser.parse_args()
    if options.render:
        from studies.subgroup_robust_document import write

        write(options.render, Path(__file__).parents[1] / "docs" / "subgroup_robust.md")
        return
    from joblib import Parallel, delayed

    options.output.mkdir(parents=True, exist_ok=True)
    wanted = list(units(options.seeds, options.part))
    # The first unit of each part alone, so that kernels are compiled once before the workers load them.
    for part in options.part:
        own = [unit for unit in wanted if unit["part"] == part]
        # Time grows about as the number of patients.
        size = sum(unit.get("n", BASE["n"]) for unit in own) / own[0].get("n", BASE["n"])
        minutes = work(own[0], options.output) * size / options.jobs / 60
        print(f"part {part}: {len(own)} units, at most about {minutes:.1f} minutes", flush=True)
    Parallel(options.jobs, verbose=1)(delayed(work)(unit, options.output) for unit in wanted)


def work_done(folder):
    """Number of finished units and the minutes they took together."""
    taken = [json.loads(path.read_text())["seconds"] for path in Path(folder).glob("*.json")]
    return len(taken), sum(taken) / 60


def load(folder):
    """All finished units as one long table: unit fields, method, rows, measures."""
    records = []
    for path in sorted(Path(folder).glob("*.json")):
        held = json.loads(path.read_text())
        if held["unit"]["part"] == "e":
            records.append({**held["unit"], **held["result"]})
            continue
        for method, measured in held["result"].items():
            for rows, values in measured.items():
                size = values.pop("n")
                records.append({**held["unit"], "method": method, "rows": rows, "size": size, **values})
    return pd.DataFrame(records)


if __name__ == "__main__":
    main()
