"""The audited model less the reference, group by group, on the same patients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv.inference import paired_comparison, shared_level
from drosurv.metrics import concordance_index, likelihood_gains
from drosurv.presentation import GroupNumber
from drosurv.target import FloatArray, IntArray, Target

if TYPE_CHECKING:
    from drosurv.evaluation.attributes import Attribute

# Fewer patients or events say nothing about a difference.
LEAST_PATIENTS, LEAST_EVENTS = 50, 10


def gains_of(target: Target, follow_up: Any, curves: Any) -> FloatArray | None:
    """Each patient's gain in log likelihood over no model, (n,); None without curves."""
    return None if curves is None else likelihood_gains(follow_up, target, curves)


def differences(
    target: Target,
    attributes: Sequence[Attribute],
    model: tuple[FloatArray, FloatArray | None],
    reference: tuple[FloatArray, FloatArray | None],
    *,
    level: float,
    n_bootstrap: int,
    random_state: int,
) -> tuple[GroupNumber, ...]:
    """Differences of everybody and of every group that is large enough, with intervals that hold together.

    Parameters
    ----------
    target : Target
        What happened to the patients.
    attributes : sequence of Attribute
        Their groups.
    model, reference : pair of (n,) float64 and (n,) float64 or None
        Risk scores, and gains over no model; where either has no gains, c-indices are compared instead.
    level, n_bootstrap, random_state
        Of the intervals; the bootstrap is for c-indices.
    """
    groups = [
        (key, rows)
        for key, rows in _everybody_and_groups(len(target), attributes)
        if len(rows) >= LEAST_PATIENTS and target.event[rows].sum() >= LEAST_EVENTS
    ]
    together = shared_level(level, len(groups))
    if model[1] is not None and reference[1] is not None:
        paired = model[1] - reference[1]
        return tuple(_mean(*key, paired[rows], level, together) for key, rows in groups)
    if n_bootstrap < 2:
        return ()
    return tuple(
        _ranking(
            *key,
            target.take(rows),
            model[0][rows],
            reference[0][rows],
            level,
            together,
            n_bootstrap,
            random_state,
        )
        for key, rows in groups
    )


def _everybody_and_groups(
    n: int, attributes: Sequence[Attribute]
) -> Iterator[tuple[tuple[str, str], IntArray]]:
    yield ("overall", "all"), np.arange(n)
    for attribute in attributes:
        for label, rows in zip(attribute.labels, attribute.rows, strict=True):
            yield (attribute.name, label), rows


def _mean(attribute: str, group: str, values: FloatArray, level: float, together: float) -> GroupNumber:
    """The mean of paired differences, with Student's interval."""
    from scipy.stats import t as student

    error = float(values.std(ddof=1)) / np.sqrt(len(values))
    mean, freedom = float(values.mean()), len(values) - 1
    alone, wider = (float(student.ppf((1 + wanted) / 2, freedom)) * error for wanted in (level, together))
    return GroupNumber(
        attribute, group, mean, mean - alone, mean + alone, mean - wider, mean + wider, "likelihood_gain"
    )


def _ranking(
    attribute: str,
    group: str,
    target: Target,
    risk: FloatArray,
    other: FloatArray,
    level: float,
    together: float,
    n_bootstrap: int,
    random_state: int,
) -> GroupNumber:
    found = paired_comparison(
        lambda weight: concordance_index(target, risk, weight),
        lambda weight: concordance_index(target, other, weight),
        len(target),
        level=together,
        replicates=n_bootstrap,
        random_state=random_state,
        threads=1,
    ).difference
    reach = NormalDist().inv_cdf((1 + level) / 2) * found.standard_error
    value = found.estimate
    return GroupNumber(
        attribute, group, value, value - reach, value + reach, found.low, found.high, "concordance_index"
    )
