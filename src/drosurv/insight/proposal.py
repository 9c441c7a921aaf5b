"""The rule about whose patients a model is most clearly wrong, and what differs there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drosurv.insight.coded_table import Atom, CodedTable
from drosurv.insight.poisson_ridge import LARGEST, likelihood_gains_of, poisson_ridge
from drosurv.insight.rule_search import RuleSearch
from drosurv.insight.wrongness import Limits, Residuals, Wrongness, log_bayes_factor
from drosurv.target import BoolArray, FloatArray, IntArray

BEAM = 8
# How many rules of each length are refined.
HEADS = 2
MOST_REFINEMENTS = 4
MOST_EFFECTS = 12
# A first condition costs log(4 d) for d columns: about one threshold in ten of a column tells a new group.
FIRST_CONDITION = 4
# Log hazard ratios beyond this are not believed while a rule is being chosen.
LARGEST_WHILE_CHOOSING = 3.0


@dataclass(frozen=True, eq=False)
class GroupEffects:
    """What differs among the patients of a group.

    `chosen` (s,) are the columns whose effects differ, the level (0) first, and `effects` (s,) their log hazard
    ratios; `inclusion` (p,) says how probable it is that each column's differs, `log_evidence` the log posterior odds
    that they do, before the price of the rule.
    """

    chosen: IntArray
    effects: FloatArray
    inclusion: FloatArray
    log_evidence: float


@dataclass(frozen=True, eq=False)
class Proposal:
    """A rule, what differs there, and the log posterior odds that the model is wrong about it."""

    atoms: tuple[Atom, ...]
    group: GroupEffects
    log_odds: float


def group_effects(residuals: Residuals, inside: BoolArray, limits: Limits) -> GroupEffects:
    """Choose what differs in a group: effects are added while their conditional Bayes factor is worth its price."""
    events, expected, z = residuals.events[inside], residuals.expected[inside], residuals.columns[inside]
    tau, p = limits.tau, z.shape[1]
    pi = limits.inclusion(p - 1)
    prior = np.log(pi) - np.log1p(-pi)
    chosen, effects = [0], np.zeros(1)
    while True:
        Z, penalty = z[:, chosen], np.full(len(chosen), tau**-2)
        effects = poisson_ridge(
            Z, events, expected, penalty, np.pad(effects, (0, len(chosen) - len(effects)))
        )
        r = np.clip(Z @ effects, -LARGEST, LARGEST)
        mean = np.exp(r) * expected
        weighted = Z * mean[:, None]
        if limits.level_only:
            log_bf = np.full(p, -np.inf)
            break
        information, shared = weighted.T @ Z, weighted.T @ z
        left = mean @ z**2 - (shared * np.linalg.solve(information + np.diag(penalty), shared)).sum(axis=0)
        log_bf = log_bayes_factor(z.T @ (events - mean), np.maximum(left, 0.0), tau)
        log_bf[chosen] = -np.inf
        best = int(log_bf.argmax())
        if prior + log_bf[best] <= 0 or len(chosen) == min(p, MOST_EFFECTS):
            break
        chosen.append(best)
    inclusion = 1 / (1 + np.exp(-np.clip(prior + log_bf, -50, 50)))
    inclusion[chosen] = 1.0
    if limits.level_only:
        inclusion[1:] = 0.0
    gain = float(likelihood_gains_of(r, events, expected).sum())
    # Laplace's approximation of the evidence, against no difference at all.
    spread = np.linalg.slogdet(np.eye(len(chosen)) + tau**2 * (weighted.T @ Z))[1]
    log_evidence = gain - 0.5 * float((penalty * effects**2).sum() + spread)
    log_evidence += prior * (len(chosen) - 1) - np.log(2.0)
    return GroupEffects(np.array(chosen, dtype=np.intp), effects, inclusion, log_evidence)


class SummedGain:
    """Gain in log likelihood of given log hazard ratios, summed over a rule's patients: a search criterion."""

    def __init__(self, residuals: Residuals, r: FloatArray, limits: Limits) -> None:
        gains = likelihood_gains_of(r, residuals.events, residuals.expected)
        self.values = np.column_stack([np.ones(len(r)), residuals.events, residuals.expected, gains])
        # Sums that were subtracted from one another are whole only up to rounding.
        self.least = np.array([limits.min_group, limits.min_events, limits.min_events]) - 1e-6

    def scores(self, sums: FloatArray) -> FloatArray:
        """The gain of each rule, (1, A)."""
        return np.where((sums[:, :3] >= self.least).all(axis=1), sums[:, 3], -np.inf)[None]


def propose(
    table: CodedTable, residuals: Residuals, counted: BoolArray, limits: Limits, max_conditions: int
) -> Proposal | None:
    """The rule with the largest posterior odds that the model is wrong there; None if no rule is allowed.

    Score statistics give the few best rules of each length among the patients counted. Each is then refined in turns:
    what differs given the rule, and the rule that gains most given what differs.
    """
    found: dict[frozenset[Atom], Proposal] = {}

    def judged(atoms: tuple[Atom, ...]) -> Proposal:
        key = frozenset(atoms)
        if key not in found:
            group = group_effects(residuals, counted & table.covers(atoms), limits)
            found[key] = Proposal(atoms, group, group.log_evidence - price(table, len(atoms)))
        return found[key]

    search = RuleSearch(table, Wrongness(residuals, limits), counted, BEAM)
    heads = [c.atoms for ranked in search.by_length(max_conditions) for c in ranked[:HEADS]]
    for head in heads:
        current = judged(head)
        for _ in range(MOST_REFINEMENTS):
            following = _best_rule_for(current.group, table, residuals, counted, limits, max_conditions)
            if following is None or frozenset(following) in found:
                break
            current = judged(following)
    return max(found.values(), key=lambda proposal: proposal.log_odds) if found else None


def price(table: CodedTable, n_conditions: int) -> float:
    """Log of the number of rules of a length that a search chooses among; cheaper ones let in spurious conditions."""
    n_columns = len(np.unique(table.atoms[:, 0]))
    return float(np.log(FIRST_CONDITION * n_columns) + (n_conditions - 1) * np.log(len(table.atoms)))


def _best_rule_for(
    group: GroupEffects,
    table: CodedTable,
    residuals: Residuals,
    counted: BoolArray,
    limits: Limits,
    max_conditions: int,
) -> tuple[Atom, ...] | None:
    """The rule whose patients gain most, after its price, if these effects hold there."""
    r = residuals.columns[:, group.chosen] @ group.effects
    r = np.clip(r, -LARGEST_WHILE_CHOOSING, LARGEST_WHILE_CHOOSING)
    search = RuleSearch(table, SummedGain(residuals, r, limits), counted, BEAM)
    leaders = [ranked[0] for ranked in search.by_length(max_conditions)]
    if not leaders:
        return None
    return max(leaders, key=lambda rule: rule.score - price(table, len(rule.atoms))).atoms
