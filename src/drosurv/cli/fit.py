"""``drosurv fit``: train a model on a user's table and save it with its encoder."""

from __future__ import annotations

import shlex
import sys
from dataclasses import MISSING
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from drosurv.cli.options import (
    FileOptions,
    Groups,
    Names,
    RunOptions,
    Settings,
    TrainingTable,
    as_typed,
    command,
    make_estimator,
    option,
    read_pairs,
    read_settings,
    shell_option,
    shell_options,
)
from drosurv.cli.outputs import (
    check_outputs,
    print_frame,
    print_json,
    print_recalibration,
    printable,
)
from drosurv.errors import as_records, recording_warnings
from drosurv.presentation import counted

if TYPE_CHECKING:
    from drosurv.estimators.coefficients import CoxTable
    from drosurv.tables import SurvivalTable
    from drosurv.workflows.training import Trained

_ABOUT = {
    "CoxPHCV": "It is Cox regression with ridge and splines chosen by cross-validation; --model cox trains plain Cox.\n"
}
# Folds of the audit that is proposed.
_FOLDS = 5
# Longer tables, such as of thousands of genes, are cut.
_MOST_SHOWN = 40


@command(place=40)
def fit(
    run: RunOptions,
    source: TrainingTable,
    output: Path = option("File to write the model to.", None, "--output", "-o", default=MISSING),
    model: str | None = option(
        "cox-cv, the default, cox (plain Cox), dro-cox, cause-specific-cox or any other estimator."
    ),
    alpha: float | None = option(
        "For robust models: size of the smallest subpopulation to protect, as a share in (0, 1].", "Model"
    ),
    ball: str | None = option(
        "For robust models: shape of the subpopulations, such as chi2 or cvar; a wrong name lists all.",
        "Model",
    ),
    network: str | None = option(
        "linear, the default, trees or mlp; its settings are --set network__lr=0.1 and so on.", "Model"
    ),
    l2: float | None = option("Ridge penalty; 0 by default.", "Model"),
    recalibrate: bool | None = option(
        "Multiply log risks by the factor that is best for held-out patients; the default of robust models.",
        "Model",
        "--recalibrate/--no-recalibrate",
        show_default=False,
    ),
    set_: Settings = None,
    groups: Groups = (),
    reference: Names = option(
        "Level that the others of a column are compared with, such as sex=female.", "Columns", default=()
    ),
    strata: str | None = option("Column of strata, each with its own baseline hazard.", "Columns"),
    bootstrap: int = option(
        "Refits for the standard errors of drosurv summary; 0 for none.", "Model", min=0, default=0
    ),
    unseen: str = option(
        "Levels not seen in training: reference (treated as the reference level) or error.",
        "Model",
        default="reference",
    ),
) -> None:
    """Train a survival model on a table and save it as one file, with the encoding of each column.

    By default Cox regression with ridge and splines chosen by cross-validation; plain Cox is shown beside it.

    Example: drosurv fit patients.csv --time months --event died --hold-out test.csv -o model
    """
    from dataclasses import replace

    from drosurv.presentation.drawing import bar

    check_outputs([output], [source.data], force=run.force, hold_out=source.hold_out)
    with recording_warnings() as noted:
        frame = source.read()
    from drosurv.estimators.coefficient_inference import summary as summarised
    from drosurv.workflows.training import plain_cox_table, train

    common = {"alpha": alpha, "ball": ball, "network": network, "l2": l2, "recalibrate": recalibrate}
    settings = read_settings(set_)
    named = {name for name, value in common.items() if value is not None} | settings.keys()
    # Networks and a given penalty are parameters of plain Cox.
    model = model or ("cox-cv" if named <= {"splines", "l2s", "cv", "ties"} else "cox")
    estimator = make_estimator(model, common, settings, run.seed)
    with recording_warnings() as warned:
        table = source.parse(
            frame,
            groups,
            causes=hasattr(estimator, "predict_cumulative_incidence"),
            strata=strata,
        )
        table, held = source.divided(table, run.seed, force=run.force)
        observed = _observed(table, estimator, strata, asked=source.id is not None)
        # Solvers that take many steps show a progress bar themselves.
        with bar("training", shown=None if getattr(estimator, "_uses_convex", False) else False):
            trained = train(
                table,
                estimator,
                categorical=source.categorical,
                unseen=unseen,
                observed=observed,
                bootstrap=bootstrap,
                reference=read_pairs(reference, "--reference", "COLUMN=LEVEL, such as sex=female"),
                keep_columns=source.keep_columns,
                verbose=not run.as_json and sys.stderr.isatty(),
            )
    with bar("plain Cox"):
        cox, hazards = plain_cox_table(trained)
    effects = summarised(trained.model) if hasattr(trained.estimator, "partial_effect") else None
    trained.save(output, source.data, row_hashes=source.row_hashes, warnings=as_records(noted + warned))
    summary = {
        "model": str(output),
        **trained.summary(),
        **_size(table),
        "causes": list(table.columns.causes_in(table.frame)),
        "held_out": None,
        "next": None,
    }
    following = ["audit", str(output)]
    if held is not None:
        source.write_held_out(held, force=run.force)
        summary["held_out"] = {"file": str(source.hold_out), **_size(held)}
        written = replace(source.held_out_file, missing=())
        following += [str(source.hold_out), *shell_options(written, FileOptions)]
    else:
        folds = str(min(_FOLDS, table.n_with_event))
        following += [as_typed(source.data), "--folds", folds, *shell_options(source, FileOptions)]
        following += shell_option("drop_missing_target", True) if source.drop_missing_target else []
    following += shell_option("numeric", source.numeric)
    # Models of causes are not trained in folds with entry times or strata.
    observes = bool(summary["causes"]) and (table.entry is not None or strata is not None)
    if held is not None or (table.n_with_event > 1 and not observes):
        following += shell_option("cause", tuple(summary["causes"][:1]))
        summary["next"] = [*following, *shell_option("groups", groups)]
    summary["plain_cox"] = None if cox is None else cox.reset_index().to_dict("records")
    summary["proportional_hazards"] = hazards
    summary["partial_effects"] = None if effects is None else effects.reset_index().to_dict("records")
    if run.as_json:
        print_json({**summary, "columns": trained.encoder.describe().to_dict("records")})
    else:
        _show(summary, trained, held, cox, effects)


