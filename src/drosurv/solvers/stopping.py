"""Early stopping: patients who are not trained on say when to stop, and which step was best."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from drosurv.errors import ArgumentError
from drosurv.solvers.arrays import in_numpy
from drosurv.solvers.replay import Replay
from drosurv.target import BoolArray, FloatArray, IntArray

# With fewer events the watched criterion is mostly chance.
FEWEST_EVENTS = 5


@dataclass(frozen=True)
class Stopping:
    """When to stop.

    The `fraction` of the patients, events and censored alike, is watched instead of trained on; training stops after
    `patience` passes (or rounds) without a better value. `required` makes it an error if nobody can be watched; else
    everybody is trained on.
    """

    fraction: float
    patience: int
    required: bool = True

    def divided(
        self, event: BoolArray, together: IntArray, seed: int, *, divisible: bool = True
    ) -> tuple[IntArray, IntArray] | None:
        """Rows that are trained on, and rows that are watched; None where none can be set aside and none is required.

        `together` (n,) is the cluster of each row, from 0: its rows are alike, and stay on one side.
        """
        rng, had_event = np.random.default_rng(seed), np.bincount(together, event) > 0
        drawn = np.zeros(len(had_event), dtype=np.bool_)
        for flag in (True, False):
            own = np.flatnonzero(had_event == flag)
            drawn[rng.permutation(own)[: round(self.fraction * len(own))]] = True
        watched = drawn[together]
        events = int(event[watched].sum())
        few = events < FEWEST_EVENTS or int(event[~watched].sum()) < FEWEST_EVENTS
        if not self.required and (few or not divisible):
            return None
        if few:
            raise ArgumentError(
                "early_stopping",
                f"early_stopping=True watches {events} events of {int(event.sum())}, and needs at "
                f"least {FEWEST_EVENTS} on either side: change validation_fraction={self.fraction!r}, or "
                "train without it.",
            )
        return np.flatnonzero(~watched), np.flatnonzero(watched)


class Watch:
    """The watched patients' criterion pass by pass for B networks, and each network where it was best.

    The network on the watched patients shares the parameters that are trained; `extra` (B, K), of the loss, are
    trained too. A pass has `every` steps.
    """

    def __init__(
        self, network: Any, criterion: Any, patience: int, every: int = 1, extra: Any = None
    ) -> None:
        self.patience, self.every = patience, every
        self.trained = [*network.parameters, *([] if extra is None else [extra])]

        def value() -> Any:
            return criterion(network.evaluated(), extra)[0]

        self._value = Replay(value) if network.recordable and criterion.recordable else value
        batch = len(network.parameters[0])
        self.best = np.full(batch, np.inf)
        self.best_pass: IntArray = np.zeros(batch, dtype=np.intp)
        self.kept: list[Any] = []

    def look(self, step: int) -> bool:
        """After a step: remember what is best; whether nothing gets better any more."""
        if step % self.every:
            return False
        value: FloatArray = in_numpy(self._value())
        better = value < self.best
        if not self.kept:
            self.kept = copy.deepcopy(self.trained)
        for b in np.flatnonzero(better):
            for kept, p in zip(self.kept, self.trained, strict=True):
                kept[b] = p[b]
        now = step // self.every
        self.best, self.best_pass = np.where(better, value, self.best), np.where(better, now, self.best_pass)
        return bool((now - self.best_pass >= self.patience).all())

    def restore(self) -> None:
        """Put every network back to where it was best."""
        for kept, p in zip(self.kept, self.trained, strict=True):
            p[...] = kept
