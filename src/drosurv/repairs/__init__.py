"""Repairs: find the group a model is wrong about, correct the model there, and check it on other patients."""

from drosurv.repairs.acceptance import Attempt
from drosurv.repairs.any_model import repair
from drosurv.repairs.repair import Repair
from drosurv.repairs.repaired_cox import RepairedCox

__all__ = ["Attempt", "Repair", "RepairedCox", "repair"]
