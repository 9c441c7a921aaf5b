"""Networks that give each patient a score: linear maps, torch modules and boosted trees.

A user's module maps a float32 tensor (n, d) to scores (n,) or (n, 1), one per patient.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from drosurv.errors import ArgumentError, arg, require_extra
from drosurv.patients.arrays import batches
from drosurv.patients.target import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

# Patients transposed at a time, so that their data stay in the cache.
_TRANSPOSED = 512
# Patients whose features are read at a time, for the same reason.
_READ = 512
# LightGBM stores at most 256 bins in one byte; bins of fewer patients do not give better splits.
_MOST_BINS = 255
_PATIENTS_PER_BIN = 8


class Linear:
    """B linear models without bias on fixed features (n, d); a solver updates the coefficients (B, d) in place.

    A `centre` (d,) is subtracted from the features, and the patients are put into an `order` (n,), if given.
    """

    recordable = False

    def __init__(
        self,
        X: FloatArray,
        theta: FloatArray,
        centre: FloatArray | None = None,
        order: IntArray | None = None,
    ) -> None:
        # One row per feature, so that sums over patients read memory in order.
        self.columns: FloatArray = np.empty(X.shape[::-1])
        for low in range(0, len(X), _TRANSPOSED):
            part = X[low : low + _TRANSPOSED] if order is None else X[order[low : low + _TRANSPOSED]]
            self.columns[:, low : low + _TRANSPOSED] = (part if centre is None else part - centre).T
        self.parameters: list[FloatArray] = [theta]

    def scores(self) -> FloatArray:
        """Return the scores (B, n) at the current coefficients."""
        return self.parameters[0] @ self.columns

    def pullback(self, gradient: FloatArray) -> list[FloatArray]:
        """Return the gradient in the coefficients (B, d), given the gradient in the scores (B, n)."""
        return [gradient @ self.columns.T]

    @property
    def ranges(self) -> FloatArray:
        """The difference (d,) between the largest and the smallest value of each feature."""
        return np.asarray(np.ptp(self.columns, axis=1))

    # Scores in training and in evaluation mode are equal.
    evaluated = scores

    def take(self, rows: IntArray) -> Linear:
        """Return the same models on a subset of the patients, sharing the coefficients."""
        return Linear(self.columns[:, rows].T, self.parameters[0])


class LinearRows:
    """One linear model on features (n, d) that are computed whenever rows are read, because they take too much memory.

    `X` has a shape, and `X[rows]` are the features of some rows. The centre (d,) is subtracted; features that are
    `constant` (d,) become zero.
    """

    def __init__(self, X: Any, theta: FloatArray, centre: FloatArray, constant: BoolArray) -> None:
        self.X, self.centre, self.constant = X, centre, constant
        self.parameters: list[FloatArray] = [theta]

    def scores(self) -> FloatArray:
        """See :meth:`Linear.scores`."""
        theta = np.where(self.constant, 0.0, self.parameters[0])
        return products(theta, self.X) - (theta @ self.centre)[:, None]

    def pullback(self, gradient: FloatArray) -> list[FloatArray]:
        """See :meth:`Linear.pullback`."""
        slope = sums(gradient, self.X) - gradient.sum(axis=1)[:, None] * self.centre
        return [np.where(self.constant, 0.0, slope)]

    @property
    def ranges(self) -> FloatArray:
        """See :attr:`Linear.ranges`."""
        low, high = self.X[:1].min(axis=0), self.X[:1].max(axis=0)
        for rows in batches(len(self.X), _READ):
            part = self.X[rows]
            low, high = np.minimum(low, part.min(axis=0)), np.maximum(high, part.max(axis=0))
        return np.where(self.constant, 0.0, high - low)


def products(theta: FloatArray, X: Any) -> FloatArray:
    """Return the products (K, n) of coefficients (K, d) with the rows of X (n, d): an array, or read block by block."""
    if isinstance(X, np.ndarray):
        return np.asarray(theta @ X.T)
    out = np.empty((len(theta), len(X)))
    for rows in batches(len(X), _READ):
        out[:, rows] = theta @ X[rows].T
    return out


def sums(values: FloatArray, X: Any) -> FloatArray:
    """Return the sums (K, d) of the rows of X (n, d), multiplied by values (K, n): an array, or read block by block."""
    if isinstance(X, np.ndarray):
        return np.asarray(values @ X)
    out = np.zeros((len(values), X.shape[1]))
    for rows in batches(len(X), _READ):
        out += values[:, rows] @ X[rows]
    return out


class DeviceLinear:
    """B linear models on each of R training sets of features (n, d): one batch of R * B models on tensors.

    The coefficients, one float32 tensor (R * B, d), start at theta; a solver updates them in place.
    """

    def __init__(self, X: Sequence[FloatArray], theta: FloatArray, device: str) -> None:
        import torch

        # One row per feature, so that sums over patients read memory in order.
        self.columns = torch.stack(
            [torch.tensor(part, dtype=torch.float32, device=device).T.contiguous() for part in X]
        )
        self.parameters: list[Tensor] = [torch.tensor(theta, dtype=torch.float32, device=device)]

    @property
    def recordable(self) -> bool:
        """Whether a step can be recorded as a CUDA graph."""
        return bool(self.columns.is_cuda)

    def scores(self) -> Tensor:
        """Return the scores (R * B, n) at the current coefficients."""
        sets, d, _ = self.columns.shape
        return (self.parameters[0].view(sets, -1, d) @ self.columns).flatten(0, 1)

    def pullback(self, gradient: Tensor) -> list[Tensor]:
        """Return the gradient in the coefficients (R * B, d), given the gradient in the scores (R * B, n)."""
        if len(gradient) == 1:
            # For a single vector, this product is faster than the batched one.
            return [(self.columns[0] @ gradient[0])[None]]
        sets, _, n = self.columns.shape
        return [(gradient.view(sets, -1, n) @ self.columns.mT).flatten(0, 1)]

    # Scores in training and in evaluation mode are equal.
    evaluated = scores

    def take(self, rows: IntArray) -> DeviceLinear:
        """Return the same models on a subset of the patients, sharing the coefficients."""
        part = copy.copy(self)
        part.columns = self.columns[..., rows]
        return part

    def trained(self) -> list[FloatArray]:
        """Return the coefficients (d,) of each model."""
        return list(self.parameters[0].double().cpu().numpy())


def mlp(n_features: int, hidden: Sequence[int] = (24,), dropout: float = 0.0, n_outputs: int = 1) -> Module:
    """Build a multilayer perceptron with ReLU activations and biases.

    `hidden` are the widths of the hidden layers, `dropout` is the share of hidden units that each training step drops.
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
    """Build a linear map to one score, without bias."""
    from torch import nn

    return nn.Linear(n_features, 1, bias=False)


