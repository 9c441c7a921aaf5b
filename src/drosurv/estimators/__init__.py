"""Estimators: survival models with the interface of scikit-learn."""

from typing import Any

from drosurv.estimators.accelerated_failure_time import AcceleratedFailureTime
from drosurv.estimators.cox import CoxPH
from drosurv.estimators.cox_cv import CoxPHCV
from drosurv.estimators.deep_hit import DeepHit
from drosurv.estimators.discrete_time_hazard import DiscreteTimeHazard
from drosurv.estimators.dro_cox import DROCox
from drosurv.estimators.dro_cox_split import DROCoxSplit
from drosurv.estimators.group_dro_cox import GroupDROCox
from drosurv.estimators.null_model import NullModel

# These were importable from here in 0.1; they are defined in drosurv.estimators.persistence.
from drosurv.estimators.persistence import load as load
from drosurv.estimators.persistence import read_saved_model as read_saved_model
from drosurv.estimators.persistence import save as save
from drosurv.estimators.regularized_cox import RegularizedCox
from drosurv.estimators.subgroup_robust_cox import SubgroupRobustCox

__all__ = [
    "AcceleratedFailureTime",
    "CoxPH",
    "CoxPHCV",
    "DROCox",
    "DROCoxSplit",
    "DeepHit",
    "DiscreteTimeHazard",
    "GroupDROCox",
    "NullModel",
    "RegularizedCox",
    "SubgroupRobustCox",
]


def __getattr__(name: str) -> Any:
    from drosurv import missing_name

    raise missing_name(__name__, name)
