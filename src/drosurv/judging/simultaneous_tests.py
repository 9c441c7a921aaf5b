"""Simultaneous tests and bounds for all subgroups: of observed against predicted events, and of mean losses.

Observed and expected events are those of the residuals of :mod:`drosurv.judging`. Their number (level) and their
distribution over the parts of the follow-up (timing) are tested, with a reference distribution that is drawn
from the model, as if it were right. Means, such as of Brier scores, are bounded by a multiplier bootstrap. Both use
the distribution of the most extreme statistic over all subgroups, so that the results hold for all of them together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import pandas as pd
from scipy.special import xlogy
from scipy.stats import norm

from drosurv.judging.drawn_events import PatientEvents, Sample
from drosurv.judging.residuals import LEAST_CROSS_FITTED, EstimationError
from drosurv.judging.rules import CodedTable, Rule
from drosurv.judging.subgroup_sums import Subgroups
from drosurv.patients.draws import in_parallel, replicate_rng, seed_sequence
from drosurv.patients.target import FloatArray

# Smallest number of expected events of a subgroup; and of a part of the follow-up, and of all others together, for the
# test of the timing of events.
LEAST_EXPECTED, LEAST_IN_PART = 10.0, 5.0
# Numbers are cut at their deciles; a column has at most so many categories.
N_CUTS = 10
MOST_LEVELS = 20
# Number of draws that estimate variances if there are clusters.
_CLUSTER_REPLICATES = 200
_LEAST_DISPERSION = 0.05
_TINY = 1e-12
# Statistics and bounds that differ by less are equal: rounding errors of sums depend on the order of rows.
_ROUNDING = 1e-9
# Subgroups are the same if at most this share of their patients is in one of them only.
_SAME_PATIENTS = 0.05
# Error rate of the test whether a condition has an effect, divided between all conditions that were searched.
_CONDITION_ERROR = 0.05
#: Columns of the table of significant subgroups.
SIGNIFICANT = (
    *("group", "patients", "question", "observed", "expected", "ratio", "p", "events", "since", "until"),
)
#: Rows of the table of bounds on the ratio of events.
MOST, LEAST = "observed/expected, most", "observed/expected, least"


def judged_subgroups(table: pd.DataFrame, patients: PatientEvents, least: float) -> Subgroups:
    """Return the subgroups of a table with at least a number of patients and 10 expected events."""
    subgroups = Subgroups(CodedTable.from_table(table, N_CUTS, MOST_LEVELS))
    expected = patients.weight * patients.expected.sum(axis=1)
    counts = subgroups.sums(np.column_stack([patients.counts, expected]))
    subgroups.keep((counts[:, 0] >= least - 1e-9) & (counts[:, 1] >= LEAST_EXPECTED))
    return subgroups


def signed_root_deviance(observed: FloatArray, expected: FloatArray, scale: FloatArray) -> FloatArray:
    """Return the signed root of the Poisson deviance over a scale, about standard normal if the model is right."""
    safe, seen = np.maximum(expected, 1e-12), np.maximum(observed, 0.0)
    deviance = 2 * (xlogy(seen, np.maximum(seen, 1e-300) / safe) - (seen - safe))
    root: FloatArray = np.sign(seen - safe) * np.sqrt(np.maximum(deviance, 0.0) / scale)
    return root


def part_statistic(inside: Any, outside: Any, share: Any, scale: Any) -> Any:
    """Return the standardised difference between the events in a part of the follow-up and its share of all events.

    It is that of square roots of counts, which is about standard normal also with few events.
    """
    first, second = np.maximum(inside, 0.0) + 0.375, np.maximum(outside, 0.0) + 0.375
    return 2.0 * (np.sqrt((1.0 - share) * first) - np.sqrt(share * second)) / np.sqrt(scale)


_part_statistic = numba.njit(part_statistic, nogil=True)


@numba.njit(cache=True, nogil=True)
def _statistics(sums: FloatArray, scale: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the extreme statistics (3, k) of replicates, and the sums of squares (G, 1 + J) of all.

    `sums` (G, (J + 1) k) are those of `Sample.draw`, `scale` (G, 1 + J) the dispersions of level and parts, NaN where a
    part is not tested, `share` (G, J) the parts' shares of the expected events. Extremes are the largest and the
    negative smallest statistic of the level, and the largest absolute one of parts.
    """
    n_parts = share.shape[1]
    k = sums.shape[1] // (n_parts + 1)
    extremes, squares = np.full((3, k), -np.inf), np.zeros(scale.shape)
    for g in range(len(sums)):
        for j in range(k):
            observed, expected = max(sums[g, j], 0.0), max(sums[g, k + j], 1e-12)
            deviance = 2.0 * (expected - observed)
            # Differences of sums are 0 only up to rounding.
            if observed > 1e-9:
                deviance += 2.0 * observed * np.log(observed / expected)
            z = np.sqrt(max(deviance, 0.0) / scale[g, 0])
            squares[g, 0] += z * z
            side = 0 if observed > expected else 1
            extremes[side, j] = max(extremes[side, j], z)
            rest = observed - expected
            for part in range(n_parts):
                own = rest
                if part < n_parts - 1:
                    own = sums[g, (2 + part) * k + j]
                    rest -= own
                if np.isnan(scale[g, 1 + part]):
                    continue
                inside = own + share[g, part] * expected
                z = _part_statistic(inside, observed - inside, share[g, part], scale[g, 1 + part])
                squares[g, 1 + part] += z * z
                extremes[2, j] = max(extremes[2, j], abs(z))
    return extremes, squares


