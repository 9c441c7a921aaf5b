"""Checks of single parameters, made when fitting begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from drosurv.errors import as_number, as_whole, require


def check_choice(name: str, value: Any, choices: Sequence[object]) -> None:
    """Reject what is none of the choices."""
    require(value in choices, name, f"be one of {choices}", value)


def check_count(name: str, value: Any, *, least: int = 1) -> None:
    """Reject what is not a whole number of at least `least`."""
    require(as_whole(value) >= least, name, f"be a whole number, at least {least}", value)


def check_number(name: str, value: Any, *, positive: bool = False) -> None:
    """Reject what is not a finite number of at least 0, or above 0 where it must be positive."""
    wanted = "positive" if positive else "not negative"
    fits = 0 <= as_number(value) < np.inf and not (positive and value == 0)
    require(fits, name, f"be a finite number that is {wanted}", value)


def check_share(name: str, value: Any) -> None:
    """Reject what is not a number in (0, 1]."""
    require(0 < as_number(value) <= 1, name, "lie in (0, 1]", value)


def check_widths(name: str, value: Any) -> None:
    """Reject what is not a sequence of whole numbers, each at least 1."""
    listed = isinstance(value, (Sequence, np.ndarray)) and all(as_whole(width) >= 1 for width in value)
    require(listed, name, "list widths (whole numbers, at least 1) like (24,)", value)