def coefficients(module: Any) -> FloatArray:
    """Return the coefficients (d,) of a linear map to one score."""
    theta: FloatArray = module.weight.detach().numpy().reshape(-1).astype(np.float64)
    return theta


def build(make: Callable[[int], Any], n_features: int, seed: int) -> Module:
    """Build a module with torch's default initialisation from a seed."""
    require_extra("torch", "deep", "a network")
    import torch

    if isinstance(make, torch.nn.Module):
        raise TypeError(
            f"network is a {type(make).__name__}; pass a function that builds a module from the number of features."
        )
    with seeded(seed):
        module = make(n_features)
    if not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"network must build a torch.nn.Module from the number of features; it returned {type(module).__name__}."
        )
    return module


# torch has one random generator for all threads: only one thread at a time may seed it and draw from it.
_GENERATOR_LOCK = RLock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's generators inside the context and restore them afterwards."""
    import torch

    # Each accelerator has its own generator.
    started = torch.cuda.is_initialized()
    devices = range(torch.cuda.device_count()) if started else []
    with _GENERATOR_LOCK, torch.random.fork_rng(devices=devices):
        # torch.manual_seed takes a millisecond longer, because it also handles accelerators that do not exist.
        torch.default_generator.manual_seed(seed)
        if torch.cuda.is_available():
            torch.cuda.manual_seed_all(seed)
        yield


def module_scores(module: Module, X: FloatArray, n_outputs: int = 1) -> FloatArray:
    """Return the scores of features (n, d): (n,), or (n, K) with K > 1 outputs."""
    import torch

    module.eval()
    first = next(module.parameters(), torch.zeros(1))
    with torch.no_grad():
        given = torch.tensor(X, dtype=first.dtype, device=first.device)
        scores = _per_patient(module(given), len(X), n_outputs)
    return np.asarray(scores.cpu().numpy(), dtype=np.float64)


def recordable(module: Module) -> bool:
    """Whether a step of the module can be recorded as a CUDA graph: it has only built-in layers and no buffers."""
    built_in = all(type(layer).__module__.startswith("torch.nn.") for layer in module.modules())
    # The update of a running mean may read a count from the device.
    return built_in and not list(module.buffers())


