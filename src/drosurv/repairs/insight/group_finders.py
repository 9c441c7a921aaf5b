"""A search for badly served groups, its repetition on other patients, and the one for groups a model is wrong about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from drosurv.repairs.insight.curves import SMALLEST_EXPECTED, expected_of_frozen, reference_times
from drosurv.repairs.insight.effect_columns import EffectColumns
from drosurv.repairs.insight.findings import Estimate
from drosurv.repairs.insight.rule_search import Candidate, RuleSearch
from drosurv.repairs.insight.rules import Atom, CodedTable
from drosurv.repairs.insight.wrongness import Limits, Residuals, group_effects, likelihood_gains_of, propose
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


BEAM = 12
# How many standard errors are taken off a summed harm before rules are compared: small groups must earn it.
DISCOUNT = 1.0
# How many times the harm borne must rise to be worth one more condition: short rules read and hold better.
WORTH_A_CONDITION = 1.5


class BorneHarm:
    """Lower bounds of the harm that a rule's patients bear together: a criterion for the search.

    The score counts harm from zero. What steers the search counts it from the mean of the patients left: a group that
    is harmed only under a second condition shows there first.
    """

    def __init__(self, harm: FloatArray, left: BoolArray, min_group: int) -> None:
        self.values = np.column_stack([np.ones(len(harm)), harm, harm**2])
        self.min_group = min_group
        self.mean = float(harm[left].mean())

    def scores(self, sums: FloatArray) -> FloatArray:
        """Harm borne and harm in excess of the mean, (2, A)."""
        count, harm, squares = sums.T
        n = np.maximum(count, 1.0)
        error = np.sqrt(n * np.maximum(squares / n - (harm / n) ** 2, 0.0))
        borne = harm - DISCOUNT * error
        return np.where(count >= self.min_group, np.stack([borne, borne - self.mean * count]), -np.inf)


@dataclass(frozen=True, eq=False)
class HarmFinder(GroupFinder):
    """Groups that bear harm, a number (n,) known for every patient.

    A rule is the better the more harm its patients bear together, counted at the lower end of an interval: it should
    hold everyone who is harmed and no one who is not. The search keeps the best few rules of each length.
    """

    values: FloatArray
    min_group: int

    def next_rule(self, table: CodedTable, rows: IntArray, left: BoolArray) -> Atoms | None:
        """The rule whose patients bear most."""
        search = RuleSearch(table, BorneHarm(self.values[rows], left, self.min_group), left, BEAM)
        best = Candidate((), -np.inf, -np.inf)
        for candidates in search.by_length(self.max_conditions):
            leader = search.revalued(max(candidates, key=lambda candidate: candidate.score))
            if leader.score > max(best.score * WORTH_A_CONDITION, best.score):
                best = leader
        return best.atoms if best.score > 0 else None

    def harm(self, group: BoolArray, used: BoolArray) -> FloatArray:
        """The harm that was given."""
        return self.values
