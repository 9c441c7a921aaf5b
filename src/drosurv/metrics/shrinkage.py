"""Shrinkage control: has a model become fair-looking only by saying less.

F_I, F_G and F_cap fall when every score is multiplied by c < 1. So a fairness number is read beside the
likelihood the model still gains over saying nothing, and beside what plain shrinking of a reference model
would have done.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drosurv.metrics.partial_likelihood import log_partial_likelihood
from drosurv.metrics.scores import parse_scored, warn_undefined


def gain_over_null(y: Any, risk: Any, *, sample_weight: Any = None) -> float:
    """Log partial likelihood per event of the scores, less that of equal scores for everybody.

    Parameters
    ----------
    y : structured array, (n,)
        Event flags and times.
    risk : (n,) array
        Risk scores; higher means sooner.
    sample_weight : (n,) array, optional
        Patient weights; a whole number counts copies.

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
    y : structured array, (n,)
        Event flags and times.
    risk, reference_risk : (n,) array
        Risk scores of the model and of the reference model.
    sample_weight : (n,) array, optional
        Patient weights; a whole number counts copies.

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
    """Gains over the null model as a share of the reference's; NaN where the reference gains nothing itself.

    Parameters
    ----------
    gain, reference : float, array or Series
        Gains on the same patients.

    Examples
    --------
    >>> kept_share(0.1, 0.4), kept_share(0.1, -0.2)
    (np.float64(0.25), np.float64(nan))
    """
    return gain / np.where(np.asarray(reference) > 0, reference, np.nan)
