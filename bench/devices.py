"""Seconds of a step of Adam on the processor and on an accelerator, beside what ``device="auto"`` takes."""

from functools import partial

import torch

from bench.clock import best
from bench.data import correlated
from bench.rows import Row
from drosurv import CoxPH
from drosurv.estimators.device import worth_moving
from drosurv.estimators.grid import fit_grid

STEPS, FEATURES, WIDTH = 20, 9, 24
WEIGHTS = {"linear": FEATURES, "mlp": (FEATURES + 1) * WIDTH + WIDTH + 1}
# Patients, models trained together, and the network; the first is the size of FLC's training set.
POINTS = [
    (5_039, 1, "mlp"),
    (5_039, 12, "mlp"),
    (5_039, 18, "linear"),
    (5_039, 180, "linear"),
    (100_000, 1, "mlp"),
    (1_000_000, 1, "linear"),
]


def step_seconds(n, models, network, device):
    """Seconds of one step of all models."""
    X, y = correlated(n, FEATURES)
    grid = [
        CoxPH(network, hidden=(WIDTH,), solver="adam", lr=0.001 * (k + 1), max_iter=STEPS, device=device)
        for k in range(models)
    ]
    return best(partial(fit_grid, grid, X, y), 2).wall / STEPS


def rows():
    """One row per point; without an accelerator only the processor's time is known."""
    for n, models, network in POINTS:
        weights = WEIGHTS[network]
        moves = worth_moving(n, models, weights)
        here = step_seconds(n, models, network, "cpu")
        measured, met, numbers = f"{here * 1e3:.1f} ms on the processor", None, {"processor": here}
        if torch.cuda.is_available():
            there = step_seconds(n, models, network, "cuda")
            measured, met = f"{measured}, {there * 1e3:.1f} ms on the accelerator", moves == (there < here)
            numbers["accelerator"] = there
        yield Row(
            "devices",
            f"a step of {models} x {network}, n = {n:,}, {weights} weights",
            f'the faster, by the rule of "auto": {"accelerator" if moves else "processor"}',
            measured,
            met,
            "" if met is not None else "no accelerator here",
            numbers,
        )
