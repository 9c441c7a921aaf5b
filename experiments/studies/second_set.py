"""The models of the documents on datasets on which no choice was made: one run with frozen code, reported as it comes.

Splits are those of the benchmark (60 % to train, 40 % to test) with a seed that was not used before. The datasets and
the rule by which they were taken are in ``experiments/datasets/catalog.py``; rott2, GBSG2, COMPAS and nwtco are shown
apart, and there a cross-validated base is repaired too. Trees and forests are those of the benchmark, which installs
XGBoost; without it that model is left out.

python -m experiments.studies.second_set --output results/second_set --splits 10  # resumable
python -m experiments.studies.second_set --output results/second_set --write      # docs/second_set.md and .csv
python -m experiments.studies.second_set --output results/brands --brands         # hdfail, one brand left out
"""

import re

import numpy as np
from scipy import stats

from experiments.benchmark.contenders import CONTENDERS
from experiments.benchmark.encoded_part import TEST_SHARE, encode, split_in_two
from experiments.datasets.catalog import APART, EVERY, SECOND
from experiments.studies.pages import DOCS, table, write_part, write_table
from experiments.studies.rows import load, measure, parser
from experiments.studies.shift import LABELS, compare, models

SEED = 5700
MEASURES = {"gain": "gain", "c_index": "c-index", "worst_named_gain": "gain of the worst named group"}
BRANDS = ("ST", "Hitachi", "HGST", "WDC")


FLEXIBLE = {
    "forest-ranks": "random survival forest, its ranks through a Cox baseline",
    "trees-tuned": '`CoxPH("trees")`, tuned and refitted',
    "xgboost-tuned": "XGBoost, tuned and refitted",
}
REPAIRED = {"repair-cv": "`RepairedCox(CoxPHCV())`"}
# Models whose gains the table of datasets has; the file of numbers has all.
GAINS = {
    "cox": "Cox",
    "cox-recalibrated": "recalibrated",
    "cox-cv": "CV",
    "repair-cv": "repaired CV",
    "forest-ranks": "forest",
}


def chosen(kind):
    """Models of one kind by name."""
    if kind == "trees":
        return {name: CONTENDERS[name] for name in FLEXIBLE if CONTENDERS[name].installed}
    if kind == "repair":
        from drosurv import CoxPHCV, RepairedCox

        return {"repair-cv": RepairedCox(CoxPHCV(random_state=0), random_state=0)}
    return models()


def work(dataset, split, kind):
    """The rows of one split: one per model of a kind."""
    return compare(*split_in_two(EVERY.load(dataset), SEED * 1000 + split), chosen(kind), split)


def leave_out(brand):
    """Train on the drives of the other brands, test on those of one brand."""
    dataset = EVERY.load("hdfail")
    out = dataset.sensitive_features["brand"].to_numpy() == brand
    kept = dataset.X.drop(columns="brand")
    dataset = type(dataset)(dataset.name, kept, dataset.y, dataset.sensitive_features)
    return compare(*encode(dataset.take(np.flatnonzero(~out)), dataset.take(np.flatnonzero(out))), models())


def brands(rows):
    """What a repair learned on other brands does to each brand, and failures by two counters, in Markdown."""
    body = []
    for brand, found in rows.groupby("brand", sort=False):
        one = found.set_index("model")
        cox, repair = one.loc["cox"], one.loc["repair"]
        size = f"{cox['test']:,} ({cox['test_events']:,})"
        gains = [f"{row['gain']:.4f}" for row in (cox, one.loc["cox-cv"], repair)]
        ranked = [f"{row['c_index']:.4f}" for row in (cox, repair)]
        body.append(
            [brand, size, *gains, *ranked, _plain(repair["rules"]) or "none", repair["checks"] or "–"]
        )
    header = ["brand left out", "drives (failures)", "gain Cox", "gain CV", "gain repaired", "c Cox"]
    lines = table([*header, "c repaired", "repaired group", "drives in it, and O/E"], body)
    dataset = EVERY.load("hdfail")
    failed = dataset.y["event"]
    body = []
    for brand in BRANDS:
        own = (dataset.sensitive_features["brand"] == brand).to_numpy()
        pending, read = ((dataset.X[name] == "1").to_numpy() for name in ("psc", "rer"))
        rates = [failed[own & side].mean() for side in (pending, ~pending, read, ~read)]
        body.append([brand, f"{read[own].mean():.0%}", *(f"{100 * rate:.1f}" for rate in rates)])
    header = ["brand", "drives with read errors", "failed (%): pending sectors", "none pending"]
    return "\n".join([*lines, *table([*header, "read errors", "no read errors"], body)])


def _plain(rules):
    """Conditions on columns of 0 and 1 in words; they come standardised."""
    return re.sub(
        r"(\w+)=(\w+) (?:=|is) (-?)[\d.]+", lambda m: f"{m[1]} {'≠' if m[3] else '='} {m[2]}", rules
    )


