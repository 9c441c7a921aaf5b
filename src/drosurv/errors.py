"""Errors and warnings that know which argument they speak of, so that each surface can call it by its own name."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

# Characters that stand around an argument in a formatted message; no text of a user holds them.
_MARKS = "\ue000\ue001"
_MARKED = re.compile(f"{_MARKS[0]}(.*?){_MARKS[1]}", re.DOTALL)


@dataclass(frozen=True)
class Argument:
    """An argument as a message mentions it, such as ``event_value``, or ``event_value='yes'`` with a value."""

    name: str
    value: Any = ...

    def __str__(self) -> str:
        # A number of NumPy is written as Python writes it.
        value = self.value.tolist() if hasattr(type(self.value), "tolist") else self.value
        return self.name if value is ... else f"{self.name}={value!r}"

    def __format__(self, _: str) -> str:
        # Within a message, from which `Worded` takes it out again.
        return f"{_MARKS[0]}{self!s}{_MARKS[1]}"

    @classmethod
    def read(cls, text: str) -> Self | str:
        """The argument that is written so; the text itself where its value is no plain number, text or list."""
        name, _, value = text.partition("=")
        try:
            return cls(name, ast.literal_eval(value)) if value else cls(name)
        except (ValueError, SyntaxError):
            return text


class Worded(Exception):
    """A message, and the arguments it mentions: as parts, or formatted into the text.

    `value` is what the first of them was given, where that is the fault; ``...`` otherwise.
    """

    args: tuple[str | Argument, ...]
    value: Any = ...

    def __init__(self, *message: str | Argument) -> None:
        # Every second piece stood between marks.
        pieces = enumerate(_MARKED.split("".join(map(format, message))))
        super().__init__(*(Argument.read(piece) if place % 2 else piece for place, piece in pieces if piece))

    @property
    def argument(self) -> str | None:
        """The first argument that the message mentions."""
        return next((part.name for part in self.args if isinstance(part, Argument)), None)

    def worded(self, spell: Callable[[Argument], str]) -> str:
        """The message, every argument written as `spell` says: the command line writes its options."""
        return "".join(spell(part) if isinstance(part, Argument) else str(part) for part in self.args)

    def __str__(self) -> str:
        return self.worded(str)


class ArgumentError(Worded, ValueError):
    """A value that cannot be used: which argument holds it, what is wrong, what to do.

    Examples
    --------
    >>> from drosurv.errors import Argument, ArgumentError
    >>> print(ArgumentError(f"which value means the event? Pass {Argument('event_value', 'yes')}."))
    which value means the event? Pass event_value='yes'.
    >>> error = ArgumentError.must("alpha", "lie in (0, 1]", 0)
    >>> print(error)
    alpha must lie in (0, 1], got 0.
    >>> error.argument, error.value
    ('alpha', 0)
    """

    @classmethod
    def must(cls, name: str, wanted: str, got: Any, *remedy: str | Argument) -> Self:
        """The error of an argument that is not as it must be: "`name` must `wanted`, got `got`: `remedy`."."""
        error = cls(Argument(name), f" must {wanted}, got {got!r}", *((": ", *remedy) if remedy else ()), ".")
        error.value = got
        return error


def require(holds: object, name: str, wanted: str, got: Any, *remedy: str | Argument) -> None:
    """Raise :meth:`ArgumentError.must` unless it holds."""
    if not holds:
        raise ArgumentError.must(name, wanted, got, *remedy)


class ArgumentWarning(Worded, UserWarning):
    """Something to look at, with the arguments that change it."""


class OnProcessorOnly(ArgumentError):
    """What was asked of an accelerator is only written for the processor."""


def warn_caller(*message: str | Argument | Warning, category: type[Warning] = ArgumentWarning) -> None:
    """Warn at the first line outside of the package: the user's own, however deep inside the reason is found.

    The message is a warning, or the parts of one.
    """
    warning = message[0] if isinstance(message[0], Warning) else category(*message)
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("drosurv."):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)
