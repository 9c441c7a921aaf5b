"""Residuals of predictions: observed less expected events of each patient, with mean zero if the predictions are right.

Where curves are known throughout, the residual until t is the martingale N(t) - Lambda(t): the event, less the hazard
that the model sums while the patient is observed. Residuals of predictions at few times are in
:mod:`drosurv.judging.few_times`. Both are kept in at most four parts of the follow-up. All tests are weighted
sums of them (`Sums`).

Where training patients are known, the expected events of a group have an error of their own (`EstimationError`). It
comes from the information matrix of a model of hazards with a column for each part of the follow-up and the columns of
the features: the training patients are taken to be like those judged, and there are as many of them as their events
say. Of models that are not linear, it is assumed that they estimate a group from the training patients of that group.
Of cross-fitted predictions, errors of the folds cancel instead of adding up: whoever has more events than predicted in
one fold raises the predictions of all others. So the same term is subtracted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from drosurv.curves import StepCurves, SurvivalCurves
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

# Summed hazards until k times each, (n, k), and their variances.
Accumulate = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
#: Number of parts of the follow-up, cut at quartiles of the expected events.
PARTS = 4
# Candidates for the ends of parts.
_CANDIDATES = 16
_TINY = 1e-12
# Numbers of events that differ by this share are equal.
_ROUNDING = 1e-9
#: Least share of the model's variance that remains where predictions are cross-fitted.
LEAST_CROSS_FITTED = 0.4
#: Least dispersion of probabilities with a corrected total, relative to that of the predicted ones.
LEAST_DISPERSION = 0.05
# A part of the follow-up without training events counts as half an event.
_FEWEST_EVENTS = 0.5
# Curves jump at the times of events if this share of the events is at their jumps.
_AT_JUMPS = 0.5
# With more jumps, likelihoods are those of continuous times.
_FEW_JUMPS = 100


class Sums(NamedTuple):
    """Observed and expected events (J,) of a weighted sum in J parts, and covariances (J, J) of their difference.

    `model` is the covariance under the model, `clustered` and `alone` those of sums by cluster and of rows as they were
    observed, `least` that of rows or clusters with right predictions, below which `clustered` counts as chance, and
    `error` what the estimation error of the model adds. `freedom` is the number of degrees of freedom of the quantiles,
    infinite without clusters. Where predictions are probabilities, `by_ratio` (J, 2, G) are ratios by which the
    expected events until the end of each part may be wrong, and the dispersion with each, relative to that with 1.
    `excess` (J,), or (1,) for hazards, is the factor by which events until the end of each part vary more between
    patients than under the model, once their number is right. `hidden` (J,) are events that probabilities of exactly 0
    by the end of each part may hide, if they were rounded to two decimals. `if_wrong`, of probabilities, returns the
    expected events (J,) if all cumulative hazards are wrong by a factor.
    """

    observed: FloatArray
    expected: FloatArray
    model: FloatArray
    clustered: FloatArray | None = None
    alone: FloatArray | None = None
    error: FloatArray | None = None
    freedom: float = np.inf
    by_ratio: FloatArray | None = None
    excess: FloatArray | None = None
    hidden: FloatArray | None = None
    least: FloatArray | None = None
    if_wrong: Callable[[float], FloatArray] | None = None

    def first(self, parts: int) -> Sums:
        """Return the sums of the first parts only."""
        # Covariances are square.
        known: dict[str, Any] = {
            name: part[:parts, :parts] if part.ndim == 2 else part[:parts]
            for name, part in self._asdict().items()
            if isinstance(part, np.ndarray)
        }
        return self._replace(**known)

    def relative_dispersion(self, ratio: float) -> float:
        """Return how the dispersion changes if the expected events are multiplied by a ratio; 1 for hazards."""
        if self.by_ratio is None:
            return 1.0
        ratios, dispersions = self.by_ratio[-1]
        return float(np.interp(ratio, ratios, dispersions))

    @property
    def most(self) -> float:
        """The largest ratio to the expected events, with which everybody has the event; infinite for hazards."""
        return np.inf if self.by_ratio is None else float(self.by_ratio[-1][0][-1])

    def variance(self, direction: FloatArray, *, with_error: bool = True) -> float:
        """Return the variance of a combination (J,) of the parts: never below the model's.

        With clusters, the model's is multiplied by the design effect. The variance of sums by cluster itself is small
        where the sum happens to be large, or the other way round, and would call right models wrong.
        """
        found = own = float(direction @ self.model @ direction)
        if self.clustered is not None and self.alone is not None:
            # Probabilities that must be near 1 to agree with the observed events have nearly no variance.
            least = 0.0 if self.by_ratio is None else LEAST_DISPERSION * own
            alone = max(float(direction @ self.alone @ direction), least, _TINY)
            known = [part for part in (self.clustered, self.least) if part is not None]
            found = own * max(*(float(direction @ part @ direction) / alone for part in known), 1.0)
        if self.error is not None and with_error:
            found += float(direction @ self.error @ direction)
        # Errors of cross-fitted predictions are subtracted, and known only approximately.
        return max(found, LEAST_CROSS_FITTED * own, _TINY)


@dataclass(frozen=True, eq=False, kw_only=True)
class PatientResiduals:
    """Observed and expected events (n, J) of n patients in J parts of the follow-up, of curves known throughout.

    `variances` (n, J) are those of the events in each part, `ends` (J,) the ends of the parts, `time` (n,) the ends of
    the patients' observation, `clusters` (n,) the numbers of their clusters. The `weight` (n,) is 1 for patients who
    are judged, and 0 for others.
    """

    observed: FloatArray
    expected: FloatArray
    variances: FloatArray
    ends: FloatArray
    time: FloatArray
    weight: FloatArray
    clusters: IntArray | None = None

    def __len__(self) -> int:
        return len(self.weight)

    @cached_property
    def events(self) -> tuple[FloatArray, FloatArray]:
        """Observed and expected events (n,) over all parts."""
        return self.observed.sum(axis=1), self.expected.sum(axis=1)

    @property
    def known_parts(self) -> int:
        """Number of parts until whose end the patients are observed."""
        return len(self.ends)

    def of_group(self, member: BoolArray) -> PatientResiduals:
        """Return the residuals with which the members (n,) of a group are judged; those of curves are the same."""
        return self

    def covariance(self, w: FloatArray) -> FloatArray:
        """Return the covariance (J, J) of sums with weights w (n,) under the model, which has uncorrelated parts."""
        return np.diag((self.weight * w**2) @ self.variances)

    def contributions(self, w: FloatArray) -> FloatArray:
        """Return the contribution (n, J) of each patient to the sum of residuals with weights w (n,)."""
        return (self.weight * w)[:, None] * (self.observed - self.expected)

    def sums(self, w: FloatArray, error: FloatArray | None = None) -> Sums:
        """Return observed and expected events with weights w (n,), and their covariances; `error` is (J, J)."""
        mass = self.weight * w
        clustered, alone, freedom = None, None, np.inf
        if self.clusters is not None:
            size, each = mass * w * self.variances.sum(axis=1), self.contributions(w)
            clustered, freedom = by_cluster(each, self.clusters, w != 0, size)
            alone = each.T @ each
        observed, expected, model = mass @ self.observed, mass @ self.expected, self.covariance(w)
        excess = np.array([self._excess(w)])
        return Sums(observed, expected, model, clustered, alone, error, freedom, excess=excess)

    def _excess(self, w: FloatArray) -> float:
        """Return the sum of squared residuals over that of their variances under the model; at least 1.

        Hazards that are wrong for single patients give sums that vary more than those of right hazards. The difference
        is shrunk (James and Stein), so that chance does not widen the intervals of right predictions.
        """
        (observed, expected), mass = self.events, self.weight * w
        ratio = float(mass @ observed) / max(float(mass @ expected), _TINY)
        mass, variances = mass * w, ratio * self.variances.sum(axis=1)
        # With weights of both signs, as those of a slope, which uses no excess, the ratio has any size.
        with np.errstate(over="ignore", invalid="ignore"):
            own, beyond = float(mass @ variances), (observed - ratio * expected) ** 2 - variances
            sum_beyond, squared_error = float(mass @ beyond), float(mass @ beyond**2)
        if self.clusters is not None:
            clustered, _ = by_cluster((mass * beyond)[:, None], self.clusters, mass != 0, mass)
            squared_error = squared_error if clustered is None else float(clustered[0, 0])
        if not (own > 0 and 0 < sum_beyond < np.inf and squared_error < np.inf):
            return 1.0
        return 1.0 + max(sum_beyond - squared_error / sum_beyond, 0.0) / own


def by_cluster(
    contributions: FloatArray, clusters: IntArray, member: BoolArray, size: FloatArray
) -> tuple[FloatArray | None, float]:
    """Return the covariance (J, J) of sums by cluster, and its degrees of freedom; None if no cluster has two rows.

    A group within one cluster, such as a hospital, is judged as part of it: patients are independent given the cluster.
    `size` (n,) says how much each row contributes to the variance.
    """
    codes, found = np.unique(clusters[member], return_inverse=True)
    n_clusters = len(codes)
    if n_clusters in (0, 1, found.size):
        return None, np.inf
    sums = np.column_stack([np.bincount(found, part[member], n_clusters) for part in contributions.T])
    sizes = np.bincount(found, size[member])
    # Clusters of different sizes count as fewer.
    effective = sizes.sum() ** 2 / max((sizes**2).sum(), _TINY)
    return sums.T @ sums * n_clusters / (n_clusters - 1), max(effective - 1.0, 1.0)


def design_effect(residuals: PatientResiduals, groups: IntArray | None = None) -> float:
    """Return how many times larger clusters make the variance of observed less expected events; at least 1.

    It is pooled over `groups` (n,), numbers that are below 0 for patients without a group. Groups within one cluster
    are left out, as in :func:`by_cluster`.
    """
    if residuals.clusters is None:
        return 1.0
    each = residuals.contributions(np.ones(len(residuals))).sum(axis=1)
    group = np.zeros(len(each), np.intp) if groups is None else groups
    kept, n_clusters = np.flatnonzero(group >= 0), int(residuals.clusters.max()) + 1
    # One number for each cluster in each group.
    pairs, place = np.unique(group[kept] * n_clusters + residuals.clusters[kept], return_inverse=True)
    clusters = np.bincount(pairs // n_clusters)[pairs // n_clusters]
    factor = np.divide(clusters, clusters - 1.0, out=np.zeros(len(pairs)), where=clusters > 1)
    clustered = float(factor @ np.bincount(place, each[kept]) ** 2)
    alone = float((factor[place] > 0) @ each[kept] ** 2)
    return max(clustered / alone, 1.0) if alone > 0 else 1.0


def martingale_residuals(
    target: Target,
    accumulated: Accumulate,
    *,
    discrete: bool = False,
    until: float | FloatArray = np.inf,
    parts: int = PARTS,
    clusters: IntArray | None = None,
) -> PatientResiduals:
    r"""Return residuals of curves that are known throughout, :math:`N_i(t) - \Lambda_i(\min(Y_i, t))` from entry on.

    `accumulated` returns each patient's summed hazard until k times each, and the sum of dLambda (1 - dLambda): (n, k)
    -> two (n, k). If events happen only at times at which the curves jump (`discrete`), the second sum is the variance,
    else the first. Events are counted `until` a horizon, or the ends of the curves (n,), in at most so many `parts`,
    cut at quantiles of the expected events. `clusters` (n,) are the numbers of clusters.
    """
    last = np.minimum(target.time, until)
    happened = target.event & (target.time <= until)
    entry = None if target.entry is None else np.minimum(target.entry, last)

    candidates = _candidates(last, happened, parts)
    sums = accumulated(np.minimum.outer(last, candidates))
    if entry is not None:
        before = accumulated(np.minimum.outer(entry, candidates))
        sums = sums[0] - before[0], sums[1] - before[1]
    chosen = cut(sums[0].sum(axis=0), parts)
    ends = candidates[chosen]
    expected, variances = (
        np.maximum(np.diff(until_ends[:, chosen], prepend=0.0, axis=1), 0.0) for until_ends in sums
    )
    part = np.minimum(np.searchsorted(ends, last), len(ends) - 1)
    observed = np.zeros_like(expected)
    observed[np.flatnonzero(happened), part[happened]] = 1.0
    return PatientResiduals(
        observed=observed,
        expected=expected,
        variances=variances if discrete else expected,
        ends=ends,
        time=target.time,
        weight=np.ones(len(target)),
        clusters=clusters,
    )


def _candidates(last: FloatArray, happened: BoolArray, parts: int) -> FloatArray:
    """Return times, ascending until the last, among which the ends of parts of the follow-up are chosen."""
    end = float(last.max())
    if parts < 2:
        return np.array([end])
    times = last[happened] if happened.sum() >= _CANDIDATES else last
    return np.unique(np.append(np.quantile(times, np.arange(1, _CANDIDATES) / _CANDIDATES), end))


def cut(expected: FloatArray, parts: int) -> IntArray:
    """Return the numbers of the ends of parts: nearest to equal parts of the expected events; of few times, all."""
    if len(expected) <= parts:
        return np.arange(len(expected), dtype=np.intp)
    targets = expected[-1] * np.arange(1, parts) / parts
    distance = np.abs(expected[None, :] - targets[:, None])
    # Patients who trained the model expect whole numbers of events, so two times are often equally near but for
    # rounding errors: then the first is the end.
    nearest = distance.min(axis=1, keepdims=True) + _ROUNDING * expected[-1]
    chosen = (distance <= nearest).argmax(axis=1)
    return np.unique(np.append(chosen, len(expected) - 1)).astype(np.intp)


@dataclass(frozen=True, eq=False)
class EstimationError:
    """Estimation error of a model that was fitted to `training_events` (J,) in each part of the follow-up.

    `columns` (n, p) are the features of a linear model, None for other models. `stratum` (n,) are strata with separate
    hazards. With `folds` (n,), numbers from 0, each patient was predicted by a model that was fitted to the other
    folds. `nonparametric_baseline` says whether the baseline hazard is a step function, as in a Cox model, or has few
    parameters.
    """

    residuals: PatientResiduals
    training_events: FloatArray
    columns: FloatArray | None = None
    stratum: IntArray | None = None
    folds: IntArray | None = None
    nonparametric_baseline: bool = True

    def covariance(self, w: FloatArray) -> FloatArray:
        """Return the covariance (J, J) to add to that of the sum of residuals with weights w (n,)."""
        fit = self._fit(w[:, None]) if self.columns is None and self.folds is None else self._own_fit
        squares = np.diag(w**2 @ self._variances)[None]
        (found,) = self._added(fit, lambda mass: self._sums(w[:, None] * mass, fit.columns).T[None], squares)
        return np.asarray(found)

    def _added(
        self, fit: _Fit, of_parts: Callable[[FloatArray], FloatArray], squares: FloatArray
    ) -> FloatArray:
        """Return the covariances (G, J, J) to add to those of G weighted sums of residuals.

        `squares` (G, J, J) are the sums of squared weights times variances, on the diagonal. `of_parts` takes a mass
        (n, J) and returns its weighted sums in each part, by level and times columns, (G, J, J * strata + p).
        """
        total = of_parts(self._expected)
        if self.folds is None:
            # Each row is the influence of the training patients' residuals on the expected events of a part.
            influence = total @ fit.shared.T @ fit.inverse
            return np.asarray(influence @ fit.score_variance @ influence.transpose(0, 2, 1))
        found = self._further(fit) * squares
        for number in range(int(self.folds.max()) + 1):
            inside = (self.folds == number)[:, None].astype(np.float64)
            share = float((self._expected * inside).sum() / max(self._expected.sum(), 1e-12))
            score_variance = fit.shared @ self._products(self._variances * inside, fit.columns) @ fit.shared.T
            # The influence of a patient of this fold on the predictions of the others.
            others = total - of_parts(self._expected * inside)
            influence = others @ fit.shared.T @ fit.inverse / max(1 - share, 1e-12)
            both = influence @ fit.shared @ of_parts(self._variances * inside).transpose(0, 2, 1)
            own = influence @ score_variance @ influence.transpose(0, 2, 1)
            found = found + own - both - both.transpose(0, 2, 1)
        return found

    def of_subgroups(self, sums: Callable[[int, Callable[[slice], FloatArray]], FloatArray]) -> FloatArray:
        """Return the covariances (G, J, J) to add to those of the residuals of G subgroups in J parts.

        `sums(k, values)` returns sums (G, k) over subgroups of what `values(rows)` returns for some rows, (m, k).
        """
        J = self._expected.shape[1]
        if self.columns is None and self.folds is None:
            of_parts_alone = sums(J, lambda rows: self._expected[rows] / self._factor)
            return np.asarray(of_parts_alone[:, :, None] * np.eye(J), np.float64)
        fit = self._own_fit
        strata, n_strata = self._strata
        p = fit.columns.shape[1]

        def of_parts(mass: FloatArray) -> FloatArray:
            def values(rows: slice) -> FloatArray:
                inside = (strata[rows, None] == np.arange(n_strata)).astype(np.float64)
                times = np.hstack([inside, fit.columns[rows]])
                found: FloatArray = mass[rows, :, None] * times[:, None, :]
                return found.reshape(len(times), -1)

            found = sums(J * (n_strata + p), values).reshape(-1, J, n_strata + p)
            levels = found[:, :, None, :n_strata] * np.eye(J)[:, :, None]
            return np.concatenate([levels.reshape(len(found), J, -1), found[:, :, n_strata:]], axis=2)

        squares = sums(J, lambda rows: self._variances[rows])[:, :, None] * np.eye(J)
        return self._added(fit, of_parts, squares)

    @cached_property
    def _expected(self) -> FloatArray:
        return self.residuals.weight[:, None] * self.residuals.expected

    @cached_property
    def _variances(self) -> FloatArray:
        return self.residuals.weight[:, None] * self.residuals.variances

    @property
    def _factor(self) -> FloatArray:
        """Training events over expected events in each part, (J,)."""
        if self.folds is not None:
            return np.ones(self._expected.shape[1])
        events = np.maximum(self.training_events, _FEWEST_EVENTS)
        found: FloatArray = events / np.maximum(self._expected.sum(axis=0), 1e-12)
        return found

    @property
    def _strata(self) -> tuple[IntArray, int]:
        if self.stratum is None:
            return np.zeros(len(self._expected), np.intp), 1
        return self.stratum, int(self.stratum.max()) + 1

    def _further(self, fit: _Fit) -> float:
        """Return the factor of terms of second order: errors of folds differ more with more coefficients."""
        return 2 * len(fit.inverse) / max(float(self._expected.sum()), 1.0)

    @cached_property
    def _own_fit(self) -> _Fit:
        """The fit on the model's columns; none if it is not linear, because it is not known which errors cancel."""
        return self._fit(np.empty((len(self._expected), 0)) if self.columns is None else self.columns)

    def _fit(self, columns: FloatArray) -> _Fit:
        columns = columns / np.maximum(np.sqrt((columns**2).mean(axis=0)), 1e-12)
        information, score_variance = (
            self._products(self._factor * mass, columns) for mass in (self._expected, self._variances)
        )
        shared = np.eye(len(information))
        if self.folds is not None and not self.nonparametric_baseline:
            # Errors cancel over the whole follow-up only: all parts share one level.
            J, p = self._expected.shape[1], columns.shape[1]
            n_strata = (len(information) - p) // J
            shared = block_diag(np.tile(np.eye(n_strata), J), np.eye(p))
        inverse = np.linalg.pinv(shared @ information @ shared.T, hermitian=True)
        return _Fit(columns, np.asarray(inverse, np.float64), shared @ score_variance @ shared.T, shared)

    def _sums(self, mass: FloatArray, columns: FloatArray) -> FloatArray:
        """Return sums of mass (n, J) by level, a stratum in a part, and times columns: (J * strata + p, J)."""
        strata, n_strata = self._strata
        levels = [np.bincount(strata, part, n_strata) for part in mass.T]
        return np.vstack([block_diag(*(level[:, None] for level in levels)), columns.T @ mass])

    def _products(self, mass: FloatArray, columns: FloatArray) -> FloatArray:
        """Return sums of products of levels and columns with mass (n, J): square, of size J * strata + p."""
        strata, n_strata = self._strata
        levels = np.concatenate([np.bincount(strata, part, n_strata) for part in mass.T])
        mixed = np.zeros((len(levels), columns.shape[1]))
        for j, part in enumerate(mass.T):
            for k, column in enumerate(columns.T):
                mixed[j * n_strata : (j + 1) * n_strata, k] = np.bincount(strata, part * column, n_strata)
        of_columns = (columns * mass.sum(axis=1)[:, None]).T @ columns
        return np.block([[np.diag(levels), mixed], [mixed.T, of_columns]])


