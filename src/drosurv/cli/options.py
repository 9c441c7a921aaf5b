"""Options that several commands share, estimators by name, and the decorator that makes commands."""

from __future__ import annotations

import ast
import csv
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args, get_origin, get_type_hints

import typer

from drosurv.errors import ArgumentError, InputError, arg, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from drosurv.tables import SurvivalTable
    from drosurv.tables.reading import FileFormat
    from drosurv.tables.target_columns import TargetColumns

# Type of options that take names separated by commas, or are given several times.
Names = tuple[str, ...]
TABLE = "Table (CSV, Parquet, Excel, Stata, SPSS, SAS); - for standard input."
# Copies of what came through a pipe, which can be read several times, and how the user wrote each.
_PIPED: dict[Path, str] = {}


def piped(path: Path | None) -> Path | None:
    """Return the path of an input, or of a copy of it for standard input ("-") and other pipes."""
    if path is None or not (str(path) == "-" or path.is_fifo()):
        return path
    from drosurv.tables.reading import local_file

    copy = local_file(path)
    _PIPED[copy] = str(path)
    return copy


def as_typed(path: Path) -> str:
    """Return the path of an input as the user wrote it."""
    return _PIPED.get(path, str(path))


def about(help: str, panel: str | None = None, *flags: str, **more: Any) -> Any:
    """Return an option with its help text, in a panel of the help if one is named."""
    return typer.Option(*flags, help=help, rich_help_panel=panel, **more)


def option(help: str, panel: str | None = None, *flags: str, default: Any = None, **more: Any) -> Any:
    """Return what a parameter of a command, or a field of a dataclass of options, is set to: an option with a default.

    Without a default, MISSING, the option is required.
    """
    return field(default=default, metadata={"option": about(help, panel, *flags, **more)})


_COLUMNS, _FILE, _MODEL, _OUTPUT = "Columns", "File", "Model", "Output"
SAVED = "Model that `drosurv fit` or save() wrote."
# Share of the patients that is held out unless another is given.
_SHARE = 0.25

# Options and arguments of several commands.
DataFile = Annotated[Path, typer.Argument(metavar="DATA", help=TABLE, callback=piped)]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help=SAVED)]
Groups = Annotated[
    Names, about("Columns that define groups, separated by commas; cut numbers like 'age>65', in quotes.")
]
Drop = Annotated[Names, about("Columns not to use as features.")]
Numeric = Annotated[Names, about("Columns that are amounts although they look like codes.", _COLUMNS)]
KeepColumns = Annotated[
    Names,
    about(
        "Columns to use although they look like the outcome: they are known when a prediction is made.",
        _COLUMNS,
    ),
]
Clusters = Annotated[
    str | None,
    about("Column of clusters: different patients who may be alike, such as hospitals or litters.", _COLUMNS),
]
Strata = Annotated[str | None, about("Column of strata, if not the one trained with.", _COLUMNS)]
Cause = Annotated[
    str | None,
    about(
        "One of several causes, by its number or name; any, the default for models of causes, for any cause.",
        _COLUMNS,
    ),
]
Horizon = Annotated[
    float | None, about("Time at which survival is compared; the median follow-up if not given.")
]
TimeUnit = Annotated[
    str | None, about("What the times count, such as days, if the column does not say it.", "Columns")
]
Threshold = Annotated[
    float | None, about("Risk of the event by the horizon at or above which a patient would be treated.")
]
Settings = Annotated[
    list[str] | None,
    about("Any parameter of the estimator, such as lr=0.001.", _MODEL, "--set", metavar="NAME=VALUE"),
]


# The functions of all commands and their places in the list of commands.
COMMANDS: dict[Callable[..., None], int] = {}