def said_by_repairs(rows):
    """How often a repair acted where curves may explain it, what it named, and what that gave, in Markdown."""
    body = []
    for name in APART:
        for model, base in (("repair", "cox"), ("repair-cv", "cox-cv")):
            wide = rows[rows["dataset"] == name].set_index(["model", "split"])
            if model not in wide.index:
                continue
            own = wide.loc[model]
            acted = own[own["repairs"] > 0]
            curved = (acted["curved"].fillna("").str.strip("; ") != "").sum()
            gained = acted["gain"] - wide.loc[base]["gain"].loc[acted.index]
            columns = sorted(
                {found for rule in acted["rules"] for found in re.findall(r"[a-z_]{3,}", rule)} - {"and"}
            )
            body.append(
                [
                    name,
                    "Cox" if base == "cox" else "CoxPHCV",
                    f"{len(acted)} of {len(own)}",
                    ", ".join(columns) or "–",
                    f"{curved}",
                    f"{gained.mean():+.4f}, {(gained > 0).sum()} of {len(gained)}" if len(gained) else "–",
                ]
            )
    header = ["dataset", "base", "splits with a repair", "columns named", "named as a curved effect"]
    return table([*header, "gain over the base there, improved"], body)


def cell(rows, measure, model, datasets):
    """Mean difference from plain Cox over datasets, interval, datasets improved, and those clearly so."""
    wide = rows[rows["dataset"].isin(datasets)].pivot_table(
        index=["dataset", "split"], columns="model", values=measure
    )
    paired = (wide[model] - wide["cox"]).dropna().groupby(level="dataset", sort=False)
    means = paired.mean()
    half = stats.t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
    # As in the file of numbers, which has six decimals: where nothing was repaired, nothing is better.
    mean, better = means.mean(), (means.round(6) > 0).sum()
    return f"{mean:+.4f} ({mean - half:+.4f} to {mean + half:+.4f}), {better} of {len(means)}"


def power(rows, datasets):
    """The median over datasets of the smallest difference in gain whose interval would have left 0."""
    wide = rows[rows["dataset"].isin(datasets)].pivot_table(
        index=["dataset", "split"], columns="model", values="gain"
    )
    paired = (wide["cox-cv"] - wide["cox"]).groupby(level="dataset")
    k = paired.size()
    scale = np.sqrt(1 / k + TEST_SHARE / (1 - TEST_SHARE))
    return (stats.t.ppf(0.975, k - 1) * paired.std() * scale).median()


def summary(rows):
    """Tables in Markdown."""
    have = [name for name in SECOND if name in set(rows["dataset"])]
    labels = LABELS | REPAIRED | FLEXIBLE
    body = [
        [label, *(cell(rows, measure, name, have) for measure in MEASURES)]
        for name, label in labels.items()
        if name in set(rows["model"])
    ]
    lines = [f"### The {len(have)} datasets together", ""]
    lines += table(["model, less plain Cox", *MEASURES.values()], body)
    lines += [
        f"On the median dataset a difference in gain of {power(rows, have):.4f} between `CoxPHCV()` and plain Cox "
        "would have been distinguished from 0.",
        "",
    ]
    lines += ["### What repairs say where an effect may be curved", "", *said_by_repairs(rows)]
    return "\n".join(lines).rstrip("\n")


def each_dataset(rows):
    """Header and rows of the table of each dataset."""
    repairs = rows[rows["model"] == "repair-cv"]
    means = rows.pivot_table(index="dataset", columns="model", values=["gain", "c_index"], sort=False)
    body = []
    for name in (*SECOND, *APART):
        if name not in means.index:
            continue
        acted = repairs.loc[repairs["dataset"] == name, "repairs"]
        gained = [means.loc[name, ("gain", model)] for model in GAINS]
        ranked = [means.loc[name, ("c_index", model)] for model in ("cox", "cox-cv")]
        size = EVERY.card(name)
        numbers = [f"{x:.4f}" for x in gained + ranked]
        body.append(
            [name, f"{size.patients:,} ({size.events:,})", *numbers, f"{(acted > 0).sum()} of {len(acted)}"]
        )
    header = ["dataset", "patients (events)", *(f"gain {label}" for label in GAINS.values())]
    header += ["c Cox", "c CV", "CV repaired in"]
    return header, body


def main():
    options = parser(__doc__, "second_set", splits=10)
    options.add_argument("--brands", action="store_true", help="hdfail with one brand left out instead")
    options = options.parse_args()
    if options.brands:
        units = [{"brand": brand} for brand in BRANDS]
        measure(options.output, units, leave_out, options.jobs, options.minutes)
        rows = load(options.output)
        print(brands(rows))
        if options.write:
            write_part("second_set.md", "python -m experiments.studies.second_set --brands", brands(rows))
        return
    if not options.write:
        units = [
            {"dataset": name, "split": split, "kind": kind}
            for split in range(options.splits)
            for name in (*SECOND, *APART)
            for kind in ("linear", "trees", "repair")
        ]
        measure(options.output, units, work, options.jobs, options.minutes)
    rows = load(options.output)
    text = summary(rows)
    print(text)
    if options.write:
        rows.drop(columns="seconds").round(6).to_csv(
            DOCS / "second_set.csv", index=False, lineterminator="\n"
        )
        write_table("second_set_datasets", *each_dataset(rows))
        write_part("second_set.md", "python -m experiments.studies.second_set", text)


if __name__ == "__main__":
    main()
