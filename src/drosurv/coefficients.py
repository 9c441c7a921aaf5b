"""Inference about the coefficients of a linear Cox model: standard errors, residuals, proportional hazards."""

from drosurv.estimators.coefficients import (
    CoxTable,
    DesignCheck,
    FittedCox,
    ProportionalHazardsTest,
    check_design,
    cox_table,
    proportional_hazards_test,
)

__all__ = [
    "CoxTable",
    "DesignCheck",
    "FittedCox",
    "ProportionalHazardsTest",
    "check_design",
    "cox_table",
    "proportional_hazards_test",
]
