"""Competing risks: models of several causes, and how right they are by cause and group."""

from drosurv.estimators.competing.cause_specific_cox import CauseSpecificCox
from drosurv.estimators.competing.cumulative_incidence import cumulative_incidence

__all__ = ["CauseSpecificCox", "cumulative_incidence"]
