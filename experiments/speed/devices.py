"""The processor against an accelerator: steps of Adam, whole trainings, optima, and what ``device="auto"`` takes.

``python -m experiments.speed.devices`` prints each row as soon as it is known; names of parts measure these alone.
"""

import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from drosurv import MLP, CoxPH, DROCox, DROCoxSplit, Surv
from drosurv.solvers import TorchCriterion
from drosurv.solvers.adam import adam
from drosurv.solvers.device import separate_stream, worth_moving, worth_solving_on_accelerator
from drosurv.solvers.solver import make_networks
from experiments.grid import fit_grid
from experiments.speed.clock import best
from experiments.speed.data import correlated
from experiments.speed.rows import Row, missing, seconds, within

FLC = 5_039, 9
FEATURES, WIDTH = 9, 24
PERCEPTRON = (FEATURES + 1) * WIDTH + WIDTH + 1
# What the rule of "auto" asks about a network: its weights, whether it is one, and whether its steps are recorded.
NETWORKS = {
    "linear": (FEATURES, False, True),
    "mlp": (PERCEPTRON, True, True),
    "own module": (PERCEPTRON, True, False),
}
# Patients, models trained together, and the network; the first is the size of FLC's training set.
STEPS = [
    (500, 1, "linear"),
    (500, 180, "linear"),
    (5_039, 1, "linear"),
    (5_039, 18, "linear"),
    (5_039, 180, "linear"),
    (100, 1, "mlp"),
    (500, 1, "mlp"),
    (5_039, 1, "mlp"),
    (500, 1, "own module"),
    (5_039, 1, "own module"),
    (50_000, 1, "own module"),
    (5_039, 12, "mlp"),
    (50_000, 1, "linear"),
    (50_000, 1, "mlp"),
    (1_000_000, 1, "linear"),
]
# Patients and features of fits to the optimum.
OPTIMA = [(1_000, 10), (10_000, 10), (30_000, 10), (100_000, 10), (100_000, 50), (1_000_000, 10)]
LARGE = 10_000_000, 50
MODELS = {
    "CoxPH": lambda **given: CoxPH(**given),
    "DROCox": lambda **given: DROCox(0.2, **given, recalibrate=False),
    "DROCox, cvar": lambda **given: DROCox(0.2, "cvar", **given, recalibrate=False),
    "DROCoxSplit": lambda **given: DROCoxSplit(0.2, random_state=0, **given, recalibrate=False),
}

RECALIBRATED = {  # with the seconds that they may take
    "DROCox, recalibrated": (lambda **given: DROCox(**given), 1.2),
    "DROCoxSplit, recalibrated": (lambda **given: DROCoxSplit(random_state=0, **given), 2.0),
}


def on_accelerator():
    """Whether there is one."""
    return torch.cuda.is_available()


