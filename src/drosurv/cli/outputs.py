"""What a command prints and writes: tables, JSON and files, and errors and warnings as one line each."""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from drosurv.cli.options import quoted
from drosurv.errors import SPELLING, InputError, MissingPackage
from drosurv.files import check_writable
from drosurv.presentation import plain, write_figure

if TYPE_CHECKING:
    import pandas as pd

    from drosurv.presentation import Table

# Arguments of the library whose options have another name, or several in different commands.
_ALIASES = {
    "sensitive_features": "groups",
    "random_state": "seed",
    "n_bootstrap": "bootstrap replicates",
    "X_train": "train",
    "n_jobs": "jobs",
    "cv": "folds",
    "share": "hold_out_share",
    "event_rate": "events",
    "n_columns": "columns",
    "n_tests": "tests",
}
_BAD_INPUT = 2
_FAULT = (
    "This is an error in drosurv, not in your table or options. Please report it, with the lines below but without "
    "data of patients, at https://github.com/drosurv/drosurv/issues."
)
# Largest number of groups in the printed table of times.
_MOST_GROUPS = 12
# Multiplied by less than this, log risks are nearly equal for all patients.
_SMALL_FACTOR = 0.2


class PlainMessages(TyperGroup):
    """A group of commands whose bad inputs end in one line on stderr and exit code 2, without a traceback.

    An error in the library's own code is a traceback, after a sentence that asks to report it.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the user called."""
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
                warnings.simplefilter("ignore", category)
            shown_before: set[str] = set()

            def show(message: Any, *_: Any, **__: Any) -> None:
                # Imported here, so that help and mistyped commands do not wait for pandas.
                from drosurv.tables.reading import TableNote

                # Each fold may give the same warning.
                if str(message) not in shown_before:
                    shown_before.add(str(message))
                    say("Note" if isinstance(message, TableNote) else "Warning", message)

            warnings.showwarning = show
            # The command, and so its options, is known only when it runs.
            spelling = SPELLING.set(lambda *named: as_option(self._options(ctx), *named))
            try:
                return super().invoke(ctx)
            except BrokenPipeError:
                # The reader stopped, as in `drosurv predict ... | head`, which is no error.
                raise
            except OSError as error:
                named = error.filename and error.strerror
                say("Error", f"{error.filename}: {error.strerror}." if named else error)
            except MemoryError as error:
                say("Error", f"not enough memory ({error}): use fewer rows, columns or categories.")
            except (InputError, MissingPackage) as error:
                say("Error", error)
            except Exception as error:
                # Exits and mistyped options have an exit code.
                if not (isinstance(error, typer.Abort) or hasattr(error, "exit_code")):
                    typer.echo(_FAULT, err=True)
                raise
            finally:
                SPELLING.reset(spelling)
            raise typer.Exit(_BAD_INPUT)

    def _options(self, ctx: Any) -> dict[str, str]:
        """Return how the options of the command are written, such as --event-value, by the names of its parameters."""
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        options = [] if command is None else [p for p in command.params if p.param_type_name == "option"]
        return {str(option.name): max(option.opts, key=len) for option in options}


def as_option(options: Mapping[str, str], argument: str, text: str, value: object = None) -> str:
    """Write an argument as an option of a command, such as ``--event-value 'yes'`` or ``--set min_group=37``.

    `text` is its value as Python writes it, empty if none is given, and `value` the value itself if it is known.
    """
    names = [argument, *_ALIASES.get(argument, "").split()]
    name = next((name for name in names if name in options), None)
    if name is not None:
        if isinstance(value, bool):
            return options[name] if value else f"--no-{options[name].removeprefix('--')}"
        if isinstance(value, list):
            text = repr(",".join(map(quoted, value)))
        return f"{options[name]} {text}".rstrip()
    written = f"{argument}={text}" if text else argument
    return f"{options['set_']} {written}" if "set_" in options and _is_parameter(argument) else written


def say(kind: str, message: object) -> None:
    """Print an "Error", "Warning" or "Note" as one line on stderr."""
    typer.echo(f"{kind}: {printable(' '.join(str(message).split()))}", err=True)


