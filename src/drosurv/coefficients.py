"""Coefficients of linear Cox models: standard errors, residuals and the proportional hazards test."""

from drosurv.estimators.coefficients import (
    CoxTable,
    FittedCox,
    ProportionalHazardsTest,
    cox_table,
    proportional_hazards_test,
)

__all__ = ["CoxTable", "FittedCox", "ProportionalHazardsTest", "cox_table", "proportional_hazards_test"]
