"""Parameters of an estimator given as NAME=VALUE."""

from __future__ import annotations

import json
from typing import Any


def read_settings(entries: list[str] | None) -> dict[str, Any]:
    """The values that ``--set`` names; each is JSON if it can be, a number such as .5, or text."""
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
    for read in (json.loads, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text.strip()
