"""Errors and warnings that name the argument they are about."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


_P = ParamSpec("_P")
_T = TypeVar("_T")
# A longer list or array is not written, only how many values it has.
_LONGEST_VALUE = 100


# How a command writes an argument and its value; unset in Python.
SPELLING: ContextVar[Callable[[str, str, object], str]] = ContextVar("spelling")


def arg(name: str, value: object = None, *, text: str = "") -> str:
    """Return an argument as the user writes it: ``name=value`` in Python, an option in a command.

    The value may be given as `text`, such as COLUMN. Messages name arguments by this function.
    """
    # NumPy's numbers are written as Python's.
    value = getattr(value, "item", lambda: value)() if getattr(value, "shape", None) == () else value
    text = text or ("" if value is None else repr(value))
    spelling = SPELLING.get(None)
    if spelling is not None:
        return spelling(name, text, value)
    return f"{name}={text}" if text else name


def may_be_given(name: str) -> bool:
    """Whether the user can give an argument: a command lacks some options, and messages do not name these."""
    return not in_command() or arg(name).startswith("-")


def in_command() -> bool:
    """Whether a command is running, so that messages name options instead of arguments."""
    return SPELLING.get(None) is not None


def call(python: str, command: str) -> str:
    """Return what the user may run, in backquotes: a call in Python, or a command if one is running.

    >>> call("drosurv.check(table)", "drosurv check table.csv")
    '`drosurv.check(table)`'
    """
    return f"`{command if in_command() else python}`"


def row_labels(table: Any) -> NDArray[Any] | None:
    """Return the names of the rows of a pandas table (n,): numbers in its file, from 1 on, or texts; None for others.

    Rows of a file are numbered from 0 and keep their number when others are left out.

    >>> import pandas as pd
    >>> row_labels(pd.DataFrame({"age": [50, 60]}, index=[0, 7])).tolist()
    [1, 8]
    """
    import pandas as pd  # Here, because commands that compute nothing start without it.

    index = getattr(table, "index", None)
    if not isinstance(index, pd.Index) or not index.is_unique:
        return None
    if index.dtype.kind in "iu" and index.is_monotonic_increasing:
        return index.to_numpy() + 1
    return index.to_numpy() if index.inferred_type == "string" else None


def row_number(place: int | np.integer[Any], table: Any = None) -> int:
    """Return the number of a row for messages: its number in the file of a pandas table, or else its place from 1 on.

    Messages name rows by this function.

    >>> row_number(0)
    1
    """
    labels = None if table is None else row_labels(table)
    return int(place) + 1 if labels is None or labels.dtype.kind not in "iu" else int(labels[place])


class InputError(ValueError):
    """Input that cannot be used, as the message says; the command line prints it without a traceback.

    Errors in the library's own code are never of this class.
    """


class MissingPackage(ImportError):
    """An optional package that is needed is not installed."""


class _AboutArgument(Exception):
    """A message about one argument."""

    def __init__(self, argument: str | None, message: str) -> None:
        super().__init__(argument, message)
        self.argument = argument

    def __str__(self) -> str:
        return str(self.args[1])


class ArgumentError(_AboutArgument, InputError):
    """A value that cannot be used: which argument holds it, and a sentence on what is wrong and what to do.

    >>> print(ArgumentError.must("alpha", "lie in (0, 1]", 0))
    alpha must lie in (0, 1], got 0.
    """

    @classmethod
    def must(cls, name: str, wanted: str, got: Any, remedy: str = "") -> Self:
        """Return the error "`name` must `wanted`, got `got`: `remedy`."."""
        # NumPy's numbers are written as Python's, and many values are not written.
        got = got.item() if getattr(got, "shape", None) == () else got
        text = repr(got)
        if len(text) > _LONGEST_VALUE and hasattr(got, "__len__") and not isinstance(got, str):
            text = f"{type(got).__name__} of length {len(got):,}"
        return cls(name, f"{arg(name)} must {wanted}, got {text}{remedy and f': {remedy}'}.")


class ArgumentTypeError(ArgumentError, TypeError):
    """A value of a type that an argument does not take."""


def require(holds: object, name: str, wanted: str, got: Any, remedy: str = "") -> None:
    """Raise the error of :meth:`ArgumentError.must` unless `holds` is true."""
    if not holds:
        raise ArgumentError.must(name, wanted, got, remedy)


def as_number(value: object) -> float:
    """Return a number as float, and anything else as NaN, which fails every check of a range."""
    return math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)


def as_whole(value: object) -> float:
    """Return a whole number as float, and anything else as NaN."""
    return as_number(value) if isinstance(value, Integral) else math.nan


def as_names(given: str | Iterable[object]) -> list[str]:
    """Return names that were given as a sequence, or as one text, which is one name.

    >>> as_names("age"), as_names(["age", "sex"])
    (['age'], ['age', 'sex'])
    """
    return [given] if isinstance(given, str) else [str(name) for name in given]


def check_mapping(name: str, value: Any, example: str) -> None:
    """Raise unless the value is a mapping such as the `example`."""
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(
            name, f"{arg(name)} must be a mapping such as {example}, got {type(value).__name__}."
        )


def check_choice(name: str, value: Any, choices: Sequence[object]) -> None:
    """Raise unless the value is one of the choices."""
    require(value in choices, name, f"be one of {choices}", value)


def check_count(name: str, value: Any, *, least: int = 1) -> None:
    """Raise unless the value is a whole number of at least `least`."""
    require(as_whole(value) >= least, name, f"be a whole number, at least {least}", value)


def check_number(name: str, value: Any, *, positive: bool = False) -> None:
    """Raise unless the value is a finite number of at least 0, or above 0 if it must be `positive`."""
    wanted = "positive" if positive else "not negative"
    fits = 0 <= as_number(value) < math.inf and not (positive and value == 0)
    require(fits, name, f"be a finite number that is {wanted}", value)


def check_share(name: str, value: Any) -> None:
    """Raise unless the value is a number in (0, 1]."""
    require(0 < as_number(value) <= 1, name, "lie in (0, 1]", value)


def check_alpha(alpha: ArrayLike) -> NDArray[Any]:
    """Return alpha, one number or several, as float64; raise unless all lie in (0, 1]."""
    import numpy as np  # Here, because commands that compute nothing start without it.

    alphas = np.asarray(alpha, dtype=np.float64)
    wanted = "lie in (0, 1], as the smallest share of patients to protect"
    require(((alphas > 0) & (alphas <= 1)).all(), "alpha", wanted, alpha)
    return alphas


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return the question " Did you mean ...?" with the nearest of the known names; empty if none is near."""
    from difflib import get_close_matches

    plain = {str(one).lower(): one for one in known}
    near = get_close_matches(str(name).lower(), plain, n=1)
    return f" Did you mean {plain[near[0]]!r}?" if near else ""


