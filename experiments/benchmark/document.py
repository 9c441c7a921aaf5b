"""The benchmark as a Markdown document that the command writes, with its diagrams."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from drosurv.files import write_file
from drosurv.presentation import counted, p_text, write_figure
from experiments.benchmark.contenders import Contender
from experiments.benchmark.encoded_part import FEWEST_OF_CELL, FEWEST_OF_LEVEL, TEST_SHARE
from experiments.benchmark.measures import FEWEST_EVENTS, FEWEST_PATIENTS, FOUND_SHARE, MEASURES, Measure
from experiments.benchmark.standings import (
    RANKED,
    Ranks,
    alike,
    differences,
    over_datasets,
    rank,
    rank_diagram,
)
from experiments.cells import table_of_cells
from experiments.datasets import card
from experiments.runs import RunRecord

DRAWN = ("gain", "c_index", "found_gain", "worst_named_gain")
_SIGNS = {"better": "+", "same": "=", "worse": "−"}
_MEASURE = {measure.name: measure for measure in MEASURES}
_TOO_LITTLE = "Fewer than two datasets, or three methods, are complete: there is nothing to rank."
_DIFFERENCES = (
    "Mean over datasets of each method less Cox on the same splits. The interval takes datasets as the sample "
    "(t, 95 %). *Better*, *same* and *worse* count datasets whose own interval, with the variance of overlapping "
    "splits (Nadeau and Bengio), leaves 0 on one side or holds it. Intervals are not widened for the number of "
    "methods and measures, of which one in twenty would leave 0 by chance; the ranks below are."
)


def write_document(
    path: str | Path,
    results: pd.DataFrame,
    contenders: Sequence[Contender],
    *,
    splits: int,
    command: str,
    runs: Sequence[RunRecord],
    missing: int = 0,
    unavailable: Sequence[str] = (),
) -> list[Path]:
    """Write the Markdown file, and its diagrams beside it, called after it.

    `results` has one row per dataset, method and split; the contenders, `splits` and `command` are what was asked for;
    `runs` are what the results cost; `missing` counts units that are not done yet, and `unavailable` names datasets
    that could not be loaded.
    """
    path = Path(path)
    labels = {contender.name: contender.label for contender in contenders}
    ranks = {measure.name: rank(results, measure) for measure in RANKED}
    by_dataset = {measure.name: differences(results, measure) for measure in RANKED}
    drawn = {}
    for name in DRAWN:
        found = ranks[name]
        if found is not None:
            drawn[name] = path.with_name(f"{path.stem}-{name.replace('_', '-')}.svg")
            title = f"Mean rank by {_MEASURE[name].label}, {counted(found.datasets, 'dataset')}"
            write_figure(rank_diagram(found, labels, title), drawn[name])
    sections = [
        "# Real data: which method, and for whom",
        _opening(results, contenders, splits, command),
        _incomplete(missing, unavailable),
        "## What came out",
        _findings(by_dataset, ranks, labels),
        "## Differences from Cox",
        _DIFFERENCES,
        *(_difference_table(by_dataset[measure.name], measure, labels) for measure in RANKED),
        "## Ranks",
        _rank_table(ranks, labels),
        *(f"![Ranks by {_MEASURE[name].label}]({file.name})" for name, file in drawn.items()),
        "## Wins and losses by dataset",
        _win_table(by_dataset, labels),
        "## Levels",
        _level_table(results, labels),
        "## How it was done",
        _protocol(),
        _method_table(contenders),
        _dataset_table(results),
        "## What failed",
        _failures(results, labels),
        "## What it cost",
        _cost(runs),
    ]
    write_file(path, "\n\n".join(section.strip() for section in sections if section.strip()) + "\n")
    return [path, *drawn.values()]


def _opening(results: pd.DataFrame, contenders: Sequence[Contender], splits: int, command: str) -> str:
    datasets = results["dataset"].nunique()
    patients = sum(card(str(name)).patients for name in results["dataset"].unique())
    return (
        f"{counted(len(contenders), 'method')} on {counted(datasets, 'real dataset')} ({patients:,} people), "
        f"{counted(splits, 'split')} each, "
        f"{100 * (1 - TEST_SHARE):.0f} % to train and {100 * TEST_SHARE:.0f} % to test. Written by `{command}`; "
        "another seed draws other splits."
    )


def _incomplete(missing: int, unavailable: Sequence[str]) -> str:
    """What a reader must know of an unfinished benchmark; nothing of a finished one."""
    missing_parts = []
    if missing:
        missing_parts.append(
            f"{counted(missing, 'fit')} {'is' if missing == 1 else 'are'} missing: run the same command again, and "
            "read nothing final here."
        )
    if unavailable:
        missing_parts.append(f"Left out, because they could not be loaded: {', '.join(unavailable)}.")
    return f"**Not complete.** {' '.join(missing_parts)}" if missing_parts else ""


def _findings(
    by_dataset: dict[str, pd.DataFrame], ranks: dict[str, Ranks | None], labels: dict[str, str]
) -> str:
    lines = []
    for name in ("gain", "c_index", "ibs", "worst_named_gain", "found_gain", "found_oe"):
        measure, found = _MEASURE[name], ranks[name]
        if found is None:
            continue
        first = alike(found.mean.to_list(), found.critical_difference)
        last = next((end for start, end in first if start == 0), 0)
        best = "; ".join(labels[str(method)] for method in found.mean.index[: last + 1])
        summary = over_datasets(by_dataset[name]).set_index("method")
        helped = _beyond(summary, measure.better, labels)
        hurt = _beyond(summary, -measure.better, labels)
        lines.append(
            f"- **{measure.label}** ({measure.meaning}): best mean ranks, not clearly below the first: {best}. "
            f"Better than Cox over datasets: {helped or 'none'}. Worse: {hurt or 'none'}."
        )
    return "\n".join(lines) or _TOO_LITTLE


def _beyond(summary: pd.DataFrame, sign: int, labels: dict[str, str]) -> str:
    """Methods whose mean difference over datasets is on one side of 0, interval and all."""
    ends = summary["low"] if sign > 0 else -summary["high"]
    chosen = summary.index[ends > 0]
    return "; ".join(f"{labels[str(m)]} ({summary.loc[m, 'mean']:+.4f})" for m in chosen)


def _difference_table(by_dataset: pd.DataFrame, measure: Measure, labels: dict[str, str]) -> str:
    summary = over_datasets(by_dataset)
    if summary.empty:
        return ""
    rows = [
        [
            labels[str(row.method)],
            f"{_decimals(row.mean)} ({_decimals(row.low)} to {_decimals(row.high)})",
            _decimals(row.median),
            *map(str, (row.better, row.same, row.worse)),
        ]
        for row in summary.itertuples()
    ]
    direction = "higher is better" if measure.better > 0 else "lower is better"
    caption = f"{measure.label[0].upper()}{measure.label[1:]}: {measure.meaning} ({direction})"
    header = ("method", "mean difference", "median", "better", "same", "worse")
    return table_of_cells(caption, header, rows).to_markdown(heading=True)


def _decimals(value: Any) -> str:
    """Four decimals, the same throughout a table: those of a likelihood that matter."""
    return "–" if value != value else f"{value:z.4f}".replace("-", "−")


def _rank_table(ranks: dict[str, Ranks | None], labels: dict[str, str]) -> str:
    found = {name: value for name, value in ranks.items() if value is not None}
    if not found:
        return _TOO_LITTLE
    header = ["method", *(_MEASURE[name].label for name in found)]
    order = next(iter(found.values())).mean.index
    rows = [
        [
            labels[str(method)],
            *(f"{value.mean[method]:.1f}" if method in value.mean.index else "–" for value in found.values()),
        ]
        for method in order
    ]
    rows.append(["Friedman's p", *(p_text(value.p) for value in found.values())])
    rows.append(["critical difference", *(f"{value.critical_difference:.2f}" for value in found.values())])
    notes = (
        "Mean rank over datasets, 1 is best; a method that failed on a split is last on its dataset.",
        "Two mean ranks differ beyond chance (5 %, Nemenyi) if they are further apart than the critical difference.",
    )
    return table_of_cells("Mean ranks", header, rows, notes).to_markdown()


def _win_table(by_dataset: dict[str, pd.DataFrame], labels: dict[str, str]) -> str:
    blocks = []
    for name in ("gain", "found_gain"):
        verdicts = by_dataset[name].pivot_table(
            index="dataset", columns="method", values="verdict", aggfunc="first", sort=False
        )
        if verdicts.empty:
            continue
        header = ["dataset", *(labels[str(method)] for method in verdicts.columns)]
        rows = [
            [str(dataset), *(_SIGNS.get(str(verdict), "–") for verdict in row)]
            for dataset, row in zip(verdicts.index, verdicts.to_numpy(), strict=True)
        ]
        caption = f"Against Cox by {_MEASURE[name].label}: + better, = within chance, − worse"
        blocks.append(table_of_cells(caption, header, rows).to_markdown(heading=True))
    return "\n".join(blocks)


def _level_table(results: pd.DataFrame, labels: dict[str, str]) -> str:
    """Means over datasets of the means over splits; the time is a median."""
    names = [measure.name for measure in MEASURES]
    means = results.groupby(["method", "dataset"], sort=False)[names].mean().groupby("method", sort=False)
    table = means.mean().assign(seconds_to_fit=means["seconds_to_fit"].median())
    header = ["method", *(measure.label for measure in MEASURES)]
    rows = [[labels[str(m)], *(_decimals(row[name]) for name in names)] for m, row in table.iterrows()]
    notes = (
        "Means over datasets; seconds are the median over datasets. Slopes are means and hide their spread.",
    )
    return table_of_cells("Means over datasets", header, rows, notes).to_markdown()


def _protocol() -> str:
    measures = "\n".join(f"- **{measure.label}**: {measure.meaning}." for measure in MEASURES)
    return (
        "Splits keep the share of events. Columns are filled, encoded and standardised by `TableEncoder` on the "
        f"training part; levels of fewer than {FEWEST_OF_LEVEL} training patients count as the most frequent one. All "
        "methods get the same columns, the sensitive ones among them. Nothing is chosen on test patients. Patients of "
        "rhc are also in support2, and some of divat3 may be in divat1: intervals and ranks take each for a dataset of "
        "its own.\n\n"
        "The gain reads hazards off the curves: a model that sees no risk at all where an event happens, as a forest "
        "can, pays for it up to the logarithm of a million; the Brier score does not mind.\n\n"
        f"A named group is a level of a sensitive attribute with at least {FEWEST_PATIENTS} test patients and "
        f"{FEWEST_EVENTS} events. For the found groups a random forest (100 trees) learns on half of the test patients "
        f"who gains least under the very method, and who has more or fewer events than it expects; the worst "
        f"{100 * FOUND_SHARE:.0f} % that it points to in the other half are judged, then the halves change places. "
        f"GroupDROCox is given the combinations of the attributes; those of fewer than {FEWEST_OF_CELL} training "
        f"patients are one group.\n\n{measures}"
    )


def _method_table(contenders: Sequence[Contender]) -> str:
    rows = [[contender.label, contender.name, contender.settings] for contender in contenders]
    table = table_of_cells("Methods and their settings", ["method", "name", "settings"], rows)
    return table.to_markdown(heading=True)


def _dataset_table(results: pd.DataFrame) -> str:
    cards = [card(str(name)) for name in results["dataset"].unique()]
    rows = [
        [
            *(card.name, card.about, card.event, f"{card.patients:,}", f"{card.events:,}"),
            *(str(card.features), ", ".join(card.sensitive_attributes), card.source),
        ]
        for card in cards
    ]
    header = ["dataset", "who", "event", "patients", "events", "columns", "sensitive attributes", "source"]
    return table_of_cells("Datasets", header, rows).to_markdown(heading=True)


def _failures(results: pd.DataFrame, labels: dict[str, str]) -> str:
    failed = results.loc[results["error"] != ""]
    if failed.empty:
        return "Nothing: every method gave a model on every split."
    rows = [
        [str(dataset), labels[str(method)], str(len(found)), str(found["error"].iloc[0])[:200]]
        for (dataset, method), found in failed.groupby(["dataset", "method"], sort=False)
    ]
    return table_of_cells("", ["dataset", "method", "splits", "first reason"], rows).to_markdown()


def _cost(runs: Sequence[RunRecord]) -> str:
    runs = [run for run in runs if run.computed]
    computed = sum(run.computed for run in runs)
    hours = sum(run.wall_seconds * run.jobs for run in runs) / 3600
    most = max((run.peak_memory_mb for run in runs if run.peak_memory_mb is not None), default=None)
    memory = "" if most is None else f", at most {most / 1024:.1f} GB of memory"
    in_all = "one run" if len(runs) == 1 else f"{len(runs)} runs"
    return f"{computed:,} fits in {in_all}, {hours:.1f} hours of processor cores in all{memory}."
