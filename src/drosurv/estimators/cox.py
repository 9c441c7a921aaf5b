"""Cox's proportional hazards model: linear, DeepSurv, or boosted trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from drosurv.estimators.capabilities import ROW_ARGUMENTS, Capabilities
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.solvers import Problem, TrainingData


@dataclass(eq=False, repr=False)
class CoxPH(NetworkEstimator):
    """Cox model trained on the average loss: linear (Cox), a neural network (DeepSurv), or boosted trees.

    Parameters
    ----------
    network : {"linear", "mlp", "trees"}, MLP, Trees or callable
        Linear scores; a multilayer perceptron; boosted trees (LightGBM, the extra ``trees``); or a function
        n_features -> torch.nn.Module. :class:`drosurv.MLP` and :class:`drosurv.Trees` hold the settings of networks
        and trees, such as ``MLP(hidden=(64, 64), lr=0.001)``; in a grid they are ``network__lr`` and so on.
    solver : {"auto", "adam", "convex"}
        "convex" finds the global optimum of linear models by Newton's method; "adam" takes ``max_iter`` full-batch
        steps and keeps the last; "auto" is "convex" for linear models where possible.
    lr : float
        Learning rate of Adam for a linear model.
    max_iter : int
        Number of steps of Adam, or largest number of Newton iterations, for a linear model.
    tol : float, optional
        Relative optimality gap at which the convex solver stops; by default 1e-8, or 1e-5 if the objective has kinks.
    l2 : float
        Adds l2/2 ||coefficients||^2 to the objective.
    ties : {"breslow", "efron"}
        Method for tied event times.
    recalibrate : bool or "auto"
        Whether to multiply the scores after training by the factor that maximises the partial likelihood of held-out
        patients, in five folds drawn with ``random_state`` (seed 0 if None), and to estimate the baseline again. This
        corrects the shrinkage of scores by robust training, and keeps the order of the patients. "auto" recalibrates
        models of log hazards that minimise a worst case, with at least 50 events; not with ``ball="paper"``.
    random_state : int, RandomState or None
        Seed of the initial parameters, batches, validation set and folds.
    device : str
        Where to train: "cpu", "cuda", or "auto", the faster of the two for the size of the data.
    verbose : bool
        Whether to show a progress bar over steps of Adam or trees (linear models with a chi-square ball show none).

    Attributes
    ----------
    coef_ : (d,) float64
        Coefficients (linear).
    network_ : torch.nn.Module or BoostedTrees
        The trained network (otherwise).
    recalibration_ : float
        Factor of the scores after recalibration; ``coef_`` contains it already.
    unique_times_, cum_baseline_hazard_, baseline_survival_
        Breslow's baseline: its times, cumulative hazard and survival as step functions.
    objective_ : float
        Final training objective.
    n_iter_, converged_, status_, gap_, history_
        Number of iterations, whether training converged, why it stopped, the certified relative gap, and the objective
        after each iteration.
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

    network: Any = "linear"

    capabilities = Capabilities(
        score="log hazard",
        exp_coef="hazard ratio",
        own_curves=False,
        no_recalibration="",
        row_arguments=ROW_ARGUMENTS,
        no_row_arguments="",
        objective="partial likelihood",
        no_ties="",
        convex=True,
        devices="cluster",
    )

    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        return Problem(data, data.cox_loss(self.ties))
