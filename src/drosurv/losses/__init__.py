"""Losses: one number per patient from risk scores and outcomes. Objectives combine them into one number."""

from drosurv.losses.cox_partial import cox_partial
from drosurv.losses.cox_split import cox_split
from drosurv.losses.deep_hit_loss import deep_hit
from drosurv.losses.full_likelihood import full_likelihood
from drosurv.losses.loss import ConvexLoss, Loss
from drosurv.losses.torch_loss import TorchLoss

__all__ = ["ConvexLoss", "Loss", "TorchLoss", "cox_partial", "cox_split", "deep_hit", "full_likelihood"]
