"""Two halves of the patients, to be scored against each other."""

from __future__ import annotations

import numpy as np

from drosurv.errors import Argument, ArgumentError
from drosurv.target import BoolArray


def halves(event: BoolArray, n1: float, seed: int | None, *, both: bool) -> BoolArray:
    """Who is in the first half, D1, with the share n1 of the patients.

    The seed is of a random choice; None takes the first rows. Where both halves are scored, both need an event.
    """
    n = len(event)
    in_first = np.zeros(n, dtype=np.bool_)
    if seed is None:
        in_first[: round(n * n1)] = True
    else:
        # Event by event and censored by censored, so that both halves see the same share of events.
        shuffled = np.random.default_rng(seed).permutation(n)
        had = event[shuffled]
        ordered = np.concatenate([shuffled[~had], shuffled[had]])
        reached = np.floor(np.arange(n + 1) * n1 + 1e-9)
        in_first[ordered[reached[1:] > reached[:-1]]] = True
    share = Argument("n1", n1)
    for half, name in ((in_first, "D1"), (~in_first, "D2")):
        if not half.any():
            raise ArgumentError(share, f" leaves {name} empty among {n} patients; choose one nearer to 0.5.")
    if not event[in_first].any() or (both and not event[~in_first].any()):
        raise ArgumentError(
            share,
            f" leaves a half without any event among {int(event.sum())} events; choose one nearer to 0.5.",
        )
    return in_first
