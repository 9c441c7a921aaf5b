"""Evidence for subgroup-robust Cox: synthetic minorities, three real datasets, null data, and how to set it.

python -m experiments.studies.subgroup_robust --jobs 16 --output results      # resumable: finished units are kept
"""

import argparse
import json
import os
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.studies.gains import patient_gains

BASE = {"n": 4000, "d": 10, "minority": 0.15, "membership": "linear"}
VARIED = {
    "minority": [0.05, 0.1, 0.3],
    "membership": ["nonlinear"],
    "d": [5, 50],
    "n": [500, 2000, 20000],
}
SETTINGS = [BASE] + [{**BASE, name: level} for name, levels in VARIED.items() for level in levels]
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


def setting_name(setting):
    """What a setting changes, in words."""
    return (
        ", ".join(f"{name} = {level}" for name, level in setting.items() if level != BASE[name])
        or "the default"
    )


def units(seeds, forest_seeds, parts):
    """What is to be run, seed by seed, so that whatever is finished is balanced; what takes longest comes last."""
    nobody = [{**BASE, "minority": 0.0, "n": n} for n in (BASE["n"], *VARIED["n"])]
    found = []
    for seed in range(seeds):
        compared_on = [
            *({"part": "a", **setting} for setting in SETTINGS),
            *({"part": "b", "data": name} for name in REAL if seed < 10),
            *({"part": "c", **setting} for setting in nobody),
        ]
        found += [{**unit, "seed": seed, "forest": False} for unit in compared_on]
        found += [{**unit, "seed": seed, "forest": True} for unit in compared_on if seed < forest_seeds]
        found += [{"part": "d", **setting, "seed": seed} for setting in CHOICES if seed < 20]
    slow = [unit for unit in found if unit.get("forest")]
    slow.sort(key=lambda unit: unit.get("n", 0) > BASE["n"])
    return [unit for unit in (*(u for u in found if not u.get("forest")), *slow) if unit["part"] in parts]


# The benchmark's methods, in the order of the tables.
CONTENDERS = ["cox", "dro-paper", "dro", "dro-cvar", "subgroup-robust"]
RIVALS = ["cox-interactions", "repair", "trees", "trees-subgroup-robust", "deepsurv"]
# Takes longer than all others together, so it is a unit of its own.
FOREST = "forest"
CROSS_FITTED = "SubgroupRobustCox, cross-fitted"
OWN_EFFECTS = "own effects (knows the groups)"


def methods(groups_known, forest):
    """How each method is fitted, and what it reads of a part; where there are groups, also those that know them."""
    from drosurv import SubgroupRobustCox
    from experiments.benchmark.contenders import CONTENDERS as KNOWN
    from experiments.benchmark.contenders import RIDGE, InteractionsCox

    class RidgeCox(InteractionsCox):
        """Without products: the own effects are columns already."""

        most = 0

    def cross_fitted(train, seed):
        return SubgroupRobustCox(cross_fit=True, l2=RIDGE, random_state=seed, recalibrate=False).fit(
            train.X, train.y
        )

    def features(part, _):
        return part

    if forest:
        return {KNOWN[FOREST].label: (KNOWN[FOREST].fit, features)}
    found = {KNOWN[name].label: (KNOWN[name].fit, features) for name in CONTENDERS}
    found[CROSS_FITTED] = cross_fitted, features
    found |= {KNOWN[name].label: (KNOWN[name].fit, features) for name in RIVALS}
    if groups_known:
        found[KNOWN["group-dro"].label] = KNOWN["group-dro"].fit, features
        found[OWN_EFFECTS] = RidgeCox, with_own_effects
    return found


def with_own_effects(part, train):
    """The same patients; groups but the largest have columns of their own, one for the level and one per feature."""
    levels = pd.Series(train.cells).value_counts().index[1:]
    own = [(part.cells == label).astype(float)[:, None] for label in levels]
    return replace(part, X=pd.DataFrame(np.hstack([part.X, *own, *(inside * part.X for inside in own)])))


def compared(train, test, rows, unit):
    """c-index and likelihood gain of every method, for each named set of rows, and every patient's gain."""
    out, gains = {}, {}
    for name, (fit, read) in methods(unit.get("minority", 1) > 0, unit["forest"]).items():
        began = time.process_time()
        model = fit(read(train, train), unit["seed"])
        seconds = time.process_time() - began
        found, gains[name] = measured(model, train, read(test, train), rows)
        out[name] = {label: {**values, "fit_seconds": seconds} for label, values in found.items()}
    return out, gains


