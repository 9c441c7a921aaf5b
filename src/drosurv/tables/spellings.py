"""Labels that may be two spellings of one."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SHORT = {"f": "female", "m": "male", "w": "woman", "y": "yes", "n": "no", "t": "true", "u": "unknown"}


def alike(first: str, second: str) -> bool:
    """Whether two labels differ only in case, in marks, by an abbreviation, or by one letter of a long word.

    Examples
    --------
    >>> alike("F", "female"), alike("Caucasian", "Caucasion"), alike("stage 1", "stage 2")
    (True, True, False)
    """
    signs = [re.findall(r"[<>=+]|^-|-$", text.strip()) for text in (first, second)]
    if signs[0] != signs[1]:
        # Up to 60 and over 60, positive and negative: their signs are what they say.
        return False
    words = [re.findall(r"[^\W_]+", text.casefold()) for text in (first, second)]
    short, long = sorted(("".join(found) for found in words), key=len)
    if short == long or _SHORT.get(short) == long:
        return bool(short)
    differing = [sorted(pair, key=len) for pair in zip(*words, strict=False) if pair[0] != pair[1]]
    if len(words[0]) != len(words[1]) or len(differing) != 1:
        return False
    short, long = differing[0]
    digits = [re.sub(r"\D", "", word) for word in (short, long)]
    # Grade A and grade B, ZDV+ddC and ZDV+ddI differ by one letter and mean it; so do stage 1 and stage 2. A slip
    # rarely hits the first letter, where typical and atypical, mother and other differ.
    return len(short) >= 5 and digits[0] == digits[1] and short[0] == long[0] and _one_edit(short, long)


def spellings(labels: Iterable[str]) -> list[list[str]]:
    """Labels that may be spellings of one, together; those that are like no other are left out.

    Examples
    --------
    >>> spellings(["Female", "Male", "female"])
    [['Female', 'female']]
    """
    families: list[list[str]] = []
    for label in sorted(labels):
        near = [family for family in families if any(alike(label, other) for other in family)]
        joined = [other for family in near for other in family]
        families = [*(family for family in families if family not in near), [*joined, label]]
    return [family for family in families if len(family) > 1]


def _one_edit(short: str, long: str) -> bool:
    """Whether one letter added, left out, changed or swapped with its neighbour makes one word of the other."""
    if len(long) - len(short) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[start:] == long[start + 1 :]
    swapped = short[start + 1 : start + 2] + short[start : start + 1] + short[start + 2 :]
    return short[start + 1 :] == long[start + 1 :] or swapped == long[start:]
