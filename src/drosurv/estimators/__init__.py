"""Estimators: the scikit-learn surface over networks, losses, objectives and solvers."""

from drosurv.estimators.accelerated_failure_time import AcceleratedFailureTime
from drosurv.estimators.adversarial_reweighting import AdversarialReweighting
from drosurv.estimators.cox import CoxPH
from drosurv.estimators.deep_hit import DeepHit
from drosurv.estimators.discrete_time_hazard import DiscreteTimeHazard
from drosurv.estimators.dro_cox import DROCox
from drosurv.estimators.dro_cox_split import DROCoxSplit
from drosurv.estimators.dropped_outlier_dro import DroppedOutlierDRO
from drosurv.estimators.group_dro_cox import GroupDROCox
from drosurv.estimators.just_train_twice import JustTrainTwice
from drosurv.estimators.null_model import NullModel
from drosurv.estimators.regularized_cox import RegularizedCox
from drosurv.estimators.subgroup_robust_cox import SubgroupRobustCox

# Where 0.1 had them; their home is drosurv.persistence.
from drosurv.persistence import load as load
from drosurv.persistence import read_saved_model as read_saved_model
from drosurv.persistence import save as save

__all__ = [
    "AcceleratedFailureTime",
    "AdversarialReweighting",
    "CoxPH",
    "DROCox",
    "DROCoxSplit",
    "DeepHit",
    "DiscreteTimeHazard",
    "DroppedOutlierDRO",
    "GroupDROCox",
    "JustTrainTwice",
    "NullModel",
    "RegularizedCox",
    "SubgroupRobustCox",
]
