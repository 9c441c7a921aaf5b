"""Permutation tests that groups do not differ, for every metric whose standard error is quick to compute.

Group labels are permuted and the largest difference is compared in its standard errors, so that the tests stay
right for large samples when the groups differ in other ways than the metric (Chung, Romano 2013).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from drosurv.evaluation.panel import EVERYONE, Panel
from drosurv.evaluation.patients import Patients
from drosurv.metrics import Groups, permutation_test
from drosurv.metrics.imparity import ratio_by_group
from drosurv.metrics.imparity_influence import ImparityInfluence
from drosurv.target import FloatArray

# Largest difference of groups in its standard errors, as a function of the labels.
GapStatistic = Callable[[Groups], float]


def p_values_of_gaps(
    panel: Panel,
    *,
    permutations: int,
    random_state: Any = None,
    threads: int | None = None,
    advance: Callable[[], None] = lambda: None,
) -> dict[str, dict[str, float]]:
    """p-values of the gaps between groups, by permutation of the labels.

    Parameters
    ----------
    panel : Panel
        The patients.
    permutations : int
        Number of random permutations of the labels; 0 for no test.
    random_state, threads
        As in :func:`~drosurv.metrics.permutation_test`.
    advance : callable
        Called after each of an attribute's tests.

    Returns
    -------
    dict
        Attribute to metric (`permutation_tested`) to p-value; "overall" to that of F_cap.
    """
    if permutations == 0:
        return {}
    options: dict[str, Any] = {
        "permutations": permutations,
        "random_state": random_state,
        "threads": threads,
    }
    found: dict[str, dict[str, float]] = {}
    for attribute in panel.attributes:
        patients, groups = panel.kept[attribute.name], attribute.kept_groups
        found[attribute.name] = {}
        for metric in permutation_tested(panel):
            test = permutation_test(_statistic(metric, patients), groups, **options)
            found[attribute.name][metric] = test.p_value
            advance()
    cells = panel.intersection
    if cells is not None and len(cells.groups) > 1 and panel.has_hazards:
        statistic = studentized_ratio(panel.everyone.hazard[cells.kept], 1.0)
        test = permutation_test(statistic, cells.kept_groups, **options)
        found[EVERYONE] = {"intersectional_disparity": test.p_value}
    return found


def permutation_tested(panel: Panel) -> tuple[str, ...]:
    """Names of the gaps that are tested by permutation; the others' p-values come from the bootstrap."""
    of_curves = ("integrated_brier_score", "brier_skill", "likelihood_gain")
    return (
        "concordance_imparity",
        "concordance_index",
        *(of_curves if panel.everyone.curves is not None else ()),
        *(("group_disparity",) if panel.has_hazards else ()),
    )


def studentized_ratio(numerator: FloatArray, denominator: FloatArray | float) -> GapStatistic:
    """Statistic of a ratio of sums in every group, such as a mean of per-patient values (n,)."""
    below = np.broadcast_to(np.asarray(denominator, dtype=np.float64), numerator.shape)

    def statistic(groups: Groups) -> float:
        values = ratio_by_group(groups, numerator, below)
        with np.errstate(invalid="ignore"):
            influence = (numerator - values[groups.codes] * below) / groups.sums(below)[groups.codes]
        return _in_standard_errors(values, groups.sums(influence**2))

    return statistic


def studentized_concordance(patients: Patients) -> GapStatistic:
    """Statistic of the groups' own c-indices."""
    order = patients.harrell

    def statistic(groups: Groups) -> float:
        values, variances = np.full((2, len(groups)), np.nan)
        for k in range(len(groups)):
            counts = order.harrell_counts((groups.codes == k).astype(np.float64))
            # Every pair is counted for both its patients.
            pairs = counts.denominator.sum() / 2
            if pairs > 0:
                values[k] = counts.numerator.sum() / 2 / pairs
                influence = (counts.numerator - values[k] * counts.denominator) / pairs
                variances[k] = influence @ influence
        return _in_standard_errors(values, variances)

    return statistic


def studentized_imparity(patients: Patients) -> GapStatistic:
    """Statistic of the groups' concordance fractions against everybody."""
    order = patients.imparity
    counts = order.imparity_counts(np.ones(len(patients)))
    return lambda groups: ImparityInfluence.of(order, counts, groups).largest_studentized_difference()


def _statistic(name: str, patients: Patients) -> GapStatistic:
    if name == "concordance_imparity":
        return studentized_imparity(patients)
    if name == "concordance_index":
        return studentized_concordance(patients)
    if name == "group_disparity":
        return studentized_ratio(patients.hazard, 1.0)
    assert patients.brier is not None
    assert patients.gains is not None
    if name == "likelihood_gain":
        return studentized_ratio(patients.gains, 1.0)
    if name == "integrated_brier_score":
        return studentized_ratio(patients.brier.model, 1.0)
    return studentized_ratio(patients.brier.null - patients.brier.model, patients.brier.null)


def _in_standard_errors(values: FloatArray, variances: FloatArray) -> float:
    difference = np.abs(values[:, None] - values[None, :])
    variance = variances[:, None] + variances[None, :]
    usable = np.isfinite(difference) & (variance > 0)
    # Groups compared with themselves differ by 0 and add nothing.
    if not (usable & ~np.eye(len(values), dtype=bool)).any():
        return float("nan")
    return float((difference[usable] / np.sqrt(variance[usable])).max())
