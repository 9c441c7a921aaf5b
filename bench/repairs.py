"""Find and repair: time on one core with a group to find, and memory."""

from bench.clock import best
from bench.memory import peak_above_data
from bench.rows import Row, missing, within
from drosurv import RepairedCox
from drosurv.datasets import make_hidden_minority

PART = "repairs"
SIZES = ((4_000, 10, 1.5), (4_000, 50, 10.0), (100_000, 20, 60.0))
MEMORY_SIZES = (25_000, 100_000)


def rows():
    """Every target of RepairedCox."""
    for n, d, limit in SIZES:
        data = make_hidden_minority(n, d, random_state=1)
        took = best(
            lambda data=data: RepairedCox(random_state=1).fit(data.X, data.y),
            3 if n < 10_000 else 1,
            n < 10_000,
        )
        found = "; ".join(repair.who for repair in took.result.repairs_)
        what = f"RepairedCox, n = {n:,}, d = {d}, one core"
        yield within(PART, what, took.cpu, limit, f"found: {found}")
    what = f"RepairedCox, memory, n = {MEMORY_SIZES[0]:,} to {MEMORY_SIZES[1]:,}"
    peaks = [peak_above_data("repaired", n, 20, "cox") for n in MEMORY_SIZES]
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
