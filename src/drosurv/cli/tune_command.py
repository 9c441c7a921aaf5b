"""``drosurv tune``: choose settings on a table of patients, or plain Cox where none is significantly better."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from drosurv.cli.options import (
    Groups,
    Network,
    RunOptions,
    Settings,
    TrainingTable,
    check_parameters,
    command,
    make_estimator,
    option,
    read_grid,
    read_settings,
)
from drosurv.cli.outputs import check_outputs, print_frame, print_json, print_recalibration, written_by
from drosurv.errors import as_records, recording_warnings, require
from drosurv.presentation import counted, with_interval, written

if TYPE_CHECKING:
    from drosurv.workflows.tuning import Tuned


@command(place=120)
def tune(
    run: RunOptions,
    source: TrainingTable,
    model: str = option("Estimator whose settings are tried, beside plain Cox.", default="dro-cox"),
    network: Network = None,
    grid: list[str] | None = option(
        "Values to try, such as alpha=0.1,0.2,0.5; repeat for several parameters. The paper's values of "
        "alpha, or of the weight of a penalty, by default.",
        metavar="NAME=VALUES",
    ),
    set_: Settings = None,
    groups: Groups = (),
    tolerance: float = option(
        "Share of plain Cox's likelihood gain for everybody that a setting may lose.", "Choice", default=0.1
    ),
    folds: int = option("Number of folds.", "Choice", default=5),
    output: Path | None = option(
        "File for the chosen model, trained on all patients.", None, "--output", "-o"
    ),
    table: Path | None = option("CSV file to write the scores of every setting to.", "Output"),
    jobs: int = option("Number of processes.", "Choice", default=1),
) -> None:
    """Compare settings by cross-validation, and choose the one that predicts the worst group best.

    A setting is chosen only if it predicts the worst group (everybody, without groups) significantly better than plain
    Cox, and keeps nearly all of plain Cox's likelihood gain for everybody; otherwise plain Cox is chosen. Groups with
    fewer than 50 patients or 10 events are not judged.

    Example: drosurv tune patients.csv --time months --event died --groups sex --grid alpha=0.1,0.2,0.5 -o model
    """
    check_outputs([output, table], [source.data], force=run.force, hold_out=source.hold_out)
    require(jobs != 0, "jobs", "be at least 1, or -1 for one per processor core", jobs)
    with recording_warnings() as noted:
        frame = source.read()
    from drosurv.workflows.tuning import default_grid
    from drosurv.workflows.tuning import tune as tuned

    estimator = make_estimator(model, {"network": network}, read_settings(set_), run.seed)
    values = read_grid(grid)
    if values is None:
        values = default_grid(estimator)
    else:
        check_parameters(estimator, values, "--grid")
    with recording_warnings() as warned:
        training, held = source.divided(source.parse(frame, groups), run.seed, force=run.force)
        with written_by("--grid", values if grid else ()):
            found = tuned(
                training,
                estimator,
                values,
                tolerance=tolerance,
                folds=folds,
                categorical=source.categorical,
                keep_columns=source.keep_columns,
                n_jobs=jobs,
                random_state=run.seed,
                verbose=False if run.as_json else None,
            )
    source.write_held_out(held, force=run.force)
    if output is not None:
        found.trained.save(
            output, source.data, row_hashes=source.row_hashes, warnings=as_records(noted + warned)
        )
    if table is not None:
        source.format.recognised(source.data).write(found.settings, table)
    factor = getattr(found.trained.estimator, "recalibration_", None)
    if run.as_json:
        print_json(
            {
                "model": None if output is None else str(output),
                "chosen": found.parameters,
                "reason": found.reason,
                "settings": found.settings.to_dict("records"),
                "recalibration": factor,
            }
        )
        return
    _show(found, list(values))
    print_recalibration(
        factor, "for every robust setting likewise; --set recalibrate=false leaves them as they are"
    )
    if output is not None:
        typer.echo(f"Saved to {output}.")


def _show(found: Tuned, parameters: list[str]) -> None:
    import pandas as pd

    tried = found.settings
    columns: dict[str, Any] = {"": ["*" if chosen else "" for chosen in tried["chosen"]]}
    columns |= {name: ["plain Cox", *tried[name].iloc[1:].map(str)] for name in parameters}
    measures = {"concordance_index": "c-index", "likelihood_gain": "gain", "calibration_slope": "slope"}
    columns |= {label: tried[name].map(written) for name, label in measures.items()}
    columns |= {"worst group": tried["worst_group"], "its gain": tried["worst_gain"].map(written)}
    rows = zip(tried["difference"], tried["low"], tried["high"], strict=True)
    columns["difference"] = ["", *(with_interval(*row) for row in list(rows)[1:])]
    columns["p"] = ["", *(written(p, "p") for p in tried["p"].iloc[1:])]
    print_frame(pd.DataFrame(columns), f"{counted(len(tried), 'setting')}; * is chosen")
    settings = ", ".join(f"{name}={value}" for name, value in found.parameters.items()) or "plain Cox"
    typer.echo(f"Chosen: {settings}: {found.reason}.")
