"""Torch modules as networks: a batch of modules of one shape on fixed features.

The contract for a user's module: it maps a float32 tensor (n, d) to scores (n,) or (n, 1), one per patient.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv.errors import ArgumentError
from drosurv.target import FloatArray, IntArray

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


def mlp(n_features: int, hidden: Sequence[int] = (24,), dropout: float = 0.0, n_outputs: int = 1) -> Module:
    """Fully connected layers with ReLU between them, biases included.

    `hidden` are the widths, `dropout` the share of hidden units that each training step leaves out.
    """
    from torch import nn

    widths = [n_features, *hidden]
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        if dropout > 0.0:
            layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers, nn.Linear(widths[-1], n_outputs))


def linear(n_features: int) -> Module:
    """One linear map to the score, without bias."""
    from torch import nn

    return nn.Linear(n_features, 1, bias=False)


def coefficients(module: Any) -> FloatArray:
    """Coefficients (d,) of one linear map to one score."""
    theta: FloatArray = module.weight.detach().numpy().reshape(-1).astype(np.float64)
    return theta


def build(make: Callable[[int], Any], n_features: int, seed: int) -> Module:
    """Build a module with torch's default initialisation from a seed."""
    import torch

    if isinstance(make, torch.nn.Module):
        raise TypeError(
            f"network is a {type(make).__name__} itself; pass a function from the number of features to a new module."
        )
    with seeded(seed):
        module = make(n_features)
    if not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"network must build a torch.nn.Module from the number of features; it returned {type(module).__name__}."
        )
    return module


# torch has one generator for all threads: only one at a time may draw its numbers from a seed of its own.
_GENERATOR = RLock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Random numbers of torch from a seed while the context lasts, leaving the global generator as it was."""
    import torch

    # Accelerators have generators of their own, as soon as one is used.
    started = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    devices = range(torch.cuda.device_count()) if started else []
    with _GENERATOR, torch.random.fork_rng(devices=devices):
        # torch.manual_seed would also note seed and stack for accelerators that are not there: a millisecond.
        torch.default_generator.manual_seed(seed)
        if torch.cuda.is_available():
            torch.cuda.manual_seed_all(seed)
        yield


def module_scores(module: Module, X: FloatArray, n_outputs: int = 1) -> FloatArray:
    """Scores (n,), or (n, K) of K > 1 outputs, of features (n, d) under a trained module."""
    import torch

    module.eval()
    first = next(module.parameters(), torch.zeros(1))
    with torch.no_grad():
        given = torch.tensor(X, dtype=first.dtype, device=first.device)
        scores = _per_patient(module(given), len(X), n_outputs)
    return scores.cpu().numpy().astype(np.float64)


def recordable(module: Module) -> bool:
    """Whether a module on an accelerator never waits for it: that is known of torch's own layers."""
    own_layers = all(type(layer).__module__.startswith("torch.nn.") for layer in module.modules())
    # Running means may be averaged by a count that is read off the device.
    return own_layers and not list(module.buffers())


