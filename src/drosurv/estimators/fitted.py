"""What a solver found, and the model that it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from drosurv.errors import warn_caller
from drosurv.estimators.recipe import Recipe
from drosurv.estimators.training import Training
from drosurv.objectives import Evaluation
from drosurv.solvers import Criterion, Solution
from drosurv.target import FloatArray

# If the worst-off share gains less than this per event, the model is called the null model.
_NOTHING = 1e-4
_STOPS = {
    "max_iter": "it ran out of iterations; raise max_iter or scale the features",
    "stalled": (
        "no further progress was possible in floating point; scale the features or raise tol, or, where a coefficient "
        "is huge, set l2 > 0"
    ),
    "separated": (
        "the scores grew without bound, because some combination of features separates early from late events; "
        "set l2 > 0"
    ),
}


def warn_unless_converged(name: str, found: Solution) -> None:
    """Say that the estimator's solver stopped before the optimum, and what helps."""
    if found.status != "converged":
        warn_caller(
            f"{name} stopped before the optimum (status {found.status!r}, relative gap {found.gap:.1e}): "
            f"{_STOPS[found.status]}.",
            category=ConvergenceWarning,
        )


def warn_if_null(name: str, fitted: Fitted, remedy: str) -> None:
    """Say that the worst-off share of the patients gains nothing over the null model, where regrets are trained on."""
    if fitted.recipe.regret and fitted.at.value[0] > -_NOTHING * fitted.recipe.loss.event_share:
        warn_caller(
            f"{name} is the null model: under every other one the worst-off share of the patients is no better served "
            f"than by no model. {remedy}"
        )


@dataclass(eq=False)
class Solved:
    """What a solver found for one model.

    `network` holds coefficients (d,) or (K, d), or is a torch module or trees; `scores` (n,) or (n, K) are the training
    patients', `extra` (K,) the loss's extra parameters, `gap` is certified and relative, `history` the objective along
    the way.
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
    """One trained model, and what it was trained on.

    `objective` is the final one, penalties included; `entries` (1, m) are what it is taken of, losses or averaged
    regrets, and `at` is the objective there.
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
