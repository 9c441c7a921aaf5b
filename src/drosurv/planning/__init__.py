"""Sample sizes: which errors an audit can exclude, and how many patients it needs."""

from drosurv.planning.audit_plan import Plan, plan
from drosurv.planning.excluded_errors import excluded_errors

__all__ = ["Plan", "excluded_errors", "plan"]
