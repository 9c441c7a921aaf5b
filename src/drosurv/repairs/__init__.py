"""Subgroups that a survival model is wrong about: find them, bound them, and correct the model there."""

from drosurv.repairs.certification import certify
from drosurv.repairs.repair import Repair
from drosurv.repairs.repair_model import repair
from drosurv.repairs.repaired_cox import RepairedCox
from drosurv.repairs.subgroup_bounds import SubgroupBounds

__all__ = ["Repair", "RepairedCox", "SubgroupBounds", "certify", "repair"]
