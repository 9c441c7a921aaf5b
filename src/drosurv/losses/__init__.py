"""Losses: risk scores and target in, one number per patient out. Averaging is the objective's job."""

from drosurv.losses.cox_partial import CoxPartial, cox_partial
from drosurv.losses.cox_split import CoxSplit, cox_split
from drosurv.losses.deep_hit import DeepHitLoss, deep_hit
from drosurv.losses.discrete_hazard import DiscreteHazard
from drosurv.losses.full_likelihood import (
    PiecewiseExponential,
    PoissonDeviance,
    full_likelihood,
    poisson_deviance,
)
from drosurv.losses.log_time import LogTime
from drosurv.losses.loss import ConvexLoss, Loss
from drosurv.losses.rows_of_patients import RowsOfPatients
from drosurv.losses.summed_parts import CompetingRisks, StratifiedLikelihood
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
    "PoissonDeviance",
    "RowsOfPatients",
    "StratifiedLikelihood",
    "TorchLoss",
    "cox_partial",
    "cox_split",
    "deep_hit",
    "full_likelihood",
    "poisson_deviance",
]
