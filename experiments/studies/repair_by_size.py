"""How many patients a repair needs: by the number of patients, the kind of group, and what differs in it.

The generator is not the one with which repairs were designed: columns are correlated, skewed and categorical, hazards
rise with time, and six in ten patients have the event before the study ends. About 15 % belong to the group. In it the
hazard is 2.5 times as high ("level"), or the effect of the strongest column is reversed ("effect"). Without a group a
linear Cox model is right.

python -m experiments.studies.repair_by_size --output results/repair_by_size --seeds 20   # resumable
python -m experiments.studies.repair_by_size --output results/repair_by_size --write      # docs/repair_by_size.md
"""

import time
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd

from drosurv import CoxPH, RepairedCox, Surv
from experiments.studies.pages import DOCS, table, write_part
from experiments.studies.repair_scores import measured
from experiments.studies.rows import load, measure, parser

SIZES = (600, 1000, 2000, 3000)
GROUPS = ("one column", "two columns", "category", "sum of three columns", "no group")
KINDS = ("level", "effect")
N_TEST = 4000


def draw(group, kind, n, seed):
    """Patients, and who of them belongs to the group."""
    rng = np.random.default_rng([seed, n, GROUPS.index(group), KINDS.index(kind)])
    common = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "age": 62 + 11 * (0.5 * common + np.sqrt(0.75) * rng.normal(size=n)),
            "marker": np.exp(0.5 + 0.7 * (0.4 * common + np.sqrt(0.84) * rng.normal(size=n))),
            "pressure": 130 + 18 * rng.normal(size=n),
            "weight": rng.gamma(25, 3, size=n),
            "score": rng.binomial(10, 0.4, size=n).astype(float),
            "male": rng.integers(0, 2, size=n).astype(float),
            "clinic": rng.choice(["A", "B", "C", "D"], size=n, p=[0.4, 0.25, 0.2, 0.15]),
        }
    )
    z = {
        "age": (frame["age"] - 62) / 11,
        "marker": (frame["marker"] - 2.1) / 1.65,
        "pressure": (frame["pressure"] - 130) / 18,
        "weight": (frame["weight"] - 75) / 15,
        "score": (frame["score"] - 4) / 1.55,
    }
    inside = {
        "one column": frame["weight"] > 90.2,
        "two columns": (frame["weight"] > 79) & (frame["pressure"] > 134),
        "category": frame["clinic"] == "D",
        "sum of three columns": z["weight"] + z["pressure"] + z["score"] > 1.8,
        "no group": pd.Series(np.zeros(n, bool)),
    }[group].to_numpy()
    risk = 0.7 * z["age"] + 0.4 * z["marker"] - 0.3 * z["score"] + 0.3 * frame["male"]
    other = np.log(2.5) if kind == "level" else -1.4 * z["age"]
    risk = (risk + np.where(inside, other, 0.0)).to_numpy()
    event = (rng.exponential(size=n) / np.exp(risk - 0.3)) ** (1 / 1.4)
    end = np.minimum(rng.uniform(0.3, 2.0, size=n), 1.6)
    return SimpleNamespace(X=frame, y=Surv.from_arrays(event <= end, np.minimum(event, end))), inside


def work(n, group, kind, seed):
    """One repair of plain Cox, judged on new patients."""
    from sklearn.pipeline import make_pipeline

    from drosurv.tables import TableEncoder

    train, _ = draw(group, kind, n, seed)
    test, inside = draw(group, kind, N_TEST, 100_000 + seed)
    base = make_pipeline(TableEncoder(), CoxPH(l2=1e-4, recalibrate=False))
    start = time.perf_counter()
    model = RepairedCox(base, random_state=seed).fit(train.X, train.y)
    seconds = time.perf_counter() - start
    encoder = TableEncoder().fit(train.X)
    plain = measured(
        "cox",
        CoxPH(l2=1e-4, recalibrate=False).fit(encoder.transform(train.X), train.y),
        train.y,
        SimpleNamespace(X=encoder.transform(test.X), y=test.y),
        inside,
    )
    repaired = measured("repair", model, train.y, test, inside, seconds)
    events = float(train.y["event"].mean())
    return [{**plain, "events": events}, {**repaired, "events": events}]


def summary(rows):
    """How often a group was found, and what that gave its members, by number of patients."""
    rows = rows.fillna({"jaccard": 0.0})
    cox, repaired = (
        rows[rows["method"] == method].set_index(["n", "group", "kind", "seed"])
        for method in ("cox", "repair")
    )
    gained = (repaired["minority"] - cox["minority"]).rename("gained")
    overall = (repaired["overall"] - cox["overall"]).rename("overall_gained")
    found = repaired[["repairs", "jaccard"]].join(gained).join(overall)
    body = []
    for group, kind in product(GROUPS, KINDS):
        if (group, kind) == ("no group", "effect"):
            continue
        cells = []
        for n in SIZES:
            try:
                runs = found.xs((n, group, kind), level=("n", "group", "kind"))
            except KeyError:
                cells.append("–")
                continue
            acted = f"{int((runs['repairs'] > 0).sum())} of {len(runs)}"
            right = f"{int((runs['jaccard'] >= 0.5).sum())}"
            cells.append(
                acted
                if group == "no group"
                else f"{acted}, right {right}; {runs['gained'].mean():+.3f} / {runs['overall_gained'].mean():+.3f}"
            )
        body.append([group, kind, *cells])
    return "\n".join(table(["group", "what differs", *(f"n = {n:,}" for n in SIZES)], body))


def main():
    options = parser(__doc__, "repair_by_size", seeds=20)
    options.add_argument("--kinds", default=",".join(KINDS), help="what differs in the group")
    options = options.parse_args()
    if not options.write:
        units = [
            {"n": n, "group": group, "kind": kind, "seed": seed}
            for kind, seed, n, group in product(options.kinds.split(","), range(options.seeds), SIZES, GROUPS)
            # Without a group nothing differs.
            if (group, kind) != ("no group", "effect")
        ]
        measure(options.output, units, work, options.jobs, options.minutes)
    rows = load(options.output)
    print(summary(rows))
    if options.write:
        rows.drop(columns=["seconds", "largest_e"]).round(5).to_csv(
            DOCS / "repair_by_size.csv", index=False, lineterminator="\n"
        )
        write_part("repair_by_size.md", "python -m experiments.studies.repair_by_size", summary(rows))


if __name__ == "__main__":
    main()
