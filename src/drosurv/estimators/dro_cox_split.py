"""DRO-COX (SPLIT): patients are compared with the other half only, so that losses in a half are independent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd

from drosurv.errors import as_number, check_choice, require
from drosurv.estimators.capabilities import ROW_ARGUMENTS, Capabilities
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.losses.cox_split import CoxSplit
from drosurv.patients.draws import first_half, require_events
from drosurv.patients.target import BoolArray, IntArray
from drosurv.solvers import Problem, TrainingData


@dataclass(eq=False, repr=False)
class DROCoxSplit(NetworkEstimator):
    """DRO-COX with sample splitting: D1 is compared with D2 and D2 with D1, each with its own worst case.

    Parameters
    ----------
    alpha, ball
        As in :class:`drosurv.DROCox`.
    n1 : float
        Share of patients in D1.
    sides : {"both", "one"}
        "one" compares only D1 with D2.
    shuffle : bool
        True draws D1 at random, stratified by event; False takes the first rows.
    ties : {"breslow"}
        A risk set consists of the patient and patients of the other half, so it contains no tied events.

    Attributes
    ----------
    eta_ : (float, float)
        The threshold of each half (one threshold with ``sides="one"``).
    worst_case_weights_ : (n,) float64
        Weights of the training patients in the worst case; they sum to one, and to one half in each half.
    """

    alpha: float = 0.5
    ball: str = "chi2"
    n1: float = 0.5
    sides: str = "both"
    shuffle: bool = True

    capabilities = Capabilities(
        score="log hazard",
        exp_coef="hazard ratio",
        own_curves=False,
        no_recalibration="",
        row_arguments=ROW_ARGUMENTS,
        no_row_arguments="",
        objective="worst case",
        no_ties="a split loss",
        convex=True,
        devices="cluster",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("sides", self.sides, ("both", "one"))
        require(0 < as_number(self.n1) < 1, "n1", "lie in (0, 1), as D1's share of the patients", self.n1)

    def _halves(self, event: BoolArray, seed: int, position: IntArray | None = None) -> list[BoolArray]:
        in_first = self._in_first(event, seed, position)
        return [in_first, ~in_first] if self.sides == "both" else [in_first]

    def _in_first(self, event: BoolArray, seed: int, position: IntArray | None = None) -> BoolArray:
        both, drawn = self.sides == "both", seed if self.shuffle else None
        return first_half(event, self.n1, drawn, both=both, position=position)

    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        both, in_first = self.sides == "both", data.in_first
        if in_first is None:
            # All rows of a patient are in one half. Patients are numbered in the order of their first rows.
            order, patient = data.order, data.rows.patient
            unit = np.arange(len(order)) if patient is None else pd.factorize(patient[order])[0]
            position = np.full(unit.max() + 1, len(order))
            np.minimum.at(position, unit, order)
            half = self._in_first(np.bincount(unit, data.target.event[order]) > 0, data.seed, position)
            in_first = np.empty(len(order), dtype=np.bool_)
            in_first[order] = half[unit]
            data = replace(data, in_first=in_first)
        else:
            require_events(data.target.event, in_first, self.n1, both=both)
        loss = CoxSplit(data.target, in_first, data.weight, both, data.rows.offset)
        masses = [data.mass[half] / data.mass[half].sum() for half in loss.halves]
        return Problem(data, loss, self._objective(batch, masses), blocks=loss.halves)
