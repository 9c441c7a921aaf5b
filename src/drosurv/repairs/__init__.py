"""Subgroups that a survival model is wrong about: find them, and correct the model there."""

from drosurv.repairs.repair import Repair
from drosurv.repairs.repair_model import repair
from drosurv.repairs.repaired_cox import RepairedCox

__all__ = ["Repair", "RepairedCox", "repair"]
