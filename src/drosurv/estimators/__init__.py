"""Estimators: the scikit-learn surface over networks, losses, objectives and solvers."""

from drosurv.estimators.cox import CoxPH
from drosurv.estimators.dro_cox import DROCox
from drosurv.estimators.dro_cox_split import DROCoxSplit

__all__ = ["CoxPH", "DROCox", "DROCoxSplit"]
