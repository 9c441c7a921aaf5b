"""Permutation tests that groups do not differ, for every metric whose standard error is quick to compute.

Group labels are permuted and the largest difference is compared in its standard errors, so that the tests stay
right for large samples when the groups differ in other ways than the metric (Chung, Romano 2013).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drosurv.evaluation.panel import EVERYONE, Panel
from drosurv.evaluation.patients import Patients
from drosurv.groups import Groups
from drosurv.inference import permutation_test, studentized_ratio
from drosurv.metrics.concordance_inference import studentized_concordance, studentized_imparity

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


def _statistic(name: str, patients: Patients) -> GapStatistic:
    if name == "concordance_imparity":
        return studentized_imparity(patients.imparity)
    if name == "concordance_index":
        return studentized_concordance(patients.harrell)
    if name == "group_disparity":
        return studentized_ratio(patients.hazard, 1.0)
    assert patients.brier is not None
    assert patients.gains is not None
    if name == "likelihood_gain":
        return studentized_ratio(patients.gains, 1.0)
    if name == "integrated_brier_score":
        return studentized_ratio(patients.brier.model, 1.0)
    return studentized_ratio(patients.brier.null - patients.brier.model, patients.brier.null)
