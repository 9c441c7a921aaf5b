"""Devices: choice of the device, features as tensors, CUDA graphs and threads."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import _check_feature_names, _check_n_features

from drosurv.errors import ArgumentError, arg, require
from drosurv.patients.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor

# Seconds per step of Adam, measured on an H200 and its host (docs/speed.md; measure again with
# experiments.speed.devices). On the CPU: per patient, model and unit of work, with one unit per weight of the network
# and _LOSS_WORK units for the loss; for a network, torch adds _PER_NETWORK. On the accelerator: one step, recorded as a
# CUDA graph or not.
_PER_PATIENT, _LOSS_WORK = 1e-9, 10
_PER_NETWORK = 6e-4
_RECORDED_STEP, _UNRECORDED_STEP = 3e-4, 3e-3
# Size of X from which a linear model is solved faster on the accelerator, including the transfer.
_WORTH_SOLVING = 2.5e5
# Factor of these sizes if CUDA has not been started in this process, which takes a second or two.
_STARTING = 30
# Memory that a fit on the accelerator needs at most, in sizes of X.
_MEMORY = 4
# Rows of a tensor that are scored at a time, in double precision.
_ROWS = 1 << 20
# Calls before a CUDA graph is recorded: in them libraries choose kernels and workspaces, which cannot be recorded.
_WARM_UP = 3


def check_device(device: Any) -> None:
    """Raise if a name is not that of a device. Whether the device exists is checked when it is used."""
    if isinstance(device, str) and device in ("auto", "cpu"):
        return
    import torch

    try:
        torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ArgumentError(
            "device", f"{arg('device', device)} is not a torch device; use 'auto', 'cpu' or 'cuda'."
        ) from error


def cuda_started() -> bool:
    """Whether CUDA is already in use in this process."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())


def worth_moving(
    rows: int, models: int, weights: int, started: bool = True, network: bool = False, recorded: bool = True
) -> bool:
    """Whether Adam is faster on an accelerator (the rule of ``device="auto"``), from the estimated time of one step.

    `models` is the number of models that are trained together, `weights` the number of parameters of each. `started`
    says whether CUDA is already in use, `network` whether the model is a torch network, and `recorded` whether a step
    can be recorded as a CUDA graph.
    """
    cpu = _PER_PATIENT * rows * models * (_LOSS_WORK + weights) + network * _PER_NETWORK
    accelerator = _RECORDED_STEP if recorded else _UNRECORDED_STEP
    return cpu >= accelerator * (1 if started else _STARTING)


def worth_solving_on_accelerator(rows: int, features: int, started: bool = True) -> bool:
    """Whether a linear model is solved faster on an accelerator (the rule of ``device="auto"``)."""
    return rows * features >= (_WORTH_SOLVING if started else _STARTING * _WORTH_SOLVING)


def solves_on_accelerator(rows: int, features: int) -> bool:
    """Whether an accelerator is faster, exists, and has enough memory for the features in double precision."""
    if resolve_device("auto", worth_solving_on_accelerator(rows, features, cuda_started())) == "cpu":
        return False
    import torch

    free, _ = torch.cuda.mem_get_info()
    return bool(free >= _MEMORY * 8 * rows * features)


def _has_driver() -> bool:
    """Whether the CUDA driver is installed, without importing torch, which takes longer than many fits."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def resolve_device(device: str, worthwhile: bool) -> str:
    """Return the device to train on: "auto" is CUDA if it exists and is faster (`worthwhile`)."""
    if device == "cpu" or (device == "auto" and not worthwhile):
        return "cpu"
    if device == "auto" and "torch" not in sys.modules and not _has_driver():
        return "cpu"
    import torch

    available = torch.cuda.is_available()
    if device == "auto":
        return "cuda" if available else "cpu"
    if torch.device(device).type == "cuda" and not available:
        raise ArgumentError(
            "device",
            f"{arg('device', device)} needs a CUDA device, and torch finds none; use {arg('device', 'cpu')}.",
        )
    return device


def checked_tensor(model: Any, X: Any, *, fit: bool) -> Any:
    """Check a tensor (n, d) of features; it stays on its device, and floats are not copied.

    Whether all numbers are finite is checked later, on the device.
    """
    import torch

    fits = X.ndim == 2 and len(X) >= (2 if fit else 1) and X.shape[1] > 0
    require(fits, "X", "have one row per patient, one column per feature", f"a tensor {tuple(X.shape)}")
    require(not X.is_complex(), "X", "hold real numbers", str(X.dtype))
    _check_feature_names(model, X, reset=fit)
    _check_n_features(model, X, reset=fit)
    return X.detach() if X.dtype in (torch.float32, torch.float64) else X.detach().float()


def cpu_array(X: Any, name: str) -> Any:
    """Return a CPU tensor as an array, for models that train on the CPU; raise for a tensor on an accelerator."""
    if X.device.type != "cpu":
        raise ArgumentError("X",
            f"X is on {X.device}, but this {name} trains on the CPU: pass X.cpu().")  # fmt: skip
    return X.detach().numpy()


def tensor_scores(coefficients: FloatArray, X: Any) -> FloatArray:
    """Return the scores (n,) of features (n, d), computed on their device."""
    import torch

    theta = torch.as_tensor(coefficients, dtype=torch.float64, device=X.device)
    parts = [part.double() @ theta for part in X.split(_ROWS)]
    scores: FloatArray = torch.cat(parts).cpu().numpy()
    require(np.isfinite(scores).all(), "X", "hold finite numbers", "NaN or infinity")
    return scores


class Replay:
    """A function without arguments that is recorded as a CUDA graph after a few calls, and then replayed.

    A step of many small operations then needs one launch. The function must read and write the same tensors in every
    call, and must not copy numbers from the device. Call it inside of :func:`separate_stream`.
    """

    def __init__(self, function: Callable[[], Tensor]) -> None:
        self.function, self.calls = function, 0
        self._graph: Any = None
        self._out: Any = None

    def __call__(self) -> Tensor:
        """Return a copy of the function's result."""
        self.calls += 1
        if self.calls <= _WARM_UP:
            return self.function()
        if self._graph is None:
            self._record()
        self._graph.replay()
        out: Tensor = self._out.clone()
        return out

    def _record(self) -> None:
        import torch

        self._graph = torch.cuda.CUDAGraph()
        # Other threads may use the device during the recording.
        stream, errors = torch.cuda.current_stream(), "thread_local"
        with torch.cuda.graph(self._graph, stream=stream, capture_error_mode=errors):
            self._out = self.function()


@contextmanager
def separate_stream(device: Any) -> Iterator[None]:
    """Use a separate CUDA stream, because the default stream cannot be recorded; on other devices do nothing."""
    if not str(device).startswith("cuda"):
        yield
        return
    import torch

    cuda = torch.device(device)
    with torch.cuda.device(cuda):
        outer, inner = torch.cuda.current_stream(), torch.cuda.Stream()
        inner.wait_stream(outer)
        with torch.cuda.stream(inner):
            yield
        outer.wait_stream(inner)


@contextmanager
def torch_on_one_thread() -> Iterator[None]:
    """Limit torch to one thread: several threads are slower on small tensors, and add in another order."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
