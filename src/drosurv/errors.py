"""Errors and warnings that know which argument they speak of, so that each surface can call it by its own name."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any, Self

# Stands before and after an argument in a message; no text of a user holds it.
_MARK = "\ue000"


class Argument(str):
    """An argument as a message mentions it, such as ``event_value``, or ``event_value='yes'`` with a value.

    It is marked in the message that it is written into, so that :class:`Worded` knows it there.
    """

    def __new__(cls, name: str, value: Any = ...) -> Self:
        """Write the name, or the name and the value."""
        # A number of NumPy is written as Python writes it.
        value = value.tolist() if hasattr(type(value), "tolist") else value
        return super().__new__(cls, f"{_MARK}{name if value is ... else f'{name}={value!r}'}{_MARK}")


class Worded(Exception):
    """A message that knows which arguments it mentions; `marked` is it to be written into another one."""

    def __init__(self, message: str) -> None:
        super().__init__(message.replace(_MARK, ""))
        self.marked = message

    @property
    def argument(self) -> str | None:
        """The first argument that the message mentions."""
        _, *found = self.marked.split(_MARK)
        return found[0].partition("=")[0] if found else None

    def worded(self, spell: Callable[[str, str], str]) -> str:
        """The message, every argument as `spell` writes its name and value: the command line writes its options."""
        pieces = self.marked.split(_MARK)
        # Every second piece stood between marks.
        for place in range(1, len(pieces), 2):
            name, _, value = pieces[place].partition("=")
            pieces[place] = spell(name, value)
        return "".join(pieces)


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
    >>> error.argument
    'alpha'
    """

    @classmethod
    def must(cls, name: str, wanted: str, got: Any, remedy: str = "") -> Self:
        """The error of an argument that is not as it must be: "`name` must `wanted`, got `got`: `remedy`."."""
        # A number of NumPy is written as Python writes it.
        got = got.item() if getattr(got, "shape", None) == () else got
        return cls(f"{Argument(name)} must {wanted}, got {got!r}{remedy and f': {remedy}'}.")


def require(holds: object, name: str, wanted: str, got: Any, remedy: str = "") -> None:
    """Raise :meth:`ArgumentError.must` unless it holds."""
    if not holds:
        raise ArgumentError.must(name, wanted, got, remedy)


def as_number(value: object) -> float:
    """The number, or NaN where it is none: no comparison holds for NaN, so a check of a range refuses it."""
    return math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)


def as_whole(value: object) -> float:
    """The whole number, or NaN where it is none, as :func:`as_number`."""
    return as_number(value) if isinstance(value, Integral) else math.nan


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """The nearest of the known names as a question, with a space before it; empty where none is near."""
    from difflib import get_close_matches

    plain = {str(one).lower(): one for one in known}
    near = get_close_matches(str(name).lower(), plain, n=1)
    return f" Did you mean {plain[near[0]]!r}?" if near else ""


class ArgumentWarning(Worded, UserWarning):
    """Something to look at, with the arguments that change it."""


class OnProcessorOnly(ArgumentError):
    """What was asked of an accelerator is only written for the processor."""


def warn_caller(message: str | Warning, category: type[Warning] = ArgumentWarning) -> None:
    """Warn at the first line outside of the package: the user's own, however deep inside the reason is found."""
    warning = message if isinstance(message, Warning) else category(message)
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("drosurv."):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)
