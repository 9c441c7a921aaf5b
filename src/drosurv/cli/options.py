"""Commands made of functions, and the options that several of them share."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin, get_type_hints

import typer

if TYPE_CHECKING:
    from drosurv.tables import FileFormat, SurvivalTable

DataFile = Annotated[Path, typer.Argument(metavar="DATA", help="CSV or Parquet file, one row per patient.")]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model that `drosurv fit` or save() wrote.")]
# Separated by commas, or given several times.
Names = tuple[str, ...]

# What an option means in every command that does not say it in its own words.
_MEANING = {
    "as_json": "Print JSON for programs.",
    "document": "Also write everything as one Markdown document to this file.",
    "force": "Save even a model that a leaking column has made perfect.",
    "groups": "Columns that define groups, separated by commas; cut numbers like 'age>65', in quotes.",
    "jobs": "Processes; by default one per processor core.",
    "network": "linear, the default, trees or mlp.",
    "row_hashes": "Keep salted hashes of the training rows in the file, to recognise them in other tables.",
    "seed": "Seed of everything random.",
    "set_": "Any parameter of the estimator, such as lr=0.001.",
    "strata": "Column of strata, if not the one trained with.",
}
_SPELLING = {"as_json": ["--json"], "output": ["--output", "-o"], "set_": ["--set"]}
_METAVAR = {"set_": "NAME=VALUE", "grid": "NAME=VALUES"}


def command(function: Callable[..., None]) -> Callable[..., None]:
    """A command whose options are the parameters of a function.

    Their help is told in its docstring, one line ``--name: text`` for each, or else in `_MEANING`. A dataclass stands
    for an option per field. What is False by default is a flag. A parameter that is annotated for typer stays so.
    """
    options = sorted(_options(function), key=lambda option: option.default is not option.empty)
    bundles = {name: hint for name, hint in get_type_hints(function).items() if _is_bundle(hint)}
    lists = [option.name for option in options if Names in option.annotation.__metadata__]

    def run(**given: Any) -> None:
        given |= {name: listed(given[name]) for name in lists}
        for name, bundle in bundles.items():
            given[name] = bundle(**{field.name: given.pop(field.name) for field in fields(bundle)})
        function(**given)

    run.__name__, run.__module__, run.__doc__ = function.__name__, function.__module__, _parts(function)[0]
    run.__annotations__ = {option.name: option.annotation for option in options}
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return run


def _options(thing: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """The options that a function, or a bundle of options, is made of."""
    hints = get_type_hints(thing, include_extras=True)
    meaning = {**_MEANING, **_told(thing)}
    for name, parameter in inspect.signature(thing).parameters.items():
        hint, default = hints[name], parameter.default
        if _is_bundle(hint):
            yield from _options(hint)
            continue
        if get_origin(hint) is not Annotated:
            flag = [f"--{name.replace('_', '-')}"] if default is False else []
            spelled = _SPELLING.get(name, flag)
            least = 0 if name == "seed" else None
            option = typer.Option(*spelled, help=meaning.get(name), metavar=_METAVAR.get(name), min=least)
            if hint == Names:
                hint, default = Annotated[list[str] | None, option, Names], None
            else:
                hint = Annotated[hint, option]
        yield parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hint, default=default)


def _is_bundle(hint: Any) -> bool:
    return is_dataclass(hint)


def _parts(thing: Any) -> list[str]:
    """The docstring, and what it says of each option."""
    return inspect.cleandoc(thing.__doc__ or "").split("\n--")


def _told(thing: Any) -> dict[str, str]:
    lines = [line for cls in getattr(thing, "__mro__", [thing])[::-1] for line in _parts(cls)[1:]]
    told = (line.split(": ", 1) for line in lines)
    return {name.replace("-", "_"): " ".join(text.split()) for name, text in told}


def _mark(text: str | None) -> str | None:
    """A separator as a user can type it: a shell hands a tab on as two characters."""
    return "\t" if text in ("\\t", "tab") else text


@dataclass(frozen=True)
class FileOptions:
    """How the files are written.

    --missing: Texts that mean a missing value, besides empty, ".", NA, N/A, NaN and null; age=999 in one
        column. Quote a text that holds a comma twice: '"<0,5"'.
    --decimal: Decimal mark of a CSV file; recognised if not given.
    --encoding: Encoding of a CSV file, such as cp1252; recognised if not given.
    """

    missing: Names = ()
    separator: Annotated[
        str | None,
        typer.Option(
            help="Separator of a CSV file, such as ';' or tab; recognised if not given.", callback=_mark
        ),
    ] = None
    decimal: str | None = None
    encoding: str | None = None

    @property
    def format(self) -> FileFormat:
        """The same for the library."""
        from drosurv.tables import FileFormat

        return FileFormat(self.separator, self.decimal, self.encoding, self.missing)


@dataclass(frozen=True)
class TargetOptions:
    """Where the target stands.

    --event: Column of events, if not the one trained on.
    --time: Column of times: numbers, such as days of follow-up.
    --start: Instead of --time: column of first dates.
    --end: Column of last dates; the time is in days.
    --entry: Column of times from which patients are observed, if not from 0.
    --event-value: The value that means the event, where that is not plain.
    --id: Column that names the patient, whose rows are kept together.
    --drop-missing-target: Leave out rows without a time or an event.
    --categorical: Columns that are categories although they hold numbers.
    """

    event: str | None = None
    time: str | None = None
    start: str | None = None
    end: str | None = None
    entry: str | None = None
    event_value: str | None = None
    id: str | None = None
    drop_missing_target: bool = False
    categorical: Names = ()


@dataclass(frozen=True, kw_only=True)
class TrainingTable(FileOptions, TargetOptions):
    """A table to train on, and what its columns are.

    --event: Column of events: 1, True, yes, dead ... where it happened.
    --features: Columns to predict from; by default all that are left.
    --drop: Columns not to use as features, such as patient numbers.
    --numeric: Columns that are amounts although they look like codes.
    --complete-cases: Leave out patients without a value in some feature, as R and lifelines do, instead of filling it
        in.
    """

    data: DataFile
    event: str = field()
    features: Names = ()
    drop: Names = ()
    numeric: Names = ()
    complete_cases: bool = False

    def read(self, groups: Names = (), *, causes: bool = False, **observed: str | None) -> SurvivalTable:
        """The table.

        Columns `observed`, by the option that names them, are no features; with `causes`, events are read as causes
        that compete.
        """
        from drosurv.presentation.progress import bar
        from drosurv.tables import read_survival_table

        named = {option: column for option, column in observed.items() if column is not None}
        given = asdict(self)
        with bar("reading the table"):
            return read_survival_table(
                given.pop("data"), groups=groups, causes=causes, observed=named, **given
            )


def words(bundle: Any, kind: type[Any]) -> list[str]:
    """The options that a shell takes to give the same bundle again, those of one kind that differ from defaults."""
    found: list[str] = []
    for option in fields(kind):
        value = getattr(bundle, option.name)
        if value != option.default and option.default is not MISSING:
            found += option_words(option.name, value)
    return found


def option_words(name: str, value: Any) -> list[str]:
    """What a shell takes to give an option this value."""
    option = f"--{name.replace('_', '-')}"
    if value is True:
        return [option]
    entries = map(quoted, value) if isinstance(value, tuple) else [value]
    return [word for entry in entries for word in (option, "tab" if entry == "\t" else entry)]


def quoted(entry: str) -> str:
    """An entry of a list as :func:`listed` reads it back."""
    written = entry.replace('"', '""')
    return f'"{written}"' if written != entry or "," in entry else entry


def listed(values: list[str] | None) -> Names:
    """The entries of an option given once or several times, separated by commas; quote one that holds a comma."""
    found = [entry.strip() for row in csv.reader(values or [], skipinitialspace=True) for entry in row]
    return tuple(entry for entry in found if entry)