def printable(text: str) -> str:
    """Replace control characters, so that a value in a table cannot control the terminal."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() or character == "\n" else "�" for character in text)


def _is_parameter(name: str) -> bool:
    """Whether an estimator has a parameter of this name, which ``--set`` can give."""
    # Importing estimators takes seconds, and no message is about their parameters before they are imported.
    if "drosurv.estimators" not in sys.modules:
        return False
    from drosurv.cli.options import model_classes

    return any(name in cls().get_params() for cls in model_classes().values())


def print_recalibration(factor: float | None, how: str) -> None:
    """Print the factor of a recalibrated model; `how` says how to train without."""
    # A factor of 1 means that none could be estimated, of which a warning was given.
    if factor is None or factor == 1:
        return
    typer.echo(
        f"Log risks were multiplied by {factor:.3g}, the best factor for patients not trained on ({how})."
    )
    if factor < _SMALL_FACTOR:
        say(
            "Warning",
            "the model hardly predicted patients it was not trained on, and now predicts nearly the same for "
            "everybody: use fewer columns, a penalty or plain Cox.",
        )


_PICTURES = (".png", ".svg", ".pdf")
# What files written by drosurv hold in their first or last bytes: models and JSON, HTML, Markdown, pictures.
_MARKS = re.compile(
    rb'"drosurv":|content="drosurv |^drosurv \d+\.\d+|Software\0drosurv|/Creator \(drosurv\)|<dc:title>drosurv<',
    re.MULTILINE,
)
_HEAD, _TAIL = 1 << 16, 1 << 10
# Columns of the tables that evaluate, summary (of linear and repaired models), certify and monitor write.
_OUR_TABLES = (
    {"attribute", "group", "metric", "kind", "value"},
    {"covariate", "exp(coef)"},
    {"who", "effect", "hazard_ratio"},
    {"who", "before", "after"},
    {"group", "patients", "observed", "expected", "ratio", "p"},
    {"date", "attribute", "group", "events", "expected", "e_value"},
)
# Columns that predict writes; there may be one more, which names the patient.
_PREDICTED = re.compile(r"log_risk(_.+)?|(survival|incidence_.+)_[\d.e+-]+")


def check_outputs(
    outputs: Sequence[Path | None],
    inputs: Sequence[Path | None],
    *,
    force: bool = False,
    hold_out: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Raise if a file cannot be written, is an input, is written twice, or exists and was not written by drosurv.

    None is an option that was not given; with `force` any file that is no input may be overwritten. The file of
    patients to `hold_out` may exist, whoever wrote it. A `plot` must have a suffix that matplotlib can write.
    """
    if plot is not None and plot.suffix.lower() not in _PICTURES:
        raise InputError(f"--plot {str(plot)!r} must end in {', '.join(_PICTURES)}, which says what to draw.")
    written = [path for path in (*outputs, hold_out, plot) if path is not None]
    for k, path in enumerate(written):
        check_writable(path)
        if any(_same(path, source) for source in inputs if source is not None):
            raise InputError(f"{path} is an input, which would be overwritten: choose another name.")
        if path.is_file() and not force and path != hold_out and not made_by_drosurv(path):
            raise InputError(
                f"{path} exists and was not written by drosurv: choose another name, or pass --force."
            )
        if any(path.absolute() == other.absolute() or _same(path, other) for other in written[:k]):
            raise InputError(f"{path} would be written twice: choose two names.")


def made_by_drosurv(path: Path) -> bool:
    """Whether a file is empty or says that drosurv wrote it; CSV files are recognised by all of their columns."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_HEAD)
        file.seek(max(0, size - _TAIL))
        tail = file.read()
    if size == 0 or _MARKS.search(head) or _MARKS.search(tail):
        return True
    header = head.partition(b"\n")[0].decode("utf-8", errors="ignore").strip()
    columns = {name.strip('"') for name in re.split(r"[,;\t|]", header)}
    if any(ours <= columns for ours in _OUR_TABLES):
        return True
    others = [name for name in columns if not _PREDICTED.fullmatch(name)]
    return any(name.startswith("log_risk") for name in columns) and len(others) <= 1


def write_plot(draw: Callable[..., Any], path: Path | None) -> None:
    """Write the picture that `draw(ax=...)` draws to a file, if one is named, and say so on standard error."""
    if path is None:
        return
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    draw(ax=figure.subplots())
    write_figure(figure, path)
    typer.echo(printable(f"The picture is in {path}."), err=True)


def _same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def print_frame(frame: pd.DataFrame, title: str = "", *, on_stderr: bool = False) -> None:
    """Print a DataFrame as a table, with numbers aligned to the right and brackets not read as markup."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(
        title=Text(title) if title else None,
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    console = Console(stderr=on_stderr)
    rows = [[printable(_cell(value)) for value in row] for row in frame.itertuples(index=False, name=None)]
    header = [printable(str(name)) for name in frame.columns]
    for name, heading in zip(frame.columns, header, strict=True):
        right = frame[name].dtype.kind in "iuf"
        table.add_column(Text(heading), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def print_times(table: Table | None, where: str) -> None:
    """Print the table of times, of 100 patients; with many groups the first ones, and `where` all are."""
    import pandas as pd

    if table is None:
        return
    # What was expected is on a line of its own.
    rows = [[str(cell).replace(", ", "\n") for cell in row] for row in table.cells()]
    print_frame(pd.DataFrame(rows[:_MOST_GROUPS], columns=table.header), table.caption)
    if len(rows) > _MOST_GROUPS:
        typer.echo(f"{len(rows) - _MOST_GROUPS:,} more groups are in {where}.")


def print_json(value: Any) -> None:
    """Print a value as strict JSON: numbers that are not finite become null."""
    typer.echo(json.dumps(plain(value, digits=None), indent=2, ensure_ascii=False, allow_nan=False))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