def linear_grid(models, device, steps):
    """DRO-COX at many sizes of the protected group and learning rates."""
    alphas, rates = np.linspace(0.1, 0.9, min(models, 18)), np.geomspace(1e-3, 1e-1, -(-models // 18))
    settings = [(alpha, lr) for alpha in alphas for lr in rates][:models]
    shared = {"solver": "adam", "max_iter": steps, "device": device, "random_state": 0}
    return [DROCox(alpha, "paper", lr=lr, **shared) for alpha, lr in settings]


def perceptrons(models, device, steps, network):
    """Plain Cox with one hidden layer, at many learning rates."""
    shared = {"solver": "adam", "device": device, "random_state": 0}
    rates = [0.001 * (k + 1) for k in range(models)]
    return [CoxPH(replace(network, lr=lr, max_iter=steps), **shared) for lr in rates]


class OwnPerceptron(torch.nn.Module):
    """The same perceptron as a user's module, whose steps are not recorded."""

    def __init__(self, features):
        super().__init__()
        self.hidden, self.out = torch.nn.Linear(features, WIDTH), torch.nn.Linear(WIDTH, 1)

    def forward(self, X):
        return self.out(torch.relu(self.hidden(X)))


GRIDS = {
    "linear": linear_grid,
    "mlp": partial(perceptrons, network=MLP((WIDTH,))),
    "own module": partial(perceptrons, network=MLP(module=OwnPerceptron)),
}


def grid_seconds(network, models, device, steps, data, repeats=2):
    """Seconds of training a grid, all of fit included."""
    return best(lambda: fit_grid(GRIDS[network](models, device, steps), *data), repeats).wall


def step_rows():
    """A step of Adam on either device: a long training less a short one."""
    for n, models, network in STEPS:
        data, (weights, torch_steps, recorded) = correlated(n, FEATURES), NETWORKS[network]
        took = {}
        for device in ["cpu", "cuda"] if on_accelerator() else ["cpu"]:
            few, many = (10, 60) if n * models > 100_000 and device == "cpu" else (20, 220)
            times = [grid_seconds(network, models, device, steps, data, 1) for steps in (few, many)]
            took[device] = max(times[1] - times[0], 0.0) / (many - few)
            took[f"{device}, before"] = max(times[0] - few * took[device], 0.0)
        moves = worth_moving(n, models, weights, network=torch_steps, recorded=recorded)
        yield _compared(f"a step, {models} x {network}, n = {n:,}", moves, took)


def training_rows():
    """The trainings that have limits, all of fit included."""
    if not on_accelerator():
        yield missing("devices", "whole trainings", "limits", "no accelerator here")
        return
    data = correlated(*FLC)
    for network, models, limit in (("linear", 180, 0.5), ("mlp", 1, 0.5)):
        took = grid_seconds(network, models, "cuda", 500, data)
        yield within("devices", f"500 steps of {models} x {network}, FLC's size", took, limit)
    X, y = large()
    data = CoxPH(solver="adam")._training_data(X, y, None)
    for name, make in MODELS.items():
        model = make(solver="adam", device="cuda")
        took = large_step(model, data)
        yield within("devices", f"a step of {name}, n = {LARGE[0]:,}, d = {LARGE[1]}", took, 0.005)


def large_step(model, data):
    """Seconds of a step: a long run of the solver less a short one."""
    problem, options = model._problem(data, [model]), model._options([model])
    network = make_networks([data], options, "cuda")
    criterion = TorchCriterion([problem.criterion], 1, "cuda")
    times = []
    with separate_stream("cuda"):
        for steps in (5, 5, 105):
            torch.cuda.synchronize()
            began = time.perf_counter()
            adam(network, criterion, options.lr, steps)
            times.append(time.perf_counter() - began)
    return (times[2] - times[1]) / 100


def large(n=LARGE[0], d=LARGE[1]):
    """Features in float32, made on the accelerator where there is one, as that takes minutes elsewhere."""
    device = "cuda" if on_accelerator() else "cpu"
    generator = torch.Generator(device).manual_seed(0)
    X = torch.randn(n, d, generator=generator, device=device)
    X = X * 0.5**0.5 + 0.5**0.5 * torch.randn(n, 1, generator=generator, device=device)
    effects = torch.linspace(-0.5, 0.5, d, device=device) / d**0.5
    draws = torch.rand(2, n, generator=generator, device=device, dtype=torch.float64)
    lives, censoring = -torch.log1p(-draws)
    lives = lives / (X @ effects).double().exp()
    y = Surv.from_arrays((lives <= censoring).cpu().numpy(), torch.minimum(lives, censoring).cpu().numpy())
    return X.cpu().numpy(), y


def optimum_rows():
    """Optima at n = 10,000,000 from NumPy and from a tensor, and the memory that they need."""
    if not on_accelerator():
        yield missing("devices", "optima at n = 10,000,000", "4 s, 1 s from a tensor", "no accelerator here")
        return
    X, y = large()
    some = X[:1_000_000], y[:1_000_000]
    there = torch.as_tensor(X, device="cuda")
    fits = [(name, make, *kind) for name, make in MODELS.items() for kind in ((X, 4.0), (there, 1.0))]
    fits += [(name, make, there, limit) for name, (make, limit) in RECALIBRATED.items()]
    for name, make, given, limit in fits:
        if given is X:
            make(device="cuda").fit(*some)
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        model = make(device="cuda" if given is X else "auto")
        began = time.perf_counter()
        model.fit(given, y)
        took = time.perf_counter() - began
        peak = (torch.cuda.max_memory_allocated() - held + (0 if given is X else X.nbytes)) / X.nbytes
        note = f"{model.status_}, gap {model.gap_:.1e}, {model.n_iter_} steps, memory {peak:.1f} times X"
        what = f"{name} from {'NumPy' if given is X else 'a tensor'}, n = 10,000,000, d = 50"
        yield within("devices", what, took, limit, note)


def equality_rows():
    """How far the coefficients of the two devices are apart.

    Those of CVaR are known less well for its kinks: with relative gaps below 1e-7 two optima were still 2e-4 apart.
    Its gap is asked to fall to 1e-9; below about 5e-10 it is lost in the rounding of float32.
    """
    if not on_accelerator():
        yield missing("devices", "coefficients of the two devices", "1e-6 apart", "no accelerator here")
        return
    X, y = large(1_000_000)
    for name, make in MODELS.items():
        tol, limit = (1e-9, 1e-4) if "cvar" in name else (None, 1e-6)
        here, there = (make(device=device, tol=tol).fit(X, y) for device in ("cpu", "cuda"))
        apart = float(np.abs(here.coef_ - there.coef_).max())
        what = f"{name}, n = 1,000,000, d = 50: coefficients of the two devices apart"
        yield Row("devices", what, f"at most {limit:g}", f"{apart:.1e}", apart <= limit, "", {"apart": apart})


def auto_rows():
    """Optima on either device, beside what "auto" takes."""
    for n, d in OPTIMA:
        X, y = correlated(n, d)
        took = {}
        for device in ["cpu", "cuda"] if on_accelerator() else ["cpu"]:
            for name in ("CoxPH", "DROCox"):
                call = partial(_fitted, MODELS[name], device, X, y)
                took[f"{device}, {name}"] = best(call, 2).wall
            took[device] = sum(took[f"{device}, {name}"] for name in ("CoxPH", "DROCox"))
        yield _compared(
            f"optima of CoxPH and DROCox, n = {n:,}, d = {d}", worth_solving_on_accelerator(n, d), took
        )


def _fitted(make, device, X, y):
    return make(device=device).fit(X, y)


def _compared(what, moves, took):
    """A row that asks the rule of "auto" to name the faster device."""
    measured = ", ".join(f"{device} {seconds(value)}" for device, value in took.items())
    met = moves == (took["cuda"] < took["cpu"]) if "cuda" in took else None
    rule = f'the faster, by the rule of "auto": {"accelerator" if moves else "processor"}'
    return Row("devices", what, rule, measured, met, "" if met is not None else "no accelerator here", took)


PARTS = {
    "trainings": training_rows,
    "optima": optimum_rows,
    "auto": auto_rows,
    "steps": step_rows,
    "equality": equality_rows,
}


def rows():
    """All of them."""
    for part in PARTS.values():
        yield from part()


if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        for row in PARTS[part]():
            print(
                f"{row.what}: {row.measured or row.note} ({row.target}: {row.verdict}) {row.note}", flush=True
            )
