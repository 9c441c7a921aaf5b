"""Estimators: survival models with the interface of scikit-learn."""

from drosurv.estimators.accelerated_failure_time import AcceleratedFailureTime
from drosurv.estimators.all_models import add_curves_to_pipelines, add_models, all_estimators
from drosurv.estimators.cause_specific_cox import CauseSpecificCox
from drosurv.estimators.coefficients import CoxTable, DesignCheck, ProportionalHazardsTest, check_design
from drosurv.estimators.cox import CoxPH
from drosurv.estimators.cox_cv import CoxPHCV
from drosurv.estimators.deep_hit import DeepHit
from drosurv.estimators.discrete_time_hazard import DiscreteTimeHazard
from drosurv.estimators.dro_cox import DROCox
from drosurv.estimators.dro_cox_split import DROCoxSplit
from drosurv.estimators.group_dro_cox import GroupDROCox
from drosurv.estimators.network_settings import MLP, Trees
from drosurv.estimators.null_model import NullModel
from drosurv.estimators.published_cox import PublishedCox
from drosurv.estimators.subgroup_robust_cox import SubgroupRobustCox

# Here, so that pipelines predict curves as soon as a model can be one of their steps.
add_curves_to_pipelines()

__all__ = [
    "MLP",
    "AcceleratedFailureTime",
    "CauseSpecificCox",
    "CoxPH",
    "CoxPHCV",
    "CoxTable",
    "DROCox",
    "DROCoxSplit",
    "DeepHit",
    "DesignCheck",
    "DiscreteTimeHazard",
    "GroupDROCox",
    "NullModel",
    "ProportionalHazardsTest",
    "PublishedCox",
    "SubgroupRobustCox",
    "Trees",
    "all_estimators",
    "check_design",
]
# Models of other files of this folder; the lines above tell type checkers which class a name is.
add_models(globals())
