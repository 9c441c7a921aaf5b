"""How models are trained: by which solver, for how long, with which network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from drosurv.solvers import Stopping
from drosurv.target import FloatArray


@dataclass(frozen=True, eq=False)
class Schedule:
    """How a batch of B models is trained.

    Attributes
    ----------
    solver : {"auto", "convex", "adam", "trees", "start"}
        The global optimum of linear scores ("auto": where the loss is convex, else Adam), steps of Adam, boosted trees,
        or no scores at all: everybody's is zero, and the loss's extra parameters stay where they are best for that.
    name : str
        Of the estimator, for messages.
    lr : (B,) float64
        Learning rates.
    module : callable, optional
        (number of features, seed) to a torch module with its first parameters.
    linear : bool
        Whether the module is one linear map, so that torch is not needed.
    max_iter, tol, l2, batch_size, verbose
        As in :class:`drosurv.CoxPH`.
    device : str
        Where Adam works; "auto" is where :func:`drosurv.estimators.device.worth_moving` says.
    stopping : Stopping, optional
        Who is watched instead of trained on, and for how long.
    tree_params : mapping, optional
        Handed to LightGBM.
    """

    solver: str
    name: str
    lr: FloatArray
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
