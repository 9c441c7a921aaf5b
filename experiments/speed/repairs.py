"""Find and repair: time on one core with a group to find, and memory."""

from drosurv import CoxPH, RepairedCox
from drosurv.datasets import make_hidden_minority
from experiments.speed.clock import best
from experiments.speed.memory import linear_memory
from experiments.speed.rows import within

PART = "repairs"
SIZES = ((4_000, 10, 1.5), (4_000, 50, 10.0), (100_000, 20, 60.0))


def rows():
    """Every target of RepairedCox."""
    for n, d, limit in SIZES:
        data = make_hidden_minority(n, d, random_state=1)
        took = best(
            lambda data=data: RepairedCox(CoxPH(), random_state=1).fit(data.X, data.y),
            3 if n < 10_000 else 1,
            n < 10_000,
        )
        found = "; ".join(repair.who for repair in took.result.repairs_)
        what = f"RepairedCox, n = {n:,}, d = {d}, one core"
        yield within(PART, what, took.cpu, limit, f"found: {found}")
    yield linear_memory(PART, "RepairedCox", "repaired", "cox")
