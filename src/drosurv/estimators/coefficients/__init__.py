"""Inference about the coefficients of a linear Cox model: standard errors, residuals, proportional hazards."""

from drosurv.estimators.coefficients.fitted_cox import FittedCox
from drosurv.estimators.coefficients.proportional_hazards import (
    ProportionalHazardsTest,
    proportional_hazards_test,
)
from drosurv.estimators.coefficients.table import CoxTable, cox_table

__all__ = ["CoxTable", "FittedCox", "ProportionalHazardsTest", "cox_table", "proportional_hazards_test"]
