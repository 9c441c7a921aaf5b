"""The reproduction as a short Markdown page that leads with what was learned, and all its tables as one CSV file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from typing import Any

import pandas as pd

from drosurv._version import __version__
from drosurv.files import write_file
from drosurv.presentation import Table
from experiments.paper.claims import Claim, check_claims
from experiments.paper.methods import METHODS, TABLE_METRICS
from experiments.paper.plan import ALPHA_FIGURE, EXPERIMENTS
from experiments.paper.tables import comparison_notes
from experiments.paper.tabulation import Tabulation
from experiments.paper.unit import Protocol
from experiments.runs import RunRecord
from experiments.studies import pages

_INTRODUCTION = """\
Hu and Chen, *Distributionally Robust Survival Analysis: A Novel Fairness Loss Without Demographics* (ML4H 2022),
rebuilt by one command:

    {command}"""
_READING = """\
Every method is trained over a grid of settings. In each repeat the setting with the lowest CI (or F_A) on the
validation part is taken, among those whose c-index there is within 5 % of the unregularised model's: plain Cox for
linear models, DeepSurv for MLPs. Numbers are means (standard deviations) over repeats on the one test set that all
repeats share. A cell is one method and metric of a published table; it agrees when our mean is within two published
standard deviations of the published mean. IBS is shown and not counted: no correct program can match its published
values.

- c-index, AUC, LPL (log partial likelihood per event): accuracy, higher is better. IBS (integrated Brier score): lower
  is better.
- F_I, F_G, F_∩: how much predicted hazards differ between similar patients, groups, and intersections of groups. F_A is
  their mean. All three fall when a model says less, so every table of ours has a control for that, explained above it.
- CI (concordance imparity): how much better the patients of one group are ordered than those of another, in percent.
- Rows marked (chi2), (CVaR) and x c are ours, not the paper's: DRO-COX with the tight chi-square constant, with CVaR,
  and the unregularised model with all its scores multiplied by one number c, tuned like the others.
- Rows marked as published are DRO-COX (SPLIT) with a mistake of the published training: the log term of its loss counts
  as a constant in the gradient, so that training only raises scores of events; features are standardised by the first
  half of the training patients. They explain published numbers, and are no method to use.
- IBS, misaligned: computed with the mistakes of the published one. A baseline hazard of unscaled features (split
  methods) often leaves survival 1 for everybody, whatever the model: .1703 on FLC is that value."""
_DIAGNOSTIC = """\
Not a result: the same grids with settings chosen on the test set itself, to see whether the published numbers could
have come about that way. Letters mean what they mean above."""

# What is said of cells that differ, by the code of the first reason that holds.
_DEMONSTRATED = {
    "log-outside-gradient": "are in rows that one setting reproduces if the split loss is trained with the "
    "published gradient, which treats a log term as a constant (`python -m "
    "experiments.paper`, method names ending in as-published)",
    "ties": "agree once the measured effect of the published running sum on tied times is added "
    "(`python -m experiments.paper.ties`)",
}
_POSSIBLE = {
    "other-setting": "are in rows of which some setting of the grid comes near every cell",
    "ci-choice": "are published CIs that are consistent with a choice of settings on the test set",
    "seer-row-order": "are on SEER, whose rows stand in another order here",
    "imputed-from-training": "are on data that are imputed from training rows only here",
}


def write_document(
    path: str | Path,
    *,
    tabulation: Tabulation,
    diagnostic: Tabulation,
    characteristics: Table,
    figure: Path | None = None,
    runs: Sequence[RunRecord] = (),
    results: Sequence[Mapping[str, Any]] = (),
    protocol: Protocol | None = None,
    command: str = "python -m experiments.paper",
) -> tuple[Path, ...]:
    """Write the document, and a copy of the figure, if there is one, beside it.

    Settings of the `tabulation` are chosen on the validation part, those of the `diagnostic` on the test set; `runs`
    made the `results`, which tell their seconds; `command` is what to type to get it.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    protocol = protocol or Protocol()
    compared = tabulation.comparison, diagnostic.comparison
    claims = check_claims(tabulation.summary, *compared)
    beside = path.with_name(f"{path.stem}_tables.csv")
    files = [path, beside]
    parts = [
        "# Reproduction of the paper's experiments",
        conclusion(tabulation, claims),
        _INTRODUCTION.format(command=command),
        f"Every cell of every table is in `{beside.name}`.",
        "## What agrees and what does not",
        _counts(tabulation),
        *_tables("", _named(tabulation, "agreement")),
        which_agree(tabulation.comparison),
    ]
    if claims:
        parts.append("## The paper's claims")
    for claim in claims:
        parts += [f"**{claim.claim}** {claim.verdict} {claim.finding}", claim.table.to_markdown(heading=True)]
    if figure is not None:
        files.append(path.with_name(f"{path.stem}-alpha.svg"))
        # Drawn again it would differ in the last digits.
        copyfile(figure, files[-1])
        parts += [
            f"## {ALPHA_FIGURE.title}",
            f"![c-index, disparities and the share of Cox's gain over alpha]({files[-1].name})",
            "The lowest row is the control: where it nears 0, disparities are low because all predictions are alike.",
        ]
    if diagnostic.tables:
        parts += ["## Diagnostic: settings chosen on the test set", _DIAGNOSTIC, _changes(*compared)]
    parts += [
        "## How to read the tables",
        "\n".join(f"- {note}" for note in comparison_notes(*compared)),
        "## How it was made",
        _READING,
        _cost(runs, results, protocol),
    ]
    _write(path, parts)
    tables = [characteristics]
    for ending in ("-comparison", "-ci", "-fa", "-fixed", "published-gradient", "nearest", "authors-setting"):
        tables += _named(tabulation, ending)
    for ending in ("agreement-diagnostic", "-comparison-diagnostic"):
        tables += _named(diagnostic, ending)
    write_file(beside, cells_of(tables).to_csv(index=False, lineterminator="\n"))
    return tuple(files)