class ArgumentWarning(_AboutArgument, UserWarning):
    """A warning about one argument.

    Those that are not `in_reports` are only shown when they are given.
    """

    in_reports = True


class BlockingWarning(ArgumentWarning):
    """A warning that makes an evaluation invalid: rows seen in training, or a column that gives the outcome away."""


class OnProcessorOnly(ArgumentError):
    """An operation that is implemented for the CPU only was requested on an accelerator."""


@contextmanager
def recording_warnings() -> Iterator[list[Warning]]:
    """Collect the warnings that a user sees; they are shown as usual too."""
    given: list[Warning] = []
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if isinstance(message, UserWarning):
                given.append(message)
            shown(message, category, *where, **more)

        warnings.showwarning = show
        yield given


def each_warning_once(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate a function so that a call shows each warning once, also if it asks a model for several predictions."""

    @wraps(function)
    def run(*args: _P.args, **options: _P.kwargs) -> _T:
        given: set[str] = set()
        with warnings.catch_warnings():
            shown = warnings.showwarning

            def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
                if str(message) not in given:
                    given.add(str(message))
                    shown(message, category, *where, **more)

            warnings.showwarning = show
            return function(*args, **options)

    return run


def as_records(given: Iterable[Warning]) -> list[dict[str, str]]:
    """Return warnings as records for files and reports: a severity, "blocking" or "note", and a text, each once."""
    kept = [one for one in given if getattr(one, "in_reports", True)]
    severity = {str(one): "blocking" if isinstance(one, BlockingWarning) else "note" for one in kept}
    return [{"severity": severity, "text": text} for text, severity in severity.items()]


def warn_caller(
    message: str | Warning, category: type[Warning] = ArgumentWarning, *, argument: str | None = None
) -> None:
    """Give a warning that points to the user's line, which called this package, or scikit-learn that calls it."""
    if isinstance(message, Warning):
        warning = message
    else:
        warning = category(argument, message) if issubclass(category, ArgumentWarning) else category(message)
    frame, level, users = sys._getframe(1), 2, 2
    while frame.f_back is not None:
        frame, inside, level = frame.f_back, frame.f_globals.get("__name__", ""), level + 1
        if inside.startswith(("drosurv.", "sklearn.")):
            users = level
    warnings.warn(warning, stacklevel=users)


def require_extra(package: str, extra: str, what: str = "this") -> None:
    """Raise MissingPackage, an ImportError, with the command that installs it, unless an optional package is installed.

    The message says `what` needs the package.
    """
    from importlib import import_module

    try:
        import_module(package)
    except ImportError as error:
        raise MissingPackage(
            f'{what} needs {package}, which is not installed: pip install "drosurv[{extra}]".', name=package
        ) from error
