"""Event times within strata, and who is at risk at which of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drosurv.losses.risk_sets import distinct
from drosurv.radix import stable_order
from drosurv.target import BoolArray, FloatArray, IntArray, Target


@dataclass(frozen=True, eq=False)
class Slots:
    """Event times within strata, and the window of them in which each patient is at risk.

    `rows` (E,) are the events by stratum and time, `block` (E,) their slots; `time` and `stratum` (K,) are of each
    slot. `begin` and `end` (n,) are the first and last slot of each patient's window; begin > end for who is at risk
    at no event.
    """

    rows: IntArray
    block: IntArray
    time: FloatArray
    stratum: IntArray
    begin: IntArray
    end: IntArray

    @classmethod
    def of(cls, target: Target, scored: BoolArray | None = None) -> Slots:
        """The slots of a target; without strata everybody is in stratum 0.

        With `scored` (n,) the slots are those of the scored patients' events, and the windows those of all others.
        """
        stratum = np.zeros(len(target), np.intp) if target.stratum is None else target.stratum
        order = _by_stratum(target.order, target.stratum)
        times, rank = distinct(target.time[target.order])
        key = np.empty(len(target), np.intp)
        key[target.order] = rank
        key += stratum * len(times)
        events = target.event if scored is None else target.event & scored
        rows = order[events[order]]
        slots, block = distinct(key[rows])
        # Searching in ascending order keeps the places looked at in a near cache.
        begin, end = np.empty(len(target), np.intp), np.empty(len(target), np.intp)
        end[order] = np.searchsorted(slots, key[order], side="right") - 1
        if target.entry is None:
            begin = np.searchsorted(slots, np.arange(stratum.max() + 1) * len(times))[stratum]
        else:
            entered = stable_order(target.entry)
            begin[entered] = np.searchsorted(times, target.entry[entered], side="right")
            begin += stratum * len(times)
            entered = _by_stratum(entered, target.stratum)
            begin[entered] = np.searchsorted(slots, begin[entered])
        if scored is not None:
            begin[scored], end[scored] = 1, 0
        return cls(rows, block, times[slots % len(times)], slots // len(times), begin, end)


def _by_stratum(order: IntArray, stratum: IntArray | None) -> IntArray:
    """An order of the patients, made one of stratum by stratum."""
    if stratum is None:
        return order
    # Numbers of two bytes are sorted without comparisons.
    codes = stratum.astype(np.uint16) if stratum.max() < 2**16 else stratum
    by_stratum: IntArray = order[np.argsort(codes[order], kind="stable")]
    return by_stratum