def cells_of(tables: Sequence[Table]) -> pd.DataFrame:
    """Return the rows of all tables below each other, each with the caption of its table."""
    rows = [
        {"caption": table.caption} | {str(column.label): str(column.shown(row)) for column in table.columns}
        for table in tables
        for row in table.rows
    ]
    return pd.DataFrame(rows)


def _write(path: Path, parts: Sequence[str]) -> None:
    write_file(path, "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n")


def conclusion(tabulation: Tabulation, claims: Sequence[Claim] | None = None) -> str:
    """Say in three sentences whether the paper's numbers and claims reproduce."""
    if tabulation.comparison.empty:
        return "No table with published numbers was run, so nothing is compared."
    if claims is None:
        claims = check_claims(tabulation.summary, tabulation.comparison, pd.DataFrame())
    protocol, ablations = (_agreeing(cells) for cells in _by_protocol(tabulation.comparison))
    numbers = (
        f"{protocol[0]} of {protocol[1]} published numbers (IBS aside) agree by the paper's stated protocol"
    )
    if ablations[1]:
        numbers += (
            f"; of the ablation tables, whose settings the paper does not give, {ablations[0]} of {ablations[1]} "
            "agree at a setting chosen as nearest to the published numbers"
        )
    said = {claim.table.caption.partition(" ")[0]: claim.verdict for claim in claims}
    fairness = said.get("Concordance", "Not run.")
    accuracy = said.get("Integrated", "Not run.")
    return (
        f"{numbers}. The claim that DRO-COX lowers concordance imparity: {_inside(fairness)}. The claim that "
        f"it lowers the integrated Brier score: {_inside(accuracy)}."
    )


def _inside(verdict: str) -> str:
    return f"{verdict[:1].lower()}{verdict[1:].rstrip('.')}"


