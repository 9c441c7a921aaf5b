"""DRO-COX at the settings of the authors' README, beside the published numbers, and CI compared paired.

The README of the authors' repository names learning rate .01, and alpha .15 on FLC and SUPPORT, .2 on SEER. Plain Cox
and DeepSurv are trained at the same learning rate. CI is compared on the same bootstrap draws of the one test set that
all repeats share, averaged over repeats.

python -m experiments.paper.authors_setting --output results/authors --repeats 10 --seer-file SEER.csv   # resumable
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from experiments.fingerprint import data_fingerprint
from experiments.paper.comparison import AGREEMENT, load_published
from experiments.paper.methods import METHODS
from experiments.paper.nearest import AUTHORS_SETTING
from experiments.paper.plan import ATTRIBUTES, DATASET_LABELS
from experiments.paper.run import evaluate_unit, load_dataset
from experiments.paper.unit import DRAWS, Protocol, Unit
from experiments.studies.pages import table
from experiments.studies.rows import load, measure, parser

PAIRS = (("cox", "dro-cox"), ("deepsurv", "deep-dro-cox"))
SHOWN = {
    "concordance_index": "c-index",
    "dynamic_auc": "AUC",
    "log_partial_likelihood": "LPL",
    "individual_disparity": "F_I",
    "group_disparity": "F_G",
    "intersectional_disparity": "F_∩",
    "concordance_imparity": "CI(%)",
}


def work(dataset: str, method: str, repeat: int, seer_file: str | None = None) -> list[dict[str, Any]]:
    """Train one setting and score it on the test set: a row per attribute."""
    lr, alpha = AUTHORS_SETTING[dataset]
    robust = method.endswith("dro-cox")
    grid = (("lr", (lr,)), *([("alpha", (alpha,))] if robust else []))
    unit = Unit(
        dataset,
        ATTRIBUTES[dataset],
        replace(METHODS[method], grid=grid),
        repeat,
        data_fingerprint(load_dataset(dataset, seer_file=seer_file)),
        Protocol(),
    )
    kept = ("attribute", *SHOWN, DRAWS)
    rows = evaluate_unit(unit, seer_file=seer_file)["rows"]
    return [{name: row[name] for name in kept} for row in rows if row["part"] == "test"]


def beside_published(rows: pd.DataFrame) -> str:
    """Our means beside the published ones, in published standard deviations."""
    published = load_published().set_index(["experiment", "method", "metric"])
    body = []
    for experiment in ("flc-age", "support-gender", "seer-race"):
        dataset, _, attribute = experiment.partition("-")
        for _, method in PAIRS:
            own = rows.loc[
                (rows["dataset"] == dataset) & (rows["attribute"] == attribute) & (rows["method"] == method)
            ]
            if own.empty:
                continue
            cells, near = [], 0
            for metric in SHOWN:
                mean, sd = published.loc[(experiment, method, metric), ["mean", "sd"]]
                value = own[metric].mean() * (100 if metric == "concordance_imparity" else 1)
                z = (value - mean) / sd
                near += abs(z) <= AGREEMENT
                cells.append(f"{value:.4f} / {mean:.4f} ({z:+.1f})")
            title = f"{DATASET_LABELS[dataset]} ({attribute})"
            body.append([title, METHODS[method].label, *cells, f"{near} of {len(SHOWN)}"])
    return "\n".join(table(["table", "method", *SHOWN.values(), "agree"], body))


def paired(rows: pd.DataFrame) -> str:
    """CI of DRO-COX less that of the unregularised model, with the paired bootstrap interval."""
    body = []
    for dataset, attributes in ATTRIBUTES.items():
        for attribute in attributes:
            for plain, robust in PAIRS:
                here = rows.loc[(rows["dataset"] == dataset) & (rows["attribute"] == attribute)]
                own = [here.loc[here["method"] == method] for method in (plain, robust)]
                if any(found.empty for found in own):
                    continue
                values = [100 * found["concordance_imparity"].mean() for found in own]
                draws = [100 * np.mean(np.array(found[DRAWS].tolist(), dtype=float), axis=0) for found in own]
                low, high = np.nanquantile(draws[1] - draws[0], [0.025, 0.975])
                said = "lower" if high < 0 else "higher" if low > 0 else ""
                network = "MLP" if plain == "deepsurv" else "linear"
                body.append(
                    [
                        f"{DATASET_LABELS[dataset]} ({attribute})",
                        network,
                        *(f"{value:.2f}" for value in values),
                        f"{values[1] - values[0]:+.2f} [{low:+.2f}, {high:+.2f}]",
                        said,
                    ]
                )
    header = [
        "table",
        "network",
        "Cox or DeepSurv",
        "DRO-COX",
        "difference [95 %]",
        "beyond the sampling error",
    ]
    return "\n".join(table(header, body))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing and print both tables."""
    options = parser(__doc__, "authors", repeats=10)
    options.add_argument("--seer-file", help="copy of SEER in the authors' row order")
    given = options.parse_args(arguments)
    units = [
        {"dataset": dataset, "method": method, "repeat": repeat}
        for repeat in range(given.repeats)
        for pair in PAIRS
        for method in pair
        for dataset in ATTRIBUTES
    ]
    measure(given.output, units, partial(work, seer_file=given.seer_file), given.jobs, given.minutes)
    rows = load(given.output)
    print(f"{rows['repeat'].nunique()} repeats\n")
    print(beside_published(rows))
    print(paired(rows))


if __name__ == "__main__":
    main()
