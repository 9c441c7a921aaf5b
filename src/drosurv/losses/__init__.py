"""Losses: one number per patient from risk scores and outcomes. Objectives combine them into one number."""

from drosurv.losses.cox_partial import CoxPartial, cox_partial
from drosurv.losses.cox_split import CoxSplit, cox_split
from drosurv.losses.deep_hit import DeepHitLoss, deep_hit
from drosurv.losses.discrete_time import DiscreteHazard
from drosurv.losses.full_likelihood import PiecewiseExponential, full_likelihood
from drosurv.losses.log_time import LogTime
from drosurv.losses.loss import ConvexLoss, Loss
from drosurv.losses.summed_likelihood import CompetingRisks, RowsOfPatients, StratifiedLikelihood
from drosurv.losses.torch_loss import TorchLoss

__all__ = [
    "CompetingRisks",
    "ConvexLoss",
    "CoxPartial",
    "CoxSplit",
    "DeepHitLoss",
    "DiscreteHazard",
    "LogTime",
    "Loss",
    "PiecewiseExponential",
    "RowsOfPatients",
    "StratifiedLikelihood",
    "TorchLoss",
    "cox_partial",
    "cox_split",
    "deep_hit",
    "full_likelihood",
]
