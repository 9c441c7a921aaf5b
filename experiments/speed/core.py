"""Cox and DRO-COX: training, optima, memory, a whole grid."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product

import numpy as np

from drosurv import CoxPH, DROCox, DROCoxSplit
from experiments.grid import fit_grid
from experiments.speed import peers, textbook
from experiments.speed.clock import best, in_turns
from experiments.speed.data import correlated, flc
from experiments.speed.memory import UNKNOWN, peak_above_data
from experiments.speed.rows import Row, at_most, faster, missing

PART = "core"
ALPHA = 0.2
ALPHAS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
RATES = (0.01, 0.001, 0.0001)
REPEATS = 10
GRID_LIMIT = 12.0
MEMORY_LIMIT = 2e9
AGREEMENT = 1e-5
# Sizes at which recalibration may at most double the time of a fit, and at which a fit may take three times the memory
# of its table.
RECALIBRATED = ((20_000, 10), (20_000, 50), (100_000, 20), (1_000_000, 20))
IN_TABLES = {"DROCox": (100_000, 1_000_000), "CoxPHCV": (100_000,), "RepairedCox": (100_000,)}
# How many times faster than each program the fit of plain Cox should be.
COX_PEERS = {"lifelines": 60, "scikit-survival": 60, "R": 5, "skglm": 3}


def rows():
    """Every target of the core."""
    yield from training_rows()
    yield from split_rows()
    yield from recalibration_rows()
    yield from memory_rows()
    yield from table_rows()
    yield from cox_rows()
    yield grid_row()


def training_rows():
    """DRO-COX on FLC, against a plain loop: by 500 steps, and to the optimum."""
    X, y, _ = flc()[0]
    event, seen = y["event"].copy(), y["time"].copy()
    loop = best(lambda: textbook.dro_cox_adam(X, event, seen, ALPHA), 3)
    adam = best(lambda: DROCox(ALPHA, "paper", solver="adam", random_state=1).fit(X, y), 15)
    convex = best(lambda: DROCox(ALPHA, "paper").fit(X, y), 30)
    at = [
        textbook.dro_cox_objective(theta, X, event, seen, ALPHA)
        for theta in (loop.result, adam.result.coef_, convex.result.coef_)
    ]
    yield faster(
        PART,
        f"linear DRO-COX, 500 Adam steps, FLC's {len(X):,} training patients, against a plain loop",
        adam.cpu,
        loop.cpu,
        15,
        f"objective {at[1]:.7f} against {at[0]:.7f}",
    )
    row = faster(
        PART,
        "linear DRO-COX to the global optimum, against that loop",
        convex.cpu,
        loop.cpu,
        100,
        f"certified gap {convex.result.gap_:.0e}, objective {at[2]:.7f} against {at[0]:.7f}",
    )
    # The plain objective is good to a rounding of its own.
    reached = convex.result.gap_ <= 1e-8 and at[2] <= at[0] * (1 + 1e-12)
    yield Row(**{**vars(row), "met": row.met and reached})


def split_rows():
    """DRO-COX (SPLIT) on FLC, against the form with comparison masks."""
    X, y, _ = flc()[0]
    event, seen = y["event"].copy(), y["time"].copy()
    masks = best(lambda: textbook.dro_cox_split_masks(X, event, seen, ALPHA), 1, warm_up=False)
    ours = best(
        lambda: DROCoxSplit(ALPHA, "paper", solver="adam", shuffle=False, random_state=1).fit(X, y), 7
    )
    apart = np.abs(masks.result - ours.result.coef_).max()
    yield faster(
        PART,
        "DRO-COX (SPLIT), 500 Adam steps on FLC, against n1 x n2 masks",
        ours.cpu,
        masks.cpu,
        200,
        f"coefficients differ by {apart:.0e} (the masks are float32)",
    )


def recalibration_rows():
    """Fits with recalibration, against those without."""
    for (n, d), model in product(RECALIBRATED, (DROCox, DROCoxSplit)):
        X, y = correlated(n, d)
        fits = [partial(model(recalibrate=given, device="cpu").fit, X, y) for given in (True, False)]
        whole, alone = in_turns(fits, 7 if n <= 20_000 else 3)
        what = f"{model.__name__}, n = {n:,}, d = {d}, with recalibration against without"
        yield at_most(PART, what, whole.cpu, alone.cpu, 2)


def table_rows(d=20):
    """Memory of default models above that of their table."""
    for name, sizes in IN_TABLES.items():
        for n in sizes:
            what, target = f"{name}, n = {n:,}, d = {d}: peak memory above the table", "at most 3 tables"
            peak = peak_above_data("default", n, d, name)
            if peak is None:
                yield missing(PART, what, target, UNKNOWN)
                continue
            tables = peak / (8 * n * d)
            yield Row(PART, what, target, f"{tables:.1f} tables", tables <= 3, numbers={"tables": tables})


def memory_rows():
    """DRO-COX (SPLIT) on a million patients."""
    for solver, label in (("convex", "to the optimum"), ("adam", "Adam steps")):
        what = f"DRO-COX (SPLIT), n = 1,000,000, d = 20, {label}: peak memory above the data"
        peak = peak_above_data("split", 1_000_000, 20, solver)
        if peak is None:
            yield missing(PART, what, "under 2 GB", UNKNOWN)
            continue
        yield Row(
            PART,
            what,
            "under 2 GB",
            f"{peak / 1e9:.2f} GB",
            peak < MEMORY_LIMIT,
            "the data themselves are .17 GB",
            {"bytes": peak},
        )


def cox_rows():
    """Plain Cox against other programs."""
    X, y = correlated(100_000, 50)
    ours = best(lambda: CoxPH().fit(X, y), 7)
    for name, least in COX_PEERS.items():
        what = f"plain linear Cox, n = 100,000, d = 50, correlation .5, against {name}"
        try:
            coef, seconds = peers.fit(name, X, y)
        except peers.Missing as reason:
            yield missing(PART, what, f"{least}x faster", str(reason))
            continue
        apart = np.abs(coef - ours.result.coef_).max()
        row = faster(PART, what, ours.cpu, seconds, least, f"coefficients differ by {apart:.0e}")
        yield Row(**{**vars(row), "met": row.met and bool(apart <= AGREEMENT)})


def grid_row():
    """18 settings on each of 10 training sets: settings as one batch, training sets in threads."""
    samples = [flc(seed)[0][:2] for seed in range(REPEATS)]
    cores = min(2, os.cpu_count() or 1)

    def fit_one(sample):
        grid = [
            DROCox(alpha, "paper", solver="adam", lr=lr, random_state=1)
            for alpha, lr in product(ALPHAS, RATES)
        ]
        fit_grid(grid, *sample)
        return grid

    def fit_all():
        with ThreadPoolExecutor(cores) as pool:
            return list(pool.map(fit_one, samples))

    fit_one(samples[0])
    load = os.getloadavg()[0]
    timing = best(fit_all, 3, warm_up=False)
    began = time.thread_time()
    fit_one(samples[0])
    alone = time.thread_time() - began
    return Row(
        PART,
        f"{len(ALPHAS) * len(RATES)} settings x {REPEATS} repeats of DRO-COX on FLC (180 fits), {cores} cores",
        f"at most {GRID_LIMIT:g} s",
        f"{timing.wall:.2f} s",
        timing.wall <= GRID_LIMIT,
        f"wall clock, threads; {timing.cpu:.2f} s of CPU in all, {alone:.2f} s for the 18 fits of one repeat; "
        f"load of the machine before the start {load:.1f}",
        {"wall_s": timing.wall, "cpu_s": timing.cpu, "one_repeat_cpu_s": alone},
    )
