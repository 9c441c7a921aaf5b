"""Words and codes that say whether the event happened."""

from __future__ import annotations

from collections.abc import Sequence

from drosurv.target import EVENT_WORDS

_CENSORED = {
    *("0", "no", "n", "false", "f", "none"),
    *("alive", "living", "survived", "censored", "lost", "withdrawn"),
}


def obvious(values: Sequence[str]) -> str | None:
    """The label of an event column that means the event where there is no doubt; None where the user must be asked.

    Examples
    --------
    >>> obvious(["alive", "Dead"]), obvious(["1", "2"]), obvious(["cancer", "stroke"])
    ('Dead', '2', None)
    """
    words = {value.casefold(): value for value in values}
    if set(words) in ({"0", "1"}, {"1"}, {"0"}):
        return "1"
    if set(words) == {"1", "2"}:
        # The convention of R's survival package and of many registries.
        return "2"
    events = [word for word in words if word in EVENT_WORDS]
    if len(words) == 2 and len(events) == 1 and (set(words) - set(events)) <= _CENSORED:
        return words[events[0]]
    if len(words) == 1 and (events or set(words) <= _CENSORED):
        return words[events[0]] if events else _opposite(next(iter(words)))
    return None


def means_censored(value: str) -> bool:
    """Whether a label says that no event was seen."""
    return value.casefold() in _CENSORED


def _opposite(word: str) -> str | None:
    """The event of a column in which nobody has it, where the word has one opposite."""
    return {"false": "true", "no": "yes", "n": "y", "f": "t"}.get(word)
