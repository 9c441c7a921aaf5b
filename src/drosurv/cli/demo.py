"""``drosurv demo``: a subgroup that plain Cox fails, found and repaired, on real and simulated patients."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from drosurv.cli.audit import report_view
from drosurv.cli.options import RunOptions, command, option
from drosurv.cli.outputs import check_outputs, print_frame, print_json, printable

if TYPE_CHECKING:
    import pandas as pd

    from drosurv.workflows.demo import Comparison


@command(place=10)
def demo(
    run: RunOptions,
    report: Path | None = option(
        "Also write the reports of the plain and of the repaired model: demo.html gives two pages."
    ),
) -> None:
    """Compare plain, cross-validated and repaired Cox regression on held-out patients, in under 20 seconds.

    On children with Wilms tumour, on simulated patients with a known subgroup, and on a dataset where nothing is found.

    Example: drosurv demo --report demo.html
    """
    from drosurv.presentation.drawing import bar
    from drosurv.workflows.demo import NOTHING_FOUND, SIMULATED, WILMS, datasets, models, reports
    from drosurv.workflows.demo import demo as compared

    pages: dict[str, Path] = {}
    if report is not None:
        view = report_view(report)
        pages = {
            f"{kind} Cox": report.with_name(f"{report.stem}_{kind}{report.suffix}")
            for kind in ("plain", "repaired")
        }
        check_outputs([*pages.values()], [], force=run.force)
    with bar("loading", len(models()) * len(datasets())) as progress:
        found = compared(random_state=run.seed, on_model=lambda name: progress(doing=name))
    if pages:
        with bar("reports") as progress:
            written = reports(
                random_state=run.seed, on_step=lambda name, steps: progress(doing=name, of=steps)
            )
        for name, path in pages.items():
            getattr(written[name], view)(path)
    if run.as_json:
        print_json(
            {name: {**asdict(part), "table": part.table.to_dict("records")} for name, part in found.items()}
        )
        return
    shown = {
        WILMS: ("Relapse of Wilms tumour (National Wilms Tumor Study)", "children", " (age in months)"),
        SIMULATED: ("Simulated patients: one marker has the opposite effect where {group}", "patients", ""),
        NOTHING_FOUND: ("Free light chains and survival (FLC)", "people", ""),
    }
    for number, (name, (title, who, unit)) in enumerate(shown.items(), start=1):
        if name in found:
            part = found[name]
            said = _found(part, title.format(group=part.group), who, unit)
            typer.echo(f"{number}. {printable(said)}\n")
            subgroup = f", and the subgroup {part.group} ({part.n_group:,})" if part.group else ""
            print_frame(_shown(part), f"Held-out patients: all {part.n_test:,}{subgroup}")
    typer.echo(
        "gain: log likelihood per patient over one survival curve for everybody.\n"
        "observed, expected: of 100 patients of the subgroup, how many had the event by the time named above, and the "
        "mean risk that the model predicted. Patients who were censored count by Kaplan-Meier within groups of like "
        "predicted risk, so that models differ slightly in what was observed.\n"
        "Your own table: drosurv check patients.csv"
    )
    for name, path in pages.items():
        typer.echo(printable(f"The report of {name} is in {path}."))


def _observed_and_expected(part: Comparison, who: str) -> str:
    from drosurv.judging.words import per_hundred

    plain, repaired = (part.number(model, "predicted") for model in ("plain Cox", "repaired Cox"))
    observed = [part.number("plain Cox", name) for name in ("observed", "low", "high")]
    value, low, high, *expected = per_hundred(*observed, plain, repaired)
    return (
        f"By {part.by}: of 100 held-out {who} with {part.group} {value} ({low} to {high}) had the event;\n   plain Cox "
        f"expects {expected[0]}, repaired Cox expects {expected[1]}."
    )


def _found(part: Comparison, title: str, who: str, unit: str) -> str:
    """Return what repair found in a dataset, whose patients are called `who`, with the unit of its rules."""
    found = "no subgroup, and left the model as it is"
    if part.rules:
        found = f"in the training {who}: {'; '.join(part.rules)}{unit}"
    lines = [
        title,
        f"Trained on {part.n_train:,} {who}, compared on {part.n_test:,} others with {part.n_events:,} events.",
        f"Repair found {found}.",
        *([_observed_and_expected(part, who)] if part.group else []),
    ]
    return "\n   ".join(lines)


def _shown(part: Comparison) -> pd.DataFrame:
    """Return the columns and digits that are printed."""
    import pandas as pd

    table = part.table
    shown = {
        "model": table["model"],
        "gain, all": table["gain"].map("{:.3f}".format),
        "c-index": table["c_index"].map("{:.3f}".format),
    }
    if part.group:
        shown["observed"] = (100 * table["observed"]).map("{:.1f}".format)
        shown["expected"] = (100 * table["predicted"]).map("{:.1f}".format)
        shown["gain, subgroup"] = table["group_gain"].map("{:.3f}".format)
    return pd.DataFrame(shown)
