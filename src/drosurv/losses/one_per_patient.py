"""Losses that every patient has, with an event or without."""

from __future__ import annotations

import copy
from typing import ClassVar, Self

import numpy as np

from drosurv.losses.loss import Loss
from drosurv.target import IntArray, Target


class OnePerPatient(Loss):
    """Base of losses that every patient has; under a partial likelihood the censored have none."""

    # Attributes with an entry for each patient.
    _by_patient: ClassVar[tuple[str, ...]] = ("target",)

    def __init__(self, target: Target) -> None:
        self.target = target
        self.n, self.rows = len(target), np.arange(len(target))

    @property
    def event_share(self) -> float:
        """Share of the patients who had the event."""
        return float(self.target.event.mean())

    def take(self, rows: IntArray) -> Self:
        """The same loss, with the same intervals and null model where it has any, among fewer patients."""
        part = copy.copy(self)
        part.n, part.rows = len(rows), np.arange(len(rows))
        for name in self._by_patient:
            whole = getattr(self, name)
            setattr(part, name, None if whole is None else whole.take(rows))
        return part
