"""Errors and warnings of every command as one clear line each."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperGroup

# What the library calls something and the command line calls otherwise.
_ALIASES = {
    "sensitive_features": "groups",
    "random_state": "seed",
    "n_bootstrap": "bootstrap",
    "n_jobs": "jobs",
    "cv": "folds",
}
_BAD_INPUT = 2


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
                # Each fold of a search, for one, has the same to say.
                if str(message) not in said:
                    said.add(str(message))
                    say("Warning", str(message), self._options(ctx))

            warnings.showwarning = show
            try:
                return super().invoke(ctx)
            except BrokenPipeError:
                # Who reads the output has seen enough, as in `drosurv predict ... | head`: nothing to complain of.
                raise
            except OSError as error:
                say("Error", _os_message(error), {})
            except MemoryError as error:
                say("Error", f"not enough memory ({error}): use fewer rows, columns or categories.", {})
            except ValueError as error:
                say("Error", str(error), self._options(ctx))
            raise typer.Exit(_BAD_INPUT)

    def _options(self, ctx: Any) -> dict[str, str]:
        """Of the command that ran: the names of its parameters, and how they are written as options."""
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        options = [] if command is None else [p for p in command.params if p.param_type_name == "option"]
        return {str(option.name): max(option.opts, key=len) for option in options}


def say(kind: str, message: str, options: Mapping[str, str]) -> None:
    """Print a message as one line on stderr, in the words of the command line.

    Parameters
    ----------
    kind : str
        "Error" or "Warning".
    message : str
        As the library words it, with arguments such as ``event_value='yes'``.
    options : mapping
        The arguments that are options here, such as event_value to --event-value: the message then says
        ``--event-value 'yes'``.
    """
    typer.echo(f"{kind}: {in_options(printable(' '.join(message.split())), options)}", err=True)


def in_options(message: str, options: Mapping[str, str]) -> str:
    """A library message with its arguments written as command line options."""
    for name, alias in _ALIASES.items():
        if alias in options:
            message = re.sub(rf"(?<!\w){name}(?!\w)", alias, message)
    for name in sorted(options, key=len, reverse=True):
        option = options[name]
        message = re.sub(rf"(?<![\w-]){name}=(?='|\"|[\w.])", f"{option} ", message)
        message = re.sub(rf"\b(pass|in) {name}\b(?! column)", rf"\1 {option}", message)
        if "_" in name:
            message = re.sub(rf"(?<![\w-]){name}(?!\w)", option, message)
    return message


def printable(text: str) -> str:
    """Text without control characters, so that a value in a table cannot steer the terminal."""
    return "".join(character if character.isprintable() or character == "\n" else "�" for character in text)


def _os_message(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}." if error.filename and error.strerror else str(error)
