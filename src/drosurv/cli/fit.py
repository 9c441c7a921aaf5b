"""``drosurv fit``: train a model on a user's table and save it with the table's preparation."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drosurv.cli.model_input import training_notes
from drosurv.cli.options import AsJson, DataFile, Decimal, Groups, Missing, Separator, listed
from drosurv.cli.outputs import check_outputs
from drosurv.cli.rendering import print_frame, print_json, records
from drosurv.cli.settings import read_settings

if TYPE_CHECKING:
    import pandas as pd


def fit(
    data: DataFile,
    time: Annotated[str, typer.Option(help="Column of times: numbers, such as days of follow-up.")],
    event: Annotated[str, typer.Option(help="Column of events: 1 or True where the event happened.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write the model to.")],
    event_value: Annotated[
        str | None, typer.Option(help="The value that means the event, where it is not 1 or True.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help="cox, dro-cox, dro-cox-split, regularized-cox, subgroup-robust-cox, group-dro-cox or null-model."
        ),
    ] = "dro-cox",
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Smallest share of patients to protect, in (0, 1]; 0.2 by default, or 0.1 (subgroup-robust-cox)."
        ),
    ] = None,
    ball: Annotated[
        str | None, typer.Option(help="Shape of the subpopulations: chi2, paper or cvar.")
    ] = None,
    network: Annotated[str | None, typer.Option(help="linear, the default, or mlp.")] = None,
    hidden: Annotated[
        str | None, typer.Option(help="Widths of the mlp's hidden layers, such as 24,24; 24 by default.")
    ] = None,
    l2: Annotated[float | None, typer.Option(help="Ridge penalty; 0 by default.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Any other parameter of the estimator, such as lr=0.001."
        ),
    ] = None,
    groups: Groups = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Columns not to use as features, such as patient numbers.")
    ] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="Columns that are categories although they hold numbers.")
    ] = None,
    unseen: Annotated[
        str,
        typer.Option(help="Levels met only in prediction: taken as the most frequent (reference), or error."),
    ] = "reference",
    hold_out: Annotated[
        Path | None, typer.Option(help="CSV file to write patients to that are kept away from training.")
    ] = None,
    hold_out_share: Annotated[float, typer.Option(help="Share of the patients to hold out.")] = 0.25,
    missing: Missing = None,
    separator: Separator = ",",
    decimal: Decimal = ".",
    as_json: AsJson = False,
) -> None:
    """Train a survival model on a table, say what was done to which column, and save everything as one file.

    Example: drosurv fit patients.csv --time months --event died --alpha 0.3 --hold-out test.csv -o model
    """
    from sklearn.pipeline import Pipeline

    from drosurv.persistence import save
    from drosurv.tables import TableEncoder, read_survival_table

    check_outputs([output, hold_out], [data])
    given = {"alpha": alpha, "ball": ball, "network": network, "hidden": _widths(hidden), "l2": l2}
    estimator = make_estimator(model, given, read_settings(set_), seed)
    table = read_survival_table(
        data,
        time=time,
        event=event,
        event_value=event_value,
        groups=listed(groups),
        drop=listed(drop),
        separator=separator,
        decimal=decimal,
        missing=listed(missing),
    )
    if hold_out is not None:
        table, away = table.hold_out(hold_out_share, seed)
    encoder = TableEncoder(categorical=listed(categorical), unseen=unseen)
    pipeline = Pipeline([("table", encoder), ("model", estimator)])
    talks = "verbose" in estimator.get_params()
    if talks:
        estimator.set_params(verbose=not as_json)
    pipeline.fit(table.X, table.y, **_groups_for(estimator, table.sensitive_features))
    if talks:
        estimator.set_params(verbose=False)
    save(pipeline, output, notes=training_notes(data, table.columns, encoder.transform(table.X), table.y))
    if hold_out is not None:
        away.frame.to_csv(hold_out, index=False, sep=separator, decimal=decimal)
    summary = {
        "model": str(output),
        "estimator": type(estimator).__name__,
        "parameters": estimator.get_params(),
        "patients": estimator.n_patients_,
        "events": estimator.n_events_,
        "held_out": None if hold_out is None else {"file": str(hold_out), "patients": len(away)},
        "training_c_index": pipeline.score(table.X, table.y),
        "objective": estimator.objective_,
        "status": getattr(estimator, "status_", "solved"),
        "columns": records(encoder.describe()),
        "coefficients": _coefficients(estimator),
    }
    if as_json:
        print_json(summary)
    else:
        _show(summary, encoder.describe(), _as_written(separator, decimal))


def make_estimator(name: str, common: dict[str, Any], others: dict[str, Any], seed: int = 0) -> Any:
    """An estimator by its name on the command line.

    Parameters
    ----------
    name : str
        Such as ``dro-cox``; the class's own name works too.
    common : dict
        Parameters most estimators have; None keeps the default, and one that this estimator lacks is an error.
    others : dict
        Any further parameters.
    seed : int
        Of an estimator that draws anything at random.
    """
    from sklearn.base import BaseEstimator

    from drosurv import estimators

    exported = [getattr(estimators, entry) for entry in estimators.__all__]
    classes = {
        cls.__name__.removesuffix("PH").lower(): cls
        for cls in exported
        if isinstance(cls, type) and issubclass(cls, BaseEstimator)
    }
    cls = classes.get(name.replace("-", "").lower().removesuffix("ph"))
    if cls is None:
        raise ValueError(
            f"model {name!r} is not one of {', '.join(sorted(c.__name__ for c in classes.values()))}."
        )
    wanted = {**{key: value for key, value in common.items() if value is not None}, **others}
    taken = cls().get_params()
    check_parameters(cls(), wanted)
    drawn = {"random_state": seed} if "random_state" in taken else {}
    return cls(**{**drawn, **wanted})


def check_parameters(estimator: Any, names: Iterable[str]) -> None:
    """Raise if an estimator has no parameter of a given name."""
    taken = estimator.get_params()
    for name in names:
        if name not in taken:
            raise ValueError(
                f"{name} has no meaning for {type(estimator).__name__}, which takes {', '.join(taken)}."
            )


def _widths(text: str | None) -> tuple[int, ...] | None:
    try:
        return None if text is None else tuple(int(width) for width in text.split(","))
    except ValueError:
        raise ValueError(f"hidden must be widths separated by commas, such as 24,24; got {text!r}.") from None


def _groups_for(estimator: Any, groups: pd.DataFrame) -> dict[str, Any]:
    from inspect import signature

    if groups.shape[1] == 0:
        return {}
    if "sensitive_features" not in signature(estimator.fit).parameters:
        raise ValueError(
            f"{type(estimator).__name__} is trained without groups: leave --groups away here, and pass it to "
            "`drosurv evaluate`."
        )
    return {"model__sensitive_features": groups}


def _coefficients(estimator: Any) -> dict[str, float] | None:
    if not hasattr(estimator, "coef_"):
        return None
    return dict(zip(estimator.feature_names_in_.tolist(), estimator.coef_.tolist(), strict=True))


def _as_written(separator: str, decimal: str) -> list[str]:
    """The options that read a table which these marks wrote."""
    marks = {"--separator": (separator, ","), "--decimal": (decimal, ".")}
    return [
        word
        for option, (mark, usual) in marks.items()
        if mark != usual
        for word in (option, "tab" if mark == "\t" else mark)
    ]


def _show(summary: dict[str, Any], columns: pd.DataFrame, marks: list[str]) -> None:
    import shlex

    import pandas as pd

    shown = columns.drop(columns=["features", "kind"]).rename(columns={"filled_with": "filled with"})
    print_frame(shown, "What was done to each column")
    if summary["coefficients"] is not None:
        largest = sorted(summary["coefficients"].items(), key=lambda item: -abs(item[1]))
        frame = pd.DataFrame(largest[:15], columns=["feature", "coefficient (per sd)"])
        more = f" (15 of {len(largest)}, the largest)" if len(largest) > 15 else ""
        print_frame(frame, f"Coefficients{more}")
    typer.echo(
        f"{summary['estimator']} trained on {summary['patients']:,} patients with {summary['events']:,} events "
        f"({summary['status']}); c-index {summary['training_c_index']:.3f} on these same patients.\n"
        f"Saved to {summary['model']}."
    )
    if summary["held_out"] is not None:
        held = summary["held_out"]
        typer.echo(f"{held['patients']:,} patients were held out in {held['file']}; next:")
        typer.echo(f"  {shlex.join(['drosurv', 'evaluate', summary['model'], held['file'], *marks])}")
