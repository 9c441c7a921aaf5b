"""Sentences about the numbers of a model: all patients, and shrinkage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from drosurv.presentation.wording import (
    counted,
    counted_patients,
    written,
)

# A model that keeps less than this share of the reference's likelihood gain is a concern.
LITTLE_KEPT = 0.5
# Shrinkage to a larger share of the reference's scores, or of its information, is too small to mention.
SHRUNK = 0.99
# A disparity is called lower only if it is below this share of what shrinking gives.
CLEARLY_LOWER = 0.95
# A smaller difference is not visible in three decimals. Two fits of the same model differ by less, but in one
# direction: with a million patients, plain Cox would be significantly worse than itself.
LEAST_DIFFERENCE = 5e-4
MOST_NAMED = 8


@dataclass(frozen=True)
class Statement:
    """A sentence of a summary, and whether it is a concern that a reader should act on.

    The code says what it is about, for programs; codes do not change between versions.
    """

    code: str
    text: str
    concern: bool = False


def overall_statement(
    patients: int,
    events: int,
    numbers: Sequence[tuple[str, str]],
    other_events: int = 0,
    rows: int = 0,
    clusters: tuple[int, str] = (0, ""),
) -> Statement:
    """State the number of patients and how well they are predicted; `numbers` are pairs of name and text.

    Patients with an event of another cause, `other_events`, are not censored. Where patients have several rows, events
    are those of the `rows`. `clusters` are those of :func:`counted_patients`.
    """
    named = ", ".join(f"{name} {text}" for name, text in numbers)
    several = rows > patients
    whole = max(rows, patients)
    censored = written(1 - (events + other_events) / whole, "share") if whole else "–"
    others = f", {counted(other_events, 'event')} of another cause" if other_events else ""
    who = counted_patients(patients, rows, *clusters)
    how = f"{censored} of the rows censored" if several else f"{censored} censored"
    return Statement("overall", f"{who}, {counted(events, 'event')}{others} ({how}): {named}.")


def shrinkage_statements(
    kept: float,
    factor: float,
    compared: Sequence[tuple[float | None, float | None]],
    reference: str,
) -> list[Statement]:
    """State whether disparities are lower than those of a reference only because scores differ less.

    The model has the share `kept` of the reference's gain in log partial likelihood. The reference's log risks
    multiplied by `factor` have the same gain; `compared` are pairs of the model's disparities and those of the
    multiplied log risks.
    """
    if isnan(kept):
        return []
    text = f"The model's gain in log partial likelihood over no model is {written(kept, 'share')} of {reference}'s."
    if factor < SHRUNK and kept < SHRUNK and compared:
        lower, of = sum(is_lower(*pair) for pair in compared), len(compared)
        which = f"{lower or 'none'} of {of} disparities of risk {'is' if lower < 2 else 'are'}"
        if of == 1:
            which = f"the disparity of risk is{'' if lower else ' not'}"
        text += (
            f" Compared with {reference} whose log risks are multiplied by {factor:.2f}, which has the same gain, "
            f"{which} lower."
        )
    return [Statement("shrinkage", text, kept < LITTLE_KEPT)]


def is_lower(model: float | None, shrunken: float | None) -> bool:
    """Whether a model's disparity is clearly below that of the reference shrunk to the same information."""
    return model is not None and shrunken is not None and bool(model < CLEARLY_LOWER * shrunken)
