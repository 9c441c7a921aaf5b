"""Estimators and their parameters as the command line names them."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from typing import Any

from drosurv.errors import ArgumentError, did_you_mean


def model_classes() -> dict[str, type[Any]]:
    """Every estimator by its plain name, such as ``dro-cox``."""
    from drosurv.estimators.discovery import all_estimators

    return {_plain(name): cls for name, cls in all_estimators(causes=True)}


def make_estimator(name: str, common: dict[str, Any], others: dict[str, Any], seed: int = 0) -> Any:
    """An estimator by its name on the command line, or its class's; robust ones are recalibrated by default.

    Of the `common` parameters None keeps the default; one of any that this estimator lacks is an error.
    """
    classes = model_classes()
    cls = classes.get(_plain(name))
    if cls is None:
        known = sorted(found.__name__ for found in classes.values())
        raise ValueError(f"--model {name!r} is not one of {', '.join(known)}.{did_you_mean(name, known)}")
    wanted = {**{key: value for key, value in common.items() if value is not None}, **others}
    check_parameters(cls(), wanted.keys() - others)
    check_parameters(cls(), others, "--set")
    drawn = {"random_state": seed} if "random_state" in cls().get_params() else {}
    estimator = cls(**{**drawn, **wanted})
    if "recalibrate" not in wanted and _shrinks(estimator):
        estimator.set_params(recalibrate=True)
    return estimator


def check_parameters(estimator: Any, names: Iterable[str], option: str = "") -> None:
    """Raise if an estimator has no parameter of a given name, which `option` gave, or else an option of that name."""
    taken = estimator.get_params()
    for name in names:
        if name not in taken:
            robust = name in ("alpha", "ball")
            remedy = (
                ": pass --model dro-cox, or another robust model"
                if robust
                else f", which takes {', '.join(taken)}"
            )
            named = f"{option} {name}" if option else name
            raise ArgumentError(
                name,
                f"{named} has no meaning for {type(estimator).__name__}{remedy}.{did_you_mean(name, taken)}",
            )


def _shrinks(estimator: Any) -> bool:
    """Whether robust training draws an estimator's risks together, so that curves need them spread out again."""
    stretchable = "recalibrate" in estimator.get_params() and not estimator._own_curves
    return stretchable and estimator._weights_losses and getattr(estimator, "alpha", None) != 1


def _plain(name: str) -> str:
    return name.replace("-", "").lower().replace("coxph", "cox")


def read_settings(entries: list[str] | None) -> dict[str, Any]:
    """The values that ``--set`` names; each is read as JSON or as Python, or else is text."""
    return {
        name: _value(text) for name, text in _pairs(entries, "--set", "NAME=VALUE, such as lr=0.001").items()
    }


def read_grid(entries: list[str] | None) -> dict[str, list[Any]] | None:
    """The lists of values that ``--grid`` names, separated by commas; None if there are none."""
    given = _pairs(entries, "--grid", "NAME=VALUES, such as alpha=0.1,0.2")
    return {name: _values(text) for name, text in given.items()} or None


def _pairs(entries: list[str] | None, option: str, example: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in entries or []:
        name, equals, value = (part.strip() for part in entry.partition("="))
        if not name or not equals or not value:
            raise ValueError(f"{option} needs {example}; got {entry!r}.")
        if name in found:
            raise ValueError(f"{option} names {name!r} twice: give it once.")
        found[name] = value
    return found


def _values(text: str) -> list[Any]:
    try:
        # Whole, so that a list such as [24,24] stays one value.
        found: list[Any] = json.loads(f"[{text}]")
    except ValueError:
        return [_value(part) for part in text.split(",")]
    return found


def _value(text: str) -> Any:
    for read in (json.loads, ast.literal_eval, float):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return text.strip()
