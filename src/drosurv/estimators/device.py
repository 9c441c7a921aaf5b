"""Training on an accelerator: many training sets and settings as one batch of models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drosurv.errors import Argument, ArgumentError
from drosurv.estimators.recipe import Recipe
from drosurv.estimators.training import Training
from drosurv.networks import ModuleBatch, seeded
from drosurv.presentation.progress import bar
from drosurv.solvers import TorchCriterion, adam
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor


def check_device(device: Any) -> None:
    """Reject a name that is not a device. Whether the device exists is checked when it is needed."""
    if isinstance(device, str) and device in ("auto", "cpu"):
        return
    import torch

    try:
        torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ArgumentError(
            Argument("device", device), " is not a device that torch knows; use 'auto', 'cpu' or 'cuda'."
        ) from error


# Steps of Adam, measured on one H200 and on a core or two of servers (docs/performance.md; to measure them here:
# python -m bench --only devices). A step on the accelerator takes about 5 ms however small, as its launches do, and a
# few nanoseconds for each patient and model; on the processor each takes about 20 ns, and 1 ns for each weight of the
# network. The two meet at about 5e6 patients x models x (10 + weights); at twice that nobody loses.
_WORTH_MOVING = 1e7
_OF_THE_LOSS = 10


def worth_moving(rows: int, models: int, weights: int) -> bool:
    """Whether Adam is faster on an accelerator: the rule of ``device="auto"``, from a model of one step's cost.

    Parameters
    ----------
    rows : int
        Patients of a training set.
    models : int
        Models that are trained together, all training sets counted.
    weights : int
        Numbers that one model trains: of a linear model, its coefficients.
    """
    return rows * models * (_OF_THE_LOSS + weights) >= _WORTH_MOVING


def resolve_device(device: str, worthwhile: bool) -> str:
    """The device to train on: "auto" takes CUDA where there is one and the work is worth moving."""
    if device == "cpu" or (device == "auto" and not worthwhile):
        return "cpu"
    import torch

    available = torch.cuda.is_available()
    if device == "auto":
        return "cuda" if available else "cpu"
    if torch.device(device).type == "cuda" and not available:
        raise ArgumentError(
            Argument("device", device), " was asked for, but torch sees no CUDA device; use 'cpu'."
        )
    return device


class JoinedParameters:
    """A network whose parameters are parts of one tensor: a solver then takes one step instead of one for each.

    On an accelerator those steps are many small launches, which take longer than their arithmetic.

    Parameters
    ----------
    network : ModuleBatch
        Its parameters are replaced by views of the joined one.

    Attributes
    ----------
    parameters : [(B, P) tensor]
        All parameters of each of the B models.
    """

    def __init__(self, network: ModuleBatch) -> None:
        import torch

        apart = network.parameters
        joined = _joined(apart)
        parts = torch.split(joined, [p[0].numel() for p in apart], dim=1)
        network.parameters = [part.view(p.shape) for part, p in zip(parts, apart, strict=True)]
        self.network, self.parameters = network, [joined]

    def scores(self) -> Tensor:
        """Scores (B, n) at the current parameters."""
        scores: Tensor = self.network.scores()
        return scores

    def pullback(self, gradient: Tensor) -> list[Tensor]:
        """Gradient in the joined parameters, given that in the last scores (B, n)."""
        return [_joined(self.network.pullback(gradient))]


def _joined(parts: Sequence[Tensor]) -> Tensor:
    import torch

    return torch.cat([part.reshape(len(part), -1) for part in parts], dim=1)


class DeviceResult(NamedTuple):
    """The B models of one training set: modules on the processor, and what training said of them.

    Attributes
    ----------
    modules : list of torch.nn.Module
    extra : (B, K) float64 or None
    history : (B, steps) float64
        Objectives before each step.
    values : (B,) float64
        Objectives after the last one.
    """

    modules: list[Any]
    extra: FloatArray | None
    history: FloatArray
    values: FloatArray


def train_on_device(
    recipes: Sequence[Recipe],
    trainings: Sequence[Training],
    *,
    module: Callable[[int, int], Any] | None,
    lr: FloatArray,
    max_iter: int,
    l2: float,
    device: str,
    name: str = "",
    verbose: bool = False,
) -> list[DeviceResult]:
    """Train B models on each of R training sets of the same size, all at once.

    Parameters
    ----------
    recipes, trainings : sequences of length R
    module : callable
        (number of features, seed) to a module.
    lr : (B,) float64
    max_iter : int
        Steps.
    l2 : float
    device : str
    name, verbose
        What stands beside a progress bar, and whether there is one.
    """
    assert module is not None, "Adam trains a network"
    sizes = {training.X.shape for training in trainings}
    if len(sizes) > 1:
        raise ValueError(f"training sets trained together must have one shape, got {sorted(sizes)}.")
    settings, seed = len(lr), trainings[0].seed
    modules = [module(trainings[0].X.shape[1], seed) for _ in range(len(recipes) * settings)]
    X = np.stack([training.X for training in trainings])
    network = ModuleBatch(modules, X[0] if len(X) == 1 else np.repeat(X, settings, axis=0), device)
    pairs = zip(recipes, trainings, strict=True)
    criteria = [recipe.criterion(training) for recipe, training in pairs]
    criterion = TorchCriterion(criteria, settings, device)
    joined = JoinedParameters(network)
    extra = criterion.first_extra(joined.parameters[0].dtype)
    with bar(name, max_iter, shown=verbose) as on_step, seeded(seed):
        history = adam(joined, criterion, np.tile(lr, len(recipes)), max_iter, l2, on_step, extra)
    values, *_ = criterion(network.scores(), extra)
    if l2 > 0:
        values = values + l2 / 2 * sum((p * p).reshape(len(p), -1).sum(-1) for p in network.parameters)
    final = values.double().cpu().numpy()
    trained, found = network.trained(), None if extra is None else extra.double().cpu().numpy()
    parts = [slice(r * settings, (r + 1) * settings) for r in range(len(recipes))]
    return [
        DeviceResult(trained[part], None if found is None else found[part], history[part], final[part])
        for part in parts
    ]
