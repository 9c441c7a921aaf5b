"""Subgroup-robust Cox: time on one core, and memory."""

from drosurv import SubgroupRobustCox
from experiments.speed.clock import best
from experiments.speed.data import correlated
from experiments.speed.memory import linear_memory
from experiments.speed.rows import within

PART = "subgroup"
SIZES = ((5_000, 10, 4.0), (100_000, 20, 90.0))


def rows():
    """Every target of SubgroupRobustCox."""
    for n, d, limit in SIZES:
        what = f"SubgroupRobustCox, n = {n:,}, d = {d}, one core"
        X, y = correlated(n, d)
        took = best(
            lambda X=X, y=y: SubgroupRobustCox(random_state=1, recalibrate=False).fit(X, y),
            3 if n < 10_000 else 1,
            n < 10_000,
        )
        fitted = took.result
        yield within(PART, what, took.cpu, limit, f"{fitted.n_iter_} iterations, status {fitted.status_}")
    yield linear_memory(PART, "SubgroupRobustCox", "subgroup", "forest")
