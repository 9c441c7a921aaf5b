"""Penalised baselines: one training run on FLC with each penalty, on one thread and on a GPU."""

import torch

from drosurv import MLP, RegularizedCox
from drosurv.paper.penalties import PENALTIES
from experiments.grid import fit_grid, fit_grids
from experiments.speed.clock import best
from experiments.speed.data import flc
from experiments.speed.memory import linear_memory
from experiments.speed.rows import missing, within

PART = "penalties"
LIMITS = {
    "keya_group": 0.8,
    "keya_intersectional": 0.8,
    "rp_group": 0.8,
    "keya_individual": 25.0,
    "rp_individual": 25.0,
}
# The paper's largest weight: the costliest of its runs, for scores are drawn closest together.
WEIGHT = 1.0
GPU_LIMIT, GPU_BATCHED_LIMIT = 3.0, 0.3
WEIGHTS, RATES, REPEATS = (1.0, 0.7, 0.4), (0.01, 0.001, 0.0001), 10
MEMORY_SIZES = (20_000, 80_000)


def rows():
    """Every target of the penalised baselines."""
    X, y, groups = flc()[0]
    for name, limit in LIMITS.items():
        needed = {"sensitive_features": groups} if PENALTIES[name].needs_groups else {}

        def fit(name=name, needed=needed):
            model = RegularizedCox(name, WEIGHT, random_state=1, device="cpu")
            return model.fit(X, y, **needed)

        took = best(fit, 3)
        what = f"{name}, one run on FLC (500 steps, n = {len(X):,}, linear), one thread"
        yield within(PART, what, took.cpu, limit, batched_note(name))
    for name in ("keya_individual", "rp_individual"):
        for network in ("linear", "mlp"):
            yield from gpu_rows(name, network)
        # Distances of all pairs would be 26 GB at the larger size.
        yield linear_memory(PART, name, "penalised", name, MEMORY_SIZES, d=10)


def batched_note(name):
    """What nine settings cost when trained as one batch."""
    X, y, groups = flc()[0]
    grid = [
        RegularizedCox(name, weight, lr=lr, random_state=1, device="cpu")
        for weight in WEIGHTS
        for lr in RATES
    ]
    took = best(lambda: fit_grid(grid, X, y, sensitive_features=groups), 1, warm_up=False)
    return f"{took.cpu / len(grid):.2f} s a run when the paper's {len(grid)} settings are one batch"


def gpu_rows(name, network):
    """One run, and a run among many, on a GPU."""
    single = f"{name}, {network}, one run on FLC on a GPU"
    batched = f"{name}, {network}, a run on a GPU when {len(WEIGHTS) * len(RATES) * REPEATS} are one batch"
    if not torch.cuda.is_available():
        reason = "torch sees no CUDA device"
        yield missing(PART, single, f"under {GPU_LIMIT:g} s", reason)
        yield missing(PART, batched, f"under {GPU_BATCHED_LIMIT:g} s", reason)
        return
    X, y, _ = flc()[0]
    shared = {"network": network, "random_state": 1, "device": "cuda"}
    one = best(lambda: RegularizedCox(name, WEIGHT, **shared).fit(X, y), 3)
    yield within(PART, single, one.wall, GPU_LIMIT, torch.cuda.get_device_name())
    samples = [dict(zip("Xy", flc(seed)[0][:2], strict=True)) for seed in range(REPEATS)]
    at = {lr: {**shared, **({"lr": lr} if network == "linear" else {"network": MLP(lr=lr)})} for lr in RATES}
    grids = [[RegularizedCox(name, weight, **at[lr]) for weight in WEIGHTS for lr in RATES] for _ in samples]
    many = best(lambda: fit_grids(grids, samples), 2)
    count = sum(map(len, grids))
    yield within(PART, batched, many.wall / count, GPU_BATCHED_LIMIT, f"{many.wall:.1f} s in all")
