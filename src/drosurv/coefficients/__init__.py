"""What the coefficients of a linear Cox model tell: standard errors, residuals, proportional hazards."""

from drosurv.coefficients.fitted_cox import FittedCox
from drosurv.coefficients.information import inverse_information
from drosurv.coefficients.proportional_hazards import ProportionalHazardsTest, proportional_hazards_test
from drosurv.coefficients.residuals import (
    deviance,
    dfbeta,
    martingale,
    sandwich,
    scaled_schoenfeld,
    schoenfeld,
    score,
)
from drosurv.coefficients.table import CoxTable, cox_table

__all__ = [
    "CoxTable",
    "FittedCox",
    "ProportionalHazardsTest",
    "cox_table",
    "deviance",
    "dfbeta",
    "inverse_information",
    "martingale",
    "proportional_hazards_test",
    "sandwich",
    "scaled_schoenfeld",
    "schoenfeld",
    "score",
]
