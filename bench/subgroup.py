"""Subgroup-robust Cox: time on one core, and memory."""

from bench.clock import best
from bench.data import correlated
from bench.memory import peak_above_data
from bench.rows import Row, missing, within
from drosurv import SubgroupRobustCox

PART = "subgroup"
SIZES = ((5_000, 10, 4.0), (100_000, 20, 90.0))
MEMORY_SIZES = (25_000, 100_000)


def rows():
    """Every target of SubgroupRobustCox."""
    for n, d, limit in SIZES:
        what = f"SubgroupRobustCox, n = {n:,}, d = {d}, one core"
        X, y = correlated(n, d)
        took = best(
            lambda X=X, y=y: SubgroupRobustCox(random_state=1).fit(X, y), 3 if n < 10_000 else 1, n < 10_000
        )
        fitted = took.result
        yield within(PART, what, took.cpu, limit, f"{fitted.n_iter_} iterations, status {fitted.status_}")
    what = f"SubgroupRobustCox, memory, n = {MEMORY_SIZES[0]:,} to {MEMORY_SIZES[1]:,}"
    peaks = [peak_above_data("subgroup", n, 20, "forest") for n in MEMORY_SIZES]
    if None in peaks:
        yield missing(PART, what, "linear in n", "this system does not tell a process its memory")
        return
    per_patient = [peak / n for peak, n in zip(peaks, MEMORY_SIZES, strict=True)]
    yield Row(
        PART,
        what,
        "linear in n",
        f"{per_patient[0] / 1e3:.1f} to {per_patient[1] / 1e3:.1f} kB a patient",
        per_patient[1] <= 1.1 * per_patient[0],
        f"{peaks[1] / 1e9:.2f} GB above the data at n = {MEMORY_SIZES[1]:,}, d = 20",
        {f"bytes_{n}": peak for n, peak in zip(MEMORY_SIZES, peaks, strict=True)},
    )
