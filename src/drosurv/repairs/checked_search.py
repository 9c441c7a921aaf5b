"""Tests of repairs on patients used neither to find nor to fit them.

The search and the fit are repeated on subsets of the folds, and each repetition is scored on patients that were left
out of it. The likelihood ratio of held-out patients has mean 1 if the model is right, and so has each average and each
product over disjoint folds made below: such an *e-value* exceeds 20 with probability at most 1/20.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from drosurv.judging.rules import CodedTable, Rule
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.presentation.drawing import ProgressCallback
from drosurv.repairs.bayes_factors import (
    LARGEST,
    Limits,
    Residuals,
    in_blocks,
    likelihood_gains_of,
    poisson_ridge,
)
from drosurv.repairs.periods import Periods, Version, periods_of
from drosurv.repairs.repair_search import AtTimes, Correction, Found, Kind, RepairSearch

# Normal quantiles: the group must gain significantly (one-sided, 10 %), the others must not lose significantly (5 %).
LEAST_Z_INSIDE, LEAST_Z_OUTSIDE = 1.282, -1.645
# Smallest mean overlap (Jaccard) of the groups found without a fold with the group found on all patients.
LEAST_OVERLAP = 0.3
# Logarithms are clipped here, so that exp does not overflow.
LARGEST_EXPONENT = 500.0

_DOING: dict[Kind, str] = {
    "timing": "is the model wrong about the timing of events?",
    "everyone": "is the model wrong for everyone?",
    "effects": "looking for a group with other effects",
    "level": "looking for a group with more or fewer events",
}


@dataclass(frozen=True)
class Attempt:
    """A repair that was tested on held-out patients, accepted or not.

    The rule is None for everyone. `gain` is the sum of the gains in log likelihood, or in log score at few predicted
    times, of patients who were not used for it, `e` the e-value (NaN if another test had failed first), `overlap` that
    with groups found without a fold.
    """

    kind: Kind
    rule: Rule | None
    gain: float
    e: float
    overlap: float
    accepted: bool

    def as_attempt(self) -> Attempt:
        """Return what was tested and found, without arrays."""
        return Attempt(self.kind, self.rule, self.gain, self.e, self.overlap, self.accepted)


@dataclass(frozen=True, eq=False)
class Trial(Attempt):
    """An attempt with the results of its test on held-out patients.

    The `group` (n,) and its correction come from all patients; version and strength are those with the largest gain on
    held-out patients. The other arrays (n,) come from a search and fit without the patient's fold: whether the patient
    is in the group (`inside`), log hazard ratios before and after the repair, and the gain in log likelihood or score.
    A correction of the timing of events (`periods`) has log hazard ratios in m intervals instead, `held_out` (n, m). An
    earlier such correction had multiplied the expected events by `factor` (n,).
    """

    group: BoolArray
    correction: Correction
    version: Version
    strength: float
    inside: BoolArray
    r_before: FloatArray
    r_after: FloatArray
    gains: FloatArray
    factor: FloatArray
    periods: Periods | None = None
    held_out: FloatArray | None = None


class CheckedSearch:
    """The search for repairs on all patients, and its repetitions on subsets of the folds that check it.

    `folds` (n,) are numbered from 0, `evidence` is the smallest e-value of an accepted repair, and `progress` is called
    with the number of steps done, what they are, and their total. A `frozen` model was fitted on other patients: then
    the probability of a false repair is bounded, e-values are always computed, and after a recalibration they are
    relative to the best level and slope of each fold. `without` are the residuals with which searches that are scored
    on each fold work, if they differ from `residuals`. `at_times` are predictions at few times: gains and likelihood
    ratios are then those of the probabilities at these times.
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
        without: Sequence[Residuals] | None = None,
        at_times: AtTimes | None = None,
    ) -> None:
        def search_on(counted: BoolArray, scored: int | None = None) -> RepairSearch:
            known = residuals if without is None or scored is None else without[scored]
            return RepairSearch(table, known, counted, max_conditions, at_times, frozen=frozen)

        self.table, self.residuals, self.folds = table, residuals, folds
        self.evidence, self.progress, self.frozen = evidence, progress, frozen
        self.at_times = at_times
        n_folds = int(folds.max()) + 1
        self.on_all = search_on(np.ones(len(folds), dtype=np.bool_))
        self.without_fold = [search_on(folds != fold, fold) for fold in range(n_folds)]
        forward = list(range(n_folds))
        self.orders = [forward, forward[::-1]]
        self.first = fewest_folds(n_folds)
        self.on_first = {
            (which, m): search_on(np.isin(folds, order[:m]), order[m])
            for which, order in enumerate(self.orders)
            for m in range(self.first, n_folds - 1)
        }
        # Whether likelihood ratios of a fold are relative to the best level and slope there, not to the model.
        self.against_best_level = False

    @property
    def period_starts(self) -> IntArray:
        """The intervals of time with which a period begins in one of the searches, (k,)."""
        searches = (self.on_all, *self.without_fold, *self.on_first.values())
        starts = [periods_of(self.residuals, search.counted) for search in searches]
        return np.unique(np.concatenate(starts))

    def try_kind(self, kind: Kind, limits: Limits) -> Trial | None:
        """Find the next repair of a kind and test it; an accepted one is applied in every repetition of the search.

        A correction of the timing of events must gain more than a slope that is the same at all times. Return None if
        nothing has posterior odds above 1.
        """
        n_steps = 1 + len(self.without_fold) + len(self.on_first)
        self.progress(0, _DOING[kind], n_steps)
        found, n = self.on_all.find(kind, limits), len(self.folds)
        if found is None:
            return None
        repeated: list[Found | None] = []
        for fold, search in enumerate(self.without_fold):
            self.progress(1 + fold)
            repeated.append(search.find(kind, limits))
        inside, overlaps, r_before = np.zeros(n, dtype=np.bool_), [], np.zeros(n)
        gains, common = np.zeros((len(found.choices), n)), np.zeros(n)
        before = self.residuals.expected
        expected = before.copy()
        for fold, (search, again) in enumerate(zip(self.without_fold, repeated, strict=True)):
            out = self.folds == fold
            r_before[out], expected[out] = search.r[out], search.residuals.expected[out]
            gains[:, out], common[out] = search.gains(again, out)
            same, shared = True, 0.0
            if again is not None:
                same, shared = _same_side(found.inside, again.inside, ~out)
                inside[out] = again.inside[out] if same else ~again.inside[out]
            overlaps.append(shared)

        def ratios_of(choice: int) -> FloatArray:
            """Return the log hazard ratios (n,) of a choice, each from the search without the patient's fold."""
            r = np.zeros(n)
            for fold, (search, again) in enumerate(zip(self.without_fold, repeated, strict=True)):
                if again is not None:
                    out = self.folds == fold
                    r[out] = search.ratios(again, out, choice)[0]
            return r

        overlap = float(np.mean(overlaps))
        if kind == "timing":
            # For everyone, also where no correction was found.
            inside[:], overlap = True, 1.0
        if common.sum() > 0:
            gains -= common
        if self.at_times is not None:
            after = [r_before + ratios_of(choice) for choice in range(len(gains))]
            gains = self.at_times.gains(r_before, np.stack(after))
        passed = gains.sum(axis=1) > 0
        passed &= np.array([self.z_of(gain, inside) for gain in gains]) >= LEAST_Z_INSIDE
        passed &= np.array([self.z_of(gain, ~inside) for gain in gains]) > LEAST_Z_OUTSIDE
        passed &= overlap >= LEAST_OVERLAP
        total = gains.sum(axis=1)
        best = int(np.where(passed, total, -np.inf).argmax()) if passed.any() else int(total.argmax())
        # A view would keep the gains of all choices.
        gains = gains[best].copy()
        e = float("nan")
        earlier: dict[tuple[int, int], Found | None] = {}
        if passed.any() or self.frozen:
            of_folds = [
                self._log_ratio(kind, search, again, fold)
                for fold, (search, again) in enumerate(zip(self.without_fold, repeated, strict=True))
            ]

            def ratio_of_first(key: tuple[int, int], fold: int) -> FloatArray:
                earlier[key] = self.on_first[key].find(kind, limits)
                return self._log_ratio(kind, self.on_first[key], earlier[key], fold)

            e = self._e_value(of_folds, len(total), ratio_of_first)
        self.progress(n_steps)
        accepted = bool(passed[best] and e >= self.evidence)
        version, strength = found.choices[best]
        periods = None if found.periods is None else found.periods.versions[version]
        over_time, r_after = self.residuals.over_time, r_before + ratios_of(best)
        held_out: FloatArray | None = None
        if periods is not None and over_time is not None:
            held_out = np.zeros((n, len(over_time.edges)), self.residuals.columns.dtype)
            for fold, (search, again) in enumerate(zip(self.without_fold, repeated, strict=True)):
                out = self.folds == fold
                if again is not None and again.periods is not None:
                    own = again.periods.versions[version]
                    held_out[out] = own.at_intervals(over_time.edges, search.score[out])
        if accepted:
            # From then on a group must gain more than the best level and slope of each fold.
            self.against_best_level |= self.frozen and kind == "everyone"
            self.on_all.keep(found, best)
            for search, again in zip(self.without_fold, repeated, strict=True):
                search.keep(again, best)
            for key, again in earlier.items():
                self.on_first[key].keep(again, best)
        return Trial(
            kind=kind,
            rule=self.table.rule(found.atoms) if found.atoms else None,
            gain=float(total[best]),
            e=e,
            overlap=overlap,
            accepted=accepted,
            group=found.inside,
            correction=found.corrections[version],
            version=version,
            strength=strength,
            inside=inside,
            r_before=r_before,
            r_after=r_after,
            gains=gains,
            factor=np.divide(expected, before, out=np.ones(n), where=before > 0),
            periods=periods,
            held_out=held_out,
        )

    def z_of(self, gains: FloatArray, own: BoolArray) -> float:
        """Return the sum of the gains of some patients divided by its standard error, from the sums of clusters."""
        cluster, sums = self.residuals.cluster, gains[own]
        if cluster is not None:
            sums = np.bincount(cluster[own], sums).astype(np.float64)
        return z_of(sums)

    def _e_value(
        self,
        ratios_of: Sequence[FloatArray],
        n_choices: int,
        ratio_of_first: Callable[[tuple[int, int], int], FloatArray],
    ) -> float:
        """Return the e-value, the mean of two.

        One is the mean over folds of the likelihood ratio in the fold, of a search on all other folds, `ratios_of`;
        the other the product of the likelihood ratios of three folds, each of a search on the folds before it,
        `ratio_of_first`. Each search has log likelihood ratios for all choices, (v,), or (1,) if it found nothing.
        """
        n_folds = len(self.without_fold)
        ratios = np.stack([np.broadcast_to(ratio, n_choices) for ratio in ratios_of])
        averaged = _mean_exp(ratios)
        products, step = [], 1 + n_folds
        for which, order in enumerate(self.orders):
            total = ratios[order[-1]].copy()
            for m in range(self.first, n_folds - 1):
                self.progress(step)
                step += 1
                total += ratio_of_first((which, m), order[m])
            products.append(_mean_exp(total))
        return (averaged + float(np.mean(products))) / 2

    def _log_ratio(self, kind: Kind, search: RepairSearch, found: Found | None, fold: int) -> FloatArray:
        """Return log likelihood ratios (v,) of a fold that the search did not use; (1,) if it found nothing.

        They are relative to the model with its earlier repairs; or, after a recalibration of a frozen model, to the
        best level and slope in that fold, so that a group cannot gain from an error that the model makes for all
        patients. Those of the timing of events are relative to the best of these and of one slope for all times.
        """
        if found is None and kind == "timing":
            return np.zeros(1)
        out = self.folds == fold
        if self.at_times is not None:
            return self._log_ratio_at_times(self.at_times, search, found, out)
        gains, common = search.gains(found, out)
        nulls = [float(common.sum())]
        if self.against_best_level:
            events, expected, r = search.residuals.events[out], search.residuals.expected[out], search.r[out]
            change = _best_level(search.residuals, out) - r
            nulls.append(float(likelihood_gains_of(change, events, expected * np.exp(r)).sum()))
        ratio: FloatArray = gains.sum(axis=1) - (max(0.0, *nulls) if kind == "timing" else nulls[-1])
        return ratio

    def _log_ratio_at_times(
        self, at_times: AtTimes, search: RepairSearch, found: Found | None, out: BoolArray
    ) -> FloatArray:
        """Return what `_log_ratio` does, of predictions at few times."""
        if found is None:
            return np.zeros(1)
        ratio = at_times.log_ratios(search.r, search.r + search.ratios(found), out)
        if not self.against_best_level:
            return ratio
        best, z = search.r.copy(), search.residuals.columns_of(np.flatnonzero(out))[:, :2]
        theta = at_times.fit(np.zeros(len(best)), np.flatnonzero(out), z, np.zeros(2))
        best[out] = _best_level(search.residuals, out) if theta is None else z @ theta
        return np.asarray(ratio - at_times.log_ratios(search.r, best[None], out), np.float64)

    def timing_first(self, limits: Limits) -> bool:
        """Whether the timing of events is more probably wrong than the effects in any group."""
        timing = self.on_all.find("timing", limits)
        group = None if timing is None else self.on_all.find("effects", limits)
        return timing is not None and (group is None or timing.log_odds > group.log_odds)