class ModuleBatch:
    """B torch modules of equal shape, trained together on the same features (n, d) or on separate ones (B, n, d).

    All parameters are one tensor (B, P), so that a solver updates them in one operation, which is faster on an
    accelerator. Parameters that do not require a gradient stay fixed. Scores are tensors on the device; with
    ``device=None`` they are NumPy arrays, for criteria on the CPU. Modules with K > 1 outputs have scores (B, n, K).
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
        # A copy, because features of a DataFrame are read-only, which torch warns about.
        self.X = torch.tensor(X, dtype=self.parameters[0].dtype, device=device)
        self._leaf = self.parameters[0]
        self._scores: Tensor | None = None

    @property
    def recordable(self) -> bool:
        """Whether a step can be recorded as a CUDA graph."""
        return self.X.is_cuda and recordable(self.modules[0])

    def scores(self) -> Any:
        """Return the scores (B, n) at the current parameters."""
        self._leaf = self.parameters[0].detach().requires_grad_()
        self._scores = self._forward(self.by_name(self._leaf))
        if self.as_arrays:
            return self._scores.detach().numpy().astype(np.float64)
        return self._scores.detach()

    def pullback(self, gradient: Any) -> list[Tensor]:
        """Return the gradients in the parameters, given the gradient (B, n) in the last scores."""
        import torch

        assert self._scores is not None, "scores come before their pullback"
        cotangent = torch.as_tensor(gradient, dtype=self._scores.dtype, device=self._scores.device)
        # Of a sum, because torch imports its compiler to compare shapes of a gradient that is given.
        return list(torch.autograd.grad((self._scores * cotangent).sum(), [self._leaf]))

    def by_name(self, joined: Tensor) -> dict[str, Tensor]:
        """Split a tensor (B, P) into the named parameters."""
        import torch

        parts = torch.split(joined, [shape.numel() for shape in self._shapes.values()], dim=1)
        named = zip(self._shapes.items(), parts, strict=True)
        return {name: part.view(len(joined), *shape) for (name, shape), part in named}

    def _forward(self, state: dict[str, Tensor]) -> Tensor:
        """Return scores of all models of the batch for given parameters, together where that is possible."""
        import torch
        from torch.func import functional_call

        n, separate = self.X.shape[-2], self.X.ndim == 3

        def one(state: dict[str, Tensor], features: Tensor, module: Module = self.modules[0]) -> Tensor:
            return _per_patient(functional_call(module, state, (features,)), n, self.n_outputs)

        if len(self.modules) > 1 and self._all_trained:
            together = torch.vmap(one, in_dims=(0, 0 if separate else None), randomness="same")
            return together(state, self.X)
        # Modules with other state, such as running means, are evaluated one by one, each with the random numbers that
        # it would draw alone.
        start, scores = torch.get_rng_state(), []
        for b, module in enumerate(self.modules):
            if b > 0:
                torch.set_rng_state(start)
            parameters = {name: leaf[b] for name, leaf in state.items()}
            scores.append(one(parameters, self.X[b] if separate else self.X, module))
        return torch.stack(scores)

    def evaluated(self) -> Any:
        """Return the scores (B, n) in evaluation mode, without dropout."""
        for module in self.modules:
            module.eval()
        try:
            return self.scores()
        finally:
            for module in self.modules:
                module.train()

    def take(self, rows: IntArray) -> ModuleBatch:
        """Return the same modules on a subset of the patients, sharing the parameters."""
        part = copy.copy(self)
        part.X = self.X[..., rows, :]
        return part

    def trained(self) -> list[Module]:
        """Return the modules with their current parameters, on the CPU, in evaluation mode."""
        import torch

        with torch.no_grad():
            for b, module in enumerate(self.modules):
                parameters = dict(module.named_parameters())
                for name, stacked in self.by_name(self.parameters[0]).items():
                    parameters[name].copy_(stacked[b])
                module.to("cpu").eval()
        return list(self.modules)


def _per_patient(scores: Tensor, n: int, n_outputs: int) -> Tensor:
    """Check that there is one score (n,) or K > 1 scores (n, K) per patient."""
    if n_outputs == 1 and scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.shape != ((n,) if n_outputs == 1 else (n, n_outputs)):
        wanted = f"one score per patient, shape ({n},) or ({n}, 1)"
        if n_outputs > 1:
            wanted = f"{n_outputs} scores per patient, shape ({n}, {n_outputs})"
        raise ArgumentError(
            "network", f"{arg('network')} must return {wanted}; it returned {tuple(scores.shape)}."
        )
    return scores


@dataclass(eq=False)
class BoostedTrees:
    """Boosted trees on binned features, as plain data.

    `text` (m,) is LightGBM's text of the model, `edges` (e,) are the edges of the bins, ordered by feature, and `ends`
    (d,) the index after the last edge of each feature.
    """

    text: NDArray[np.uint8]
    edges: FloatArray
    ends: NDArray[np.intp]

    def scores(self, X: FloatArray, rounds: int | None = None) -> FloatArray:
        """Return the scores (n,) of features (n, d) after a number of rounds of boosting, by default all of them."""
        # LightGBM's object is created on first use, and is not saved.
        booster = self.__dict__.get("_booster")
        if booster is None:
            booster = self.__dict__["_booster"] = lightgbm().Booster(model_str=bytes(self.text).decode())
        codes = binned(X, np.split(self.edges, self.ends[:-1]))
        scores: FloatArray = booster.predict(codes, raw_score=True, num_threads=1, num_iteration=rounds)
        return scores

    def __getstate__(self) -> dict[str, Any]:
        """Return the plain data, without LightGBM's object."""
        return {"text": self.text, "edges": self.edges, "ends": self.ends}


