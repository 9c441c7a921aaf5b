"""Statistics for permutation tests that groups do not differ, from scored patients."""

from __future__ import annotations

from collections.abc import Callable

from drosurv.evaluation.patients import Patients
from drosurv.groups import Groups
from drosurv.inference import studentized_ratio
from drosurv.metrics import concordance_inference

# Largest difference of groups in its standard errors, as a function of the labels.
GapStatistic = Callable[[Groups], float]


def studentized_concordance(patients: Patients) -> GapStatistic:
    """Statistic of the groups' own c-indices."""
    return concordance_inference.studentized_concordance(patients.harrell)


def studentized_imparity(patients: Patients) -> GapStatistic:
    """Statistic of the groups' concordance fractions against everybody."""
    return concordance_inference.studentized_imparity(patients.imparity)


def studentized_hazard(patients: Patients) -> GapStatistic:
    """Statistic of the groups' mean hazards."""
    return studentized_ratio(patients.hazard, 1.0)


def studentized_brier(patients: Patients) -> GapStatistic:
    """Statistic of the groups' Brier scores."""
    return studentized_ratio(patients.brier.model, 1.0)


def studentized_brier_skill(patients: Patients) -> GapStatistic:
    """Statistic of the groups' Brier skills."""
    return studentized_ratio(patients.brier.null - patients.brier.model, patients.brier.null)


def studentized_gain(patients: Patients) -> GapStatistic:
    """Statistic of the groups' likelihood gains."""
    return studentized_ratio(patients.gains, 1.0)
