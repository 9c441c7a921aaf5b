"""Cox's log partial likelihood as a score of held-out patients, and how much of it a model gains over no model.

F_I, F_G and F_cap fall when every score is multiplied by c < 1. So a fairness number is read beside the likelihood
that the model still gains over saying nothing: has it become fair-looking only by saying less?
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from drosurv.errors import require
from drosurv.metrics.cox_newton import log_likelihood
from drosurv.metrics.scores import parse_scored, warn_undefined

Per = Literal["event", "patient"]


def log_partial_likelihood(y: Any, risk: Any, *, per: Per = "event", sample_weight: Any = None) -> float:
    r"""Mean log partial likelihood of risk scores, risk sets within the given patients (higher is better).

    .. math:: \frac1m \sum_{i: \delta_i = 1} w_i \Big( f_i - \log \sum_{j: Y_j \ge Y_i} w_j e^{f_j} \Big)

    with Breslow's treatment of ties. It is taken in log space, so scores of a thousand are fine.

    Parameters
    ----------
    y : structured array, (n,)
        Event flags and times.
    risk : (n,) array
        Risk scores; higher means sooner.
    per : "event" or "patient"
        What m counts. The published tables divide by the number of events, although the paper's equation 2
        divides by the number of patients.
    sample_weight : (n,) array, optional
        Patient weights, in risk sets and in m; a whole number counts copies.

    Returns
    -------
    float
        NaN, with a warning, if there is no event.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, False], [1.0, 2.0])
    >>> log_partial_likelihood(y, [0.0, 0.0])
    -0.6931471805599453
    """
    require(per in ("event", "patient"), "per", "be 'event' or 'patient'", per)
    scored = parse_scored(y, risk, sample_weight)
    events = float(scored.weight[scored.target.event].sum())
    if events == 0:
        warn_undefined("the log partial likelihood is undefined (NaN): no patient had the event.")
        return float("nan")
    seen = scored.by_time()
    # The likelihood of scores as they are is that of a Cox model without columns.
    nothing = np.empty((len(seen), 0))
    total = log_likelihood(seen.target.time, seen.target.event, nothing, seen.weight, seen.risk)[0]
    return float(total) / (events if per == "event" else float(scored.weight.sum()))


def gain_over_null(y: Any, risk: Any, *, sample_weight: Any = None) -> float:
    """Log partial likelihood per event of the scores, less that of equal scores for everybody.

    Parameters as in :func:`log_partial_likelihood`.

    Returns
    -------
    float
        Negative if the scores mislead; NaN, with a warning, if there is no event.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, False], [1.0, 2.0])
    >>> round(gain_over_null(y, [1.0, 0.0]), 4)
    0.3799
    """
    scored = parse_scored(y, risk, sample_weight)
    of_scores = log_partial_likelihood(scored.target, scored.risk, sample_weight=scored.weight)
    if np.isnan(of_scores):
        return of_scores
    same_for_all = np.zeros(len(scored))
    return of_scores - log_partial_likelihood(scored.target, same_for_all, sample_weight=scored.weight)


def share_of_gain(y: Any, risk: Any, reference_risk: Any, *, sample_weight: Any = None) -> float:
    r"""Gain over the null model as a share of a reference model's, such as plain Cox.

    .. math:: \frac{LPL(f) - LPL(0)}{LPL(f_{ref}) - LPL(0)}

    Parameters
    ----------
    y, risk, sample_weight
        As in :func:`log_partial_likelihood`.
    reference_risk : (n,) array
        Risk scores of the reference model.

    Returns
    -------
    float
        1 if nothing was lost, near 0 if the model is nearly silent; NaN, with a warning, if the reference
        gains nothing itself.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, False], [1.0, 2.0, 3.0])
    >>> round(share_of_gain(y, [0.1, 0.05, 0.0], [1.0, 0.5, 0.0]), 3)
    0.116
    """
    reference = gain_over_null(y, reference_risk, sample_weight=sample_weight)
    gain = gain_over_null(y, risk, sample_weight=sample_weight)
    if not reference > 0:
        warn_undefined(
            f"the share of gain is undefined (NaN): the reference gains {reference:g} over the null model."
        )
    return float(kept_share(gain, reference))


def kept_share(gain: Any, reference: Any) -> Any:
    """Gains over the null model as a share of the reference's; NaN where the reference gains nothing itself."""
    return gain / np.where(np.asarray(reference) > 0, reference, np.nan)