def command(place: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that makes a command of a function; `place` is its position in the list of commands.

    Where a parameter is a dataclass, each of its fields is an option. Options of type :data:`Names` are split at
    commas. A file of this folder with such a function is all that a new command needs.
    """

    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        made = with_options(function)
        COMMANDS[made] = place
        return made

    return decorated


def with_options(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function with one parameter per option, which collects them into the dataclasses of `function`."""
    # Required ones first, those about the output last.
    options = sorted(
        _flattened(function),
        key=lambda option: (option.default is not option.empty, _panel(option) == _OUTPUT),
    )
    bundles = {name: hint for name, hint in get_type_hints(function).items() if is_dataclass(hint)}
    lists = [option.name for option in options if Names in option.annotation.__metadata__]

    def run(**given: Any) -> None:
        given |= {name: listed(given[name]) for name in lists}
        for name, bundle in bundles.items():
            given[name] = bundle(**{field.name: given.pop(field.name) for field in fields(bundle)})  # type: ignore[operator]
        function(**given)

    run.__name__, run.__module__, run.__doc__ = function.__name__, function.__module__, function.__doc__
    run.__annotations__ = {option.name: option.annotation for option in options}
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return run


def _panel(option: inspect.Parameter) -> str | None:
    """Return the panel of the help in which an option stands."""
    found: str | None = getattr(option.annotation.__metadata__[0], "rich_help_panel", None)
    return found


def _flattened(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """Parameters of a function, dataclasses replaced by their fields."""
    hints = get_type_hints(function, include_extras=True)
    declared = {one.name: one for one in fields(cast(Any, function))} if is_dataclass(function) else {}
    for name, parameter in inspect.signature(function).parameters.items():
        hint, default = hints[name], parameter.default
        if is_dataclass(hint):
            yield from _flattened(cast(Callable[..., Any], hint))
            continue
        made = declared.get(name, default)
        if isinstance(made, Field) and "option" in made.metadata:
            hint = cast(Any, Annotated)[hint, made.metadata["option"]]
            default = parameter.empty if made.default is MISSING else made.default
        if get_origin(hint) is Annotated and hint.__origin__ == Names:
            hint, default = Annotated[list[str] | None, get_args(hint)[1], Names], None
        yield parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hint, default=default)


def _mark(text: str | None) -> str | None:
    """Return the separator that a user typed; a tab is typed as ``tab`` or as a backslash and t."""
    return "\t" if text in ("\\t", "tab") else text


@dataclass(frozen=True)
class OutputOptions:
    """How results are given."""

    force: bool = option("Overwrite files that drosurv did not write.", _OUTPUT, "--force", default=False)
    as_json: bool = option("Print JSON for programs.", _OUTPUT, "--json", default=False)


@dataclass(frozen=True)
class RunOptions(OutputOptions):
    """How results are given, and the random seed."""

    seed: int = option("Random seed.", _OUTPUT, min=0, default=0)


@dataclass(frozen=True)
class FileOptions:
    """Format of the input files."""

    missing: Names = option(
        'Texts that mean a missing value, besides empty, ".", NA, N/A, NaN and null; age=999 in one column; age=* '
        "for each text that is no number. "
        "Quote a text that holds a comma twice: '\"<0,5\"'.",
        _FILE,
        default=(),
    )
    separator: str | None = option(
        "Separator of a CSV file, such as ';' or tab; recognised if not given.", _FILE, callback=_mark
    )
    decimal: str | None = option("Decimal mark of a CSV file; recognised if not given.", _FILE)
    encoding: str | None = option("Encoding of a CSV file, such as cp1252; recognised if not given.", _FILE)
    sheet: str | None = option("Sheet of an Excel workbook: its name or number.", _FILE)
    header_row: int | None = option("Row that names the columns, from 1; recognised if not given.", _FILE)

    @property
    def format(self) -> FileFormat:
        """The format as the library takes it."""
        from drosurv.tables.reading import FileFormat

        return FileFormat(**{option.name: getattr(self, option.name) for option in fields(FileOptions)})


@dataclass(frozen=True)
class ColumnOptions:
    """Columns of the target and of the patient, and those that are categories."""

    event: str | None = option("Column of events, if not the one trained on.")
    time: str | None = option("Column of times, such as days of follow-up.")
    start: str | None = option("Instead of --time: column of start dates, or numbers.", _COLUMNS)
    end: str | None = option("Column of end dates (the time is in days), or numbers.", _COLUMNS)
    entry: str | None = option("Column of times from which patients are observed, if not from 0.", _COLUMNS)
    event_value: str | None = option("The value that means the event, where it is not clear.", _COLUMNS)
    id: str | None = option("Column that names the patient.")
    categorical: Names = option(
        "Columns that are categories although they hold numbers.", _COLUMNS, default=()
    )
    numeric: Numeric = ()


@dataclass(frozen=True)
class TargetOptions(ColumnOptions):
    """Columns of the target and of the patient, of a table whose target is complete or is made so."""

    drop_missing_target: bool = option(
        "Leave out rows without a valid time or event.", _COLUMNS, "--drop-missing-target", default=False
    )


@dataclass(frozen=True)
class FeatureOptions:
    """Columns that are features."""

    drop: Drop = ()
    keep_columns: KeepColumns = ()


@dataclass(frozen=True, kw_only=True)
class TrainingTable(FeatureOptions, FileOptions, TargetOptions):
    """A training table, the roles of its columns, and which rows are used or held out."""

    data: DataFile
    clusters: Clusters = None
    event: str = option("Column of events, such as 1, yes or dead.", default=MISSING)
    features: Names = option("Columns to predict from; by default all that are left.", _COLUMNS, default=())
    complete_cases: bool = option(
        "Leave out patients without a value in some feature, as R and lifelines do, instead of filling it in.",
        _COLUMNS,
        "--complete-cases",
        default=False,
    )

    first_event: bool = option(
        "Of patients with several events, train on the rows up to the first.",
        _COLUMNS,
        "--first-event",
        default=False,
    )

    hold_out: Path | None = option(
        "CSV file of patients to keep out of training; written if it does not exist."
    )
    hold_out_share: float | None = option("Share of the patients to hold out; 0.25 by default.", _OUTPUT)
    row_hashes: bool = option(
        "Keep salted hashes of the training rows in the file, to recognise them in other tables.",
        _OUTPUT,
        default=True,
    )

    def divided(
        self, table: SurvivalTable, seed: int, *, force: bool
    ) -> tuple[SurvivalTable, SurvivalTable | None]:
        """Divide a table into patients to train on and those held out in a file, if one is named.

        An existing file is used as it is; a new one, or with `force` any, is written with a random share.
        """
        path, share = self.hold_out, self.hold_out_share
        if path is None:
            if share is not None:
                raise InputError("--hold-out-share needs a file for the patients: pass --hold-out FILE.")
            return table, None
        if path.is_file() and not force:
            from drosurv.errors import warn_caller
            from drosurv.tables.reading import TableNote
            from drosurv.workflows.row_hashes import patients_not_in

            if share is not None:
                raise InputError(
                    f"{path} exists: leave out --hold-out-share to use it, or pass --force to replace it."
                )
            kept = patients_not_in(table.frame, self.held_out_file.format.read(path), table.id)
            if not kept.any():
                raise InputError(f"{path} holds every patient of {self.data}: nobody is left to train on.")
            if kept.all():
                raise InputError(f"{path} exists and holds no patient of {self.data}: name another file.")
            note = f"{int((~kept).sum()):,} rows of {self.data} are in {path} and were kept out of training."
            warn_caller(note, category=TableNote)
            return table.take(kept), table.take(~kept)
        return table.hold_out(_SHARE if share is None else share, seed)

    @property
    def held_out_file(self) -> FileOptions:
        """The format of the file of held-out patients: a CSV file, even if the table is a sheet of a workbook."""
        return replace(self, sheet=None, header_row=None)

    def write_held_out(self, held_out: SurvivalTable | None, *, force: bool) -> None:
        """Write patients that were held out, unless their file was there before."""
        path = self.hold_out
        if held_out is not None and path is not None and (force or not path.is_file()):
            self.format.recognised(self.data).write(held_out.frame, path)

    def read(self) -> pd.DataFrame:
        """Read the file, and raise if a column is missing; commands do this before they import anything slow."""
        from drosurv.presentation.drawing import bar
        from drosurv.tables.reading import require_columns

        with bar("reading the table"):
            frame = self.format.read(self.data)
        replace(self.target(), event_value=self.event_value).require(frame)
        for role in ("id", "clusters", "drop", "categorical", "features", "numeric", "keep_columns"):
            named = getattr(self, role)
            require_columns(frame, [named] if isinstance(named, str) else named or (), role)
        return frame

    def target(self, *, causes: bool = False) -> TargetColumns:
        """Return the columns of the target; the event may be any of its values."""
        from drosurv.tables.target_columns import TargetColumns

        return TargetColumns(self.time, self.event, None, self.start, self.end, self.entry, causes)

    def parse(
        self, frame: pd.DataFrame, groups: Names = (), *, causes: bool = False, **observed: str | None
    ) -> SurvivalTable:
        """Return the patients of a table that was read.

        Columns `observed`, by the option that names them, are no features; with `causes`, events are read as causes
        that compete.
        """
        from drosurv.tables import read_survival_table

        named = {option: column for option, column in observed.items() if column is not None}
        roles = [option.name for option in fields(TargetOptions)]
        roles += ["clusters", "features", "drop", "keep_columns", "complete_cases", "first_event"]
        given = {name: getattr(self, name) for name in roles}
        return read_survival_table(frame, groups=groups, causes=causes, observed=named, **given)


def cause_number(cause: str | None, table: SurvivalTable) -> int | None:
    """Return the number of the cause that an option names; None for an event of any cause."""
    if cause is None or (cause.casefold() == "any" and table.columns.causes):
        return None
    return table.columns.cause_number(cause)


def shell_options(bundle: Any, kind: type[Any]) -> list[str]:
    """Return command-line arguments for the fields of `bundle`, a dataclass `kind`, that differ from their defaults."""
    found: list[str] = []
    for option in fields(kind):
        value = getattr(bundle, option.name)
        if value != option.default and option.default is not MISSING:
            found += shell_option(option.name, value)
    return found


def shell_option(name: str, value: Any) -> list[str]:
    """Return the arguments in a shell that give an option this value."""
    option = f"--{name.replace('_', '-')}"
    if value is True:
        return [option]
    entries = map(quoted, value) if isinstance(value, tuple) else [value]
    return [word for entry in entries for word in (option, "tab" if entry == "\t" else str(entry))]


def quoted(entry: str) -> str:
    """Quote an entry of a list so that :func:`listed` reads it back."""
    written = entry.replace('"', '""')
    return f'"{written}"' if written != entry or "," in entry else entry


def listed(values: list[str] | None) -> Names:
    """Return the entries of an option: separated by commas, or the option given several times.

    An entry that holds a comma is quoted.
    """
    found = [entry.strip() for row in csv.reader(values or [], skipinitialspace=True) for entry in row]
    return tuple(entry for entry in found if entry)


def model_classes() -> dict[str, type[Any]]:
    """Every estimator by its plain name, such as ``dro-cox``."""
    from drosurv.estimators.all_models import all_estimators

    return {_plain(name): cls for name, cls in all_estimators(causes=True)}


def make_estimator(name: str, common: dict[str, Any], others: dict[str, Any], seed: int = 0) -> Any:
    """Return the estimator of a name, such as dro-cox or DROCox.

    `common` are parameters that have options (None keeps the default), `others` those given by ``--set``. Raise if the
    estimator lacks one of them.
    """
    classes = model_classes()
    cls = classes.get(_plain(name))
    if cls is None:
        known = sorted(found.__name__ for found in classes.values())
        raise InputError(f"--model {name!r} is not one of {', '.join(known)}.{did_you_mean(name, known)}")
    from drosurv.estimators.network_settings import as_network

    wanted = {**{key: value for key, value in common.items() if value is not None}, **others}
    estimator = cls()
    if "network" in estimator.get_params():
        # The network as a value, so that --set network__lr=0.001 sets a parameter of it.
        network = wanted.pop("network", estimator.network)
        estimator.set_params(network=as_network(network) or "linear")
        for name in ("lr", "max_iter"):
            if name in others and estimator.network != "linear":
                raise InputError(
                    f"--set {name} is for a linear model: pass --set network__{name}={others[name]} for the network."
                )
    check_parameters(estimator, wanted.keys() - others)
    check_parameters(estimator, others, "--set")
    drawn = {"random_state": seed} if "random_state" in estimator.get_params() else {}
    return estimator.set_params(**{**drawn, **wanted})


def check_parameters(estimator: Any, names: Iterable[str], option: str = "") -> None:
    """Raise if an estimator lacks a parameter.

    `option`, such as ``--set``, is the option that named the parameters; empty if each has an option of its own name.
    """
    taken = estimator.get_params()
    for name in names:
        if name not in taken:
            remedy = f", which takes {', '.join(taken)}"
            if name in ("alpha", "ball"):
                remedy = ": pass --model dro-cox, or another robust model"
            elif name.startswith("network__") and "network" in taken:
                remedy = " with this network: pass --network mlp or --network trees"
            named = f"{option} {name}" if option else arg(name)
            raise ArgumentError(
                name,
                f"{named} has no meaning for {type(estimator).__name__}{remedy}.{did_you_mean(name, taken)}",
            )


def _plain(name: str) -> str:
    return name.replace("-", "").lower().replace("coxph", "cox")


def read_settings(entries: list[str] | None) -> dict[str, Any]:
    """Return the values that ``--set`` gives; each is read as JSON, else as Python, else as text."""
    return {
        name: _value(text)
        for name, text in read_pairs(entries, "--set", "NAME=VALUE, such as lr=0.001").items()
    }


def read_pairs(entries: Sequence[str] | None, option: str, example: str) -> dict[str, str]:
    """Return the values by name of entries NAME=VALUE."""
    found: dict[str, str] = {}
    for entry in entries or []:
        name, equals, value = (part.strip() for part in entry.partition("="))
        if not name or not equals or not value:
            raise InputError(f"{option} needs {example}; got {entry!r}.")
        if name in found:
            raise InputError(f"{option} names {name!r} twice: give it once.")
        found[name] = value
    return found


def _value(text: str) -> Any:
    for read in (json.loads, ast.literal_eval, float):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return text.strip()
