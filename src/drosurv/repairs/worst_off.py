"""Search for the subgroups that a model predicts worst: rules found on some patients and checked on others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, as_number, check_count, require
from drosurv.metrics.expected_events import expected_events
from drosurv.metrics.likelihood_gain import likelihood_gains
from drosurv.observation import draw_folds, generator, numbers
from drosurv.repairs.curves import (
    SMALLEST_EXPECTED,
    expected_of_frozen,
    follow_up_of,
    predicted_curves,
    reference_times,
)
from drosurv.repairs.evidence import (
    EffectColumns,
    Limits,
    Residuals,
    group_effects,
    likelihood_gains_of,
    propose,
)
from drosurv.repairs.findings import Estimate, Finding, WorstOff, Wrong
from drosurv.repairs.rules import Atom, Candidate, CodedTable, RuleSearch, readable_table
from drosurv.repairs.simultaneous_tests import significant_subgroups
from drosurv.target import BoolArray, FloatArray, IntArray, Target, parse_target

LEAST_CHECKED = 20
MIN_EVENTS = 10


def worst_off(
    model: Any,
    X: Any,
    y: Any,
    *,
    kind: Wrong = "harm",
    y_train: Any = None,
    features: pd.DataFrame | None = None,
    harm: Any = None,
    max_rules: int = 3,
    max_conditions: int = 3,
    min_group: int = 50,
    confidence: float = 0.95,
    min_stability: float = 0.5,
    n_folds: int = 10,
    n_bootstraps: int = 50,
    random_state: int | np.random.Generator | None = 0,
) -> WorstOff:
    """Find rules that describe the patients whom a model predicts badly.

    There are three kinds of errors. "harm": predicted worse than by no model. Harm is a patient's full-likelihood loss
    under the model minus that under the null model (one curve for everybody, that of the training patients). "level":
    more or fewer events than the model predicts. "effects": the number of events or the effects of features differ from
    the model's; harm is then the gain in log likelihood per patient of a correction fitted to other patients of the
    group. In practice, Cox models seldom harm a group, but often predict too many or too few events for it.

    "level" uses the test of :func:`drosurv.certify`: all subgroups of at most two conditions at once, on all patients,
    with p-values adjusted for all of them. For the other kinds, rules are found on all patients and then checked. The
    search is repeated without each fold of the patients, and the same group's harm is measured in the fold left out;
    and it is repeated on bootstrap samples. A rule is reported as a group only if the harm of patients not used to find
    it is above 0 with the given confidence (adjusted for the number of rules), and if the group is found again in at
    least `min_stability` of the bootstrap samples. Groups have at least 10 expected events.

    Parameters
    ----------
    model : fitted survival model, or a pair (times, survival), or None
        Anything with scikit-survival's ``predict_survival_function`` or ``predict_cumulative_hazard_function``,
        or survival probabilities (n, p) at p increasing times; None if `harm` is given.
    X : array or DataFrame, (n, d)
        Features as the model takes them, preferably of patients it was not trained on.
    y : structured array, (n,)
        Events and times of the same patients.
    kind : {"harm", "level", "effects"}
        What to search for.
    y_train : structured array or FollowUp, optional
        Target of the training patients, for the null model; by default what the model keeps of it, else ``y``.
    features : DataFrame, (n, d'), optional
        Columns that rules may use, in units and names a reader knows; ``X`` by default.
    harm : (n,), optional
        With kind "harm", another measure of harm, positive for patients who are predicted badly, for example the loss
        minus that of another model.
    max_rules, max_conditions : int
        Largest number of rules, and of conditions in a rule.
    min_group : int
        Smallest number of patients of a rule.
    confidence : float
        Confidence level of each end of the intervals, and so of the statement that a group is harmed; above 0.5.
    min_stability : float
        Smallest share of bootstrap samples in which a group must be found again.
    n_folds, n_bootstraps : int
        Numbers of folds and of bootstrap samples on which the search is repeated.
    random_state : int, Generator or None
        Seed or source of folds and bootstraps.

    Returns
    -------
    WorstOff
        With ``.groups``, ``.status``, ``.to_frame()``, ``.to_markdown()`` and ``.plot(ax=...)``.

    Examples
    --------
    >>> from sksurv.linear_model import CoxPHSurvivalAnalysis
    >>> from drosurv.datasets import make_hidden_minority
    >>> from drosurv.repairs.worst_off import worst_off
    >>> train, test = make_hidden_minority(1500, random_state=0), make_hidden_minority(1500, random_state=1)
    >>> model = CoxPHSurvivalAnalysis().fit(train.X, train.y)
    >>> result = worst_off(model, test.X, test.y, y_train=train.y, n_bootstraps=5)
    >>> str(result.groups[0].rule)
    'x5 > 1.03'
    """
    target = parse_target(y)
    names = getattr(model, "feature_names_in_", None)
    table = readable_table(X, len(target), names, features)
    require(kind in get_args(Wrong), "kind", f"be one of {get_args(Wrong)}", kind)
    if kind != "harm" and harm is not None:
        raise ArgumentError.must("harm", f'be left out with kind="{kind}"', harm)
    require(0.5 < as_number(confidence) < 1, "confidence", "lie between 0.5 and 1", confidence)
    limits = {"max_rules": max_rules, "max_conditions": max_conditions}
    for name, count in {**limits, "n_folds": n_folds, "min_group": min_group}.items():
        check_count(name, count)
    require(0 <= as_number(min_stability) <= 1, "min_stability", "be a share in [0, 1]", min_stability)
    check_count("n_bootstraps", n_bootstraps, least=0)
    if n_folds < 2 or len(target) * (1 - 1 / n_folds) < 2 * min_group:
        raise ArgumentError(
            "min_group",
            f"{len(target)} patients in {n_folds} folds cannot hold two groups of min_group={min_group!r}; "
            "use n_folds >= 2 and a smaller min_group, or more patients.",
        )
    rng = generator(random_state)
    if kind == "level":
        return _wrong_levels(model, X, target, table, max_rules, min_group, confidence, rng)
    coded = CodedTable.from_table(table)
    finder: GroupFinder
    if kind == "harm":
        if harm is None:
            curves = predicted_curves(model, X, len(target))
            values = -likelihood_gains(follow_up_of(model, y_train, target), target, curves)
        else:
            values = numbers("harm", harm, len(target))
        expected = follow_up_of(model, y_train, target).cumulative_hazard_at(target.time)
        finder = HarmFinder(coded, values, min_group, expected, **limits)
    else:
        effects = table if X is None else readable_table(X, len(target), names)
        residuals = residuals_of(model, X, target, effects)
        finder = EvidenceFinder(coded, residuals, Limits(min_group, MIN_EVENTS), **limits)
    found = finder.find(np.ones(len(target)))
    covered = finder.members(found)
    checked, values, again = finder.check(covered, draw_folds(len(target), n_folds, rng, target.event))
    everyone = np.ones(len(target), dtype=np.bool_)
    stability = finder.stability(covered, n_bootstraps, rng)
    # Each end of an interval holds with this confidence, adjusted for the number of rules (Bonferroni).
    two_sided = 1 - 2 * (1 - confidence) / max(len(found), 1)
    findings = []
    for j, atoms in enumerate(found):
        inside, outside = values[j][checked[j] == 1], values[j][checked[j] == 0]
        harm_there = Estimate.mean(inside, two_sided)
        findings.append(
            Finding(
                rule=coded.rule(atoms),
                n_patients=int(covered[j].sum()),
                share=float(covered[j].mean()),
                n_events=int(target.event[covered[j]].sum()),
                n_checked=len(inside),
                harm=harm_there,
                rest=Estimate.mean(outside, two_sided),
                difference=Estimate.difference(inside, outside, two_sided),
                harm_found=float(finder.harm(covered[j], everyone)[covered[j]].mean()),
                observed_expected=finder.observed_expected(checked[j] == 1, two_sided),
                folds_found=int(again[j]),
                stability=float(stability[j]),
                harmed=len(inside) >= LEAST_CHECKED and harm_there.low > 0,
                stable=bool(stability[j] >= min_stability),
            )
        )
    # Gains of corrections add up; harm against no model does not depend on the rules.
    total = finder.harm(everyone, everyone) if kind == "harm" else values.sum(axis=0)
    return WorstOff(
        kind=kind,
        findings=tuple(findings),
        overall=Estimate.mean(total, 2 * confidence - 1),
        n_patients=len(target),
        n_events=target.n_events,
        confidence=confidence,
        min_group=min_group,
    )


# Number of simulations in the test of levels.
N_REPLICATES = 999


def _wrong_levels(
    model: Any,
    X: Any,
    target: Target,
    table: pd.DataFrame,
    max_rules: int,
    min_group: int,
    confidence: float,
    rng: np.random.Generator,
) -> WorstOff:
    """Find subgroups with more or fewer events than predicted, by the simultaneous test of :func:`drosurv.certify`.

    In 250 simulated samples with a subgroup of more events, this test found the subgroup in 96 %; a search on half of
    the patients, tested on the other half, found it in 56 %. If predictions were right, they found a subgroup in 6.0
    and 4.4 %. See the guide on guarantees.
    """
    curves = predicted_curves(model, X, len(target))
    events, expected = expected_events(curves, target)
    rules, rows = significant_subgroups(curves, target, table, min_group, confidence, N_REPLICATES, rng)
    findings: list[Finding] = []
    taken: list[BoolArray] = []

    def gains(group: BoolArray) -> FloatArray:
        ratio = np.log((events[group].sum() + 0.5) / (expected[group].sum() + 0.5))
        return np.where(group, likelihood_gains_of(ratio, events, expected), 0.0)

    for rule, p in zip(rules, rows["p"] if len(rows) else (), strict=True):
        group = rule.holds(table)
        if len(findings) == max_rules:
            break
        if any(overlap(group, other) > LEAST_NEW for other in taken):
            continue
        taken.append(group)
        gain = gains(group)
        findings.append(
            Finding(
                rule=rule,
                n_patients=int(group.sum()),
                share=float(group.mean()),
                n_events=int(target.event[group].sum()),
                n_checked=int(group.sum()),
                harm=Estimate.mean(gain[group], confidence),
                rest=Estimate.mean(gain[~group], confidence),
                difference=Estimate.difference(gain[group], gain[~group], confidence),
                harm_found=float(gain[group].mean()),
                folds_found=0,
                stability=float("nan"),
                harmed=True,
                stable=True,
                observed_expected=Estimate.ratio(
                    float(events[group].sum()), float(expected[group].sum()), confidence
                ),
                p=float(p),
            )
        )
    return WorstOff(
        kind="level",
        findings=tuple(findings),
        overall=Estimate.mean(gains(np.ones(len(target), dtype=np.bool_)), confidence),
        n_patients=len(target),
        n_events=target.n_events,
        confidence=confidence,
        min_group=min_group,
    )


# Significant subgroups that overlap more (Jaccard) with an earlier one are not reported.
LEAST_NEW = 0.2
Atoms = tuple[Atom, ...]
# Two rules describe the same group if their overlap (Jaccard) is at least this.
SAME_GROUP = 0.5


@dataclass(frozen=True, eq=False)
class GroupFinder(ABC):
    """A search for groups among the n patients of a table, and the harm of their patients."""

    table: CodedTable
    max_rules: int = field(kw_only=True)
    max_conditions: int = field(kw_only=True)

    @abstractmethod
    def next_rule(self, table: CodedTable, rows: IntArray, left: BoolArray) -> Atoms | None:
        """Return the best rule among the patients `left` in a table of some rows; None if none is good enough."""

    @abstractmethod
    def harm(self, group: BoolArray, used: BoolArray) -> FloatArray:
        """Return the harm (n,) of every patient; a correction of the group is fitted to its `used` patients only."""

    def observed_expected(self, group: BoolArray, confidence: float) -> Estimate | None:
        """Return observed over expected events of the group; None if the search does not expect numbers of events."""
        return None

    def find(self, weight: FloatArray) -> list[Atoms]:
        """Find rules one after the other, each among the patients whom no earlier rule covers.

        Patients are repeated by their `weight`, a whole number.
        """
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

    def members(self, found: list[Atoms]) -> list[BoolArray]:
        """Return the patients (n,) of each rule; one who meets several is counted in the first."""
        groups, taken = [], np.zeros(self.table.codes.shape[1], dtype=np.bool_)
        for atoms in found:
            groups.append(self.table.covers(atoms) & ~taken)
            taken |= groups[-1]
        return groups

    def check(self, groups: list[BoolArray], folds: IntArray) -> tuple[IntArray, FloatArray, IntArray]:
        """Repeat the search without each fold, and compute the harm of the patients of the fold.

        Return for each group the members (1) and others (0) by rules found without their fold, -1 if the group was not
        found, (groups, n); their harm, (groups, n); and in how many folds each group was found.
        """
        checked, values = np.full((len(groups), len(folds)), -1), np.zeros((len(groups), len(folds)))
        again = np.zeros(len(groups), dtype=np.intp)
        for fold in range(folds.max() + 1) if groups else ():
            used = folds != fold
            repeated = self.members(self.find(used.astype(np.float64)))
            for j, group in enumerate(groups):
                # Only patients of the search: the fold left out must not decide which group is the same.
                overlaps = [overlap(other[used], group[used]) for other in repeated]
                if overlaps and max(overlaps) >= SAME_GROUP:
                    same = repeated[int(np.argmax(overlaps))]
                    checked[j, ~used] = same[~used]
                    values[j, ~used] = self.harm(same, used)[~used]
                    again[j] += 1
        return checked, values, again

    def stability(self, groups: list[BoolArray], n_bootstraps: int, rng: np.random.Generator) -> FloatArray:
        """Return the share of bootstrap samples in which each group is found again."""
        again, n = np.zeros(len(groups)), self.table.codes.shape[1]
        for _ in range(n_bootstraps if groups else 0):
            draws = np.bincount(rng.integers(n, size=n), minlength=n)
            repeated = self.members(self.find(draws.astype(np.float64)))
            again += [any(overlap(other, group) >= SAME_GROUP for other in repeated) for group in groups]
        return again / max(n_bootstraps, 1)


@dataclass(frozen=True, eq=False)
class EvidenceFinder(GroupFinder):
    """Search for groups that a model is wrong about; harm is a patient's gain in log likelihood by a correction."""

    residuals: Residuals
    limits: Limits

    def next_rule(self, table: CodedTable, rows: IntArray, left: BoolArray) -> Atoms | None:
        """Return the rule whose patients the model is most probably wrong about."""
        of_all = self.residuals
        residuals = Residuals(of_all.events[rows], of_all.expected[rows], of_all.columns[rows])
        proposal = propose(table, residuals, left, self.limits, self.max_conditions)
        return None if proposal is None or proposal.log_odds <= 0 else proposal.atoms

    def harm(self, group: BoolArray, used: BoolArray) -> FloatArray:
        """Return the gains of the group's patients by a correction fitted to its used patients; 0 for others."""
        if not (group & used).any():
            return np.zeros(len(group))
        residuals = self.residuals
        fitted = group_effects(residuals, group & used, self.limits)
        r = residuals.columns[:, fitted.chosen] @ fitted.effects
        return np.where(group, likelihood_gains_of(r, residuals.events, residuals.expected), 0.0)

    def observed_expected(self, group: BoolArray, confidence: float) -> Estimate | None:
        """Return observed over expected events of the group."""
        events, expected = (
            float(part[group].sum()) for part in (self.residuals.events, self.residuals.expected)
        )
        return Estimate.ratio(events, expected, confidence)


def residuals_of(model: Any, X: Any, target: Target, table: Any) -> Residuals:
    """Return observed and expected events of patients; `table` holds the features whose effects may differ."""
    expected = expected_of_frozen(model, X, target, reference_times(target))
    clipped = expected.clipped(SMALLEST_EXPECTED, np.log(len(target)) + 3)
    columns = EffectColumns.learn(table, clipped.log_risk).of(table, clipped.log_risk)
    return Residuals(clipped.events, clipped.hazard, columns)


def overlap(first: BoolArray, second: BoolArray) -> float:
    """Return the Jaccard index of two groups."""
    return int((first & second).sum()) / max(int((first | second).sum()), 1)


BEAM = 12
# Number of standard errors subtracted from the summed harm of a rule, so that small groups are not preferred.
DISCOUNT = 1.0
# A rule with one more condition must have this many times the harm, because short rules are more stable.
WORTH_A_CONDITION = 1.5


class SummedHarm:
    """Search criterion: lower bound of the summed harm of a rule's patients.

    Rules to extend are chosen by the harm in excess of the mean of the patients left, so that a group that is harmed
    only under a second condition can be found.
    """

    def __init__(
        self, harm: FloatArray, left: BoolArray, min_group: int, expected: FloatArray | None = None
    ) -> None:
        events = np.full(len(harm), np.inf) if expected is None else expected
        self.values = np.column_stack([np.ones(len(harm)), harm, harm**2, np.minimum(events, MIN_EVENTS)])
        self.min_group = min_group
        self.mean = float(harm[left].mean())

    def scores(self, sums: FloatArray) -> FloatArray:
        """Return lower bounds of the harm, and of the harm in excess of the mean, (2, A)."""
        count, harm, squares, expected = sums.T
        n = np.maximum(count, 1.0)
        error = np.sqrt(n * np.maximum(squares / n - (harm / n) ** 2, 0.0))
        bound = harm - DISCOUNT * error
        enough = (count >= self.min_group) & (expected >= MIN_EVENTS - 1e-6)
        return np.where(enough, np.stack([bound, bound - self.mean * count]), -np.inf)


@dataclass(frozen=True, eq=False)
class HarmFinder(GroupFinder):
    """Search for groups with harm, whose `values` (n,) are known for every patient.

    The best rule has the largest lower bound of its patients' summed harm.
    """

    values: FloatArray
    min_group: int
    expected: FloatArray | None = None

    def next_rule(self, table: CodedTable, rows: IntArray, left: BoolArray) -> Atoms | None:
        """Return the rule whose patients have the largest summed harm."""
        expected = None if self.expected is None else self.expected[rows]
        criterion = SummedHarm(self.values[rows], left, self.min_group, expected)
        search = RuleSearch(table, criterion, left, BEAM)
        best = Candidate((), -np.inf, -np.inf)
        for candidates in search.by_length(self.max_conditions):
            leader = search.revalued(max(candidates, key=lambda candidate: candidate.score))
            if leader.score > max(best.score * WORTH_A_CONDITION, best.score):
                best = leader
        return best.atoms if best.score > 0 else None

    def harm(self, group: BoolArray, used: BoolArray) -> FloatArray:
        """Return the harm that was given."""
        return self.values
