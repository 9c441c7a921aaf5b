"""Training on an accelerator: many training sets and settings as one batch of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv.errors import Argument, ArgumentError
from drosurv.estimators.progress import maybe_bar
from drosurv.networks import ModuleBatch, seeded
from drosurv.solvers.adam import adam
from drosurv.solvers.device_composite import DeviceComposite
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor

    from drosurv.estimators.base import CoxEstimator
    from drosurv.estimators.training import Training


def check_device(device: Any) -> None:
    """Reject what is no device by its name; whether it is there shows when it is needed."""
    if isinstance(device, str) and device in ("auto", "cpu"):
        return
    import torch

    try:
        torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ArgumentError(
            Argument("device", device), " is none that torch knows; use 'auto', 'cpu' or 'cuda'."
        ) from error


def resolve_device(device: str, worthwhile: bool) -> str:
    """The device to train on: "auto" takes CUDA where there is one and the work is worth moving."""
    if device == "cpu" or (device == "auto" and not worthwhile):
        return "cpu"
    import torch

    available = torch.cuda.is_available()
    if device == "auto":
        return "cuda" if available else "cpu"
    if torch.device(device).type == "cuda" and not available:
        raise ValueError(f"device={device!r} was asked for, but torch sees no CUDA device; use device='cpu'.")
    return device


@dataclass(frozen=True, eq=False)
class StackedTargets:
    """Targets of R training sets as tensors (R, 1, n), ready to meet scores (R, B, n)."""

    event: Tensor
    time: Tensor
    weight: Tensor | None


def stack_targets(trainings: Sequence[Training], device: str) -> StackedTargets:
    """Targets (and weights, where there are any) of training sets of one size, on the device."""
    import torch

    def stacked(arrays: list[Any]) -> Tensor:
        return torch.as_tensor(np.stack(arrays), device=device).unsqueeze(1)

    weighted = any(training.weight is not None for training in trainings)
    return StackedTargets(
        stacked([training.target.event for training in trainings]),
        stacked([training.target.time for training in trainings]),
        stacked([_weights(training) for training in trainings]).float() if weighted else None,
    )


def _weights(training: Training) -> FloatArray:
    return np.ones(len(training.X)) if training.weight is None else training.weight


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


def train_on_device(
    batches: Sequence[Sequence[CoxEstimator]], trainings: Sequence[Training], device: str
) -> list[tuple[list[Any], FloatArray, FloatArray]]:
    """Train R batches of B estimators, each batch on its own training set of the same size, all at once.

    Returns
    -------
    list of (trained, history, values)
        For each training set: coefficients (d,) or modules of its B models, their objectives before each step
        (B, steps) and after the last (B,).
    """
    lead, settings = batches[0][0], len(batches[0])
    sizes = {training.X.shape for training in trainings}
    if len(sizes) > 1:
        raise ValueError(f"training sets trained together must have one shape, got {sorted(sizes)}.")
    d, seed = trainings[0].X.shape[1], trainings[0].seed
    modules = [lead._module(d, seed) for _ in range(len(batches) * settings)]
    X = np.stack([training.X for training in trainings])
    network = ModuleBatch(modules, X[0] if len(X) == 1 else np.repeat(X, settings, axis=0), device)
    objective = lead._device_objective(batches[0], trainings, device)
    penalty, weight = lead._device_penalty(batches[0], trainings, device)
    criterion = DeviceComposite(objective, (len(batches), settings), penalty, weight)
    lr = np.array([estimator.lr for batch in batches for estimator in batch], dtype=np.float64)
    with maybe_bar(lead, lead.max_iter) as on_step, seeded(seed):
        history = adam(JoinedParameters(network), criterion, lr, lead.max_iter, lead.l2, on_step)
    values, _ = criterion(network.scores())
    if lead.l2 > 0:
        values = values + lead.l2 / 2 * sum((p * p).reshape(len(p), -1).sum(-1) for p in network.parameters)
    final = values.double().cpu().numpy()
    trained: list[Any] = network.trained()
    if lead._is_linear:
        trained = [module.weight.detach().numpy().reshape(-1) for module in trained]
    parts = [slice(r * settings, (r + 1) * settings) for r in range(len(batches))]
    return [(trained[part], history[part], final[part]) for part in parts]
