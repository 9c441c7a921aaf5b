"""A recipe says what is trained: the parts of the criterion, and the curves that follow from its optimum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from drosurv.disparities import Penalty
from drosurv.estimators.baseline import Curves, breslow
from drosurv.estimators.training import Training
from drosurv.losses import Loss
from drosurv.neighborhoods import Neighborhoods
from drosurv.objectives import Mean, Objective
from drosurv.solvers import Criterion
from drosurv.target import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Recipe:
    """What a batch of B models is trained on, on one training set.

    The parts are those of :class:`drosurv.solvers.Criterion`, with the training set's masses unless others are given.
    `regret` measures losses against the null model's. `neighborhoods` may be a function that finds them from the
    regrets (n,) of the plain model, which is then trained first; `penalty` prepares one on the scores from a training
    set. `baseline` takes (training, scores (n,), extra (K,)) to the fitted :class:`drosurv.estimators.baseline.Curves`.

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
    penalty: Callable[[Training], Penalty] | None = None
    penalty_weight: FloatArray | None = None
    baseline: Callable[[Training, FloatArray, FloatArray], Curves] = breslow

    @property
    def finds_neighborhoods(self) -> bool:
        """Whether the plain model must be trained first."""
        return callable(self.neighborhoods) and not isinstance(self.neighborhoods, Neighborhoods)

    def plain(self) -> Recipe:
        """The recipe of the plain model, from whose regrets neighbourhoods are found."""
        return replace(self, objective=Mean(), blocks=None, regret=True, neighborhoods=None, penalty=None)

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
            penalty=None if self.penalty is None else self.penalty(training),
            penalty_weight=self.penalty_weight,
        )
