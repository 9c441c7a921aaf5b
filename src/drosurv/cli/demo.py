"""``drosurv demo``: plain Cox beside robust models on data that needs no download."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from drosurv.cli.audit import report_view
from drosurv.cli.messages import printable
from drosurv.cli.options import AsJson
from drosurv.cli.outputs import check_outputs
from drosurv.cli.rendering import print_frame, print_json, records

if TYPE_CHECKING:
    import pandas as pd

    from drosurv.demo import Comparison

_EXPLANATION = """\
worst loss: no {share:.0%} of the test patients have a higher mean loss (a bound, lower is better).
worst group: lowest c-index among the groups of every attribute.
CI: concordance imparity between the groups of {attribute}, with its 95 % interval; one that begins at 0.0 says that
the gap may be chance.
gain kept: share of Cox's likelihood gain over no model. Near 0 %, a model only looks fair because it says little;
its slope, 1 if well calibrated, is then far above 1."""


def demo(
    alpha: Annotated[
        float, typer.Option(help="Smallest share of patients that the robust models protect, in (0, 1].")
    ] = 0.2,
    attribute: Annotated[
        str, typer.Option(help="Attribute whose groups are compared: age or gender.")
    ] = "age",
    seed: Annotated[int, typer.Option(help="Seed of the split and of the bootstrap.")] = 0,
    report: Annotated[
        Path | None,
        typer.Option(help="Also audit DRO-COX and write the report to this .html, .md or .json file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train plain Cox and DRO-COX on FLC (7,874 people, bundled) and compare them on patients kept away.

    Example: drosurv demo --alpha 0.1 --attribute gender
    """
    from rich.console import Console
    from rich.progress import Progress

    from drosurv.demo import compare, contenders

    if report is not None:
        view = report_view(report)
        check_outputs([report], [])
    models, console = contenders(alpha), Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("loading FLC", total=len(models) + 1)
        comparison = compare(
            models=models,
            alpha=alpha,
            attribute=attribute,
            random_state=seed,
            on_model=lambda name: progress.update(bar, description=name, advance=1),
        )
        if report is not None:
            from drosurv.audit import audit_flc

            step = progress.add_task("audit", total=None)
            audited = audit_flc(
                alpha,
                random_state=seed,
                on_step=lambda name, steps: progress.update(step, description=name, total=steps, advance=1),
            )
            getattr(audited, view)(report)
    if as_json:
        print_json({**asdict(comparison), "table": records(comparison.table)})
        return
    title = (
        f"{comparison.data.upper()}: trained on {comparison.n_train:,} patients, compared on {comparison.n_test:,} "
        f"others, alpha = {alpha:g}"
    )
    print_frame(_shown(comparison), title)
    typer.echo(_EXPLANATION.format(share=alpha, attribute=attribute))
    if report is not None:
        typer.echo(printable(f"The report is in {report}."))


def _shown(comparison: Comparison) -> pd.DataFrame:
    """The comparison in the columns and digits that people read."""
    import pandas as pd

    table = comparison.table
    percent = 100 * table[["imparity", "imparity_low", "imparity_high"]].to_numpy(dtype=float)
    return pd.DataFrame(
        {
            "model": table["model"],
            "c-index": table["c_index"].map("{:.3f}".format),
            "IBS": table["ibs"].map("{:.4f}".format),
            "worst loss": table["worst_case_loss"].map("{:.3f}".format),
            "worst group": table["worst_group"] + table["worst_group_c_index"].map(" {:.3f}".format),
            f"CI {comparison.attribute} %": [
                f"{gap:.1f} [{low:.1f}, {high:.1f}]" for gap, low, high in percent
            ],
            "gain kept": table["share_of_gain"].map("{:.0%}".format),
            "slope": table["calibration_slope"].map("{:.2f}".format),
        }
    )
