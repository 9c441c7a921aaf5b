"""What the benchmark found: a table on the screen, Markdown and JSON in a folder."""

import json
import os
import platform
from collections import Counter
from dataclasses import asdict
from datetime import date
from importlib.metadata import version

PACKAGES = ("drosurv", "numpy", "numba", "torch", "scikit-survival")


def machine():
    """Where and with what this ran."""
    packages = {name: version(name) for name in PACKAGES}
    return {
        "date": date.today().isoformat(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
        **packages,
    }


def show(rows):
    """Print the table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="drosurv against its targets", show_lines=False)
    for heading in ("what", "target", "measured", "", "note"):
        table.add_column(heading, overflow="fold")
    colours = {True: "green", False: "red", None: "yellow"}
    for row in rows:
        verdict = f"[{colours[row.met]}]{row.verdict}[/]"
        table.add_row(row.what, row.target, row.measured, verdict, row.note)
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    console.print(table)
    console.print(
        ", ".join(f"{count} {verdict}" for verdict, count in Counter(r.verdict for r in rows).items())
    )


def markdown(rows, where):
    """The table as Markdown."""
    facts = ", ".join(f"{name} {value}" for name, value in where.items())
    lines = [f"Measured with {facts}.", "", "| what | target | measured | | note |", "|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row.what} | {row.target} | {row.measured} | {row.verdict} | {row.note} |")
    return "\n".join(lines) + "\n"


def write(rows, folder, name):
    """Write Markdown and JSON under one name."""
    where = machine()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(markdown(rows, where))
    stored = {"machine": where, "rows": [asdict(row) | {"verdict": row.verdict} for row in rows]}
    (folder / f"{name}.json").write_text(json.dumps(stored, indent=1))
