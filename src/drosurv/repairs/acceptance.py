"""Whether patients who were used neither to find nor to fit a repair gain from it.

The search and the fit are repeated on subsets of the folds, and each repetition is scored on patients that were left
out of it. The likelihood ratio of held-out patients has mean 1 if the model is right, and so has each average and each
product over disjoint folds made below: such an *e-value* exceeds 20 with probability at most 1/20.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from drosurv.presentation.progress import ProgressCallback
from drosurv.repairs.corrections import CHOICES, Chain, Found, Kind, Version
from drosurv.repairs.evidence import Limits, Residuals, likelihood_gains_of, poisson_ridge
from drosurv.repairs.rules import CodedTable, Rule
from drosurv.repairs.worst_off import overlap
from drosurv.target import BoolArray, FloatArray, IntArray

# Upper tails of a normal: the group must gain (one in ten), and the others must not lose (one in twenty).
LEAST_Z_INSIDE, LEAST_Z_OUTSIDE = 1.282, -1.645
# How much the groups found without each fold must overlap with the one proposed.
LEAST_OVERLAP = 0.3
# exp of more than this is as good as infinite.
LARGEST_EXPONENT = 500.0

_DOING: dict[Kind, str] = {
    "everyone": "is it off for everyone?",
    "effects": "looking for a group with other effects",
    "level": "looking for a group with more or fewer events",
}


@dataclass(frozen=True)
class Attempt:
    """A repair that was tested on held-out patients, accepted or not.

    Parameters
    ----------
    kind : {"everyone", "effects", "level"}
    rule : Rule or None
        None for everyone.
    gain : float
        Log likelihood gained by patients not used for it, summed.
    e, overlap : float
        The e-value (NaN where another test had failed first) and the overlap of groups found without a fold.
    accepted : bool
    """

    kind: Kind
    rule: Rule | None
    gain: float
    e: float
    overlap: float
    accepted: bool


@dataclass(frozen=True, eq=False)
class Trial(Attempt):
    """An attempt with the results of its test on held-out patients.

    `found` is the repair found and fitted on all patients; version and strength have the largest gain on held-out
    patients. For each patient, by the repair that was found without this patient: whether they are in its group
    (`inside`), their log hazard ratios before and after, and their gain in log likelihood.
    """

    found: Found
    version: Version
    strength: float
    inside: BoolArray
    r_before: FloatArray
    r_after: FloatArray
    gains: FloatArray


class Shadows:
    """The search for repairs on all patients, and its repetitions on subsets of the folds.

    `folds` (n,) are numbered from 0, `evidence` is the smallest e-value of an accepted repair, and `progress` is called
    with the number of steps done, what they are, and their total. A `frozen` model was fitted on other patients: then
    the probability of a false repair is bounded, e-values are always computed, and after a recalibration they are
    relative to the best level and slope of each fold.
    """

    def __init__(
        self,
        table: CodedTable,
        residuals: Residuals,
        folds: IntArray,
        max_conditions: int,
        evidence: float,
        progress: ProgressCallback,
        *,
        frozen: bool = False,
    ) -> None:
        def chain(counted: BoolArray) -> Chain:
            return Chain(table, residuals, counted, max_conditions)

        self.table, self.residuals, self.folds = table, residuals, folds
        self.evidence, self.progress, self.frozen = evidence, progress, frozen
        n_folds = int(folds.max()) + 1
        self.main = chain(np.ones(len(folds), dtype=np.bool_))
        self.without = [chain(folds != fold) for fold in range(n_folds)]
        forward = list(range(n_folds))
        self.orders = [forward, forward[::-1]]
        self.first = fewest_folds(n_folds)
        self.prefixes = {
            (which, m): chain(np.isin(folds, order[:m]))
            for which, order in enumerate(self.orders)
            for m in range(self.first, n_folds - 1)
        }
        # Whether folds are scored against their own best level and slope, not against the model.
        self.universal = False

    def try_kind(self, kind: Kind, limits: Limits) -> Trial | None:
        """Find the next repair of a kind, and test it; an accepted one is applied in every repetition.

        None if no rule has posterior odds above 1.
        """
        n_steps = 1 + len(self.without) + len(self.prefixes)
        self.progress(0, _DOING[kind], n_steps)
        found = self.main.find(kind, limits)
        if found is None:
            return None
        n = len(self.folds)
        inside, overlaps = np.zeros(n, dtype=np.bool_), []
        r_before, ratios = np.zeros(n), np.zeros_like(found.ratios)
        shadows: list[Found | None] = []
        for fold, chain in enumerate(self.without):
            self.progress(1 + fold)
            out = self.folds == fold
            shadow = chain.find(kind, limits)
            shadows.append(shadow)
            r_before[out] = chain.r[out]
            if shadow is None:
                overlaps.append(0.0)
                continue
            same, shared = _same_side(found.inside, shadow.inside, ~out)
            overlaps.append(shared)
            inside[out] = shadow.inside[out] if same else ~shadow.inside[out]
            ratios[:, out] = shadow.ratios[:, out]
        gains = likelihood_gains_of(ratios, self.residuals.events, self.residuals.expected * np.exp(r_before))
        total = gains.sum(axis=1)
        passed = total > 0
        passed &= np.array([z_of(gain[inside]) for gain in gains]) >= LEAST_Z_INSIDE
        passed &= np.array([z_of(gain[~inside]) for gain in gains]) > LEAST_Z_OUTSIDE
        overlap = float(np.mean(overlaps))
        passed &= overlap >= LEAST_OVERLAP
        best = int(np.where(passed, total, -np.inf).argmax()) if passed.any() else int(total.argmax())
        version, strength = CHOICES[kind][best]
        e = float("nan")
        earlier: dict[tuple[int, int], Found | None] = {}
        if passed.any() or self.frozen:
            e, earlier = self._e_value(kind, limits, shadows)
        accepted = bool(passed[best] and e >= self.evidence)
        if accepted:
            # A group must then gain more than the best level and slope of its own fold would.
            self.universal |= self.frozen and kind == "everyone"
            self.main.commit(found, best)
            for chain, shadow in zip(self.without, shadows, strict=True):
                chain.commit(shadow, best)
            for key, shadow in earlier.items():
                self.prefixes[key].commit(shadow, best)
        self.progress(n_steps)
        rule, gain = self.table.rule(found.atoms) if found.atoms else None, float(total[best])
        attempt = (kind, rule, gain, e, overlap, accepted)
        return Trial(
            *attempt, found, version, strength, inside, r_before, r_before + ratios[best], gains[best]
        )

    def _e_value(
        self, kind: Kind, limits: Limits, without: list[Found | None]
    ) -> tuple[float, dict[tuple[int, int], Found | None]]:
        """The e-value, and what the chains on the first folds of each order found.

        The mean of two: the mean over folds of the likelihood ratio there, each chain having seen all other folds;
        and the product of likelihood ratios of three folds, each chain having seen the folds before it.
        """
        n_folds = len(self.without)
        ratios = np.zeros((n_folds, len(CHOICES[kind])))
        for fold, (chain, found) in enumerate(zip(self.without, without, strict=True)):
            ratios[fold] = self._log_ratio(chain, found, fold)
        averaged = _mean_exp(ratios)
        earlier: dict[tuple[int, int], Found | None] = {}
        products = []
        for which, order in enumerate(self.orders):
            total = ratios[order[-1]].copy()
            for m in range(self.first, n_folds - 1):
                self.progress(1 + n_folds + len(earlier))
                chain = self.prefixes[which, m]
                earlier[which, m] = chain.find(kind, limits)
                total += self._log_ratio(chain, earlier[which, m], order[m])
            products.append(_mean_exp(total))
        return (averaged + float(np.mean(products))) / 2, earlier

    def _log_ratio(self, chain: Chain, found: Found | None, fold: int) -> FloatArray:
        """Log likelihood ratio (v,) of a fold that the chain has not seen, (1,) where it found nothing.

        Against the model as the chain had repaired it before; or, in the universal form, against the level and
        slope that are best for that very fold, so that a model which is off for everybody cannot gain from it.
        """
        out = self.folds == fold
        events, expected = self.residuals.events[out], self.residuals.expected[out]
        change = np.zeros((1, len(events))) if found is None else found.ratios[:, out]
        null = chain.r[out]
        if self.universal:
            Z = self.residuals.columns[out, :2]
            null = Z @ poisson_ridge(Z, events, expected, np.zeros(2))
        change = change + chain.r[out] - null
        ratio: FloatArray = likelihood_gains_of(change, events, expected * np.exp(null)).sum(axis=1)
        return ratio


def fewest_folds(n_folds: int) -> int:
    """Folds that the shortest chain sees: on fewer than two of five it would find nothing."""
    return max(1, (n_folds + 1) // 2 - 1)


def z_of(values: FloatArray) -> float:
    """Sum divided by its standard error."""
    return float(values.sum() / max(np.sqrt((values**2).sum()), 1e-12))


def _same_side(first: BoolArray, second: BoolArray, among: BoolArray) -> tuple[bool, float]:
    """Whether two rules name the same side of a cut (or opposite ones), and how much these overlap (Jaccard)."""
    same, opposite = overlap(first & among, second & among), overlap(~first & among, second & among)
    return same >= opposite, max(same, opposite)


def _mean_exp(logs: FloatArray) -> float:
    return float(np.exp(np.minimum(logs, LARGEST_EXPONENT)).mean())


# Two-sided, 95 %.
CLEAR_Z = 1.960


def find_repairs(shadows: Shadows, limits: Limits, max_repairs: int) -> list[Trial]:
    """Search for repairs, test each, and return all that were tested, accepted or not, in order.

    All patients are recalibrated first, so that no group is found because the model is wrong for all. If no group
    follows, the recalibration of a fitted model is kept only if its gain is significant.
    """
    trials: list[Trial] = []

    def passed(kind: Kind) -> bool:
        trial = shadows.try_kind(kind, replace(limits, level_only=kind == "level"))
        trials.extend([] if trial is None else [trial])
        return trial is not None and trial.accepted

    n_repairs = int(max_repairs > 0 and passed("everyone"))
    while n_repairs < max_repairs and len(shadows.table.atoms) and (passed("effects") or passed("level")):
        n_repairs += 1
    kept = [trial for trial in trials if trial.accepted]
    if len(kept) == 1 and kept[0].rule is None and not (shadows.frozen or _is_clear(kept[0], shadows)):
        return [replace(trial, accepted=False) for trial in trials]
    return trials


def _is_clear(trial: Trial, shadows: Shadows) -> bool:
    """Whether the interval of a cross-validated gain excludes 0.

    The gain is that of K models, each fitted without a fold, not of the model that is kept. Their predictions are poor
    for a few patients far from all others, who alone can make the e-value very large. The models also share most of
    their training patients, so that the variance of a mean over K folds is 1 + K / (K - 1) times that of independent
    patients (Nadeau and Bengio).
    """
    n_folds = len(shadows.without)
    return bool(z_of(trial.gains) >= CLEAR_Z * np.sqrt(1 + n_folds / (n_folds - 1)))
