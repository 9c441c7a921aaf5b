"""How cost grows with n: seconds per n log n from 10,000 to 1,000,000 patients, as numbers and as a plot."""

import math
from functools import partial

from drosurv import CoxPH, DROCox, DROCoxSplit
from drosurv.metrics import concordance_index
from drosurv.paper import concordance_imparity
from experiments.speed.clock import best
from experiments.speed.data import correlated, scored
from experiments.speed.rows import Row

SIZES = (10_000, 31_623, 100_000, 316_228, 1_000_000)
FEATURES = 10
STEPS = 20


FITS = {
    "Cox to the optimum": lambda X, y: CoxPH().fit(X, y),
    "DRO-COX to the optimum": lambda X, y: DROCox(0.2, recalibrate=False).fit(X, y),
    f"DRO-COX, {STEPS} Adam steps": lambda X, y: DROCox(
        0.2, solver="adam", max_iter=STEPS, random_state=1, recalibrate=False
    ).fit(X, y),
    f"DRO-COX (SPLIT), {STEPS} Adam steps": lambda X, y: DROCoxSplit(
        0.2, solver="adam", max_iter=STEPS, random_state=1, recalibrate=False
    ).fit(X, y),
}
METRICS = {
    "c-index": lambda y, risk, groups: concordance_index(y, risk),
    "concordance imparity": concordance_imparity,
}


def curves(sizes=SIZES):
    """Seconds of each computation at each size: name -> list."""
    found = {name: [] for name in (*FITS, *METRICS)}
    for n in sizes:
        repeats = 5 if n <= 100_000 else 2
        data, scores = correlated(n, FEATURES), scored(n)
        for computations, given in ((FITS, data), (METRICS, scores)):
            for name, compute in computations.items():
                found[name].append(best(partial(compute, *given), repeats).cpu)
    return found


def growth_rows(found, sizes=SIZES):
    """One row per computation: cost per n log n at the largest size over that at the smallest."""
    rows = []
    for name, took in found.items():
        unit = [t / (n * math.log(n)) for n, t in zip(sizes, took, strict=True)]
        exponent = math.log(took[-1] / took[0]) / math.log(sizes[-1] / sizes[0])
        allowed = 1 + math.log(math.log(sizes[-1]) / math.log(sizes[0])) / math.log(sizes[-1] / sizes[0])
        rows.append(
            Row(
                "growth",
                f"{name}, n = {sizes[0]:,} to {sizes[-1]:,}, d = {FEATURES}",
                "no worse than n log n" if name in FITS else "",
                f"{unit[-1] / unit[0]:.2f} times the cost per n log n (n^{exponent:.2f}; n log n is n^{allowed:.2f})",
                unit[-1] <= unit[0] if name in FITS else None,
                f"{took[0] * 1e3:.1f} ms to {took[-1]:.2f} s",
                {f"seconds_{n}": t for n, t in zip(sizes, took, strict=True)},
            )
        )
    return rows


def plot(found, path, sizes=SIZES):
    """Cost per n log n over n, each curve relative to its first point."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    ax = figure.add_subplot()
    for name, took in found.items():
        unit = [t / (n * math.log(n)) for n, t in zip(sizes, took, strict=True)]
        ax.plot(sizes, [u / unit[0] for u in unit], marker="o", label=f"{name} ({took[-1]:.2f} s)")
    ax.axhline(1.0, color="grey", linewidth=0.8, linestyle="--")
    ax.set(
        xscale="log",
        xlabel="patients n",
        ylabel=f"cost per n log n, relative to n = {sizes[0]:,}",
        ylim=(0, None),
        title=f"Growth with n (flat is n log n; seconds at n = {sizes[-1]:,})",
    )
    ax.legend(fontsize="small")
    figure.savefig(path, dpi=150)
