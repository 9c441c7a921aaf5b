"""Repairs in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from drosurv.insight.effect_columns import EffectColumns
from drosurv.repairs.repair import Repair

# Gain in log likelihood, summed over a group, that a level error needs to be found in four of five samples; measured.
NEEDED_GAIN = 27.0
# The group that the reader is told about where nothing was found.
TENTH = 0.1
# A smaller ratio is written as 0.0, which says nothing.
LEAST_SAID = 0.05
# Effects smaller than this (log hazard ratio per standard deviation) are not worth a word.
LEAST_SPOKEN = 0.1


def status(repairs: Sequence[Repair], events: int, min_group: int) -> str:
    """One or two sentences that say what was found."""
    if repairs:
        return f"The model was corrected for {'; '.join(repair.who for repair in repairs)}."
    nothing = f"No group of at least {min_group} patients was found for whom the model is wrong."
    low, high = detectable(TENTH * events)
    if not np.isfinite(high):
        return nothing
    # So many digits that the ratio is not written as 1.
    digits = max(1, int(np.ceil(-np.log10(high - 1))))
    fewer = f" (or at most {low:.{digits}f} times)" if low >= LEAST_SAID else ""
    return (
        f"{nothing} A tenth of the patients with at least {high:.{digits}f} times as many events as predicted{fewer} "
        "would probably have been found."
    )


def detectable(expected: float) -> tuple[float, float]:
    """Smallest excess and smallest shortfall of events that the search finds in a group, as observed / expected.

    A group of E expected events that has rho times as many gains E (rho log rho - rho + 1) in log likelihood. 0 and
    infinity where no error is large enough.
    """

    def missing(rho: float) -> float:
        return float(expected * (rho * np.log(rho) - rho + 1) - NEEDED_GAIN)

    if expected <= 0:
        return 0.0, np.inf
    low = brentq(missing, 1e-9, 1.0) if missing(1e-9) > 0 else 0.0
    return float(low), float(brentq(missing, 1.0, 1.0 + 10 * NEEDED_GAIN / min(expected, 1.0)))


def in_words(repair: Repair, columns: EffectColumns) -> str:
    """What was wrong, for whom, what was changed, and what it did on patients not used for it."""
    whom = "everyone" if repair.rule is None else f"the {repair.patients:,} patients with {repair.rule}"
    before, after = repair.before, repair.after
    now = f"after the repair {_times(after.value)}"
    sure = f"{_one(after.low)} to {_one(after.high)}"
    if _one(before.value) == "1.0" and repair.rule is not None and repair.version != "level":
        told = f"about as many had the event as predicted ({now}, {sure}), but features act otherwise there."
    else:
        told = f"{_times(before.value)} as many had the event as predicted; {now} ({sure})."
    sentences = [f"For {whom}, {told}"]
    if repair.version != "level":
        sentences.append(
            f"Where the model predicted one unit more of log risk, there was {_one(repair.slope_before)} more in "
            f"truth; after the repair {_one(repair.slope_after)}."
        )
        changed = [] if repair.rule is None else changes(repair, columns)
        if changed:
            sentences.append(f"There the hazard ratio of {', of '.join(changed)}.")
    gain = repair.gain_inside
    sentences.append(
        f"Measured on {repair.checked:,} patients not used for it, who gain {gain.value:.2f} in log likelihood each "
        f"({gain.low:.2f} to {gain.high:.2f})."
    )
    return " ".join(sentences)


def changes(repair: Repair, columns: EffectColumns) -> list[str]:
    """The effects that differ in the group, largest first, beside those of the others."""
    own = repair.strength * repair.correction.own
    order = [j for j in np.argsort(-abs(own)) if j > 0 and abs(own[j]) >= LEAST_SPOKEN]
    found = []
    for j in order:
        column = columns.columns[j - 1]
        # Of two values one is compared with the other; a number is spoken of by its spread.
        two = column.scale == (column.high - column.low) / 2
        effect, unit = (2 * own[j], "") if two else (own[j], " per sd")
        found.append(f"{column.label!r} is {np.exp(effect):.2f} times the others'{unit}")
    return found


def _one(value: float) -> str:
    return f"{value:.1f}"


def _times(value: float) -> str:
    return f"{_one(value)} times"
