"""``drosurv fit``: train a model on a user's table and save it with the table's preparation."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drosurv.cli.messages import tell_against_plain, tell_recalibration
from drosurv.cli.models import make_estimator, read_settings
from drosurv.cli.options import (
    FileOptions,
    Groups,
    Json,
    Network,
    RowHashesOption,
    Seed,
    Settings,
    TrainingTable,
    about,
    command,
    option_words,
    words,
)
from drosurv.cli.outputs import check_outputs, print_frame, print_json
from drosurv.errors import ArgumentError, as_records, recording_warnings
from drosurv.presentation import counted

if TYPE_CHECKING:
    import pandas as pd

    from drosurv.tables import SurvivalTable

# Of a table of thousands of genes nobody reads every row.
_MOST_SHOWN = 40


@command
def fit(
    source: TrainingTable,
    output: Annotated[Path, about("File to write the model to.", None, "--output", "-o")],
    model: Annotated[
        str,
        about(
            "Any estimator: cox, or a robust one such as dro-cox, which is held against cox on "
            "these patients; cause-specific-cox takes codes of causes as the event."
        ),
    ] = "cox",
    alpha: Annotated[
        float | None, about("Of a robust model: smallest share of patients to protect, in (0, 1].", "Model")
    ] = None,
    ball: Annotated[
        str | None, about("Of a robust model: shape of the subpopulations. {balls}.", "Model")
    ] = None,
    network: Network = None,
    hidden: Annotated[
        str | None, about("Widths of the mlp's hidden layers, such as 24,24; 24 by default.", "Model")
    ] = None,
    l2: Annotated[float | None, about("Ridge penalty; 0 by default.", "Model")] = None,
    recalibrate: Annotated[
        bool | None,
        typer.Option(
            "--recalibrate/--no-recalibrate",
            help="Give the risks the spread that patients not trained on ask for; done for robust models.",
            show_default=False,
            rich_help_panel="Model",
        ),
    ] = None,
    seed: Seed = 0,
    set_: Settings = None,
    groups: Groups = (),
    strata: Annotated[
        str | None, about("Column of strata: patients are compared within them.", "Columns")
    ] = None,
    clusters: Annotated[
        str | None, about("Column of clusters, such as hospitals, for standard errors.", "Columns")
    ] = None,
    bootstrap: Annotated[
        int,
        typer.Option(
            help="Refits for the standard errors of drosurv summary; 0 for none.",
            min=0,
            rich_help_panel="Model",
        ),
    ] = 0,
    unseen: Annotated[
        str,
        about("Levels met only in prediction: taken as the most frequent (reference), or error.", "Model"),
    ] = "reference",
    hold_out: Annotated[
        Path | None, about("CSV file to write patients to that are kept away from training.")
    ] = None,
    hold_out_share: Annotated[
        float | None, about("Share of the patients to hold out; 0.25 by default.")
    ] = None,
    force: Annotated[
        bool, about("Save even a model that a leaking column has made perfect.", None, "--force")
    ] = False,
    row_hashes: RowHashesOption = True,
    as_json: Json = False,
) -> None:
    """Train a survival model on a table, say what was done to which column, and save everything as one file.

    On real data no model beats plain Cox on average, so that is what is trained unless another --model is named.

    Example: drosurv fit patients.csv --time months --event died --hold-out test.csv -o model
    """
    from dataclasses import replace

    from drosurv.presentation.progress import bar
    from drosurv.workflows import train

    check_outputs([output, hold_out], [source.data])
    if hold_out_share is not None and hold_out is None:
        raise ValueError("--hold-out-share holds nobody out without a file for them: pass --hold-out FILE.")
    given = {"alpha": alpha, "ball": ball, "network": network, "hidden": _widths(hidden), "l2": l2}
    estimator = make_estimator(model, {**given, "recalibrate": recalibrate}, read_settings(set_), seed)
    if hidden is not None and getattr(estimator, "network", None) != "mlp":
        raise ValueError("--hidden gives the widths of a perceptron: pass --network mlp, or leave it out.")
    # Rows of one patient follow each other in time only where they say when they begin; else they are alike.
    patient, follows = source.id, source.entry is not None
    about_rows = {
        "strata": strata,
        "clusters": clusters or (None if follows else patient),
        "id": patient if follows else None,
    }
    observed = {name: column for name, column in about_rows.items() if column is not None}
    with recording_warnings() as warned:
        table = source.read(
            groups,
            causes=hasattr(estimator, "predict_cumulative_incidence"),
            strata=strata,
            clusters=clusters,
        )
        held = None
        if hold_out is not None:
            table, held = table.hold_out(0.25 if hold_out_share is None else hold_out_share, seed)
        # What is trained step by step has a bar of its own.
        with bar("training", shown=None if getattr(estimator, "_uses_convex", False) else False):
            trained = train(
                table,
                estimator,
                categorical=source.categorical,
                unseen=unseen,
                observed=observed,
                bootstrap=bootstrap,
                verbose=not as_json and sys.stderr.isatty(),
            )
    trained.save(output, source.data, force=force, row_hashes=row_hashes, warnings=as_records(warned))
    summary = {
        "model": str(output),
        **trained.summary(),
        **_size(table, patient),
        "held_out": None,
        "next": None,
    }
    if held is not None and hold_out is not None:
        source.format.recognised(source.data).write(held.frame, hold_out)
        summary["held_out"] = {"file": str(hold_out), **_size(held, patient)}
        marks = words(replace(source, missing=()), FileOptions)
        marks += option_words("id", patient) if patient else []
        summary["next"] = ["audit", str(output), str(hold_out), *marks]
        summary["next"] += option_words("groups", groups)
    elif trained.is_plain and not observed and source.entry is None:
        summary["next"] = ["repair", str(source.data), "--event", source.event, *words(source, TrainingTable)]
        summary["next"] += ["-o", str(output.with_name("repaired"))]
    with bar("comparing with plain Cox"):
        compared = trained.against_plain(held, seed)
    summary["against_plain_cox"] = tell_against_plain(*compared)
    described = trained.encoder.describe()
    if as_json:
        print_json({**summary, "columns": described.to_dict("records")})
    else:
        _show(summary, described)


def _widths(text: str | None) -> tuple[int, ...] | None:
    try:
        return None if text is None else tuple(int(width) for width in text.split(","))
    except ValueError:
        raise ArgumentError.must("hidden", "be widths separated by commas, such as 24,24", text) from None


def _size(table: SurvivalTable, id: str | None) -> dict[str, int]:
    """Patients and rows of a table: the same number, unless a column tells which rows are of one patient."""
    return {"patients": len(table) if id is None else len(set(table.patients.tolist())), "rows": len(table)}


def _patients(size: dict[str, Any]) -> str:
    patients = counted(size["patients"], "patient")
    return patients if size["rows"] == size["patients"] else f"{size['rows']:,} rows of {patients}"


def _show(summary: dict[str, Any], columns: pd.DataFrame) -> None:
    import pandas as pd

    shown = columns.drop(columns=["features", "kind"]).rename(columns={"filled_with": "filled with"})
    # The number alone does not say that it is most of them.
    shown.loc[shown["missing"] > summary["rows"] / 2, "filled with"] += " (most rows)"
    more = f" (the first {_MOST_SHOWN} of {len(shown)}; --json has all)" if len(shown) > _MOST_SHOWN else ""
    print_frame(shown[:_MOST_SHOWN], f"What was done to each column{more}")
    if summary["coefficients"] is not None:
        largest = sorted(summary["coefficients"].items(), key=lambda item: -abs(item[1]))
        frame = pd.DataFrame(largest[:15], columns=["feature", "coefficient (per sd)"])
        more = f" (15 of {len(largest)}, the largest)" if len(largest) > 15 else ""
        print_frame(frame, f"Coefficients{more}")
    # What a repair found is a sentence of its own, the status of a solver a word.
    status = summary["status"]
    word, sentence = ("", f"{status}\n") if status.endswith(".") else (f" ({status.replace('_', ' ')})", "")
    ranked = "c-index of cause 1" if summary["event"].startswith("any cause") else "c-index"
    typer.echo(
        f"{summary['estimator']} trained on {_patients(summary)} with {counted(summary['events'], 'event')}{word}; "
        f"{ranked} {summary['training_c_index']:.3f} on these same patients.\n{sentence}"
        f"The event is {summary['event']}; the time is {summary['time']!r}.\n"
        f"Saved to {summary['model']}."
    )
    tell_recalibration(summary["recalibration"], "--no-recalibrate leaves them as they are")
    if summary["held_out"] is not None:
        held = summary["held_out"]
        typer.echo(f"{_patients(held)} were held out in {held['file']}.")
    if summary["next"] is not None:
        typer.echo(f"Next, look for whom it fails:\n  {shlex.join(['drosurv', *summary['next']])}")
