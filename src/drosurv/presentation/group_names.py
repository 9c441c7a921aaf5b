"""Groups as people call them: "age over 65", not "age>65 >65"."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)"
_CUT = re.compile(rf"(?P<column>.+?)\s*>\s*(?P<cut>{_NUMBER})")
_SIDE = re.compile(rf"(?P<sign><=|>=|<|>)\s*(?P<cut>{_NUMBER})")
_WORDS = {">": "over {}", "<=": "{} or below", "<": "under {}", ">=": "{} or over"}


def attribute_name(attribute: str) -> str:
    """What an attribute is called: the column, where it is a cut of one.

    Examples
    --------
    >>> from drosurv.presentation import attribute_name
    >>> attribute_name("age>65"), attribute_name("sex")
    ('age', 'sex')
    """
    cut = _CUT.fullmatch(attribute)
    return attribute if cut is None else cut["column"]


def label_name(attribute: str, group: str) -> str:
    """What a group is called below its attribute's name.

    Examples
    --------
    >>> from drosurv.presentation import label_name
    >>> label_name("age>65", ">65"), label_name("age>65", "<=65"), label_name("sex", "f")
    ('over 65', '65 or below', 'f')
    """
    side = _SIDE.fullmatch(group)
    return group if side is None else _WORDS[side["sign"]].format(side["cut"])


def group_name(attribute: str, group: str) -> str:
    """What a group is called on its own.

    Examples
    --------
    >>> from drosurv.presentation import group_name
    >>> group_name("age>65", ">65"), group_name("sex", "f"), group_name("diabetes", "1")
    ('age over 65', 'sex f', 'diabetes = 1')
    """
    # A bare code would read as part of the name, or as a count.
    sign = "= " if re.fullmatch(_NUMBER, group) else ""
    return f"{attribute_name(attribute)} {sign}{label_name(attribute, group)}"


def listing(names: Sequence[str], most: int = 8) -> str:
    """Names in a row, the last after "and"; those beyond `most` are only counted.

    Examples
    --------
    >>> from drosurv.presentation import listing
    >>> listing(["a", "b", "c"]), listing(["a", "b", "c"], most=1)
    ('a, b and c', 'a and 2 others')
    """
    shown = list(names[:most])
    if len(names) > most:
        left = len(names) - most
        shown = [*shown, f"{left} {'other' if left == 1 else 'others'}"]
    *others, last = shown or [""]
    return f"{', '.join(others)} and {last}" if others else last


def first_upper(text: str) -> str:
    """The text as a sentence begins: `str.capitalize` would make the rest of it lower case."""
    return text[:1].upper() + text[1:]
