"""Shrinkage control: has a model become fair-looking only by saying less.

F_I, F_G and F_cap fall when every score is multiplied by c < 1. So a fairness number is read beside the
likelihood the model still gains over saying nothing, and beside what plain shrinking of a reference model
would have done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv.metrics.calibration_slope import calibration_slope
from drosurv.metrics.fairness import (
    Convention,
    group_disparity,
    individual_disparity,
    intersectional_disparity,
)
from drosurv.metrics.partial_likelihood import log_partial_likelihood
from drosurv.metrics.scores import parse_scored, warn_undefined

if TYPE_CHECKING:
    import pandas as pd


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
    same_for_all = np.zeros(len(scored))
    return log_partial_likelihood(y, risk, sample_weight=sample_weight) - log_partial_likelihood(
        y, same_for_all, sample_weight=sample_weight
    )


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
        return float("nan")
    return gain / reference


def scaled_control(
    y: Any,
    risk: Any,
    X: Any,
    groups: Any,
    attributes: Any,
    *,
    factors: Any = None,
    scale: float = 0.01,
    convention: Convention = "paper",
) -> pd.DataFrame:
    """What multiplying a model's scores by c does to its likelihood and its disparities.

    A model that is no better than this curve at the same disparity has only shrunk.

    Parameters
    ----------
    y : structured array, (n,)
        Event flags and times.
    risk : (n,) array
        Risk scores of the reference model, such as plain Cox.
    X : (n, d) array
        Features, already standardised, for F_I.
    groups : (n,) labels
        For F_G.
    attributes : DataFrame or (n, J) labels
        For F_cap.
    factors : (m,) array, optional
        The multipliers c; by default 0, 0.1, ..., 1.
    scale, convention
        As in :func:`~drosurv.metrics.individual_disparity`.

    Returns
    -------
    DataFrame
        One row per factor: ``factor``, ``log_partial_likelihood`` per event, ``share_of_gain`` over the
        null model, ``calibration_slope``, ``individual_disparity``, ``group_disparity``,
        ``intersectional_disparity``. The c-index and concordance imparity are not there: they do not
        change.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, False, True], [1.0, 2.0, 3.0, 4.0])
    >>> risk, X, sex = [1.0, 2.0, 0.0, 0.5], [[1.0], [2.0], [3.0], [4.0]], ["f", "m", "f", "m"]
    >>> table = scaled_control(y, risk, X, sex, sex, factors=[0.0, 0.5, 1.0])
    >>> table["group_disparity"].round(2).tolist()
    [0.0, 0.34, 1.33]
    """
    import pandas as pd

    scores = parse_scored(y, risk).risk
    multipliers = (
        np.linspace(0, 1, 11) if factors is None else np.atleast_1d(np.asarray(factors, dtype=np.float64))
    )
    slope = calibration_slope(y, scores)
    null, full = log_partial_likelihood(y, 0 * scores), log_partial_likelihood(y, scores)
    rows = []
    for factor in multipliers.tolist():
        shrunk = factor * scores
        likelihood = log_partial_likelihood(y, shrunk)
        rows.append(
            {
                "factor": factor,
                "log_partial_likelihood": likelihood,
                "share_of_gain": (likelihood - null) / (full - null) if full > null else np.nan,
                "calibration_slope": slope / factor if factor else np.nan,
                "individual_disparity": individual_disparity(shrunk, X, scale=scale, convention=convention),
                "group_disparity": group_disparity(shrunk, groups, convention=convention),
                "intersectional_disparity": intersectional_disparity(
                    shrunk, attributes, convention=convention
                ),
            }
        )
    return pd.DataFrame(rows)
