"""Cumulative/dynamic AUC: how well scores separate, at each time, patients with the event from those without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from drosurv.metrics.estimates import Estimate
from drosurv.metrics.follow_up import FollowUp, Grid, auc_times, auc_times_of
from drosurv.metrics.nonparametric import Incidence, KaplanMeier, free_until
from drosurv.metrics.pair_order import HARRELL_TOLERANCE
from drosurv.metrics.scores import parse_scored, warn_undefined
from drosurv.patients.arrays import batches, stable_order
from drosurv.patients.target import BoolArray, FloatArray, Target

# Times and patients whose AUC is computed at once.
_CELLS = 1_000_000


@dataclass(frozen=True, eq=False)
class AUCCurve:
    """AUC (k,) at each of the times (k,), and its mean over time.

    An AUC is NaN where nobody had the event by then, or nobody was observed longer. In the mean, each time is weighted
    by the share of patients who had the event since the previous time.
    """

    times: FloatArray
    auc: FloatArray
    mean: float


def dynamic_auc(
    y_train: Any,
    y_test: Any,
    risk: Any,
    times: Any = None,
    *,
    grid: Grid = "inside",
    sample_weight: Any = None,
) -> float:
    r"""Mean cumulative/dynamic AUC over time, censoring weights from the training patients.

    .. math:: AUC(t) = \frac{\sum_{i: Y_i \le t, \delta_i = 1} \sum_{j: T_j > t} \hat G(Y_i-)^{-1}
                             \left( 1[f_i > f_j] + \tfrac12 1[f_i \approx f_j] \right)}
                            {\sum_{i: Y_i \le t, \delta_i = 1} \hat G(Y_i-)^{-1} \; \sum_j 1[T_j > t]},
              \qquad \frac{1}{1 - \hat S(t_k)} \sum_{m=1}^k (\hat S(t_{m-1}) - \hat S(t_m)) AUC(t_m)

    where T > t is known if the patient was observed longer than t, or censored at t. It equals scikit-survival's
    ``cumulative_dynamic_auc`` if no censoring has the time of an event or is one of the `times`, or with
    ``grid="table"``; :func:`integrated_brier_score` explains the difference. Patients observed beyond the training
    follow-up are censored where it ends, which changes no AUC up to then.

    Parameters
    ----------
    y_train : structured array or FollowUp
        Training targets, for the censoring distribution.
    y_test, risk
        Target and scores of the test patients, as in :func:`concordance_index`.
    times : (k,) array, optional
        Times at which to compute the AUC. They must lie between the first event and the end of follow-up.
    grid : "inside" or "table"
        Which times to use when none are given (see :func:`~drosurv.metrics.follow_up.auc_times`), and how ties of
        events and censoring are weighted.
    sample_weight : (n,) array, optional
        Patient weights; weight 2 counts a patient twice.

    Returns
    -------
    float
        NaN, with a warning, if there is no time within the training follow-up by which one patient had the event
        while another was still observed.

    References
    ----------
    Uno, Cai, Tian, Wei (2007), Evaluating prediction rules for t-year survivors with censored regression
    models, JASA 102. Lambert, Chevret (2016), Summary measure of discrimination in survival models based on
    cumulative/dynamic time-dependent ROC curves, Statistical Methods in Medical Research 25.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> dynamic_auc(y, y, [4.0, 1.0, 3.0, 2.0], times=[1.5, 2.5])
    0.75
    """
    curve = dynamic_auc_curve(y_train, y_test, risk, times, grid=grid, sample_weight=sample_weight)
    return curve.mean


def dynamic_auc_curve(
    y_train: Any,
    y_test: Any,
    risk: Any,
    times: Any = None,
    *,
    grid: Grid = "inside",
    sample_weight: Any = None,
) -> AUCCurve:
    """AUC at every time and their mean; parameters as in :func:`dynamic_auc`."""
    follow_up = FollowUp.parse(y_train)
    scored = parse_scored(y_test, risk, sample_weight)
    target, order = scored.target.until(follow_up.end), stable_order(scored.risk)
    at = auc_times(follow_up, scored.target, times, grid) if target.event.any() else np.empty(0)
    # Patients with an event of another cause stay free of this one, with their weight.
    weights = follow_up.censoring_weights(target, at, published=grid == "table")
    auc = np.full(len(at), np.nan)
    _write_auc(
        weights.free_until[order],
        target.event[order] | ~target.ended[order],
        weights.event[order],
        scored.risk[order],
        scored.weight[order],
        at,
        1.0 / weights.free,
        HARRELL_TOLERANCE,
        auc,
    )
    mean = _mean(auc, KaplanMeier.of(target, scored.weight).at(at))
    if np.isnan(mean):
        warn_undefined(
            f"the dynamic AUC is undefined (NaN): there is no time within the training follow-up, which ends at "
            f"{follow_up.end:g}, before which one of the {len(scored)} patients had the event while another did not."
        )
    return AUCCurve(at, auc, mean)


def auc_estimate(
    target: Target,
    risk: FloatArray,
    times: FloatArray,
    weight: FloatArray | None = None,
) -> Estimate:
    """Mean AUC over k times as :func:`dynamic_auc` defines it, with the influence of each of n patients.

    The censoring distribution is that of these patients, and influences include that on its estimate. Times by which
    nobody had the event, or at which nobody is known to be free of it, are left out; NaN without any other time.
    """
    weight = np.ones(len(target)) if weight is None else weight
    counted = weight > 0
    at = auc_times_of(target.take(counted), times)
    if len(at) == 0:
        return Estimate.undefined(len(target))
    order = stable_order(risk)
    sorted_target, mass = target.take(order), weight[order]
    censoring, curve = Incidence.of_censoring(target, weight), Incidence.of(target, weight)
    observed, free = censoring.free_at(sorted_target.time), censoring.free_at(at)
    inverse = np.divide(1.0, observed, out=np.zeros(len(order)), where=sorted_target.ended & (observed > 0))
    until = free_until(sorted_target)
    # Patients of positions first to last - 1 in the order are tied with each patient.
    new = np.concatenate(([True], np.diff(risk[order]) > HARRELL_TOLERANCE))
    starts = np.append(np.flatnonzero(new), len(order))
    first, last = starts[np.cumsum(new) - 1], starts[np.cumsum(new)]

    def below(values: FloatArray) -> FloatArray:
        """Return sums of values (q, n) of patients with lower scores, and half of those with tied ones, (q, n)."""
        sums = np.zeros((len(values), len(order) + 1))
        np.cumsum(values, axis=1, out=sums[:, 1:])
        found: FloatArray = (sums[:, first] + sums[:, last]) / 2
        return found

    incidence = np.diff(curve.at(at), prepend=0.0)
    share = incidence / incidence.sum() if len(at) > 1 and incidence.sum() > 0 else np.ones(len(at))
    auc, own, of_ended, of_times = np.full(len(at), np.nan), *np.zeros((2, len(order))), np.zeros(len(at))
    known, others = mass * inverse * sorted_target.event, mass * inverse * ~sorted_target.event
    for some in batches(len(at), max(_CELLS // len(order), 1)):
        ended = until <= at[some, None]
        cases, controls = ended * known, np.where(ended, others * free[some, None], mass)
        n_cases, n_controls = (each.sum(axis=1, keepdims=True) for each in (cases, controls))
        defined = (n_cases > 0) & (n_controls > 0)
        n_cases, n_controls = (np.where(defined, each, 1.0) for each in (n_cases, n_controls))
        lower = below(controls) / n_controls
        here = (cases * lower).sum(axis=1, keepdims=True) / n_cases
        auc[some] = np.where(defined, here, np.nan)[:, 0]
        counted_share = np.where(defined, share[some, None], 0.0)
        of_cases = counted_share * cases * (lower - here) / n_cases
        parts = counted_share * controls * ((n_cases - below(cases)) / n_cases - here) / n_controls
        of_controls = np.where(ended, parts, 0.0)
        own += (of_cases + parts).sum(axis=0)
        of_ended += (of_cases + of_controls).sum(axis=0)
        of_times[some] = -of_controls.sum(axis=1)
    mean = float(auc[0]) if len(at) == 1 else float((share * auc)[share > 0].sum())
    if np.isnan(mean):
        return Estimate.undefined(len(target))
    influence = np.empty(len(order))
    influence[order] = own
    terms = np.concatenate([of_ended, of_times])
    change = censoring.derivative_of_inverse(np.concatenate([sorted_target.time, at]), terms)
    if len(at) > 1:
        # The shares of the times depend on the incidence.
        apart = np.where(share > 0, np.nan_to_num(auc) - mean, 0.0) / incidence.sum()
        change += curve.derivative(at, apart - np.append(apart[1:], 0.0))
    events = np.count_nonzero(target.event & (target.time <= at[-1]) & counted)
    return Estimate(mean, influence + weight * change, "logit", events - 1.0)


def _mean(auc: FloatArray, survival: FloatArray) -> float:
    if len(auc) == 1:
        return float(auc[0])
    weights = -np.diff(survival, prepend=1.0)
    # The AUC is undefined at times before the first event; their weight is 0.
    total = float(weights.sum())
    return float((weights * auc)[weights > 0].sum() / total) if total > 0 else float("nan")


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _write_auc(
    free_until: FloatArray,
    happened: BoolArray,
    inverse: FloatArray,
    risk: FloatArray,
    weight: FloatArray,
    at: FloatArray,
    uncensored: FloatArray,
    tolerance: float,
    auc: FloatArray,
) -> None:
    """Write the AUC at each time where it is defined, of patients sorted by risk; those within `tolerance` are tied.

    Until `free_until` (n,), censored at the end of the training follow-up, patients are known to be free of any event.
    If this one then `happened` (n,), they count by the `inverse` (n,) probability of being uncensored; `uncensored`
    (k,) is one over the weight of other patients who are free of it.
    """
    for m in range(len(at)):
        concordant = 0.0
        cases = 0.0
        controls = 0.0
        start = 0
        while start < len(risk):
            stop = start
            cases_here = 0.0
            controls_here = 0.0
            while stop < len(risk) and (stop == start or risk[stop] - risk[stop - 1] <= tolerance):
                if free_until[stop] > at[m]:
                    controls_here += weight[stop]
                elif not happened[stop]:
                    controls_here += weight[stop] * inverse[stop] * uncensored[m]
                else:
                    cases_here += weight[stop] * inverse[stop]
                stop += 1
            concordant += cases_here * (controls + 0.5 * controls_here)
            cases += cases_here
            controls += controls_here
            start = stop
        if cases > 0.0 and controls > 0.0:
            auc[m] = concordant / (cases * controls)
