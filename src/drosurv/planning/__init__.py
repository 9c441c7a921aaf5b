"""Sample sizes: which errors an audit can exclude, and how many patients it needs."""

from drosurv.judging.excluded_errors import excluded_errors
from drosurv.planning.audit_plan import Plan, plan

__all__ = ["Plan", "excluded_errors", "plan"]
