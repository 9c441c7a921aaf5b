"""Uno's concordance: Harrell's, freed from the censoring of the patients it is scored on."""

from __future__ import annotations

from typing import Any

from drosurv.metrics.follow_up import FollowUp
from drosurv.metrics.pair_order import PairOrder
from drosurv.metrics.scores import parse_scored, warn_undefined


def uno_concordance(
    y_train: Any, y_test: Any, risk: Any, *, tau: float | None = None, sample_weight: Any = None
) -> float:
    r"""Concordance with each pair weighted by the inverse probability of having been observed.

    .. math:: C_\tau = \frac{\sum_{(i,j): Y_i < \tau} \hat G(Y_i)^{-2} \left( 1[f_i > f_j]
                             + \tfrac12 1[f_i \approx f_j] \right)}{\sum_{(i,j): Y_i < \tau} \hat G(Y_i)^{-2}}

    over Harrell's pairs, with G the training patients' chance of still being observed.

    Parameters
    ----------
    y_train : structured array or FollowUp
        Training targets, for the censoring distribution.
    y_test : structured array, (n,)
        Event flags and times of the scored patients.
    risk : (n,) array
        Risk scores; higher means sooner.
    tau : float, optional
        Only events before it count. By default all events whose censoring weight the training follow-up
        gives; later ones are known to be longer than the others, and are compared as such.
    sample_weight : (n,) array, optional
        Patient weights; a pair weighs the product of its patients' weights.

    Returns
    -------
    float
        Equal to scikit-survival's ``concordance_index_ipcw`` where that does not refuse; NaN, with a warning,
        if no pair is comparable.

    References
    ----------
    Uno, Cai, Pencina, D'Agostino, Wei (2011), On the C-statistics for evaluating overall adequacy of risk
    prediction procedures with censored survival data, Statistics in Medicine 30.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, False], [1.0, 2.0, 3.0])
    >>> uno_concordance(y, y, [2.0, 0.0, 1.0])
    0.6666666666666666
    """
    follow_up = FollowUp.parse(y_train)
    scored = parse_scored(y_test, risk, sample_weight)
    if tau is not None and tau > follow_up.end:
        raise ValueError(
            f"tau={tau:g} lies beyond the training follow-up, which ends at {follow_up.end:g}: choose tau "
            "up to there, or leave tau=None."
        )
    weights = follow_up.inverse_probability(scored.target) ** 2
    if tau is not None:
        weights[scored.target.time >= tau] = 0.0
    order = PairOrder.for_harrell(scored.target, scored.risk)
    numerator, denominator = order.harrell_sums(scored.weight, weights)
    if denominator == 0:
        warn_undefined(
            f"Uno's concordance is undefined (NaN): no pair of the {len(scored)} patients is comparable "
            f"before {follow_up.end if tau is None else tau:g}."
        )
        return float("nan")
    return numerator / denominator
