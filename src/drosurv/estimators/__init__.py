"""Estimators: the scikit-learn surface over networks, losses, objectives and solvers."""

from drosurv.estimators.cox import CoxPH
from drosurv.estimators.dro_cox import DROCox
from drosurv.estimators.dro_cox_split import DROCoxSplit
from drosurv.estimators.group_dro_cox import GroupDROCox
from drosurv.estimators.null_model import NullModel
from drosurv.estimators.regularized_cox import RegularizedCox
from drosurv.estimators.subgroup_robust_cox import SubgroupRobustCox
from drosurv.persistence import SavedModel, load, read_saved_model, save

__all__ = [
    "CoxPH",
    "DROCox",
    "DROCoxSplit",
    "GroupDROCox",
    "NullModel",
    "RegularizedCox",
    "SavedModel",
    "SubgroupRobustCox",
    "load",
    "read_saved_model",
    "save",
]
