"""Cox's proportional hazards model and DeepSurv: the average loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from drosurv.estimators.baseline import cox_baseline
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.estimators.observed_training import EVERYTHING, partial_likelihood
from drosurv.estimators.recipe import Recipe
from drosurv.estimators.training import Training


@dataclass(eq=False, repr=False)
class CoxPH(NetworkEstimator):
    """Cox model trained on the average loss: linear (Cox) or a neural network (DeepSurv).

    Parameters
    ----------
    network : {"linear", "mlp"} or callable
        Linear scores, a multilayer perceptron, or a function n_features -> torch.nn.Module.
    hidden : sequence of int
        Hidden widths of the perceptron.
    solver : {"auto", "adam", "convex"}
        "convex" finds the global optimum of linear models; "adam" takes ``max_iter`` full-batch steps and keeps
        the last; "auto" is convex where it can be.
    lr : float
        Adam's learning rate.
    max_iter : int
        Adam steps, or most iterations of the convex solver.
    tol : float, optional
        Relative optimality gap at which the convex solver stops (1e-8).
    l2 : float
        Adds l2/2 ||coefficients||^2 to the objective.
    ties : {"breslow", "efron"}
        How equal event times share a risk set.
    random_state : int, RandomState or None
        Seed of the initial parameters.
    device : str
        Where networks train: "auto", "cpu" or "cuda".
    verbose : bool
        Show a progress bar over Adam's steps (none where they are one compiled loop: linear, a chi-square ball).

    Attributes
    ----------
    coef_ : (d,) float64
        Coefficients (linear).
    network_ : torch.nn.Module
        The trained network (otherwise).
    unique_times_, cum_baseline_hazard_, baseline_survival_
        Breslow's baseline: its times, cumulative hazard and survival as step functions.
    objective_ : float
        Final training objective.
    n_iter_, converged_, status_, gap_, history_
        Iterations used, whether and why it stopped, the certified relative gap, the objective along the way.
    n_patients_, n_events_, follow_up_
        Numbers of training patients and events, and their :class:`drosurv.metrics.FollowUp`, which metrics take
        in place of ``y_train``.

    Examples
    --------
    >>> from drosurv import CoxPH, datasets
    >>> data = datasets.make_hidden_minority(n_samples=500, random_state=0)
    >>> model = CoxPH().fit(data.X, data.y)
    >>> model.converged_
    True
    >>> model.predict_survival_function(data.X, times=[0.5, 1.0]).shape
    (500, 2)
    """

    network: str | Callable[[int], Any] = "linear"

    _observes = EVERYTHING
    _is_plain_cox = True

    def _recipe(self, training: Training, batch: Sequence[Self]) -> Recipe:
        return Recipe(partial_likelihood(training, self.ties), baseline=cox_baseline(self.ties))
