"""How models are trained: by which solver, for how long, with which network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drosurv.solvers import Stopping
from drosurv.target import FloatArray


@dataclass(frozen=True, eq=False)
class Schedule:
    """How a batch of B models is trained; what is not explained here is as in :class:`drosurv.CoxPH`.

    The `solver` finds the global optimum of linear scores ("convex"; "auto" where the loss is convex, else Adam), takes
    steps of Adam ("adam"), grows trees ("trees"), or does nothing ("start"): everybody's score is zero, and the loss's
    extra parameters stay where they are best for that. `name` is the estimator's, for messages; `lr` (B,) are learning
    rates. `module` takes (number of features, seed) to a torch module with its first parameters; `linear` tells whether
    that is one linear map, so that torch is not needed. `stopping` says who is watched instead of trained on.
    """

    solver: str
    name: str
    lr: FloatArray = field(default_factory=lambda: np.zeros(1))
    module: Callable[[int, int], Any] | None = None
    linear: bool = True
    max_iter: int = 500
    tol: float | None = None
    l2: float = 0.0
    batch_size: int | None = None
    device: str = "cpu"
    verbose: bool = False
    stopping: Stopping | None = None
    tree_params: Mapping[str, Any] | None = None
