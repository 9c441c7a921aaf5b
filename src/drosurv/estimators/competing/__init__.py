"""Competing risks: models of several causes of an event."""

from drosurv.estimators.competing.cause_specific_cox import CauseSpecificCox, cumulative_incidence

__all__ = ["CauseSpecificCox", "cumulative_incidence"]