def lightgbm() -> Any:
    """Import LightGBM, or raise with the command that installs it."""
    require_extra("lightgbm", "trees", "network='trees'")
    import lightgbm as library

    return library


def bin_edges(
    X: FloatArray, weight: FloatArray | None = None
) -> tuple[list[FloatArray], NDArray[np.float32]]:
    """Return the edges of each feature's bins, and the bin number of each value as :func:`binned` does.

    Edges are between all values of a feature if these are few, else at weighted quantiles; LightGBM's binning does not
    support weights.
    """
    w = np.ones(len(X)) if weight is None else weight
    most = int(np.clip(w.sum() / _PATIENTS_PER_BIN, 16, _MOST_BINS))
    edges, codes = [], np.empty(X.shape, dtype=np.float32, order="F")
    for j, column in enumerate(X.T):
        values, index = np.unique(column, return_inverse=True)
        if len(values) > most:
            cumulative = np.cumsum(np.bincount(index, w))
            quantiles = np.arange(1, most) / most * cumulative[-1]
            first = np.unique(np.searchsorted(cumulative, quantiles * (1 - 1e-12)))
            first = first[first + 1 < len(values)]
        else:
            first = np.arange(len(values) - 1)
        edges.append(0.5 * (values[first] + values[first + 1]))
        codes[:, j] = np.searchsorted(edges[j], values, side="left").astype(np.float32)[index]
    return edges, codes


def binned(X: FloatArray, edges: Sequence[FloatArray]) -> NDArray[np.float32]:
    """Return the bin number of each value, (n, d)."""
    codes = np.empty(X.shape, dtype=np.float32)
    for j, cuts in enumerate(edges):
        codes[:, j] = np.searchsorted(cuts, X[:, j], side="left")
    return codes


def network_scores(network: Any, X: FloatArray, n_outputs: int = 1) -> FloatArray:
    """Return the scores of a trained network of any kind: (n,), or (n, K) with K > 1 outputs."""
    if isinstance(network, np.ndarray):
        return X @ network
    if isinstance(network, BoostedTrees):
        return network.scores(X)
    return module_scores(network, X, n_outputs)


def squared_norm(network: Any) -> float:
    """Return the sum of squares of the trained parameters; 0 for trees."""
    if isinstance(network, np.ndarray):
        return float((network**2).sum())
    if isinstance(network, BoostedTrees):
        return 0.0
    return float(sum((p.detach() ** 2).sum() for p in network.parameters() if p.requires_grad))


def network_state(network: Any) -> Any:
    """Return a network as plain data; for a module, its parameters and buffers by name."""
    if isinstance(network, (np.ndarray, BoostedTrees)):
        return network
    return {name: tensor.detach().cpu().numpy() for name, tensor in network.state_dict().items()}


def restored(state: Any, build: Callable[[], Module]) -> Any:
    """Return the network of a state from `network_state`; a module is built again, in evaluation mode."""
    if isinstance(state, (np.ndarray, BoostedTrees)):
        return state
    import torch

    module = build()
    try:
        module.load_state_dict({name: torch.tensor(values) for name, values in state.items()})
    except RuntimeError as error:
        raise ArgumentError(
            "network", f"{arg('network')} builds a module of another shape than the trained one: {error}"
        ) from error
    return module.eval()
