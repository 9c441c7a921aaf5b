"""Cox's proportional hazards model and DeepSurv: the average loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from drosurv.estimators.over_slabs import SolvedOverSlabs
from drosurv.estimators.recipe import Recipe
from drosurv.estimators.training import EVERYTHING, Training
from drosurv.objectives import Mean
from drosurv.target import FloatArray


@dataclass(eq=False, repr=False)
class CoxPH(SolvedOverSlabs):
    """Cox model trained on the average loss: linear (Cox), a neural network (DeepSurv), or boosted trees.

    Parameters
    ----------
    network : {"linear", "mlp", "trees"} or callable
        Linear scores, a multilayer perceptron, boosted trees (LightGBM, the extra ``trees``), or a function
        n_features -> torch.nn.Module.
    hidden : sequence of int
        Hidden widths of the perceptron.
    solver : {"auto", "adam", "convex"}
        "convex" finds the global optimum of linear models; "adam" takes ``max_iter`` full-batch steps and keeps
        the last; "auto" is convex where it can be.
    lr : float
        Adam's learning rate. Trees are shrunk by it, or by 0.05 where it is left at 0.01.
    max_iter : int
        Adam steps (passes over all patients, with batches), trees, or most iterations of the convex solver.
    tol : float, optional
        Relative optimality gap at which the convex solver stops: 1e-8, or 1e-5 where the objective has kinks.
    l2 : float
        Adds l2/2 ||coefficients||^2 to the objective.
    ties : {"breslow", "efron"}
        How equal event times share a risk set.
    batch_size : int, optional
        Train on random batches of this many patients, whose risk sets are those of the batch; None uses everyone.
    early_stopping : bool or "auto"
        Whether a part of the patients is not trained on, but says when to stop; the best step is kept. Trees are then
        grown anew on everybody, for as many rounds. "auto" does so for networks that are not linear where
        ``solver`` is "auto" and there are events enough: trained for ``max_iter`` steps, they learn their patients by
        heart. The paper's training is ``solver="adam"``.
    validation_fraction : float
        That part, with events and censored patients alike.
    n_iter_no_change : int
        Passes (or trees) without a better value after which training stops.
    dropout : float
        Share of hidden units that each step leaves out.
    tree_params : dict, optional
        Handed to LightGBM, such as ``{"max_depth": 4, "num_leaves": 16}``.
    recalibrate : bool
        Whether scores are multiplied by one number after training, and the baseline estimated anew: the number that
        maximises the partial likelihood of patients not trained on, in five folds that ``random_state`` draws. The
        order of the patients stays; robust training draws scores together, and this spreads them out again.
    random_state : int, RandomState or None
        Seed of the initial parameters.
    device : str
        Where to train: "cpu", "cuda", or "auto", which is the faster of the two for the size of the work.
    verbose : bool
        Show a progress bar over Adam's steps (none where they are one compiled loop: linear, a chi-square ball).

    Attributes
    ----------
    coef_ : (d,) float64
        Coefficients (linear).
    network_ : torch.nn.Module or Trees
        The trained network (otherwise).
    recalibration_ : float
        What scores were multiplied by, with ``recalibrate=True``; ``coef_`` holds it already.
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

    @property
    def _maximises_likelihood(self) -> bool:
        return not self.recalibrate

    def _objective(self, batch: Sequence[Self], masses: Sequence[FloatArray]) -> Mean:
        return Mean()

    def _recipe(self, training: Training, batch: Sequence[Self]) -> Recipe:
        return Recipe(training.likelihood(self.ties))