T = TypeVar("T")


def _replicates(
    work: Callable[[int, np.random.Generator], T],
    subgroups: Subgroups,
    n_bootstrap: int,
    n_patients: int,
    rng: np.random.Generator,
) -> list[T]:
    """Compute batches of replicates in threads; the results do not depend on the number of threads."""
    sizes, streams = subgroups.batches(n_bootstrap), seed_sequence(rng)

    def batch(number: int) -> T:
        return work(sizes[number], replicate_rng(streams, number))

    return list(in_parallel(batch, len(sizes), None, n_patients))


class EventTest(NamedTuple):
    """Bounds on observed / expected events, and a table of significant subgroups with their rules."""

    bounds: dict[str, dict[str, Any]]
    significant: pd.DataFrame
    rules: tuple[Rule, ...]


def compare_events(
    subgroups: Subgroups,
    patients: PatientEvents,
    sample: Sample,
    level: float,
    n_bootstrap: int,
    rng: np.random.Generator,
    error: EstimationError | None = None,
) -> EventTest:
    """Compare observed with expected events in all subgroups, in number and in their distribution over the parts."""
    J, w = len(patients.ends), patients.weight

    def columns(rows: slice) -> FloatArray:
        parts = (patients.observed[rows], patients.expected[rows], patients.source.variances_of(rows))
        return np.hstack([patients.counts[rows, None], w[rows, None] * np.hstack(parts)])

    sums = subgroups.sums_of_parts(columns(slice(0, 1)).shape[1], columns)
    # Sums of 0 may be slightly below 0, by rounding.
    sizes, observed, expected = sums[:, 0], sums[:, 1 : 1 + J], np.maximum(sums[:, 1 + J : 1 + 2 * J], 0.0)
    # Rescaled predictions may expect no events of a subgroup.
    events, predicted = observed.sum(axis=1), np.maximum(expected.sum(axis=1), _TINY)
    share = expected / predicted[:, None]
    # Where all probabilities are 1 there is no variance.
    covariance = patients.source.as_covariance(sums[:, 1 + 2 * J :])
    scale = np.maximum(_dispersions(covariance, expected), _LEAST_DISPERSION)
    drawn_from = subgroups.of_rows(sample.rows)

    def statistics(k: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return extremes (3, k) and squares (G, 1 + J) of the statistics of k replicates."""
        units = sample.units(k, rng)
        drawn = drawn_from.sums_of_parts((J + 1) * k, lambda rows: sample.draw(rows, k, units, rng))
        return _statistics(drawn, scale, share)

    if sample.clusters is not None:
        # The variance of clusters, relative to that of patients, is that of draws.
        drawn = _replicates(statistics, drawn_from, _CLUSTER_REPLICATES, len(sample.rows), rng)
        squares = np.sum([one for _, one in drawn], axis=0)
        scale = scale * np.maximum(squares / _CLUSTER_REPLICATES, 1.0)
    extremes = _replicates(
        lambda k, rng: statistics(k, rng)[0], drawn_from, n_bootstrap, len(sample.rows), rng
    )
    upper, lower, parts = np.sort(np.concatenate(extremes, axis=1))
    tested = np.isfinite(scale[:, 1:])
    # The model's estimation error counts in tests; bounds are those of the given predictions.
    with_error = scale
    if error is not None:
        more = _dispersions(error.of_subgroups(subgroups.sums_of_parts)[:, :J, :J], expected)
        with_error = np.maximum(scale + more, LEAST_CROSS_FITTED * scale)
    of_parts = part_statistic(observed, events[:, None] - observed, share, with_error[:, 1:])
    of_all = signed_root_deviance(events, predicted, with_error[:, 0])
    z = np.column_stack([of_all, np.where(tested, of_parts, 0.0)])
    p_level = np.minimum(_p_values(z[:, 0], upper), _p_values(-z[:, 0], lower))
    p = np.column_stack([p_level, np.where(tested, _p_values(np.abs(z[:, 1:]), parts), 1.0)])
    # More events, fewer events, and their distribution over the parts.
    p = np.minimum((3 if tested.any() else 2) * p, 1.0)
    side = (1 + level) / 2
    high = _ratio_at(events, predicted, scale[:, 0], -_quantile(lower, side))
    low = _ratio_at(events, predicted, scale[:, 0], _quantile(upper, side))
    ratio = np.maximum(events, 0.0) / predicted
    worst, best = _first_largest(high), _first_largest(-low)
    bounds = {
        MOST: {"estimate": ratio.max(), "bound": high[worst], "group": str(subgroups.rule(worst))},
        LEAST: {"estimate": ratio.min(), "bound": low[best], "group": str(subgroups.rule(best))},
    }
    # Of a subgroup, only the most extreme part is reported; equal p-values are sorted by the statistic.
    size = np.round(np.abs(z) / _ROUNDING)
    p[:, 1:][np.arange(J) != size[:, 1:].argmax(axis=1)[:, None]] = 1.0
    order = np.lexsort((-size.ravel(), p.ravel()))
    found = [divmod(int(place), 1 + J) for place in order[p.ravel()[order] <= 1 - level]]
    if found:
        # The simplest subgroup that explains the most significant one comes first.
        counts = np.column_stack([events, observed]), np.column_stack([predicted, share * events[:, None]])
        found.insert(0, found.pop(_simplest(subgroups, found, *counts, with_error)))

    def n_patients(g: int) -> int:
        """Return the number of patients with a row in a subgroup."""
        if patients.id is None:
            return int(np.rint(sizes[g]))
        return len(np.unique(patients.id[subgroups.table.covers(subgroups.atoms(g))]))

    rows = [
        {
            "group": str(subgroups.rule(g)),
            "patients": n_patients(g),
            **events_of(observed[g], expected[g], patients.ends, part - 1),
            "p": p[g, part],
        }
        for g, part in found
    ]
    return EventTest(
        bounds, pd.DataFrame(rows, columns=list(SIGNIFICANT)), tuple(subgroups.rule(g) for g, _ in found)
    )


def _simplest(
    subgroups: Subgroups,
    found: list[tuple[int, int]],
    observed: FloatArray,
    expected: FloatArray,
    scale: FloatArray,
) -> int:
    """Return the place in `found` of the simplest subgroup that explains the first one.

    `found` holds the number of each significant subgroup and its question; `observed`, `expected` and `scale` are
    (G, questions). A subgroup explains another one if it has the same patients up to 5 %, or if it is defined by some
    of the same conditions, and the ratio of the patients who do not meet the others is not significantly different:
    adjusted for all conditions, since the first subgroup has the most extreme ones.
    """
    most = norm.isf(_CONDITION_ERROR / 2 / len(subgroups.table.atoms))
    first, question = found[0]
    conditions = set(subgroups.atoms(first))
    for place, (g, asked) in enumerate(found):
        own = set(subgroups.atoms(g))
        if asked != question or len(own) >= len(conditions):
            continue
        inside, others = subgroups.members(first), subgroups.members(g)
        if np.count_nonzero(inside != others) <= _SAME_PATIENTS * np.count_nonzero(inside | others):
            return place
        part, whole = (each[[first, g], question] for each in (observed, expected))
        if own < conditions and whole[1] > 0:
            z = part_statistic(part[0], part[1] - part[0], whole[0] / whole[1], scale[first, question])
            if abs(z) < most:
                return place
    return 0


def events_of(
    observed: FloatArray, expected: FloatArray, ends: FloatArray, part: int = -1
) -> dict[str, str | float]:
    """Return events of a group, from those in parts (J,): of the whole follow-up, or in one of its parts.

    Those expected in a part are its share of all observed events. NaN is written for the beginning and end of the
    whole follow-up, and for the end of the last part. Sums below 0, which weights for censoring may give, are 0, as in
    the tests.
    """
    total, predicted, nan = float(observed.sum()), float(expected.sum()), float("nan")
    events = max(total, 0.0)
    question, seen, since, until = "level", events, nan, nan
    if part >= 0:
        question, seen = "timing", max(float(observed[part]), 0.0)
        events = seen + max(total - float(observed[part]), 0.0)
        predicted = events * float(expected[part]) / predicted
        since = float(ends[part - 1]) if part else 0.0
        until = float(ends[part]) if part < len(ends) - 1 else nan
    # A ratio to no expected event is very large, but a number that tables and sentences can hold.
    ratio = seen / max(predicted, _TINY) if seen > 0 or predicted > 0 else nan
    found: dict[str, str | float] = {"question": question, "observed": seen, "expected": predicted}
    return {**found, "ratio": ratio, "events": events, "since": since, "until": until}


def _dispersions(covariance: FloatArray, expected: FloatArray) -> FloatArray:
    """Return variances over those of Poisson counts, (G, 1 + J): of all events, and of a part given all events.

    `covariance` (G, J, J) and `expected` (G, J) are those of parts. NaN for parts with too few events.
    """
    total = np.maximum(expected.sum(axis=1), _TINY)
    share = expected / total[:, None]
    rows = covariance.sum(axis=2)
    whole = rows.sum(axis=1)
    own = np.diagonal(covariance, axis1=1, axis2=2)
    of_parts = own - 2 * share * rows + share**2 * whole[:, None]
    enough = np.minimum(expected, total[:, None] - expected) >= LEAST_IN_PART
    plain = np.where(enough, total[:, None] * share * (1 - share), np.nan)
    return np.column_stack([whole / total, of_parts / plain])


def _p_values(statistic: FloatArray, drawn: FloatArray) -> FloatArray:
    """Return Monte Carlo p-values (k + 1) / (B + 1), of k among B sorted draws that are as large."""
    larger = len(drawn) - np.searchsorted(drawn, statistic - _ROUNDING, side="left")
    return (larger + np.float64(1)) / (len(drawn) + 1)


def _first_largest(values: FloatArray) -> int:
    """Return the place of the largest number, the first one if several are equal up to rounding errors."""
    most = values.max()
    return int((values >= most - _ROUNDING * abs(most)).argmax())


def _quantile(drawn: FloatArray, share: float) -> float:
    """Return the order statistic of sorted draws (B,) that another draw exceeds with probability at most 1 - share."""
    return float(drawn[min(int(np.ceil((len(drawn) + 1) * share)), len(drawn)) - 1])


def _ratio_at(observed: FloatArray, expected: FloatArray, scale: FloatArray, z: float) -> FloatArray:
    """Return the ratios by which expected events must be multiplied for the statistic to be z, by bisection."""
    observed = np.maximum(observed, 0.0)
    far = np.full(len(observed), abs(z) * np.sqrt(scale))
    low = np.full(len(observed), 1e-9)
    high = (observed + far**2 + 2 * far * np.sqrt(observed + 1) + 10) / expected
    for _ in range(60):
        middle = (low + high) / 2
        # The statistic decreases with the expected events.
        above = signed_root_deviance(observed, middle * expected, scale) > z
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    ratio: FloatArray = (low + high) / 2
    return ratio


def bounded_means(
    subgroups: Subgroups,
    values: dict[str, FloatArray],
    weight: FloatArray,
    sample: Sample,
    level: float,
    n_bootstrap: int,
    rng: np.random.Generator,
) -> dict[str, dict[str, Any]]:
    """Return the largest mean of each value over subgroups, and its simultaneous upper bound, from the sample."""
    names, m = list(values), len(values)
    v = np.column_stack([values[name] for name in names])
    total, mean, variance = _moments(subgroups, v, weight)
    drawn_from, sampled = subgroups.of_rows(sample.rows), v[sample.rows]
    _, centre, spread = _moments(drawn_from, sampled, np.ones(len(sampled)))

    def deviations(k: int, rng: np.random.Generator) -> FloatArray:
        """Return sums of the multiplied deviations from the mean, (G, m, k)."""
        multipliers = sample.multipliers(k, rng)

        def multiplied(rows: slice) -> FloatArray:
            xi = multipliers(rows)
            return np.hstack([xi, *(xi * sampled[rows, j, None] for j in range(m))])

        drawn = drawn_from.sums_of_parts((m + 1) * k, multiplied).reshape(len(subgroups), m + 1, k)
        return drawn[:, 1:] - centre[:, :, None] * drawn[:, :1]

    if sample.clusters is not None:
        parts = [(deviations(k, rng) ** 2).sum(axis=2) for k in subgroups.batches(_CLUSTER_REPLICATES)]
        clustered = np.sum(parts, axis=0) / _CLUSTER_REPLICATES
        variance, spread = variance * clustered / np.maximum(spread, 1e-18), clustered
    spread = np.sqrt(np.maximum(spread, 1e-18))

    def extremes(k: int, rng: np.random.Generator) -> FloatArray:
        largest: FloatArray = (deviations(k, rng) / spread[:, :, None]).max(axis=0)
        return largest

    largest = _replicates(extremes, drawn_from, n_bootstrap, len(sampled), rng)
    quantiles = [_quantile(np.sort(one), level) for one in np.concatenate(largest, axis=1)]
    error = np.sqrt(np.maximum(variance, 1e-18))
    found = {}
    for j, name in enumerate(names):
        bound = mean[:, j] + quantiles[j] * error[:, j] / total[:, 0]
        worst = _first_largest(bound)
        found[name] = {
            "estimate": mean[:, j].max(),
            "bound": bound[worst],
            "group": str(subgroups.rule(worst)),
            "all patients": float(weight @ v[:, j] / weight.sum()),
        }
    return found


def _moments(
    subgroups: Subgroups, v: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return sums of weights (G, 1), means of values (n, m) in subgroups (G, m), and variances of their sums."""
    m, w = v.shape[1], weight[:, None]
    sums = subgroups.sums(np.hstack([w, w * v, w * v**2]))
    total, mean = sums[:, :1], sums[:, 1 : 1 + m] / sums[:, :1]
    return total, mean, sums[:, 1 + m :] - mean**2 * total
