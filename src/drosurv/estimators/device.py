"""Where to train: on the processor, on an accelerator, or where features lie that are tensors already."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names, _check_n_features

from drosurv.errors import ArgumentError, require
from drosurv.target import FloatArray


def check_device(device: Any) -> None:
    """Reject a name that is not a device. Whether the device exists is checked when it is needed."""
    if isinstance(device, str) and device in ("auto", "cpu"):
        return
    import torch

    try:
        torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ArgumentError(
            "device", f"device={device!r} is not a device that torch knows; use 'auto', 'cpu' or 'cuda'."
        ) from error


# Measured on one H200 and on the cores beside it (docs/performance.md; to measure here: python -m bench.devices).
# Seconds of a step on the processor for each patient and model, times what its loss and each weight take; what torch
# adds for a network; and a step on the accelerator however small, recorded or not.
_A_PATIENT, _OF_THE_LOSS = 1e-9, 10
_A_NETWORK = 6e-4
_A_RECORDED_STEP, _A_STEP = 3e-4, 3e-3
# Numbers in X from which an optimum is found sooner on the accelerator, the way there included.
_WORTH_SOLVING_THERE = 2.5e5
# So many times as much where CUDA has yet to be started in this process, which takes a second or two with torch.
_STARTING = 30
# What a fit there needs at most, in sizes of X.
_ROOM = 4
# Rows of a tensor that are scored at once, in double precision.
_ROWS = 1 << 20


def cuda_started() -> bool:
    """Whether CUDA is in use in this process already."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())


def worth_moving(
    rows: int, models: int, weights: int, started: bool = True, network: bool = False, recorded: bool = True
) -> bool:
    """Whether Adam is faster on an accelerator: the rule of ``device="auto"``, from a model of one step's cost.

    `models` are trained together, all training sets counted; `weights` are the numbers that one of them trains.
    `started` tells whether CUDA is in use already, `network` whether the processor's steps are torch's too, and
    `recorded` whether the accelerator records a step and replays it.
    """
    here = _A_PATIENT * rows * models * (_OF_THE_LOSS + weights) + network * _A_NETWORK
    there = _A_RECORDED_STEP if recorded else _A_STEP
    return here >= there * (1 if started else _STARTING)


def worth_solving_there(rows: int, features: int, started: bool = True) -> bool:
    """Whether a linear model's optimum is found sooner on an accelerator: the rule of ``device="auto"``."""
    return rows * features >= (_WORTH_SOLVING_THERE if started else _STARTING * _WORTH_SOLVING_THERE)


def solves_there(rows: int, features: int) -> bool:
    """Whether that is so, and there is an accelerator with room for the features in double precision."""
    if resolve_device("auto", worth_solving_there(rows, features, cuda_started())) == "cpu":
        return False
    import torch

    free, _ = torch.cuda.mem_get_info()
    return free >= _ROOM * 8 * rows * features


def _has_driver() -> bool:
    """Whether CUDA's driver is installed. Asking torch would import it, which takes as long as many a fit."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def resolve_device(device: str, worthwhile: bool) -> str:
    """The device to train on: "auto" takes CUDA where there is one and the work is worth moving."""
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
            "device", f"device={device!r} was asked for, but torch sees no CUDA device; use 'cpu'."
        )
    return device


def checked_tensor(model: Any, X: Any, *, fit: bool) -> Any:
    """A tensor (n, d) of features in float32 or float64, on its device and, where they are floats, without a copy.

    Whether all numbers are finite is checked on the device, where they are summed up.
    """
    import torch

    if X.ndim != 2 or len(X) < (2 if fit else 1) or X.shape[1] == 0:
        raise ArgumentError.must(
            "X", "have one row per patient, one column per feature", f"a tensor {tuple(X.shape)}"
        )
    if X.is_complex():
        raise ArgumentError.must("X", "hold real numbers", str(X.dtype))
    _check_feature_names(model, X, reset=fit)
    _check_n_features(model, X, reset=fit)
    return X.detach() if X.dtype in (torch.float32, torch.float64) else X.detach().float()


def on_processor(X: Any, name: str) -> Any:
    """A tensor for a model that trains on the processor; one on an accelerator is not moved without being asked."""
    if X.device.type != "cpu":
        raise ArgumentError("X",
            f"X lies on {X.device}, but this {name} is trained on the processor: pass "
            f"X.cpu().")  # fmt: skip
    return X.detach().numpy()


def tensor_scores(coefficients: FloatArray, X: Any) -> FloatArray:
    """Scores (n,) of features (n, d), computed where they lie."""
    import torch

    theta = torch.as_tensor(coefficients, dtype=torch.float64, device=X.device)
    parts = [part.double() @ theta for part in X.split(_ROWS)]
    scores: FloatArray = torch.cat(parts).cpu().numpy()
    require(np.isfinite(scores).all(), "X", "hold finite numbers", "NaN or infinity")
    return scores
