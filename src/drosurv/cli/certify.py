"""``drosurv certify``: how badly off any subgroup of held-out patients can be."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from drosurv.cli.messages import printable
from drosurv.cli.options import DataFile, FileOptions, Json, ModelFile, Seed, TargetOptions, about, command
from drosurv.cli.outputs import check_outputs, check_picture, print_frame, print_json
from drosurv.errors import require
from drosurv.presentation import moment, unit_in, write_figure

# Group sizes that fit on a terminal; --json and -o give the whole curves.
_SHOWN = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)


@command
def certify(
    model: ModelFile,
    data: DataFile,
    horizon: Annotated[float, about("Time at which predictions are judged.")],
    target: TargetOptions,
    file: FileOptions,
    tolerance: Annotated[
        float | None, about("Brier loss to stay under: prints the smallest group that does.")
    ] = None,
    confidence: Annotated[float, about("Of the band and of the guarantee.")] = 0.95,
    seed: Seed = 0,
    output: Annotated[Path | None, about("CSV file to write the curves to.", None, "--output", "-o")] = None,
    plot: Annotated[Path | None, about("Picture to draw the curves into (PNG, SVG, PDF).")] = None,
    as_json: Json = False,
) -> None:
    """Bound the loss of every subgroup of patients the model has not seen, for all group sizes at once.

    Example: drosurv certify model test.csv --horizon 24 --tolerance 0.25
    """
    from drosurv.insight import certify as certified
    from drosurv.workflows import OpenedModel

    check_outputs([output, plot], [model, data])
    check_picture(plot)
    require(0 < horizon < float("inf"), "horizon", "be a time above 0, such as 24", horizon)
    opened = OpenedModel.open(model)
    table = opened.table(file.format.read(data), **asdict(target))
    table.refuse_entry("a certificate")
    certificate = certified(
        opened.estimator,
        opened.features(table.frame),
        table.y,
        horizon=horizon,
        confidence=confidence,
        random_state=seed,
    )
    opened.warn_of_rows_seen(table, data)
    curves, unit = certificate.to_frame(), unit_in(table.columns.time_name)
    if output is not None:
        file.format.recognised(data).write(curves, output)
    if plot is not None:
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained")
        certificate.plot(figure.subplots(), tolerance=tolerance, time_unit=unit)
        write_figure(figure, plot)
    if as_json:
        smallest = None if tolerance is None else certificate.smallest_alpha(tolerance)
        print_json({"curves": curves.to_dict(orient="list"), "smallest_alpha": smallest})
        return
    at = moment(horizon, unit)
    nearest = [int((curves["alpha"] - alpha).abs().argmin()) for alpha in _SHOWN]
    print_frame(curves.iloc[sorted(set(nearest))], f"Brier loss at {at} of the worst group, by its size")
    if table.columns.causes:
        typer.echo("The event is an event of any cause.")
    typer.echo(
        f"estimate, low, high: of groups that covariates define, with a band of {100 * confidence:g} %.\n"
        "guarantee: holds for groups of any kind; no Brier loss is above 1, so that 1 guarantees nothing.\n"
        + printable(certificate.summary(tolerance))
    )