def _best_level(residuals: Residuals, rows: BoolArray) -> FloatArray:
    """Return the log hazard ratios of some rows with the level and slope that fit them best."""
    Z = np.column_stack([residuals.columns[rows, 0], residuals.risk[rows]])
    r: FloatArray = Z @ poisson_ridge(
        in_blocks(Z, residuals.events[rows], residuals.expected[rows]), np.zeros(2)
    )
    return np.clip(r, -LARGEST, LARGEST)


def fewest_folds(n_folds: int) -> int:
    """Return the number of folds of the smallest search, 2 of 5: on fewer it would find nothing."""
    return max(1, (n_folds + 1) // 2 - 1)


def z_of(values: FloatArray) -> float:
    """Return the sum of values divided by its standard error."""
    return float(values.sum() / max(np.sqrt((values**2).sum()), 1e-12))


def jaccard(first: BoolArray, second: BoolArray) -> float:
    """Return the Jaccard index of two groups: patients of both, as a share of those of either."""
    return int((first & second).sum()) / max(int((first | second).sum()), 1)


def _same_side(first: BoolArray, second: BoolArray, among: BoolArray) -> tuple[bool, float]:
    """Whether the second group overlaps more with the first than with its complement, and the larger overlap."""
    same, opposite = jaccard(first & among, second & among), jaccard(~first & among, second & among)
    return same >= opposite, max(same, opposite)


def _mean_exp(logs: FloatArray) -> float:
    return float(np.exp(np.minimum(logs, LARGEST_EXPONENT)).mean())


# Normal quantile, two-sided, 95 %.
CLEAR_Z = 1.960


def find_repairs(checked: CheckedSearch, limits: Limits, max_repairs: int) -> list[Attempt]:
    """Search for repairs and test each; return all that were tested, in order, accepted ones as :class:`Trial`.

    The first repair, if accepted, is for all patients, so that no group is found because the model is wrong for all. If
    nothing follows, this repair of a fitted model is kept only if its gain is significant.

    If expected events are known over time, the timing of events is corrected too: before groups if it is more probably
    wrong than any of them, because an effect that fades looks like effects that differ in a group; else after them,
    because effects that differ in a group look like an effect that fades.
    """
    tested: list[Attempt] = []
    kept: list[Trial] = []
    over_time = checked.residuals.over_time is not None

    def passed(kind: Kind) -> bool:
        trial = checked.try_kind(kind, replace(limits, level_only=kind == "level"))
        if trial is None:
            return False
        # The arrays of a trial that was not accepted are not needed.
        tested.append(trial if trial.accepted else trial.as_attempt())
        kept.extend([trial] if trial.accepted else [])
        return trial.accepted

    n_repairs = int(max_repairs > 0 and passed("everyone"))
    timing_first = over_time and n_repairs < max_repairs and checked.timing_first(limits)
    n_repairs += timing_first and passed("timing")
    while n_repairs < max_repairs and len(checked.table.atoms) and (passed("effects") or passed("level")):
        n_repairs += 1
    if over_time and not timing_first and n_repairs < max_repairs:
        passed("timing")
    if len(kept) == 1 and kept[0].kind == "everyone" and not (checked.frozen or _is_clear(kept[0], checked)):
        return [replace(one, accepted=False) for one in tested]
    return tested


def _is_clear(trial: Trial, checked: CheckedSearch) -> bool:
    """Whether the interval of a cross-validated gain excludes 0.

    The gain is that of K models, each fitted without a fold, not of the model that is kept. These models may predict a
    few extreme patients poorly, which alone makes the e-value very large. They also share most of their training
    patients, so that the variance of the mean gain is 1 + K / (K - 1) times that of independent patients (Nadeau and
    Bengio).
    """
    n_folds = len(checked.without_fold)
    everyone = np.ones(len(trial.gains), dtype=np.bool_)
    return bool(checked.z_of(trial.gains, everyone) >= CLEAR_Z * np.sqrt(1 + n_folds / (n_folds - 1)))
