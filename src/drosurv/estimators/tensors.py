"""Features that are tensors already: they are used on the device where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names, _check_n_features

from drosurv.errors import Argument, ArgumentError, require
from drosurv.target import FloatArray

# Rows that are scored at once, in double precision.
_ROWS = 1 << 20


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
        raise ArgumentError(
            f"{Argument('X')} lies on {X.device}, but this {name} is trained on the processor: pass "
            f"{Argument('X.cpu()')}.")  # fmt: skip
    return X.detach().numpy()


def tensor_scores(coefficients: FloatArray, X: Any) -> FloatArray:
    """Scores (n,) of features (n, d), computed where they lie."""
    import torch

    theta = torch.as_tensor(coefficients, dtype=torch.float64, device=X.device)
    parts = [part.double() @ theta for part in X.split(_ROWS)]
    scores: FloatArray = torch.cat(parts).cpu().numpy()
    require(np.isfinite(scores).all(), "X", "hold finite numbers", "NaN or infinity")
    return scores
