"""Arguments and options that several commands share."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from drosurv.tables import FileFormat, SurvivalTable


def _mark(text: str) -> str:
    """A separator as a user can type it: a shell hands a tab on as two characters."""
    return "\t" if text in ("\\t", "tab") else text


DataFile = Annotated[Path, typer.Argument(metavar="DATA", help="CSV or Parquet file, one row per patient.")]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model that `drosurv fit` or save() wrote.")]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns that define groups, separated by commas; cut numbers like 'age>65', in quotes."
    ),
]
EventColumn = Annotated[str, typer.Option(help="Column of events: 1, True, yes, dead ... where it happened.")]
OtherEvent = Annotated[str | None, typer.Option(help="Column of events, if not the one trained on.")]
Strata = Annotated[str | None, typer.Option(help="Column of strata, if not the one trained with.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any parameter of the estimator, such as lr=0.001."),
]
Network = Annotated[str | None, typer.Option(help="linear, the default, trees or mlp.")]
Force = Annotated[
    bool, typer.Option("--force", help="Save even a model that a leaking column has made perfect.")
]
Jobs = Annotated[int | None, typer.Option(help="Processes; by default one per processor core.")]
Document = Annotated[
    Path | None, typer.Option(help="Also write everything as one Markdown document to this file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@dataclass(frozen=True)
class FileOptions:
    """How the files are written."""

    missing: Annotated[
        list[str] | None,
        typer.Option(
            help="Texts that mean a missing value, besides empty, NA, N/A, NaN and null; age=999 in one column."
        ),
    ] = None
    separator: Annotated[
        str, typer.Option(help="Separator of a CSV file, such as ';' or tab.", callback=_mark)
    ] = ","
    decimal: Annotated[str, typer.Option(help="Decimal mark of a CSV file.")] = "."
    encoding: Annotated[str, typer.Option(help="Encoding of a CSV file, such as cp1252.")] = "utf-8"

    @property
    def format(self) -> FileFormat:
        """The same for the library."""
        from drosurv.tables import FileFormat

        return FileFormat(self.separator, self.decimal, self.encoding, listed(self.missing))


@dataclass(frozen=True)
class TargetOptions:
    """Where the target stands; the event's column is named by each command."""

    time: Annotated[str | None, typer.Option(help="Column of times: numbers, such as days of follow-up.")] = (
        None
    )
    start: Annotated[str | None, typer.Option(help="Instead of --time: column of first dates.")] = None
    end: Annotated[str | None, typer.Option(help="Column of last dates; the time is in days.")] = None
    entry: Annotated[
        str | None, typer.Option(help="Column of times from which patients are observed, if not from 0.")
    ] = None
    event_value: Annotated[
        str | None, typer.Option(help="The value that means the event, where that is not plain.")
    ] = None
    id: Annotated[
        str | None, typer.Option(help="Column that names the patient, whose rows are kept together.")
    ] = None
    drop_missing_target: Annotated[
        bool, typer.Option("--drop-missing-target", help="Leave out rows without a time or an event.")
    ] = False

    def arguments(self) -> dict[str, Any]:
        """By the library's names."""
        return {field.name: getattr(self, field.name) for field in fields(TargetOptions)}


@dataclass(frozen=True, kw_only=True)
class TrainingTable(FileOptions, TargetOptions):
    """A table to train on, and what its columns are."""

    data: DataFile
    event: EventColumn
    features: Annotated[
        list[str] | None, typer.Option(help="Columns to predict from; by default all that are left.")
    ] = None
    drop: Annotated[
        list[str] | None, typer.Option(help="Columns not to use as features, such as patient numbers.")
    ] = None
    categorical: Annotated[
        list[str] | None, typer.Option(help="Columns that are categories although they hold numbers.")
    ] = None
    numeric: Annotated[
        list[str] | None, typer.Option(help="Columns that are amounts although they look like codes.")
    ] = None
    complete_cases: Annotated[
        bool,
        typer.Option(
            "--complete-cases",
            help="Leave out patients without a value in some feature, as R and lifelines do, instead of filling it in.",
        ),
    ] = False

    def read(
        self,
        groups: list[str] | None = None,
        *,
        observed: Mapping[str, str | None] | None = None,
        causes: bool = False,
    ) -> SurvivalTable:
        """The table.

        Columns `observed`, by the option that names them, are no features; with `causes`, events are read as causes
        that compete.
        """
        from drosurv.presentation.progress import bar
        from drosurv.tables import read_survival_table

        found = {option: column for option, column in (observed or {}).items() if column is not None}
        with bar("reading the table"):
            return read_survival_table(
                self.data,
                event=self.event,
                groups=listed(groups),
                causes=causes,
                observed=found,
                features=listed(self.features),
                drop=listed(self.drop),
                categorical=listed(self.categorical),
                numeric=listed(self.numeric),
                complete_cases=self.complete_cases,
                **self.arguments(),
                **asdict(self.format),
            )


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take bundles of options: a parameter that is one stands for an option per field."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    bundles: dict[str, tuple[type[Any], list[str]]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        hint = hints[name]
        if is_dataclass(hint) and isinstance(hint, type):
            own = get_type_hints(hint, include_extras=True)
            # What must be given comes first.
            found = sorted(fields(hint), key=lambda field: field.default is not MISSING)
            bundles[name] = (hint, [field.name for field in found])
            parameters += [
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=inspect.Parameter.empty if field.default is MISSING else field.default,
                    annotation=own[field.name],
                )
                for field in found
            ]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hint))

    def run(**given: Any) -> None:
        made = {
            name: bundle(**{field: given.pop(field) for field in names})
            for name, (bundle, names) in bundles.items()
        }
        command(**given, **made)

    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def words(bundle: Any, kind: type[Any]) -> list[str]:
    """The options that a shell takes to give the same bundle again, those of one kind that differ from defaults."""
    found: list[str] = []
    for field in fields(kind):
        value, option = getattr(bundle, field.name), f"--{field.name.replace('_', '-')}"
        if value is True:
            found.append(option)
        elif value != field.default and field.default is not MISSING:
            for entry in value if isinstance(value, list) else [value]:
                found += [option, "tab" if entry == "\t" else entry]
    return found


def listed(values: list[str] | None) -> tuple[str, ...]:
    """The entries of an option given once or several times, separated by commas; quote one that holds a comma."""
    found = [entry.strip() for row in csv.reader(values or [], skipinitialspace=True) for entry in row]
    return tuple(entry for entry in found if entry)