class ModuleBatch:
    """A batch of B modules of one shape, trained together on features (n, d), or on its own of (B, n, d) each.

    What is trained is one tensor (B, P), so that a solver takes one step and not one for each parameter: on an
    accelerator those are many small launches, which take longer than their arithmetic. Parameters that ask for no
    gradient stay as they are. Scores come out as tensors of the device; with None as NumPy arrays, for criteria on the
    CPU. More than one output of each patient give scores (B, n, K).
    """

    def __init__(
        self, modules: Sequence[Module], X: FloatArray, device: str | None = None, n_outputs: int = 1
    ) -> None:
        import torch

        self.n_outputs = n_outputs
        self.as_arrays, device = device is None, device or "cpu"
        self.modules = [module.to(device).train() for module in modules]
        lead = self.modules[0]
        self._shapes = {name: p.shape for name, p in lead.named_parameters() if p.requires_grad}
        self._all_trained = len(self._shapes) == len([*lead.parameters(), *lead.buffers()])
        states = [dict(module.named_parameters()) for module in self.modules]
        rows = [[state[name].detach().reshape(-1) for name in self._shapes] for state in states]
        self.parameters: list[Tensor] = [torch.stack([torch.cat(row or [torch.zeros(0)]) for row in rows])]
        # A copy: features that come from a DataFrame are read-only, which torch would warn about.
        self.X = torch.tensor(X, dtype=self.parameters[0].dtype, device=device)
        self._leaf = self.parameters[0]
        self._scores: Tensor | None = None

    @property
    def recordable(self) -> bool:
        """Whether scores are work on an accelerator that never waits for it."""
        return self.X.is_cuda and recordable(self.modules[0])

    def scores(self) -> Any:
        """Scores (B, n) at the current parameters."""
        self._leaf = self.parameters[0].detach().requires_grad_()
        self._scores = self._forward(self.by_name(self._leaf))
        if self.as_arrays:
            return self._scores.detach().numpy().astype(np.float64)
        return self._scores.detach()

    def pullback(self, gradient: Any) -> list[Tensor]:
        """Gradients in the parameters, given the gradient (B, n) in the last scores."""
        import torch

        assert self._scores is not None, "scores come before their pullback"
        cotangent = torch.as_tensor(gradient, dtype=self._scores.dtype, device=self._scores.device)
        return list(torch.autograd.grad(self._scores, [self._leaf], cotangent))

    def by_name(self, joined: Tensor) -> dict[str, Tensor]:
        """Each parameter's part of a tensor (B, P), in the parameter's shape."""
        import torch

        parts = torch.split(joined, [shape.numel() for shape in self._shapes.values()], dim=1)
        named = zip(self._shapes.items(), parts, strict=True)
        return {name: part.view(len(joined), *shape) for (name, shape), part in named}

    def _forward(self, state: dict[str, Tensor]) -> Tensor:
        import torch
        from torch.func import functional_call

        n, own = self.X.shape[-2], self.X.ndim == 3

        def one(state: dict[str, Tensor], features: Tensor, module: Module = self.modules[0]) -> Tensor:
            return _per_patient(functional_call(module, state, (features,)), n, self.n_outputs)

        if len(self.modules) > 1 and self._all_trained:
            together = torch.vmap(one, in_dims=(0, 0 if own else None), randomness="same")
            return together(state, self.X)
        # What a module keeps besides what is trained, such as running means, is its own. All see the random numbers
        # that each would see alone.
        start, scores = torch.get_rng_state(), []
        for b, module in enumerate(self.modules):
            if b > 0:
                torch.set_rng_state(start)
            mine = {name: leaf[b] for name, leaf in state.items()}
            scores.append(one(mine, self.X[b] if own else self.X, module))
        return torch.stack(scores)

    def evaluated(self) -> Any:
        """Scores (B, n) as they are outside of training: nothing is dropped out."""
        for module in self.modules:
            module.eval()
        try:
            return self.scores()
        finally:
            for module in self.modules:
                module.train()

    def take(self, rows: IntArray) -> ModuleBatch:
        """The same modules on fewer patients, sharing the parameters."""
        part = copy.copy(self)
        part.X = self.X[..., rows, :]
        return part

    def trained(self) -> list[Module]:
        """The modules with their current parameters, on the CPU, in evaluation mode."""
        import torch

        with torch.no_grad():
            for b, module in enumerate(self.modules):
                own = dict(module.named_parameters())
                for name, stacked in self.by_name(self.parameters[0]).items():
                    own[name].copy_(stacked[b])
                module.to("cpu").eval()
        return list(self.modules)


def _per_patient(scores: Tensor, n: int, n_outputs: int) -> Tensor:
    """Scores (n,), or (n, K) where a loss takes K > 1 of each patient."""
    if n_outputs == 1 and scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.shape != ((n,) if n_outputs == 1 else (n, n_outputs)):
        wanted = f"one score per patient, shape ({n},) or ({n}, 1)"
        if n_outputs > 1:
            wanted = f"{n_outputs} scores per patient, shape ({n}, {n_outputs})"
        raise ArgumentError("network", f"network must return {wanted}; it returned {tuple(scores.shape)}.")
    return scores
