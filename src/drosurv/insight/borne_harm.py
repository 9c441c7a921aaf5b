"""Rules whose patients bear the most harm together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drosurv.insight.coded_table import CodedTable
from drosurv.insight.group_finders import Atoms, GroupFinder
from drosurv.insight.rule_search import Candidate, RuleSearch
from drosurv.target import BoolArray, FloatArray, IntArray

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
