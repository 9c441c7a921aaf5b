"""Labels of a column that may be spellings of one, as F beside Female."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from drosurv.errors import ArgumentWarning
from drosurv.tables.values import holds_numbers, label_counts, quoted

# Abbreviations that are spellings of a label; so is one letter of a word of at least so many.
_SHORT, _FEWEST_LETTERS = {"y": "yes", "n": "no"}, 4


def different_spellings(column: pd.Series[Any]) -> Iterator[ArgumentWarning]:
    """Warn of labels of a column of categories that may mean the same."""
    rows = {} if holds_numbers(column) or column.dtype.kind in "bmM" else label_counts(column)
    if same := spellings(rows):
        shown = "; ".join(quoted({text: rows[text] for text in family}) for family in same[:4])
        yield ArgumentWarning(
            None,
            f"column {column.name!r} holds labels that may mean the same: {shown}. They are used as different levels; "
            "correct the table if they mean the same.",
        )


def alike(first: str, second: str) -> bool:
    """Whether two labels differ only in case, in punctuation, by an abbreviation, or by one letter of a long word.

    Examples
    --------
    >>> alike("F", "female"), alike("Caucasian", "Caucasion"), alike("stage 1", "stage 2")
    (True, True, False)
    """
    signs = [re.findall(r"[<>=+]|^-|-$", text.strip()) for text in (first, second)]
    if signs[0] != signs[1]:
        # Signs carry the meaning of labels such as "<60" and ">60", or "pos+" and "pos-".
        return False
    words = [re.findall(r"[^\W_]+", text.casefold()) for text in (first, second)]
    short, long = sorted(("".join(found) for found in words), key=len)
    if short == long or _SHORT.get(short) == long:
        return bool(short)
    if len(short) == 1 and short.isalpha() and len(long) >= _FEWEST_LETTERS and long[1] != short:
        # Not I and IIIA.
        return long.startswith(short)
    differing = [sorted(pair, key=len) for pair in zip(*words, strict=False) if pair[0] != pair[1]]
    if len(words[0]) != len(words[1]) or len(differing) != 1:
        return False
    short, long = differing[0]
    digits = [re.sub(r"\D", "", word) for word in (short, long)]
    # One letter makes a different level of a short word (grade A and grade B), and so does a digit (stage 1 and stage
    # 2). Typing errors rarely affect the first letter, where typical and atypical, mother and other differ.
    return len(short) >= 5 and digits[0] == digits[1] and short[0] == long[0] and _one_edit(short, long)


def spellings(labels: Iterable[str]) -> list[list[str]]:
    """Group labels that may be spellings of the same label; labels unlike all others are left out.

    Examples
    --------
    >>> spellings(["Female", "Male", "female"])
    [['Female', 'female']]
    """
    families: list[list[str]] = []
    for one in sorted(labels):
        near = [family for family in families if any(alike(one, other) for other in family)]
        joined = [other for family in near for other in family]
        families = [*(family for family in families if family not in near), [*joined, one]]
    return [family for family in families if len(family) > 1]


def _one_edit(short: str, long: str) -> bool:
    """Whether two words differ by one letter that was added, changed or swapped with its neighbour."""
    at = next((place for place, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    rest, other = short[at:], long[at:]
    swapped = rest[1::-1] + rest[2:]
    return other in (swapped, f"{other[:1]}{rest[1:]}", f"{other[:1]}{rest}")