def _observed(table: SurvivalTable, estimator: Any, strata: str | None, *, asked: bool) -> dict[str, str]:
    """Return the columns that say how rows were observed, by argument of ``fit``.

    An id that nobody `asked` for is not given to an estimator that cannot use it.
    """
    able = estimator.capabilities.row_arguments
    rows = table.columns_of_rows.items()
    known: dict[str, str] = {} if strata is None else {"strata": strata}
    return known | {name: column for name, column in rows if asked or column != table.id or name in able}


def _size(table: SurvivalTable) -> dict[str, int]:
    """Return the numbers of patients and rows of a table."""
    return {"patients": table.n_patients, "rows": len(table)}


def _show(
    summary: dict[str, Any],
    trained: Trained,
    held: SurvivalTable | None,
    cox: CoxTable | None,
    effects: CoxTable | None,
) -> None:
    import pandas as pd

    columns = trained.encoder.describe().drop(columns=["features", "kind"])
    shown = columns.rename(columns={"filled_with": "filled with"})
    # Point out columns of which most values were filled in.
    shown.loc[shown["missing"] > summary["rows"] / 2, "filled with"] += " (most rows)"
    more = f" (the first {_MOST_SHOWN} of {len(shown)}; --json has all)" if len(shown) > _MOST_SHOWN else ""
    print_frame(shown[:_MOST_SHOWN], f"What was done to each column{more}")
    if cox is not None and len(cox) <= _MOST_SHOWN:
        typer.echo(printable(f"{cox.to_table()}\n{summary['proportional_hazards']}\n"))
    if effects is not None:
        if len(effects) <= _MOST_SHOWN:
            # Both tables have the same notes on reference levels and missing values.
            effects.notes = tuple(note for note in effects.notes if cox is None or note not in cox.notes)
            typer.echo(printable(f"Saved model, {effects.to_table()}\n"))
    elif summary["coefficients"] is not None and not trained.is_plain:
        largest = sorted(summary["coefficients"].items(), key=lambda item: -abs(item[1]))
        frame = pd.DataFrame(largest[:15], columns=["feature", "coefficient (per sd)"])
        more = f" (15 of {len(largest)}, the largest)" if len(largest) > 15 else ""
        print_frame(frame, f"Coefficients of {summary['estimator']}{more}")
    # The status of a repair is a sentence, that of a solver a word.
    status = summary["status"]
    repaired = hasattr(trained.estimator, "repairs_")
    word, sentence = ("", f"{status}\n") if repaired else (f" ({status.replace('_', ' ')})", "")
    typer.echo(
        f"{summary['estimator']} trained on {trained.table.size} with {counted(summary['events'], 'event')}{word}.\n"
        f"{sentence}"
        f"{_ABOUT.get(summary['estimator'], '')}"
        f"The event is {summary['event']}; the time is {summary['time']!r}.\n"
        f"Saved to {summary['model']}."
    )
    print_recalibration(summary["recalibration"], "--no-recalibrate leaves them as they are")
    if held is not None:
        typer.echo(f"{held.size} were held out in {summary['held_out']['file']}.")
    if summary["next"] is not None:
        typer.echo(f"Next, audit it:\n  {shlex.join(['drosurv', *summary['next']])}")
    elif summary["causes"]:
        typer.echo("Next, fit it again with --hold-out test.csv, and audit it on the patients in that file.")
