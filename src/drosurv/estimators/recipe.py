"""What is trained, the recipe, and how, the schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drosurv.disparities import Penalty
from drosurv.estimators.baseline import Curves, cox_baseline
from drosurv.estimators.training import Training
from drosurv.losses import CoxPartial, Loss
from drosurv.objectives import Mean, Objective
from drosurv.solvers import Criterion, Stopping
from drosurv.solvers.neighborhoods import Neighborhoods
from drosurv.target import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Recipe:
    """What a batch of B models is trained on, on one training set.

    The parts are those of :class:`drosurv.solvers.Criterion`, with the training set's masses unless others are given.
    `regret` measures losses against the null model's. `neighborhoods` may be a function that finds them from the
    regrets (n,) of the plain model, which is then trained first. `baseline` takes (training, scores (n,), extra (K,))
    to the fitted :class:`drosurv.estimators.baseline.Curves`; without one they are Cox's.

    Examples
    --------
    A model is an estimator with a method that gives its recipe; see CONTRIBUTING for a complete one.

    >>> from drosurv.estimators.recipe import Recipe
    >>> from drosurv.losses import CoxPartial
    >>> def _recipe(self, training, batch):
    ...     return Recipe(CoxPartial(training.target, weight=training.weight))
    """

    loss: Loss
    objective: Objective = field(default_factory=Mean)
    mass: FloatArray | None = None
    blocks: Sequence[IntArray] | None = None
    regret: bool = False
    neighborhoods: Neighborhoods | Callable[[FloatArray], Neighborhoods] | None = None
    penalty: Penalty | None = None
    penalty_weight: FloatArray | None = None
    baseline: Callable[[Training, FloatArray, FloatArray], Curves] | None = None

    @property
    def finds_neighborhoods(self) -> bool:
        """Whether the plain model must be trained first."""
        return callable(self.neighborhoods) and not isinstance(self.neighborhoods, Neighborhoods)

    def curves(self, training: Training, scores: FloatArray, extra: FloatArray) -> Curves:
        """The curves of the trained model."""
        if self.baseline is not None:
            return self.baseline(training, scores, extra)
        loss = self.loss if isinstance(self.loss, CoxPartial) else training.likelihood()
        return cox_baseline(loss, training, scores, extra)

    def criterion(self, training: Training) -> Criterion:
        """The criterion on a training set."""
        assert not self.finds_neighborhoods, "they are found first"
        around: Any = self.neighborhoods
        return Criterion(
            self.loss,
            self.objective,
            training.mass if self.mass is None else self.mass,
            self.blocks,
            neighborhoods=around,
            offset=self.loss.null_losses() if self.regret else None,
            penalty=self.penalty,
            penalty_weight=self.penalty_weight,
        )


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
