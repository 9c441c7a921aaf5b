"""The reproduction as one Markdown document: what agrees, what does not and why, every table, and what it cost."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drosurv._version import __version__
from drosurv.paper.claims import check_claims
from drosurv.paper.figures import alpha_figure, save_figure
from drosurv.paper.plan import ALPHA_FIGURE
from drosurv.paper.run_log import RunRecord
from drosurv.paper.table import Table
from drosurv.paper.tabulation import Tabulation
from drosurv.paper.unit import Protocol

_INTRODUCTION = """\
Hu and Chen, *Distributionally Robust Survival Analysis: A Novel Fairness Loss Without Demographics* (ML4H 2022),
rebuilt by one command:

    {command}

Settings are chosen on each repeat's validation part, as the paper's text says, within 5 % of the unregularised model's
c-index; numbers are means (standard deviations) over repeats on the one test set that all repeats share. A cell agrees
when our mean is within two published standard deviations of the published mean. IBS is shown and not counted: no
correct program can match its published values. Rows marked chi2, CVaR and x c are ours, not the paper's."""
_DIAGNOSTIC = """\
Not a result: the same grids with settings chosen on the test set itself, to see whether the published numbers could
have come about that way."""


def write_document(
    path: str | Path,
    *,
    tabulation: Tabulation,
    characteristics: Table,
    diagnostic: Tabulation | None = None,
    runs: Sequence[RunRecord] = (),
    results: Sequence[Mapping[str, Any]] = (),
    protocol: Protocol | None = None,
    command: str = "drosurv reproduce",
) -> tuple[Path, ...]:
    """Write the document, and the figure beside it.

    Parameters
    ----------
    path : path
        The Markdown file.
    tabulation : Tabulation
        Every table, settings chosen on the validation part.
    characteristics : Table
        Table 1.
    diagnostic : Tabulation, optional
        The same, settings chosen on the test set.
    runs : sequence of RunRecord
        The runs that made it.
    results : sequence of mapping
        Results of the units in it, for their seconds.
    protocol : Protocol, optional
        How units were trained and scored.
    command : str
        What to type to get it.

    Returns
    -------
    tuple of Path
        The files written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    protocol = protocol or Protocol()
    parts = [
        "# Reproduction of the paper's experiments",
        _INTRODUCTION.format(command=command),
        _cost(runs, results, protocol),
        "## How much agrees",
        *(table.markdown() for name, (table, _) in tabulation.tables.items() if name == "agreement"),
        _unexplained(tabulation),
    ]
    claims = check_claims(tabulation.summary)
    if claims:
        parts.append("## What survives of the claims")
    for claim in claims:
        parts += [f"**{claim.claim}** {claim.finding}", claim.table.markdown()]
    parts += ["## Data", characteristics.markdown()]
    files = [path]
    if tabulation.curves is not None:
        files += save_figure(alpha_figure(tabulation.curves), path.parent, f"{path.stem}-alpha")
        parts += [
            f"## {ALPHA_FIGURE.title}",
            f"![c-index, disparities and the share of Cox's gain over alpha]({path.stem}-alpha.svg)",
            "The lowest row is the control: where it nears 0, disparities are low because the model says nothing.",
        ]
    parts.append("## Ours beside the published values")
    parts += _named(tabulation, "-comparison")
    parts.append("## All tables, tuned by concordance imparity")
    parts += _named(tabulation, "-ci")
    parts.append("## All tables, tuned by the average disparity F_A")
    parts += _named(tabulation, "-fa")
    parts.append("## Ablations")
    parts += _named(tabulation, "-fixed")
    if diagnostic is not None and diagnostic.tables:
        parts += ["## Diagnostic: settings chosen on the test set", _DIAGNOSTIC]
        parts += _named(diagnostic, "agreement-diagnostic")
        parts += _named(diagnostic, "-comparison-diagnostic")
    path.write_text("\n\n".join(part.rstrip("\n") for part in parts if part) + "\n", encoding="utf-8")
    return tuple(files)


def _named(tabulation: Tabulation, ending: str) -> list[str]:
    return [table.markdown() for name, (table, _) in tabulation.tables.items() if name.endswith(ending)]


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
    lines += [_run(run) for run in runs if run.computed]
    return "\n".join(lines)


def _run(run: RunRecord) -> str:
    asked = f", `{run.command}`" if run.command else ""
    on_device = run.device_memory_mb
    device_memory = "" if on_device is None else f" and {on_device / 1024:.1f} GB of the accelerator's"
    return (
        f"- {run.started}{asked}: {run.computed} units in {_minutes(run.wall_seconds)}, {run.jobs} processes, trained "
        f"on {run.device}, peak memory {run.peak_memory_mb / 1024:.1f} GB{device_memory}."
    )


def _unexplained(tabulation: Tabulation) -> str:
    """The cells that differ for no known cause, in words."""
    cells = tabulation.comparison
    if cells.empty:
        return ""
    differs = cells["counted"] & ~cells["agrees"].fillna(True).astype(bool) & ~cells["explained"]
    if not differs.any():
        return "Every cell that differs does so for a known cause, told under its table."
    shown = cells.loc[differs]
    counts = Counter(zip(shown["experiment"], shown["method"], strict=True))
    listed = ", ".join(f"{experiment} {method} ({count})" for (experiment, method), count in counts.items())
    return f"Cells that differ for no known cause, by table and method: {listed}."


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def repeat_command(
    only: Sequence[str] | None, methods: Sequence[str] | None, repeats: int, seer_file: str | None
) -> str:
    """The command line of a run, without paths of the machine it ran on."""
    words = ["drosurv reproduce"]
    words += [f"--only {','.join(only)}"] if only else []
    words += [f"--methods {','.join(methods)}"] if methods else []
    words += [f"--repeats {repeats}"]
    words += [f"--seer-file {os.path.basename(seer_file)}"] if seer_file else []
    return " ".join(words)