class _Fit(NamedTuple):
    """Columns (n, p), inverse information and variance of the score (q, q), and which levels share a coefficient."""

    columns: FloatArray
    inverse: FloatArray
    score_variance: FloatArray
    shared: FloatArray


class KnownCurves:
    """Curves that are known throughout: summed hazards of patients, and where they jump."""

    def __init__(self, curves: SurvivalCurves, target: Target) -> None:
        self.discrete = _at_jumps(curves, target) > _AT_JUMPS
        self.n_events = int(target.event.sum())
        self.curves = curves
        if self.discrete and not isinstance(curves, StepCurves):
            self.curves = StepCurves(curves.values, curves.times, curves.known_until, curves.rows)
        self.until: Any = curves.known_until

    @property
    def few_jumps(self) -> bool:
        """Whether likelihoods treat events as happening at the jumps: if jumps are few, with several events each."""
        times = self.curves.times
        return self.discrete and times is not None and len(times) <= min(_FEW_JUMPS, self.n_events / 2)

    def accumulated(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return summed hazards until one time each, (n,), or k each, (n, k), and their variances."""
        found = self.curves.summed_hazard(times.reshape(len(times), -1))
        return found.hazard.reshape(times.shape), found.variance.reshape(times.shape)


def _at_jumps(curves: SurvivalCurves, target: Target) -> float:
    """Return the share of events at jumps of the patients' own curves; of other curves, at the times they have."""
    happened = np.flatnonzero(target.event)
    time = target.time[happened]
    if curves.times is None or len(happened) == 0:
        return 0.0
    if not isinstance(curves, StepCurves):
        return float(np.isin(time, curves.times).mean())
    own = curves.take(happened)
    ends = np.column_stack([np.maximum(np.nextafter(time, -np.inf), 0.0), time])
    before, after = own.survival(ends).T
    return float((after < before).mean())
