"""What a solver found, and the model that it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drosurv.estimators.recipe import Recipe
from drosurv.estimators.training import Training
from drosurv.objectives import Evaluation
from drosurv.solvers import Criterion
from drosurv.target import FloatArray


@dataclass(eq=False)
class Solved:
    """What a solver found for one model.

    Attributes
    ----------
    network : (d,) float64, torch.nn.Module or Trees
        Coefficients, or the network.
    scores : (n,) or (n, K) float64
        Of the training patients.
    extra : (K,) float64
        Extra parameters of the loss.
    n_iter, status, gap, history
        Iterations, why training stopped, certified relative gap, objective along the way.
    """

    network: Any
    scores: FloatArray
    extra: FloatArray
    n_iter: int
    status: str
    gap: float
    history: FloatArray


@dataclass(eq=False)
class Fitted(Solved):
    """One trained model.

    Attributes
    ----------
    recipe, training, criterion
        What it was trained on.
    objective : float
        Final training objective, penalties included.
    entries : (1, m) float64
        What the objective is taken of: losses, or averaged regrets.
    at : Evaluation
        The objective there.
    """

    recipe: Recipe
    training: Training
    criterion: Criterion
    objective: float
    entries: FloatArray
    at: Evaluation

    @property
    def eta(self) -> float | tuple[float, ...]:
        """The threshold above which losses carry weight; one for each block, where the objectives are summed."""
        return tuple(map(float, self.at.eta[0])) if self.at.eta.ndim == 2 else float(self.at.eta[0])

    @property
    def worst_case_weights(self) -> FloatArray:
        """Worst-case weights of all rows that the caller gave, summing to one."""
        weights = self.criterion.patient_weights(self.at)[0]
        return self.training.spread(weights / weights.sum())
