"""DRO-COX (SPLIT): each half of the patients is scored against the other, so that losses separate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from drosurv.errors import as_number, require
from drosurv.estimators.halves import halves
from drosurv.estimators.over_slabs import SolvedOverSlabs
from drosurv.estimators.parameters import check_choice
from drosurv.estimators.recipe import Recipe
from drosurv.estimators.robust import RobustEstimator
from drosurv.estimators.training import EVERYTHING, Training
from drosurv.losses import CoxSplit
from drosurv.target import BoolArray


@dataclass(eq=False, repr=False)
class DROCoxSplit(SolvedOverSlabs, RobustEstimator):
    """DRO-COX with sample splitting: D1 is scored against D2 and D2 against D1, each with its own worst case.

    Parameters
    ----------
    alpha, ball
        As in :class:`drosurv.DROCox`.
    n1 : float
        Share of patients in D1.
    sides : {"both", "one"}
        "one" scores only D1 against D2.
    shuffle : bool
        True draws D1 at random, stratified by event; False takes the first rows.
    ties : {"breslow"}
        A patient's risk set is the other half and itself, so equal event times share nothing.

    Attributes
    ----------
    eta_ : (float, float)
        The threshold of each half (one threshold with ``sides="one"``).
    worst_case_weights_ : (n,) float64
        Sums to one; each half has mass one half.
    """

    alpha: float = 0.2
    ball: str = "chi2"
    n1: float = 0.5
    sides: str = "both"
    shuffle: bool = True

    _no_ties = "a split loss"
    _observes = EVERYTHING

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("sides", self.sides, ("both", "one"))
        require(0 < as_number(self.n1) < 1, "n1", "lie in (0, 1), as D1's share of the patients", self.n1)

    def _slab_halves(self, event: BoolArray, seed: int) -> list[BoolArray]:
        in_first = self._in_first(event, seed)
        return [in_first, ~in_first] if self.sides == "both" else [in_first]

    def _in_first(self, event: BoolArray, seed: int) -> BoolArray:
        return halves(event, self.n1, seed if self.shuffle else None, both=self.sides == "both")

    def _recipe(self, training: Training, batch: Sequence[Self]) -> Recipe:
        event, observed = training.target.event, training.observation
        if observed.patient is None:
            in_first = self._in_first(event, training.seed)
        else:
            # All rows of a patient are in one half.
            patient, _ = pd.factorize(observed.patient)
            in_first = self._in_first(np.bincount(patient, event) > 0, training.seed)[patient]
        loss = CoxSplit(training.target, in_first, training.weight, self.sides == "both", observed.offset)
        masses = [training.mass[half] / training.mass[half].sum() for half in loss.halves]
        return Recipe(loss, self._objective(batch, masses), blocks=loss.halves)
