"""A search for badly served groups, its repetition on other patients, and the one for groups a model is wrong about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from drosurv.insight.coded_table import Atom, CodedTable
from drosurv.insight.effect_columns import EffectColumns
from drosurv.insight.expected_events import SMALLEST_EXPECTED, expected_of_frozen, reference_times
from drosurv.insight.findings import Estimate
from drosurv.insight.poisson_ridge import likelihood_gains_of
from drosurv.insight.proposal import group_effects, propose
from drosurv.insight.wrongness import Limits, Residuals
from drosurv.target import BoolArray, FloatArray, IntArray, Target

Atoms = tuple[Atom, ...]
# Two rules are the same group when they share at least half of the patients that either holds.
SAME_GROUP = 0.5


@dataclass(frozen=True, eq=False)
class GroupFinder(ABC):
    """A search for groups among the n patients of a table, and the harm of their patients."""

    table: CodedTable
    max_rules: int = field(kw_only=True)
    max_conditions: int = field(kw_only=True)

    @abstractmethod
    def next_rule(self, table: CodedTable, rows: IntArray, left: BoolArray) -> Atoms | None:
        """The best rule among those left of the patients in a table of some rows; None if none is good enough."""

    @abstractmethod
    def harm(self, group: BoolArray, used: BoolArray) -> FloatArray:
        """Harm (n,) of every patient if the group is what it is; learnt from the patients used only."""

    def observed_expected(self, group: BoolArray, confidence: float) -> Estimate | None:
        """Events of the group over those expected; None where nothing was expected."""
        return None

    def find(self, weight: FloatArray) -> list[Atoms]:
        """Rules in the order found, each among the patients whom no earlier rule covers; patients count by weight."""
        rows = np.repeat(np.arange(len(weight)), weight.astype(np.intp))
        table = replace(self.table, codes=np.ascontiguousarray(self.table.codes[:, rows]))
        left = np.ones(len(rows), dtype=np.bool_)
        found: list[Atoms] = []
        while len(found) < self.max_rules and left.any():
            atoms = self.next_rule(table, rows, left)
            if atoms is None:
                break
            found.append(atoms)
            left &= ~table.covers(atoms)
        return found

    def held(self, found: list[Atoms]) -> list[BoolArray]:
        """The patients (n,) that each rule holds: one who meets several counts under the first."""
        groups, taken = [], np.zeros(self.table.codes.shape[1], dtype=np.bool_)
        for atoms in found:
            groups.append(self.table.covers(atoms) & ~taken)
            taken |= groups[-1]
        return groups

    def check(self, groups: list[BoolArray], folds: IntArray) -> tuple[IntArray, FloatArray, IntArray]:
        """Each group's members (1) and non-members (0) by rules found without them, and their harm.

        -1 where the group was not found; harm is (groups, n); and in how many folds each group was found.
        """
        checked, values = np.full((len(groups), len(folds)), -1), np.zeros((len(groups), len(folds)))
        again = np.zeros(len(groups), dtype=np.intp)
        for fold in range(folds.max() + 1) if groups else ():
            used = folds != fold
            repeated = self.held(self.find(used.astype(np.float64)))
            for j, group in enumerate(groups):
                # Likeness is judged on the patients used, so that those left out decide nothing.
                overlaps = [overlap(other[used], group[used]) for other in repeated]
                if overlaps and max(overlaps) >= SAME_GROUP:
                    same = repeated[int(np.argmax(overlaps))]
                    checked[j, ~used] = same[~used]
                    values[j, ~used] = self.harm(same, used)[~used]
                    again[j] += 1
        return checked, values, again

    def stability(self, groups: list[BoolArray], n_bootstraps: int, rng: np.random.Generator) -> FloatArray:
        """Share of bootstraps that find each group again."""
        again, n = np.zeros(len(groups)), self.table.codes.shape[1]
        for _ in range(n_bootstraps if groups else 0):
            draws = np.bincount(rng.integers(n, size=n), minlength=n)
            repeated = self.held(self.find(draws.astype(np.float64)))
            again += [any(overlap(other, group) >= SAME_GROUP for other in repeated) for group in groups]
        return again / max(n_bootstraps, 1)


@dataclass(frozen=True, eq=False)
class WrongnessFinder(GroupFinder):
    """Groups that a model is wrong about: harm is the log likelihood that correcting it would gain a patient."""

    residuals: Residuals
    limits: Limits

    def next_rule(self, table: CodedTable, rows: IntArray, left: BoolArray) -> Atoms | None:
        """The rule whose patients the model is most probably wrong about."""
        at = self.residuals
        residuals = Residuals(at.events[rows], at.expected[rows], at.columns[rows])
        proposal = propose(table, residuals, left, self.limits, self.max_conditions)
        return None if proposal is None or proposal.log_odds <= 0 else proposal.atoms

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


def overlap(first: BoolArray, second: BoolArray) -> float:
    """Jaccard index of two groups."""
    return int((first & second).sum()) / max(int((first | second).sum()), 1)
