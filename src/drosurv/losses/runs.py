"""Windows of slots cut in two, and gathered in runs that one running sum serves.

Why and where they are cut stands in :mod:`drosurv.losses.risk_windows`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drosurv.losses.slots import Slots
from drosurv.target import IntArray


class Runs(NamedTuple):
    """All runs: their members and the members' slots, where each begins, its last slot and its direction.

    The members of a run stand in the order in which it meets them; it goes on from the last one to its last slot.
    """

    members: IntArray
    at: IntArray
    first: IntArray
    last: IntArray
    step: IntArray

    @classmethod
    def of(cls, slots: Slots) -> Runs:
        """The windows of all patients, cut in two and gathered by where they were cut."""
        starts = np.searchsorted(slots.stratum, slots.stratum, side="left")
        seen = np.flatnonzero(slots.begin <= slots.end)
        begin, end = slots.begin[seen], slots.end[seen]
        whole = begin == starts[end]
        # A window is cut where the highest bit of its ends differs; windows of one slot and whole ones are not cut.
        half = np.frexp((begin ^ end).astype(np.float64))[1].astype(np.intp) - 1
        cut = ~whole & (half >= 0)
        half = np.maximum(half, 0)
        middle = np.where(whole, begin, (end >> half) << half)
        # A run is told by the length of its halves, its last slot and its direction.
        levels = np.where(whole, np.intp(63), half)
        backward = _sorted_runs(seen, end, levels, middle, -1)
        forward = _sorted_runs(seen[cut], begin[cut], levels[cut], middle[cut] - 1, 1)
        members, at, first, last, step = (
            np.concatenate(parts) for parts in zip(backward, forward, strict=True)
        )
        first[len(backward.first) :] += len(backward.members)
        return cls(members, at, np.append(first, len(members)), last, step)


def _sorted_runs(members: IntArray, at: IntArray, level: IntArray, last: IntArray, step: int) -> Runs:
    # One number for run and place sorts several times faster than three keys one after the other.
    size = int(at.max(initial=0)) + 2
    order = np.argsort((level * size + last) * size + (at if step > 0 else size - 1 - at))
    level, last = level[order], last[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (level[1:] != level[:-1]) | (last[1:] != last[:-1])
    first = np.flatnonzero(new)
    return Runs(members[order], at[order], first, last[first], np.full(len(first), step))
