"""``drosurv repair``: find groups whose predictions are wrong, and correct the model there."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from drosurv.cli.model_options import Coefficients, PredictionOptions
from drosurv.cli.options import (
    Cause,
    RunOptions,
    Settings,
    TimeUnit,
    TrainingTable,
    cause_number,
    command,
    make_estimator,
    option,
    piped,
    read_settings,
)
from drosurv.cli.outputs import check_outputs, print_frame, print_json, printable
from drosurv.errors import InputError, as_records, recording_warnings
from drosurv.presentation import cause_in_words, counted

if TYPE_CHECKING:
    from drosurv.presentation import Table
    from drosurv.repairs import RepairedCox
    from drosurv.tables import SurvivalTable


@dataclass(frozen=True, kw_only=True)
class TableToRepair(TrainingTable):
    """A training table; by default the table of the predictions."""

    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="Table, as of `drosurv fit`; by default that of --predictions.",
            callback=piped,
            show_default=False,
        ),
    ] = Path()


@command(place=90)
def repair(
    run: RunOptions,
    source: TableToRepair,
    made: PredictionOptions,
    model: str | None = option(
        "What to repair: an estimator to train, such as cox, or the file of a saved model. By default cox-cv."
    ),
    coefficients: Coefficients = None,
    output: Path | None = option("File to write the repaired model to.", None, "--output", "-o"),
    corrected: Path | None = option("CSV file to write repaired --predictions to.", "Other models"),
    cause: Cause = None,
    time_unit: TimeUnit = None,
    max_repairs: int = option("Largest number of repairs.", "Search", default=5),
    max_conditions: int = option("Largest number of conditions in a rule.", "Search", default=2),
    evidence: float = option("Smallest e-value that a repair must reach.", "Search", default=20.0),
    set_: Settings = None,
) -> None:
    """Find groups whose predictions are wrong, correct the model there, and test that on held-out patients.

    For a saved model, or for predictions, the table must hold patients that the model was not trained on.

    Example: drosurv repair patients.csv --time months --event died -o model
    """
    predictions = made.predictions
    if source.data == Path():
        if predictions is None:
            raise InputError("name a table, as in `drosurv repair patients.csv --time months --event died`.")
        source = replace(source, data=predictions)
    saved = Path(model) if model is not None and Path(model).is_file() else None
    inputs = [source.data, predictions, saved, coefficients]
    check_outputs([output, corrected], inputs, force=run.force, hold_out=source.hold_out)
    if source.hold_out is not None and predictions is not None:
        raise InputError("--hold-out would remove patients from --predictions: leave out one of them.")
    if corrected is not None and predictions is None:
        raise InputError(
            "--corrected writes repaired --predictions: pass them, or -o to save a repaired model."
        )
    if saved is not None and predictions is not None:
        raise InputError("--predictions takes the place of --model: pass one of them.")
    if coefficients is not None and (model is not None or predictions is not None):
        raise InputError("--coefficients takes the place of --model and --predictions: pass one of them.")
    if set_ and (saved is not None or predictions is not None or coefficients is not None):
        raise InputError("--set is for a model that is trained here: leave it out.")
    if set_ and model is None:
        raise InputError("--set is for one model: name it, for example --model cox.")
    with recording_warnings() as warned:
        frame, columns = source.read(), None
        from drosurv.patients.target import cause_names
        from drosurv.predictions.any_model import final_step
        from drosurv.repairs.repair_views import linear_effects
        from drosurv.workflows import repairing
        from drosurv.workflows.saved_model import OpenedModel
        from drosurv.workflows.training import save_with_notes

        if predictions is not None:
            ordered = repairing.same_patients(source.format.read(predictions), frame, source.id)
            named = source.target(causes=cause is not None)
            ordered = ordered.drop(columns=list(named.names), errors="ignore")
            columns = repairing.predictions_in(ordered, made.survival, named.causes_in(frame))
            # Predictions do not define subgroups.
            frame = frame.drop(columns=[name for name in columns.names if name in frame.columns])
        opened = None if saved is None else OpenedModel.open(saved)
        opened = opened if coefficients is None else OpenedModel.of_score(coefficients)
        several = cause is not None or (opened is not None and opened.has_causes)
        parsed = source.parse(frame, causes=several)
        unit = parsed.columns.unit_or(time_unit)
        table, held = source.divided(parsed, run.seed, force=run.force)
        if opened is not None:
            opened.warn_of_rows_seen(table, source.data)
        given, notes = None, {}
        if columns is not None:
            columns = columns.take(frame.index.get_indexer(table.frame.index))
            predicted = made.read(columns, table, cause, unit)
            given = predicted.predictions
            notes = {"predictions": repairing.noted_predictions(columns, predicted)}
        trained = opened is None and given is None
        repaired = repairing.repair_from_table(
            table,
            make_estimator(model, {}, read_settings(set_), run.seed)
            if trained and model is not None
            else None,
            opened=opened,
            predictions=given,
            categorical=source.categorical,
            keep_columns=source.keep_columns,
            max_repairs=max_repairs,
            max_conditions=max_conditions,
            evidence=evidence,
            random_state=run.seed,
            cause=cause_number(cause, table),
            verbose=not run.as_json and sys.stderr.isatty(),
        )
    source.write_held_out(held, force=run.force)
    if output is not None:
        save_with_notes(
            repaired,
            output,
            table,
            source.data,
            row_hashes=source.row_hashes,
            warnings=as_records(warned),
            **notes,
        )
    if corrected is not None and given is not None:
        source.format.recognised(source.data).write(
            repairing.corrected(repaired, table.frame, given, cause_names=cause_names(table.y)), corrected
        )
    ratios = repaired.hazard_ratios() if linear_effects(repaired.base_) is not None else None
    if run.as_json:
        print_json(
            {
                "base": None if repaired.base_ is None else type(final_step(repaired.base_)).__name__,
                "status": repaired.status_,
                "words": repaired.in_words(unit),
                "repairs": repaired.to_frame().to_dict("records"),
                "hazard_ratios": None if ratios is None else list(ratios.rows),
                "model": None if output is None else str(output),
            }
        )
    else:
        _show(repaired, ratios, table, unit)
        if output is not None:
            what = "The repaired model was saved" if repaired.repairs_ else "The model was saved unchanged"
            if given is not None:
                what = (
                    "The repairs of the predictions were saved"
                    if repaired.repairs_
                    else "A file without repairs was saved"
                )
            new = "new_patients.csv" if given is None else "new_predictions.csv"
            typer.echo(f"{what} to {output}: apply with `drosurv predict {output} {new}`.")
        if corrected is not None:
            how = "The repaired predictions of these patients were saved"
            how = how if repaired.repairs_ else "The predictions of these patients were saved unchanged"
            typer.echo(f"{how} to {corrected}.")


def _show(model: RepairedCox, ratios: Table | None, table: SurvivalTable, unit: str) -> None:
    from drosurv.patients.target import cause_names

    of = f" of {cause_in_words(model._cause, cause_names(table.y))}" if table.columns.causes else ""
    typer.echo(printable(f"{table.size} with {counted(model.n_events_, 'event')}{of}."))
    typer.echo(printable("\n".join([model.status_, *model.in_words(unit)])))
    if ratios is not None and model.repairs_:
        shown = ratios.to_frame().rename(columns={"who": "for", "hazard_ratio": "hazard ratio"})
        print_frame(shown, "Hazard ratios per unit: for everyone, then in the repaired subgroups")
