"""Inference on the coefficients of a linear Cox model: standard errors, residuals, proportional hazards."""

from drosurv.estimators.coefficients.design import DesignCheck, check_design
from drosurv.estimators.coefficients.fitted_cox import FittedCox
from drosurv.estimators.coefficients.proportional_hazards import (
    ProportionalHazardsTest,
    proportional_hazards_test,
)
from drosurv.estimators.coefficients.summary import CoxTable, cox_table

__all__ = [
    "CoxTable",
    "DesignCheck",
    "FittedCox",
    "ProportionalHazardsTest",
    "check_design",
    "cox_table",
    "proportional_hazards_test",
]
