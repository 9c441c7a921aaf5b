"""What a search for badly served groups can do, and the one for groups that a model is wrong about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from drosurv.insight.coded_table import Atom, CodedTable
from drosurv.insight.effect_columns import EffectColumns
from drosurv.insight.expected_events import SMALLEST_EXPECTED, expected_of_frozen, reference_times
from drosurv.insight.findings import Estimate
from drosurv.insight.poisson_ridge import likelihood_gains_of
from drosurv.insight.proposal import group_effects, propose
from drosurv.insight.wrongness import Limits, Residuals
from drosurv.target import BoolArray, FloatArray, Target

Atoms = tuple[Atom, ...]
MIN_EVENTS = 10


class GroupFinder(Protocol):
    """A search for groups, and the harm of their patients."""

    def find(self, weight: FloatArray) -> list[Atoms]:
        """Rules in the order found; each patient counts as often as his weight says."""

    def harm(self, group: BoolArray, used: BoolArray) -> FloatArray:
        """Harm (n,) of every patient if the group is what it is; learnt from the patients used only."""

    def observed_expected(self, group: BoolArray, confidence: float) -> Estimate | None:
        """Events of the group over those expected; None where nothing was expected."""


@dataclass(frozen=True, eq=False)
class WrongnessFinder:
    """Groups that a model is wrong about: harm is the log likelihood that correcting it would gain a patient."""

    table: CodedTable
    residuals: Residuals
    limits: Limits
    max_rules: int
    max_conditions: int

    def find(self, weight: FloatArray) -> list[Atoms]:
        """Rules in the order found, each among the patients whom no earlier rule covers."""
        rows = np.repeat(np.arange(len(weight)), weight.astype(np.intp))
        table = replace(self.table, codes=np.ascontiguousarray(self.table.codes[:, rows]))
        at = self.residuals
        residuals = Residuals(at.events[rows], at.expected[rows], at.columns[rows])
        left = np.ones(len(rows), dtype=np.bool_)
        found: list[Atoms] = []
        while len(found) < self.max_rules:
            proposal = propose(table, residuals, left, self.limits, self.max_conditions)
            if proposal is None or proposal.log_odds <= 0:
                break
            found.append(proposal.atoms)
            left &= ~table.covers(proposal.atoms)
        return found

    def harm(self, group: BoolArray, used: BoolArray) -> FloatArray:
        """What a correction learnt from the group's used patients gains each of the group, 0 elsewhere."""
        if not (group & used).any():
            return np.zeros(len(group))
        at = self.residuals
        fitted = group_effects(at, group & used, self.limits)
        r = at.columns[:, fitted.chosen] @ fitted.effects
        return np.where(group, likelihood_gains_of(r, at.events, at.expected), 0.0)

    def observed_expected(self, group: BoolArray, confidence: float) -> Estimate | None:
        """Events of the group over those expected."""
        at = self.residuals
        return Estimate.ratio(float(at.events[group].sum()), float(at.expected[group].sum()), confidence)


def residuals_of(model: Any, X: Any, target: Target, table: Any) -> Residuals:
    """What a model expected of patients it was not fitted on; the table holds features whose effects may differ."""
    expected = expected_of_frozen(model, X, target, reference_times(target))
    held = expected.held(SMALLEST_EXPECTED, np.log(len(target)) + 3)
    columns = EffectColumns.learn(table, held.log_risk).of(table, held.log_risk)
    return Residuals(held.events, held.hazard, columns)
