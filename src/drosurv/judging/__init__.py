"""What is found about a model: tests, their adjustment, the verdict in words, and bounds for all subgroups."""

from drosurv.judging.certification import certify
from drosurv.judging.subgroup_bounds import SubgroupBounds

__all__ = ["SubgroupBounds", "certify"]
