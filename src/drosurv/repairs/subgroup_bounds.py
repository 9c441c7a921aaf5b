"""How wrong a model can be in any subgroup that one or two conditions define: bounds that hold for all at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numba
import numpy as np
import pandas as pd
from scipy.special import xlogy

from drosurv.errors import ArgumentError, as_number, as_whole, require
from drosurv.evaluation.from_entry import first_rows, predict_from_entry, select_rows
from drosurv.evaluation.predictions import (
    Predictions,
    estimation_share,
    gains_over_null,
    given_arguments,
    linear_columns,
)
from drosurv.metrics import FollowUp, default_horizon
from drosurv.metrics.expected_events import (
    cumulative_hazard,
    curve_ends,
    expected_events,
    known_everywhere,
)
from drosurv.metrics.inference import generator
from drosurv.metrics.inference.intervals import in_parallel, replicate_rng, seed_sequence
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.metrics.scores import parse_weights
from drosurv.metrics.survival_curves import SurvivalCurves
from drosurv.observation import label_codes
from drosurv.presentation import Column, Table, axes_or_new, counted, moment
from drosurv.repairs.curves import follow_up_of, predicted_curves
from drosurv.repairs.rules import CodedTable, Rule, readable_table
from drosurv.repairs.subgroups import Subgroups
from drosurv.target import FloatArray, IntArray, Target, has_causes, of_any_cause, parse_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_PATIENTS = 50
LEAST_EXPECTED = 10.0
REPLICATES, REPLICATES_OF_MANY, MANY_PATIENTS = 999, 199, 200_000
N_CUTS = 10
MOST_LEVELS = 20
# Curves with at most so many jumps are drawn from jump by jump; with more they are as good as continuous.
_FEW_JUMPS = 64
# Replicates that estimate variances where rows belong to clusters.
_CLUSTER_REPLICATES = 200
MOST, LEAST, BRIER, GAIN = "observed/expected, most", "observed/expected, least", "brier", "gain"
# Arguments of earlier versions, and what to use.
_REMOVED = {
    "alphas": "the bounds hold for all subgroups of at least the share alpha: pass alpha=0.05",
    "confidence": "pass level=0.95",
    "y_train": "the bounds need the tested patients only: leave it out",
    "tolerance": "compare .bounds with it",
    "censoring": "censored patients are always weighted by the inverse probability of censoring: leave it out",
}


def certify(
    model: Any,
    X: Any,
    y: Any,
    *,
    alpha: float = 0.05,
    horizon: float | None = None,
    level: float = 0.95,
    features: Any = None,
    id: Any = None,
    n_replicates: int | None = None,
    random_state: int | np.random.Generator | None = 0,
    entry: Any = None,
    strata: Any = None,
    offset: Any = None,
    sample_weight: Any = None,
    clusters: Any = None,
    **removed: Any,
) -> SubgroupBounds:
    """Bound how wrong a model is in every subgroup that one or two conditions on the columns define.

    Subgroups are made of conditions on the columns: numbers above or not above a decile, a category or any other, a
    missing value; one condition, or two joined by "and". Those with at least the share `alpha` of the patients and at
    least 10 predicted events are tested all at once, on patients that the model was not trained on.

    Parameters
    ----------
    model : fitted survival model, :class:`drosurv.evaluation.Predictions`, or a pair (times, survival)
        With survival curves: risk scores alone do not say how many events to expect.
    X : (n, d) array or DataFrame
        Features, as the model takes them, of patients that it was not trained on.
    y : structured array (n,)
        Events and times of the same patients; any cause is the event where there are several.
    alpha : float
        Smallest share of the patients that makes a subgroup, in (0, 1].
    horizon : float, optional
        Time of the Brier score, and until which events are counted. By default events are counted over the whole
        follow-up, and the Brier score is that at the median follow-up.
    level : float
        Confidence of the bounds, for all subgroups at once; 1 - level is the chance of a false alarm.
    features : DataFrame (n, d'), optional
        Columns that may define subgroups, in units and names that a reader knows; ``X`` by default.
    id : (n,) labels, optional
        Rows of the same patient. With `entry`, a patient is judged by what was known at the first row.
    n_replicates : int, optional
        Draws of events from the model, and of multipliers: by default 999, and 199 for more than 200,000 patients. The
        smallest p-value is 2 / (n_replicates + 1): 0.002 with 999, 0.01 with 199.
    random_state : int, Generator or None
        Seed or source of the draws.
    entry, strata, offset : (n,), optional
        When patients came under observation, their strata, and the known part of their log risk, for models that take
        them.
    sample_weight : (n,), optional
        Weights of the patients; 2 counts a patient twice.
    clusters : (n,) labels, optional
        Patients who may be alike, such as those of one hospital.

    Returns
    -------
    SubgroupBounds

    Notes
    -----
    *Observed / expected events.* The statistic of a subgroup is the signed root of the Poisson deviance of its
    observed and expected events. Its distribution under a right model, largest and smallest over all subgroups, comes
    from draws: events from the model's curves, until the patient's censoring time, which is the observed one, or for a
    patient with an event one drawn from the Kaplan-Meier curve of censoring after it. So a right model has a
    significant subgroup with probability 1 - level, whatever the number of events. Bounds on the ratio are the ratios
    that the same test does not reject.

    A right model that was fitted to few patients predicts with an error. Where the number of training events D is
    known, the squared statistic is divided by one plus the share that this error adds to the variance: for a model that
    is linear in the columns of X by the information matrix of a Poisson regression on them; for any other model by E/D
    (E: expected events of all patients), as if each subgroup were predicted from its training events alone. Bounds are
    about the predictions as they are, and do not contain this error.

    *Brier score and gain over the null model.* Means over a subgroup with one-sided bounds from the largest
    studentised deviation, by a multiplier bootstrap with one multiplier per patient or cluster.

    Assumed: independent patients (or clusters), and censoring that is independent of the event time given the
    features; the Brier score and the draws after an event also take its distribution to be that of all patients.
    Not covered: subgroups that need more than two columns, finer cuts, or columns that were not measured.

    *Time and memory.* With a Cox model and 10 numeric columns, 100,000 patients and 999 replicates take 27 s of one
    processor core and 0.5 GB, 1,000,000 patients and 199 replicates 65 s and 1.3 GB. Replicates run in threads, on all
    cores; the result does not depend on how many there are.

    Examples
    --------
    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> train, test = make_hidden_minority(random_state=0), make_hidden_minority(random_state=1)
    >>> model = drosurv.CoxPH().fit(train.X, train.y)
    >>> bounds = drosurv.certify(model, test.X, test.y, n_replicates=99)
    >>> "x5 > " in bounds.significant["group"].iloc[0]
    True
    """
    _refuse(removed)
    require(0 < as_number(alpha) <= 1, "alpha", "lie in (0, 1]", alpha)
    require(0.5 <= as_number(level) < 1, "level", "lie in [0.5, 1)", level)
    if n_replicates is None:
        n_replicates = REPLICATES if len(y) <= MANY_PATIENTS else REPLICATES_OF_MANY
    require(as_whole(n_replicates) >= 19, "n_replicates", "be a whole number of at least 19", n_replicates)
    table = readable_table(X, len(y), getattr(model, "feature_names_in_", None), features)
    notes: tuple[str, ...] = ()
    if entry is not None and id is not None:
        first, y, notes = first_rows(y, entry, id)
        model, X, table, entry, strata, offset, sample_weight, clusters = (
            select_rows(given, first)
            for given in (model, X, table, entry, strata, offset, sample_weight, clusters)
        )
    elif id is not None:
        require(clusters is None, "clusters", "be left out where id is given without entry", clusters)
        clusters = id
    given = given_arguments(entry=entry, strata=strata, offset=offset)
    fitted = model
    if given or (has_causes(y) and hasattr(model, "n_causes_")):
        seen = predict_from_entry(model, X, y, given)
        follow_up, model, y, notes = seen.follow_up, seen.predictions, seen.y, (*notes, *seen.notes)
    target = parse_target(of_any_cause(y))
    n = len(target)
    if n < LEAST_PATIENTS:
        raise ArgumentError(
            "y", f"y has {n} patients, too few for subgroups: give at least {LEAST_PATIENTS}."
        )
    if isinstance(model, Predictions) and model.survival is None:
        raise ArgumentError(
            "model",
            "model has risk scores but no survival curves, which say how many events to expect: give "
            "Predictions(survival=..., times=...).",
        )
    follow_up = follow_up if given else follow_up_of(model, None, target)
    curves = predicted_curves(model, X, n)
    weight = parse_weights(sample_weight, n)
    rng = generator(random_state)
    patients = _Patients.of(curves, target, weight, horizon, clusters, rng)
    subgroups = judged_subgroups(table, patients, alpha * weight.sum())
    if len(subgroups) == 0:
        raise ArgumentError(
            "alpha",
            f"no subgroup has at least alpha={alpha:g} of the {n} patients and {LEAST_EXPECTED:g} predicted events: "
            "test more patients.",
        )
    error = model_errors(fitted, X, patients, subgroups, follow_up)
    test = _test(subgroups, patients, level, n_replicates, rng, error)
    rescaled = None
    if test.overall["p"] <= 1 - level:
        rescaled = _test(subgroups, patients.rescaled(test.overall["ratio"]), level, n_replicates, rng, error)
    at = float(default_horizon(target.to_structured())) if horizon is None else float(horizon)
    means = {
        BRIER: brier_losses(curves, target, at, weight),
        GAIN: -gains_over_null(model, curves, follow_up, target),
    }
    bounded = _bounded_means(subgroups, means, patients, level, n_replicates, rng)
    bounded[GAIN] = {**bounded[GAIN], **{k: -bounded[GAIN][k] for k in ("estimate", "bound", "all patients")}}
    return SubgroupBounds(
        bounds=pd.DataFrame({**test.bounds, **bounded}).T[["estimate", "bound", "group"]],
        significant=test.significant,
        rules=test.rules,
        overall={**test.overall, **{name: bounded[name]["all patients"] for name in means}},
        rescaled=None if rescaled is None else rescaled.significant,
        n_subgroups=len(subgroups),
        n_patients=n,
        alpha=float(alpha),
        level=float(level),
        horizon=at,
        counted_until=None if horizon is None else float(horizon),
        notes=notes,
        subgroups=subgroups,
    )


def judged_subgroups(table: pd.DataFrame, patients: _Patients, least: float) -> Subgroups:
    """Subgroups of a table with at least so many patients, by weight, and 10 predicted events."""
    subgroups = Subgroups(CodedTable.from_table(table, N_CUTS, MOST_LEVELS))
    # Events predicted until the censoring times, which do not depend on what happened.
    predicted = -np.expm1(-patients.limit)
    counts = subgroups.sums(np.column_stack([patients.weight, patients.weight * predicted]))
    subgroups.keep((counts[:, 0] >= least - 1e-9) & (counts[:, 1] >= LEAST_EXPECTED))
    return subgroups


def significant_subgroups(
    curves: SurvivalCurves,
    target: Target,
    table: pd.DataFrame,
    least: float,
    level: float,
    n_replicates: int,
    rng: np.random.Generator,
) -> tuple[tuple[Rule, ...], pd.DataFrame]:
    """Subgroups with significantly more or fewer events than predicted, the most significant first; see `certify`.

    Of the subgroups of a table with at least so many patients and 10 predicted events: rules, and their rows as in
    ``SubgroupBounds.significant``.
    """
    patients = _Patients.of(curves, target, np.ones(len(target)), None, None, rng)
    subgroups = judged_subgroups(table, patients, least)
    if len(subgroups) == 0:
        return (), pd.DataFrame()
    test = _test(subgroups, patients, level, n_replicates, rng)
    return test.rules, test.significant


def _refuse(removed: dict[str, Any]) -> None:
    for name in removed:
        if name in _REMOVED:
            raise ArgumentError(name, f"{name} is no longer an argument of certify: {_REMOVED[name]}.")
        raise TypeError(f"certify() got an unexpected keyword argument {name!r}")


class _Patients(NamedTuple):
    """Weighted events of n patients, observed and expected, and what is needed to draw events from the model.

    `limit` (n,) is the model's cumulative hazard at the censoring time. Where curves have few jumps, `jumps` (n, K) are
    the cumulative hazards after each, and `limit_jump` (n,) is how many come before the censoring time.
    """

    weight: FloatArray
    events: FloatArray
    expected: FloatArray
    limit: FloatArray
    jumps: FloatArray
    limit_jump: IntArray
    clusters: IntArray | None

    @staticmethod
    def of(
        curves: SurvivalCurves,
        target: Target,
        weight: FloatArray,
        horizon: float | None,
        clusters: Any,
        rng: np.random.Generator,
    ) -> _Patients:
        n = len(target)
        censored_at = censoring_times(target, weight, rng)
        if horizon is not None:
            require(0 < as_number(horizon) < np.inf, "horizon", "be a time above 0", horizon)
            if horizon >= target.time.max():
                raise ArgumentError(
                    "horizon",
                    f"horizon={horizon:g} must lie before the longest time in y, {target.time.max():g}.",
                )
            target = Target(target.event & (target.time <= horizon), np.minimum(target.time, horizon))
            censored_at = np.minimum(censored_at, horizon)
        # Completed from the patients whose events are counted.
        curves = known_everywhere(curves, target, weight)
        events, expected = expected_events(curves, target)
        censored_at = np.minimum(censored_at, curve_ends(curves))
        jumps, limit_jump = np.empty((n, 0)), np.zeros(n, dtype=np.intp)
        times = curves.jumps
        if curves.curve_type == "step" and times is not None and len(times) <= _FEW_JUMPS:
            jumps = cumulative_hazard(curves.at(times))
            limit_jump = np.searchsorted(times, censored_at, side="right")
        codes = None if clusters is None else label_codes("clusters", clusters, n)[0]
        limit = cumulative_hazard(curves.at_patient_times(censored_at))
        return _Patients(weight, events, expected, limit, jumps, limit_jump, codes)

    def rescaled(self, ratio: float) -> _Patients:
        """The same after the model's hazards were multiplied by a number."""
        return self._replace(
            expected=self.expected * ratio, limit=self.limit * ratio, jumps=self.jumps * ratio
        )

    def draw(self, rows: slice, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Weighted events and expected events of patients drawn from the model, (m, 2 n_draws)."""
        unit = rng.standard_exponential((len(self.weight[rows]), n_draws))
        return _draw(unit, self.weight[rows], self.limit[rows], self.jumps[rows], self.limit_jump[rows])

    def multipliers(self, n_draws: int, rng: np.random.Generator) -> Callable[[slice], FloatArray]:
        """Standard normal multipliers (m, n_draws) of some rows at a time, the same for rows of a cluster."""
        if self.clusters is None:
            return lambda rows: rng.standard_normal((len(self.weight[rows]), n_draws))
        clusters = self.clusters
        drawn = rng.standard_normal((int(clusters.max()) + 1, n_draws))
        return lambda rows: drawn[clusters[rows]]


@numba.njit(cache=True, nogil=True)
def _draw(
    unit: FloatArray, weight: FloatArray, limit: FloatArray, jumps: FloatArray, limit_jump: IntArray
) -> FloatArray:
    """Events until the cumulative hazard reaches a unit exponential variable, and the expected events until then."""
    n, k = unit.shape
    out = np.empty((n, 2 * k))
    n_jumps = jumps.shape[1]
    for i in range(n):
        for j in range(k):
            out[i, j] = weight[i] if unit[i, j] <= limit[i] else 0.0
            if n_jumps == 0:
                out[i, k + j] = weight[i] * min(unit[i, j], limit[i])
                continue
            expected, before = 0.0, 0.0
            for m in range(limit_jump[i]):
                expected -= np.expm1(before - jumps[i, m])
                before = jumps[i, m]
                if before >= unit[i, j]:
                    break
            out[i, k + j] = weight[i] * expected
    return out


def censoring_times(target: Target, weight: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Censoring time (n,) of each patient: as observed, or, after an event, drawn from the Kaplan-Meier curve.

    A censoring time made so is independent of the event time, if censoring is, and what was observed is what would
    have been observed with it.
    """
    _, censoring = KaplanMeier.both(target, weight)
    before = np.concatenate([[1.0], censoring.survival])[
        np.searchsorted(censoring.times, target.time, side="left")
    ]
    reached = rng.random(len(target)) * before
    place = np.searchsorted(-censoring.survival, -reached, side="left")
    drawn = np.append(censoring.times, target.time.max())[place]
    return np.where(target.event, np.maximum(drawn, target.time), target.time)


def signed_root_deviance(observed: FloatArray, expected: FloatArray, scale: FloatArray) -> FloatArray:
    """Signed root of the Poisson deviance of observed events, over a scale: about standard normal if all is right."""
    safe = np.maximum(expected, 1e-12)
    deviance = 2 * (xlogy(observed, np.maximum(observed, 1e-300) / safe) - (observed - safe))
    root: FloatArray = np.sign(observed - safe) * np.sqrt(np.maximum(deviance, 0.0) / scale)
    return root


@numba.njit(cache=True, nogil=True)
def _extremes(sums: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Largest and smallest signed root of the deviance over subgroups, each (k,), from sums (G, 2 k)."""
    k = sums.shape[1] // 2
    high, low = np.full(k, -np.inf), np.full(k, np.inf)
    for g in range(len(sums)):
        for j in range(k):
            observed, expected = sums[g, j], max(sums[g, k + j], 1e-12)
            deviance = 2.0 * (expected - observed)
            # Sums that were subtracted from one another are 0 only up to rounding.
            if observed > 1e-9:
                deviance += 2.0 * observed * np.log(observed / expected)
            z = np.sqrt(max(deviance, 0.0) / scale[g])
            if observed > expected:
                high[j] = max(high[j], z)
            else:
                low[j] = min(low[j], -z)
    return high, low


T = TypeVar("T")


def _replicates(
    work: Callable[[int, np.random.Generator], T],
    subgroups: Subgroups,
    n_replicates: int,
    n_patients: int,
    rng: np.random.Generator,
) -> list[T]:
    """What is found in each batch of replicates, in threads; the same whatever their number."""
    sizes, streams = subgroups.batches(n_replicates), seed_sequence(rng)

    def batch(number: int) -> T:
        return work(sizes[number], replicate_rng(streams, number))

    return list(in_parallel(batch, len(sizes), None, n_patients))


def model_errors(
    model: Any, X: Any, patients: _Patients, subgroups: Subgroups, follow_up: FollowUp
) -> tuple[FloatArray, float]:
    """Variance that the error of a fitted model adds, over that of the events: of each subgroup, and of everybody.

    0 where the training patients are not known, or are the tested ones (predictions in folds).
    """
    trained = follow_up.training_events
    if trained is None or isinstance(model, Predictions):
        return np.zeros(len(subgroups)), 0.0
    expected = patients.weight * patients.expected
    everybody = float(expected.sum() / trained)
    columns = linear_columns(model, X)
    each = np.ones((len(expected), 1)) if columns is None else columns
    sums = subgroups.sums(expected[:, None] * each)
    return sums[:, 0] / (trained * estimation_share(columns, expected, sums)), everybody


class _Test(NamedTuple):
    bounds: dict[str, dict[str, Any]]
    significant: pd.DataFrame
    rules: tuple[Rule, ...]
    overall: dict[str, float]


def _test(
    subgroups: Subgroups,
    patients: _Patients,
    level: float,
    n_replicates: int,
    rng: np.random.Generator,
    model_error: tuple[FloatArray, float] | None = None,
) -> _Test:
    """Observed against expected events: bounds on the ratio, significant subgroups, and everybody together."""
    w, d, e = patients.weight, patients.events, patients.expected
    sizes, observed, expected, squares = subgroups.sums(
        np.column_stack([np.ones(len(w)), w * d, w * e, w * w * e])
    ).T
    scale = squares / expected
    # With clusters, divided by how much more the events of a subgroup vary than those of independent patients.
    effect, effect_all = _design_effects(subgroups, patients, rng)
    error, error_all = model_error or (np.zeros(len(subgroups)), 0.0)
    z = signed_root_deviance(observed, expected, scale * (effect + error))
    scale_all = np.array((w * w * e).sum() / (w @ e))
    z_all = signed_root_deviance(np.array([w @ d]), np.array([w @ e]), scale_all * (effect_all + error_all))

    def extremes(k: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        """Statistics of k replicates: the largest and minus the smallest of subgroups, and that of everybody."""
        totals = np.zeros(2 * k)

        def values(rows: slice) -> FloatArray:
            drawn = patients.draw(rows, k, rng)
            np.add(totals, drawn.sum(axis=0), out=totals)
            return drawn

        high, low = _extremes(subgroups.sums_of_parts(2 * k, values), scale)
        return high, -low, abs(signed_root_deviance(totals[:k], totals[k:], scale_all))

    drawn = _replicates(extremes, subgroups, n_replicates, len(w), rng)
    upper, lower, everybody = (np.sort(np.concatenate(one)) for one in zip(*drawn, strict=True))
    p = np.minimum(2 * np.minimum(_p_values(z, upper), _p_values(-z, lower)), 1.0)
    side = (1 + level) / 2
    high = _ratio_at(observed, expected, scale * effect, -_quantile(lower, side))
    low = _ratio_at(observed, expected, scale * effect, _quantile(upper, side))
    ratio = observed / expected
    worst, best = int(high.argmax()), int(low.argmin())
    bounds = {
        MOST: {"estimate": ratio.max(), "bound": high[worst], "group": str(subgroups.rule(worst))},
        LEAST: {"estimate": ratio.min(), "bound": low[best], "group": str(subgroups.rule(best))},
    }
    # Of subgroups with the same p-value the one that deviates most comes first.
    order = np.lexsort((-abs(z), p))
    found: list[int] = order[p[order] <= 1 - level].tolist()
    significant = pd.DataFrame(
        {
            "group": [str(subgroups.rule(g)) for g in found],
            "patients": np.rint(sizes[found]).astype(int),
            "observed": observed[found],
            "expected": expected[found],
            "ratio": ratio[found],
            "p": p[found],
        }
    )
    total = {"observed": float(w @ d), "expected": float(w @ e), "ratio": float((w @ d) / (w @ e))}
    total["p"] = float(_p_values(abs(z_all), everybody)[0])
    return _Test(bounds, significant, tuple(subgroups.rule(g) for g in found), total)


def _p_values(statistic: FloatArray, drawn: FloatArray) -> FloatArray:
    """Monte Carlo p-values (k + 1) / (B + 1) from sorted draws (B,)."""
    larger = len(drawn) - np.searchsorted(drawn, statistic, side="left")
    p: FloatArray = (larger + np.float64(1)) / (len(drawn) + 1)
    return p


def _quantile(drawn: FloatArray, share: float) -> float:
    """Order statistic of sorted draws (B,) that a further one exceeds with probability 1 - share at most."""
    return float(drawn[min(int(np.ceil((len(drawn) + 1) * share)), len(drawn)) - 1])


def _ratio_at(observed: FloatArray, expected: FloatArray, scale: FloatArray, z: float) -> FloatArray:
    """Ratios by which expected events must be multiplied for the statistic to be z, by bisection."""
    far = np.full(len(observed), abs(z) * np.sqrt(scale))
    low, high = (
        np.full(len(observed), 1e-9),
        (observed + far**2 + 2 * far * np.sqrt(observed + 1) + 10) / expected,
    )
    for _ in range(60):
        middle = (low + high) / 2
        # The statistic falls as more events are expected.
        above = signed_root_deviance(observed, middle * expected, scale) > z
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    ratio: FloatArray = (low + high) / 2
    return ratio


def _design_effects(
    subgroups: Subgroups, patients: _Patients, rng: np.random.Generator
) -> tuple[FloatArray, float]:
    """Variance of the events of each subgroup, and of all patients, over that of independent patients, at least 1.

    1 without clusters; else estimated by multipliers that the rows of a cluster share.
    """
    if patients.clusters is None:
        return np.ones(len(subgroups)), 1.0
    w, d, e = patients.weight, patients.events, patients.expected
    values = np.column_stack([w * d, w * e, w * w * e])
    # Everybody is one more subgroup.
    observed, expected, squares = np.vstack([subgroups.sums(values), values.sum(axis=0)]).T
    ratio, variance = (observed / expected)[:, None], np.zeros(len(observed))
    for k in subgroups.batches(_CLUSTER_REPLICATES):
        xi = patients.multipliers(k, rng)(slice(None))
        drawn = np.hstack([xi * values[:, [0]], xi * values[:, [1]]])
        sums = np.vstack([subgroups.sums(drawn), drawn.sum(axis=0)])
        variance += ((sums[:, :k] - ratio * sums[:, k:]) ** 2).sum(axis=1)
    effect = np.maximum(variance / _CLUSTER_REPLICATES / np.maximum(ratio[:, 0] * squares, 1e-12), 1.0)
    return effect[:-1], float(effect[-1])


def brier_losses(curves: SurvivalCurves, target: Target, horizon: float, weight: FloatArray) -> FloatArray:
    r"""Squared errors (n,) of the survival predicted at a horizon, weighted by the inverse probability of censoring.

    .. math:: w_i = \frac{1[Y_i \le t, d_i = 1]}{G(Y_i-)} + \frac{1[Y_i > t]}{G(t)}
    """
    _, censoring = KaplanMeier.both(target, weight)
    known = np.concatenate([[1.0], censoring.survival])
    before = known[np.searchsorted(censoring.times, target.time, side="left")]
    at_horizon = float(known[np.searchsorted(censoring.times, horizon, side="right")])
    alive = target.time > horizon
    survival = curves.at(np.array([horizon]))[:, 0]
    inverse = np.where(
        alive, 1 / max(at_horizon, 1e-12), np.where(target.event, 1 / np.maximum(before, 1e-12), 0.0)
    )
    return inverse * (alive - survival) ** 2


def _bounded_means(
    subgroups: Subgroups,
    values: dict[str, FloatArray],
    patients: _Patients,
    level: float,
    n_replicates: int,
    rng: np.random.Generator,
) -> dict[str, dict[str, Any]]:
    """Largest mean of each value over subgroups, and its bound: the largest mean plus reach of its error."""
    w, names = patients.weight, list(values)
    v = np.column_stack([w * values[name] for name in names])
    m = len(names)
    sums = subgroups.sums(np.column_stack([w, w * w, v, v * w[:, None], v * v]))
    total, mean = sums[:, :1], sums[:, 2 : 2 + m] / sums[:, :1]
    variance = sums[:, 2 + 2 * m :] - 2 * mean * sums[:, 2 + m : 2 + 2 * m] + mean**2 * sums[:, 1:2]

    def deviations(k: int, rng: np.random.Generator) -> FloatArray:
        """Sums of the multiplied deviations from the mean, (G, m, k)."""
        multipliers = patients.multipliers(k, rng)

        def values(rows: slice) -> FloatArray:
            xi = multipliers(rows)
            return np.hstack([xi * w[rows, None], *(xi * v[rows, j, None] for j in range(m))])

        drawn = subgroups.sums_of_parts((m + 1) * k, values).reshape(len(subgroups), m + 1, k)
        return drawn[:, 1:] - mean[:, :, None] * drawn[:, :1]

    if patients.clusters is not None:
        parts = [(deviations(k, rng) ** 2).sum(axis=2) for k in subgroups.batches(_CLUSTER_REPLICATES)]
        variance = np.sum(parts, axis=0) / _CLUSTER_REPLICATES
    error = np.sqrt(np.maximum(variance, 1e-18))

    def extremes(k: int, rng: np.random.Generator) -> FloatArray:
        largest: FloatArray = (deviations(k, rng) / error[:, :, None]).max(axis=0)
        return largest

    largest = _replicates(extremes, subgroups, n_replicates, len(w), rng)
    reach = [_quantile(np.sort(one), level) for one in np.concatenate(largest, axis=1)]
    found = {}
    for j, name in enumerate(names):
        bound = mean[:, j] + reach[j] * error[:, j] / total[:, 0]
        worst = int(bound.argmax())
        found[name] = {
            "estimate": mean[:, j].max(),
            "bound": bound[worst],
            "group": str(subgroups.rule(worst)),
            "all patients": float(v[:, j].sum() / w.sum()),
        }
    return found


@dataclass(frozen=True, eq=False, repr=False)
class SubgroupBounds:
    """Bounds on how wrong a model is in any subgroup that one or two conditions define, from :func:`certify`.

    Parameters
    ----------
    bounds : DataFrame
        Rows "observed/expected, most", "observed/expected, least", "brier" and "gain"; columns estimate and bound, the
        most extreme over all subgroups, and group, that of the bound. No subgroup is beyond the bound, with confidence
        `level` for all subgroups at once.
    significant : DataFrame
        Subgroups with more or fewer events than expected after adjustment for all subgroups: group, patients,
        observed, expected, ratio, p (adjusted). Empty where there are none.
    rules : tuple of Rule
        The groups of `significant`.
    overall : dict
        All patients together: observed, expected, ratio, p, brier, gain.
    rescaled : DataFrame or None
        As `significant` after the model's hazards were multiplied by the overall ratio; None where the model is not
        significantly wrong for all patients together.
    n_subgroups, n_patients : int
        Subgroups that were tested at once, and patients.
    alpha, level : float
        As given.
    horizon : float
        Time of the Brier score.
    counted_until : float or None
        Time until which events were counted; None for the whole follow-up.
    notes : tuple of str
        How patients with entry times or several rows were judged.
    subgroups : Subgroups
        The subgroups that were tested.
    """

    bounds: pd.DataFrame
    significant: pd.DataFrame
    rules: tuple[Rule, ...]
    overall: dict[str, float]
    rescaled: pd.DataFrame | None
    n_subgroups: int
    n_patients: int
    alpha: float
    level: float
    horizon: float
    counted_until: float | None = None
    notes: tuple[str, ...] = ()
    subgroups: Subgroups | None = None

    def adjusted(self, factor: float, *, rescaled: bool) -> SubgroupBounds:
        """The same where p-values are multiplied by a factor, for further tests of the same patients.

        `rescaled` says whether these tests find the model wrong for all patients together.
        """

        def kept(found: pd.DataFrame) -> pd.DataFrame:
            more = found.assign(p=np.minimum(found["p"] * factor, 1.0)) if len(found) else found
            return more[more["p"] <= 1 - self.level] if len(found) else more

        significant = kept(self.significant)
        return replace(
            self,
            significant=significant,
            rules=self.rules[: len(significant)],
            rescaled=kept(self.rescaled) if rescaled and self.rescaled is not None else None,
        )

    def summary(self, time_unit: str = "", *, overall: bool = True) -> str:
        """What was found, and what can be excluded, in sentences; `overall` includes all patients together."""
        sentences = []
        everybody = self.overall
        wrong = self.rescaled is not None
        if wrong and overall:
            sentences.append(
                f"All patients together have {everybody['ratio']:.2f} times the predicted events "
                f"(p = {_p(everybody['p'])}): the model is wrong for everybody."
            )
        found = self.rescaled if self.rescaled is not None else self.significant
        after = f"After its hazards are multiplied by {everybody['ratio']:.2f}, " if wrong else ""
        if len(found):
            shown = "; ".join(_described(row) for row in found.head(_SHOWN).to_dict("records"))
            more = f"; and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
            verb = "differs" if len(found) == 1 else "differ"
            differ = f"{counted(len(found), 'subgroup')} {verb} significantly from what the model predicts"
            sentences.append(f"{after}{differ}: {shown}{more}.")
        else:
            none = "no subgroup differs significantly from what the model predicts."
            sentences.append(f"{after}{none}" if after else f"N{none[1:]}")
        bound = self.bounds["bound"]
        sentences += [
            f"With {100 * self.level:g} % confidence, of the {self.n_subgroups:,} subgroups of at least "
            f"{100 * self.alpha:g} % of the {self.n_patients:,} patients that one or two conditions define:",
            f"none has more than {_up(bound[MOST]):.2f} times, or fewer than {_down(bound[LEAST]):.2f} times, the "
            f"predicted events{self._until(time_unit)} (all patients: {everybody['ratio']:.2f} times);",
            f"none has a Brier score above {_up(bound[BRIER], 3):.3f} at {moment(self.horizon, time_unit)} (all "
            f"patients: {everybody[BRIER]:.3f});",
            f"none gains less than {_down(bound[GAIN]):.2f} in log likelihood per patient over no model (all "
            f"patients: {everybody[GAIN]:.2f}).",
            "Not covered: subgroups that more than two columns, finer cuts or unmeasured columns define.",
        ]
        return "\n".join([*sentences, *self.notes])

    def _until(self, time_unit: str) -> str:
        return "" if self.counted_until is None else f" until {moment(self.counted_until, time_unit)}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, texts, lists and dicts, as JSON takes them."""
        return {
            "bounds": {
                str(name): {
                    "estimate": float(row["estimate"]),
                    "bound": float(row["bound"]),
                    "group": row["group"],
                }
                for name, row in self.bounds.iterrows()
            },
            "significant": self.significant.to_dict("records"),
            "rescaled": None if self.rescaled is None else self.rescaled.to_dict("records"),
            "overall": dict(self.overall),
            "n_subgroups": self.n_subgroups,
            "n_patients": self.n_patients,
            "alpha": self.alpha,
            "level": self.level,
            "horizon": self.horizon,
            "counted_until": self.counted_until,
            "notes": list(self.notes),
        }

    def to_table(self) -> Table:
        """The bounds as readers see them."""
        columns = (
            Column("measure", "measure"),
            Column("all", "all patients", "value"),
            Column("estimate", "most extreme subgroup", "value"),
            Column("bound", "no subgroup is beyond", "value"),
            Column("group", "subgroup of the bound"),
        )
        everybody = {MOST: "ratio", LEAST: "ratio", BRIER: BRIER, GAIN: GAIN}
        rows: list[dict[str, Any]] = [
            {
                "measure": name,
                "all": self.overall[everybody[str(name)]],
                **row[["estimate", "bound", "group"]],
            }
            for name, row in self.bounds.iterrows()
        ]
        caption = (
            f"{self.n_subgroups:,} subgroups of at least {100 * self.alpha:g} % of {self.n_patients:,} patients, "
            f"{100 * self.level:g} % confidence for all at once"
        )
        return Table("subgroup_bounds", caption, columns, tuple(rows), tuple(self.summary().split("\n")))

    def __repr__(self) -> str:
        return self.to_table().to_text()

    def _repr_html_(self) -> str:
        return self.to_table().to_html()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Observed / expected events: of all patients, of significant subgroups, and the bounds for any subgroup."""
        ax = axes_or_new(ax)
        found = self.significant.head(_SHOWN)
        names = ["any subgroup", "all patients", *map(str, found["group"])]
        estimate, bound = self.bounds["estimate"], self.bounds["bound"]
        ax.plot([bound[LEAST], bound[MOST]], [0, 0], color="0.6", label=f"{100 * self.level:g} % bounds")
        ax.plot([estimate[LEAST], estimate[MOST]], [0, 0], "|", color="0.3", label="most extreme observed")
        ax.plot(self.overall["ratio"], 1, "o", color="0.3")
        ax.plot(
            found["ratio"], range(2, len(names)), "o", color="C3", label="significant" if len(found) else None
        )
        ax.axvline(1, color="0.3", linewidth=0.8)
        ax.set_xscale("log")
        # A dollar sign in a name is a dollar sign.
        ax.set_yticks(range(len(names)), names, parse_math=False)
        ax.invert_yaxis()
        ax.set_xlabel("events observed / expected")
        ax.legend()
        return ax


# Significant subgroups that are listed in a sentence or figure.
_SHOWN = 5


def _described(row: Mapping[Any, Any]) -> str:
    return (
        f"{row['group']} ({row['observed']:.4g} events, {row['expected']:.1f} expected, {row['ratio']:.2f} times, "
        f"p = {_p(row['p'])})"
    )


def _p(value: float) -> str:
    return f"{value:.3f}"


def _up(value: float, digits: int = 2) -> float:
    """Rounded up, so that a bound stays one."""
    return float(np.ceil(value * 10**digits - 1e-9) / 10**digits)


def _down(value: float, digits: int = 2) -> float:
    return float(np.floor(value * 10**digits + 1e-9) / 10**digits)