def _by_protocol(comparison: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Counted cells of tables tuned by the stated protocol, and those of the ablation tables."""
    known = comparison.loc[comparison["counted"] & comparison["agrees"].notna()]
    tuned = known["experiment"].map(lambda name: EXPERIMENTS[name].setting is None).astype(bool)
    return known.loc[tuned], known.loc[~tuned]


def _agreeing(cells: pd.DataFrame) -> tuple[int, int]:
    return int(cells["agrees"].astype(bool).sum()), len(cells)


def _named(tabulation: Tabulation, ending: str) -> list[Table]:
    return [table for name, (table, _) in tabulation.tables.items() if name.endswith(ending)]


def _tables(heading: str, tables: Sequence[Table], notes: Sequence[str] = ()) -> list[str]:
    """A heading and tables; `notes`, or else those that several tables have, stand once above them."""
    if not tables:
        return []
    if not notes:
        counts = Counter(note for table in tables for note in table.notes)
        notes = [note for note, count in counts.items() if count > 1]
    head = "\n".join(f"- {note}" for note in notes)
    return [
        f"## {heading}" if heading else "",
        head,
        *(_without(table, notes).to_markdown(heading=True) for table in tables),
    ]


def _without(table: Table, notes: Sequence[str]) -> Table:
    return replace(table, notes=tuple(note for note in table.notes if note not in notes))


def _counts(tabulation: Tabulation) -> str:
    """What agrees, what differs by a demonstrated cause, and what is not reproduced."""
    if tabulation.comparison.empty:
        return ""
    lines = []
    for cells, where in zip(
        _by_protocol(tabulation.comparison),
        ("By the stated protocol", "Ablation tables, at the setting nearest to the published numbers"),
        strict=True,
    ):
        if cells.empty:
            continue
        differ = cells.loc[~cells["agrees"].astype(bool)]
        shown = differ["demonstrated"].value_counts()
        left = differ.loc[differ["demonstrated"] == ""]
        lines.append(f"- **{where}**: {len(cells) - len(differ)} of {len(cells)} cells agree.")
        lines += [f"  - {shown[code]} {said}." for code, said in _DEMONSTRATED.items() if code in shown]
        if len(left):
            lines.append(f"  - {len(left)} are not reproduced{_possible(left)}.")
    nearest = tabulation.nearest
    row = ["experiment", "method"]
    brier = nearest.loc[nearest.groupby(row)["trained"].transform("last") == nearest["trained"]]
    brier = brier.drop_duplicates(row)
    off = (brier["misaligned_brier_score"] - brier["published_brier_score"]).abs()
    lines.append(
        "- **IBS** is not counted: its published values hold each patient's curve against another's outcome. The same "
        f"mistake at the nearest settings comes within .005 of the published value in {int((off <= 0.005).sum())} of "
        f"{len(off)} rows."
    )
    return "\n".join(lines)


def which_agree(comparison: pd.DataFrame) -> str:
    """The cells that agree by the stated protocol: a row for each method, a column for each table."""
    cells = pd.DataFrame() if comparison.empty else _by_protocol(comparison)[0]
    if cells.empty:
        return ""
    tables = list(dict.fromkeys(cells["experiment"]))
    labels = {metric.name: metric.label for metric in TABLE_METRICS}
    body = []
    for method, of_method in cells.groupby("method", sort=False):
        row = [METHODS[str(method)].label]
        for name in tables:
            here = of_method.loc[of_method["experiment"] == name]
            differ = [labels[metric] for metric in here.loc[~here["agrees"].astype(bool), "metric"]]
            row.append(f"{len(here) - len(differ)}" + (f", not {', '.join(differ)}" if differ else ""))
        body.append(row)
    lines = pages.table(["method", *(EXPERIMENTS[name].title for name in tables)], body)
    said = "How many cells of a method agree (of 8, IBS aside), and which do not."
    return "\n".join(["### Which cells agree", "", said, "", *lines])


def _possible(cells: pd.DataFrame) -> str:
    """What is known, but not demonstrated, about cells that are not reproduced."""
    first = Counter(
        next((code for code in codes.split("; ") if code in _POSSIBLE), "") for codes in cells["codes"]
    )
    known = [f"{first[code]} {said}" for code, said in _POSSIBLE.items() if first[code]]
    return f"; of these {'; '.join(known)}" if known else ""


def _changes(comparison: pd.DataFrame, diagnostic: pd.DataFrame) -> str:
    """How many cells change sides with the choice of settings."""
    if comparison.empty or diagnostic.empty:
        return ""
    key = ["experiment", "method", "metric"]
    both = comparison.loc[comparison["counted"]].merge(diagnostic, on=key, suffixes=("", "_test"))
    both = both.loc[both["agrees"].notna() & both["agrees_test"].notna()]
    before, after = both["agrees"].astype(bool), both["agrees_test"].astype(bool)
    return (
        f"Of the {int((~before).sum())} cells that differ above, {int((~before & after).sum())} agree here; of the "
        f"{int(before.sum())} that agree above, {int((before & ~after).sum())} differ here."
    )


def _cost(runs: Sequence[RunRecord], results: Sequence[Mapping[str, Any]], protocol: Protocol) -> str:
    lines = [
        f"Made with drosurv {__version__}: {protocol.max_iter} steps of Adam, intervals of CI from "
        f"{protocol.bootstrap} bootstrap replicates of the test set."
    ]
    if results:
        wall = sum(float(result.get("seconds") or 0) for result in results)
        cpu = sum(float(result.get("cpu_seconds") or 0) for result in results)
        lines.append(
            f"The {len(results):,} units (dataset, method, repeat) took {_minutes(wall)} one after the other, "
            f"{_minutes(cpu)} of processor time."
        )
    lines += ["", *(_run(run) for run in runs if run.computed)]
    return "\n".join(lines)


def _run(run: RunRecord) -> str:
    asked = f", `{run.command}`" if run.command else ""
    reused = f" ({run.reused} were there from before)" if run.reused else ""
    return (
        f"- {run.started}{asked}: {run.computed} units{reused} in {_minutes(run.wall_seconds)}, {run.jobs} processes, "
        f"trained on {run.device}."
    )


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