def measured(model, train, test, rows):
    """c-index and likelihood gain of a model for each named set of rows, and every patient's gain."""
    from drosurv.metrics import concordance_index

    risk, gains = model.predict(test.X), patient_gains(model, train.y, test.X, test.y)
    found = {
        label: {
            "c": concordance_index(test.y[inside], risk[inside]),
            "gain": float(gains[inside].mean()),
            "n": int(inside.sum()),
        }
        for label, inside in rows.items()
    }
    return found, gains


def made_part(made):
    """Simulated patients as the benchmark's methods take them."""
    from experiments.benchmark.encoded_part import EncodedPart

    groups = made.sensitive_features
    return EncodedPart(made.X, made.y, groups, groups["membership"].to_numpy())


def synthetic(setting, seed):
    """Training and test patients, and the named rows of these."""
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
    train, test = map(made_part, made)
    inside = test.cells == "minority"
    rows = {"everyone": np.ones(N_TEST, bool)} | ({"minority": inside} if inside.any() else {})
    return train, test, rows


def run_synthetic(unit):
    train, test, rows = synthetic(unit, unit["seed"])
    return compared(train, test, rows, unit)[0]


def worst_found(X, gains, seed):
    """Gain of the worst 15 % that a forest, which never saw them, points to."""
    from sklearn.ensemble import RandomForestRegressor

    half = np.random.default_rng(seed).permutation(len(X)) < len(X) // 2
    forest = RandomForestRegressor(200, min_samples_leaf=25, random_state=0, n_jobs=1)
    predicted = forest.fit(X[half], gains[half]).predict(X[~half])
    worst = gains[~half][predicted <= np.quantile(predicted, 0.15)]
    return {"gain": float(worst.mean()), "n": len(worst)}


def run_real(unit):
    from drosurv import datasets
    from experiments.benchmark.encoded_part import split_in_two

    train, test = split_in_two(getattr(datasets, f"load_{unit['data']}")(), unit["seed"])
    rows = {"everyone": np.ones(len(test.y), bool)}
    for attribute in test.attributes:
        for label in sorted(test.attributes[attribute].unique()):
            rows[f"{attribute} {label}"] = (test.attributes[attribute] == label).to_numpy()
    out, gains = compared(train, test, rows, unit)
    for name, found in out.items():
        found["worst 15 %"] = worst_found(test.X, gains[name], unit["seed"])
    return out


def run_setting(unit):
    from drosurv import SubgroupRobustCox
    from drosurv.datasets import make_hidden_minority

    train, test, rows = synthetic({**BASE, "n": unit["n"]}, unit["seed"])
    model = SubgroupRobustCox(
        **{name: unit[name] for name in CHOICE if name != "n"}, random_state=0, recalibrate=False
    )
    model.fit(train.X, train.y)
    found, _ = measured(model, train, test, rows)
    # What somebody who does not know the group can see: half as many patients again, and the worst found there.
    seen = made_part(make_hidden_minority(n_samples=N_TEST // 2, random_state=2000 + unit["seed"]))
    found["held out"] = worst_found(seen.X, patient_gains(model, train.y, seen.X, seen.y), unit["seed"])
    return {"SubgroupRobustCox": found}


RUN = {"a": run_synthetic, "b": run_real, "c": run_synthetic, "d": run_setting}


def work(unit, folder):
    name = "-".join(f"{key}={value}" for key, value in unit.items()).replace("/", "_")
    path = folder / f"{name}.json"
    if path.exists():
        return
    from threadpoolctl import threadpool_limits

    start = time.process_time()
    with threadpool_limits(1):
        result = RUN[unit["part"]](unit)
    seconds = time.process_time() - start
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps({"unit": unit, "seconds": seconds, "result": result}))
    os.replace(part, path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("results/subgroup_robust"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument(
        "--forest-seeds", type=int, help="seeds of the random survival forest; as many by default"
    )
    parser.add_argument("--part", default="abcd", help="any of a, b, c, d")
    options = parser.parse_args()
    from joblib import Parallel, delayed

    options.output.mkdir(parents=True, exist_ok=True)
    forest_seeds = options.seeds if options.forest_seeds is None else options.forest_seeds
    wanted = units(options.seeds, forest_seeds, options.part)
    # The first unit alone, so that kernels are compiled once before the workers load them.
    work(wanted[0], options.output)
    Parallel(options.jobs)(delayed(work)(unit, options.output) for unit in wanted)


def load(folder):
    """All finished units as one long table: unit fields, method, rows, measures."""
    records = []
    for path in sorted(Path(folder).glob("*.json")):
        finished = json.loads(path.read_text())
        for method, measured in finished["result"].items():
            for rows, values in measured.items():
                size = values.pop("n")
                records.append({**finished["unit"], "method": method, "rows": rows, "size": size, **values})
    return pd.DataFrame(records)


if __name__ == "__main__":
    main()
