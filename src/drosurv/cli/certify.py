"""``drosurv certify``: bounds on how wrong a model is in any subgroup of patients it has not seen."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from drosurv.cli.model_options import JudgedModel
from drosurv.cli.options import (
    FileOptions,
    KeepColumns,
    RunOptions,
    TargetOptions,
    cause_number,
    command,
    option,
)
from drosurv.cli.outputs import check_outputs, print_frame, print_json, printable, write_plot


@command(place=100)
def certify(
    run: RunOptions,
    target: TargetOptions,
    file: FileOptions,
    judged: JudgedModel,
    keep_columns: KeepColumns = (),
    alpha: float = option("Size of the smallest subgroup, as a share of the patients.", default=0.05),
    horizon: float | None = option(
        "Time of the Brier score, and until which events are counted; by default about the median follow-up, and "
        "events of the whole follow-up."
    ),
    level: float = option("Confidence of the bounds, for all subgroups at once.", default=0.95),
    replicates: int | None = option(
        "Number of simulations of events from the model, 999 by default; the smallest p-value is 3 / (replicates + 1)."
    ),
    output: Path | None = option("CSV file to write the significant subgroups to.", None, "--output", "-o"),
    plot: Path | None = option("Picture of the bounds (PNG, SVG, PDF)."),
) -> None:
    """Bound how wrong a model is in every subgroup that one or two conditions on the columns define.

    Example: drosurv certify model test.csv --horizon 24
    """
    import pandas as pd

    from drosurv.judging.certification import certify as certified

    data = judged.table("certify")
    check_outputs([output], judged.inputs, force=run.force, plot=plot)
    opened = judged.open()
    table = opened.table(file.format.read(data), clusters=judged.clusters, **asdict(target))
    table.warn_of_rows(data.name)
    described = opened.subgroup_columns(table)
    found = certified(
        opened.estimator,
        opened.features(table.frame),
        table.judged_y,
        alpha=alpha,
        horizon=horizon,
        level=level,
        features=described,
        keep_columns=opened.kept_columns(keep_columns, table.frame, described),
        **opened.observed(table.frame, judged.strata),
        cause=cause_number(judged.cause, table),
        n_bootstrap=replicates,
        random_state=run.seed,
    )
    opened.warn_of_rows_seen(table, data)
    if output is not None:
        file.format.write(found.significant, output)
    write_plot(found.plot, plot)
    if run.as_json:
        print_json(found.to_dict())
        return
    shown = found.to_table()
    caption = (
        f"{shown.caption}. No subgroup is beyond the bound; the group in its row is the one with that bound"
    )
    print_frame(pd.DataFrame(shown.rows)[["measure", "estimate", "bound", "group"]], caption)
    typer.echo(printable(found.summary(table.columns.unit)))
    if judged.coefficients is not None:
        typer.echo(opened.estimator.known_times)
