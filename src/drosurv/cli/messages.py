"""Errors and warnings of every command as one clear line each."""

from __future__ import annotations

import re
import warnings
from ast import literal_eval
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from drosurv.cli.options import quoted
from drosurv.errors import ArgumentError, ArgumentWarning

if TYPE_CHECKING:
    from drosurv.evaluation import AgainstPlain

# What the library calls something and the command line calls otherwise.
_ALIASES = {
    "sensitive_features": "groups",
    "random_state": "seed",
    "n_bootstrap": "bootstrap",
    "n_bootstrap_path": "bootstrap_path",
    "alpha_path": "alphas",
    "X_train": "train",
    "n_jobs": "jobs",
    "cv": "folds",
    "metrics": "minimise",
    "share": "hold_out_share",
}
Spelling = Callable[[str, str], str]
# A name, with the value that a message writes behind it.
_MENTION = re.compile(
    r"""(?<![\w.'"-])(?P<name>[A-Za-z_]\w*)(?:=(?P<value>'[^']*'|"[^"]*"|\[[^\]]*\]|\([^)]*\)|-?\w+(?:\.\w+)*))?(?![\w'"])"""
)
_BEFORE_A_NAME = re.compile(r"\b(?:in|pass) $", re.IGNORECASE)
_BAD_INPUT = 2
# Recalibrated below this, risks are nearly equal for all patients.
_LITTLE_HELD = 0.2


class PlainMessages(TyperGroup):
    """A group of commands whose bad inputs end in one line on stderr and exit code 2, never in a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
                warnings.simplefilter("ignore", category)
            said: set[str] = set()

            def show(message: Any, *_: Any, **__: Any) -> None:
                # Not before: help and a mistyped command do not wait for pandas.
                from drosurv.tables import TableNote

                # Each fold of a search, for one, has the same to say.
                if str(message) not in said:
                    said.add(str(message))
                    say("Note" if isinstance(message, TableNote) else "Warning", message, self._spelling(ctx))

            warnings.showwarning = show
            try:
                return super().invoke(ctx)
            except BrokenPipeError:
                # The reader stopped, as in `drosurv predict ... | head`: nothing to complain of.
                raise
            except OSError as error:
                named = error.filename and error.strerror
                say("Error", f"{error.filename}: {error.strerror}." if named else error)
            except MemoryError as error:
                say("Error", f"not enough memory ({error}): use fewer rows, columns or categories.")
            except ValueError as error:
                say("Error", error, self._spelling(ctx))
            raise typer.Exit(_BAD_INPUT)

    def _spelling(self, ctx: Any) -> Spelling:
        """How the command that ran writes its parameters, such as event_value as --event-value."""
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        options = [] if command is None else [p for p in command.params if p.param_type_name == "option"]
        return partial(spelled, {str(option.name): max(option.opts, key=len) for option in options})


def spelled(options: Mapping[str, str], argument: str, value: str = "") -> str:
    """An argument as one of the options of a command, such as ``--event-value 'yes'`` or ``--set min_group=37``."""
    name = argument if argument in options else _ALIASES.get(argument, argument)
    if name in options:
        if value.startswith("["):
            value = repr(",".join(map(quoted, literal_eval(value))))
        flag = {"True": options[name], "False": f"--no-{options[name].removeprefix('--')}"}
        return flag.get(value) or f"{options[name]} {value}".rstrip()
    written = f"{argument}={value}" if value else argument
    return f"{options['set_']} {written}" if "set_" in options and _is_parameter(argument) else written


def as_options(text: str, argument: str | None, spelling: Spelling) -> str:
    """A message with options for arguments.

    Replaced are ``name=value``, names with an underscore, names after "in" or "pass", and the first mention of the
    argument that the message is about.
    """
    said = False

    def option(found: re.Match[str]) -> str:
        nonlocal said
        name, value = found["name"], found["value"] or ""
        about = name == argument and not said
        said = said or about
        named = value or about or "_" in name or _BEFORE_A_NAME.search(text, 0, found.start())
        return spelling(name, value) if named else found[0]

    return _MENTION.sub(option, text)


def say(kind: str, message: object, spelling: Spelling | None = None) -> None:
    """Print an "Error", "Warning" or "Note" as one line on stderr, its arguments as the command writes them."""
    text = str(message)
    if spelling and isinstance(message, (ArgumentError, ArgumentWarning)):
        text = as_options(text, message.argument, spelling)
    typer.echo(f"{kind}: {printable(' '.join(text.split()))}", err=True)


def printable(text: str) -> str:
    """Text without control characters, so that a value in a table cannot steer the terminal."""
    return "".join(character if character.isprintable() or character == "\n" else "�" for character in text)


def _is_parameter(name: str) -> bool:
    """Whether an estimator has a parameter of this name, which ``--set`` can give."""
    from drosurv.cli.models import model_classes

    return any(name in cls().get_params() for cls in model_classes().values())


def tell_recalibration(factor: float | None, how: str) -> None:
    """Print what recalibration did to a model's risks; `how` says how to leave them as they are."""
    # 1: the factor was not used, and a warning said so.
    if factor is None or factor == 1:
        return
    typer.echo(f"Risks were multiplied by {factor:.3g}, the best factor for patients not trained on ({how}).")
    if factor < _LITTLE_HELD:
        say(
            "Warning",
            "next to nothing of what the model learned held for patients not trained on, so it now says nearly the "
            "same of everybody: use fewer columns, a penalty or plain Cox.",
        )


def tell_against_plain(found: AgainstPlain | None, judges: str) -> dict[str, Any] | None:
    """Print how a model stands beside plain Cox, as a warning where it should not be used; the same for JSON."""
    if found is None:
        return None
    for place, statement in enumerate(found.statements):
        text = statement.text if place else f"{judges}: {statement.text[:1].lower()}{statement.text[1:]}"
        say("Warning" if statement.concern else "Note", text)
    return {"dominated": found.dominated, "statements": str(found), "judges": judges}
