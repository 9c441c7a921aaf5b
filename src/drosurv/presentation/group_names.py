"""Groups as people call them: "age over 65", not "age>65 >65"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)"
_CUT = re.compile(rf"(?P<column>.+?)\s*>\s*(?P<cut>{_NUMBER})")
_SIDE = re.compile(rf"(?P<sign><=|>=|<|>)\s*(?P<cut>{_NUMBER})")
# What a patient of a cut may be: on one side, of unknown value, or not told of.
_OF_CUT = re.compile(rf"(?:{_SIDE.pattern}|missing)?")
_WORDS = {">": "over {}", "<=": "{} or below", "<": "under {}", ">=": "{} or over"}
# What stands between attributes, and between labels, of an intersection; and between the two groups of a gap.
AND, VERSUS = " & ", " vs "


def attribute_name(attribute: str, group: str = "") -> str:
    """What an attribute is called: the column, where it is a cut of one.

    Where the group, or one of those of a gap, is no side of the cut but answers it, the attribute is the question.

    >>> attribute_name("age>65"), attribute_name("sex & age>65"), attribute_name("age>65", "True")
    ('age', 'sex & age', 'age>65')
    """
    groups = [label.split(AND) for label in group.split(VERSUS)]
    names = []
    for place, part in enumerate(attribute.split(AND)):
        cut = _CUT.fullmatch(part)
        sides = all(_OF_CUT.fullmatch(labels[place]) for labels in groups if place < len(labels))
        names.append(cut["column"] if cut and sides else part)
    return AND.join(names)


def headings(groups: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """What attributes are called above their groups: the column; the cut itself where a column has several.

    >>> headings({"age>65": [">65", "<=65"], "sex": ["f", "m"]}), headings({"age>65": [">65"], "age>80": [">80"]})
    ({'age>65': 'age', 'sex': 'sex'}, {'age>65': 'age>65', 'age>80': 'age>80'})
    """
    short = {
        attribute: attribute_name(attribute, VERSUS.join(labels)) for attribute, labels in groups.items()
    }
    shared = Counter(short.values())
    return {attribute: name if shared[name] == 1 else attribute for attribute, name in short.items()}


def label_name(attribute: str, group: str) -> str:
    """What a group, or the two groups of a gap, are called below their attribute's name.

    >>> label_name("age>65", ">65"), label_name("sex", "f"), label_name("age>65", ">65 vs <=65")
    ('over 65', 'f', 'over 65 vs 65 or below')
    """
    for between in (VERSUS, AND):
        if between in group:
            return between.join(label_name(attribute, part) for part in group.split(between))
    side = _SIDE.fullmatch(group)
    return group if side is None else _WORDS[side["sign"]].format(side["cut"])


def group_name(attribute: str, group: str) -> str:
    """What a group is called on its own.

    >>> group_name("age>65", ">65"), group_name("diabetes", "1"), group_name("sex & age>65", "f & <=65")
    ('age over 65', 'diabetes = 1', 'sex f & age 65 or below')
    >>> group_name("age>65", "True")
    'age>65 True'
    """
    names, labels = attribute.split(AND), group.split(AND)
    if len(names) == len(labels) > 1:
        return AND.join(map(group_name, names, labels))
    # A bare code would read as part of the name, or as a count.
    sign = "= " if re.fullmatch(_NUMBER, group) else ""
    return f"{attribute_name(attribute, group)} {sign}{label_name(attribute, group)}"


def listing(names: Sequence[str], most: int = 8) -> str:
    """Names in a row, the last after "and"; those beyond `most` are only counted.

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
