"""The log-rank test: whether the events of groups of patients could come from one survival curve."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chi2

from drosurv.metrics.scores import metric_target, parse_weights
from drosurv.patients.arrays import places_in
from drosurv.patients.groups import Missing, parse_groups
from drosurv.patients.observation import given_weight


class LogRankTest(NamedTuple):
    """Chi-square statistic, its degrees of freedom and p-value, and observed and expected events of each group.

    `groups` is a DataFrame with the columns ``patients``, ``events`` and ``expected``; the groups are its index.
    """

    chi_square: float
    degrees: int
    p: float
    groups: pd.DataFrame


def log_rank_test(
    y: Any, groups: Any, *, sample_weight: Any = None, missing: Missing = "group"
) -> LogRankTest:
    r"""Test whether groups of patients have the same survival, as R's ``survdiff`` does.

    At each event time, the d events among n patients at risk are expected to fall on a group in proportion to its
    patients at risk. The chi-square statistic compares the sums of observed and expected events of all groups.

    Parameters
    ----------
    y : structured array, (n,)
        Event and time of the patients.
    groups : (n,) labels
        Group of each patient.
    sample_weight : (n,) array, optional
        Numbers of copies of the patients.
    missing : "group" or "drop"
        Whether patients without a label form a group of their own or are left out.

    Returns
    -------
    LogRankTest
        ``chi_square``, ``degrees``, ``p`` (NaN if only one group can have events) and ``groups``.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True] * 4 + [False] * 2, [1.0, 2.0, 4.0, 5.0, 6.0, 7.0])
    >>> found = log_rank_test(y, ["a", "a", "a", "b", "b", "b"])
    >>> round(found.chi_square, 3), found.degrees, round(found.p, 3)
    (5.052, 1, 0.025)
    """
    target = metric_target(y, weighted=True)
    parsed = parse_groups(groups, len(target), missing=missing)
    weight = parse_weights(given_weight(y, sample_weight), len(target))
    kept = parsed.kept & (weight > 0)
    codes, weight, target, k = parsed.codes[kept], weight[kept], target.take(kept), len(parsed)
    times = np.unique(target.time[target.event])
    at_risk, events = np.empty((2, k, len(times)))
    last = places_in(times, target.time, "right")
    for group in range(k):
        mass = np.where(codes == group, weight, 0.0)
        at_risk[group] = np.cumsum(np.bincount(last, mass, len(times) + 1)[::-1])[::-1][1:]
        events[group] = np.bincount(last, mass * target.event, len(times) + 1)[1:]
    total, deaths = at_risk.sum(axis=0), events.sum(axis=0)
    share = at_risk / total
    expected = (share * deaths).sum(axis=1)
    # The variance of hypergeometric counts; a time with one patient at risk says nothing.
    scale = deaths * np.divide(total - deaths, total - 1, out=np.zeros(len(times)), where=total > 1)
    covariance = np.diag(share @ scale) - (share * scale) @ share.T
    compared = expected > 0
    difference = (events.sum(axis=1) - expected)[compared]
    # The differences sum to zero, so that one eigenvalue is zero but for rounding: it must be cut.
    inverse = np.linalg.pinv(covariance[np.ix_(compared, compared)], rcond=1e-9, hermitian=True)
    degrees = max(int(compared.sum()) - 1, 0)
    chi_square = float(difference @ inverse @ difference)
    table = pd.DataFrame(
        {
            "patients": np.bincount(codes, weight, k),
            "events": events.sum(axis=1),
            "expected": expected,
        },
        index=pd.Index(parsed.labels, name="group", tupleize_cols=False),
    )
    p = float(chi2.sf(chi_square, degrees)) if degrees else float("nan")
    return LogRankTest(chi_square, degrees, p, table)
