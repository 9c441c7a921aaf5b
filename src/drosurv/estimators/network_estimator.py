"""Base class of models with a network: linear, a multilayer perceptron, boosted trees, or a user's torch module."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from inspect import cleandoc
from itertools import chain
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from drosurv.errors import (
    ArgumentError,
    arg,
    as_whole,
    check_choice,
    check_count,
    check_number,
    check_share,
    require,
    require_extra,
    warn_caller,
)
from drosurv.estimators.base import cox_baseline
from drosurv.estimators.chunk_estimator import best_factor, features_on_device, fit_on_device
from drosurv.estimators.coefficient_inference import CoefficientInference
from drosurv.estimators.network_settings import MLP, Trees, as_network, check_nested
from drosurv.losses.cox_partial import TIES, CoxPartial
from drosurv.losses.loss import block_sums, constant_features
from drosurv.metrics.follow_up import FollowUp
from drosurv.objectives.balls import BALLS, ball_objective, check_ball
from drosurv.objectives.cvar import CVaR
from drosurv.objectives.objective import Mean
from drosurv.patients.arrays import batches, is_tensor
from drosurv.patients.draws import draw_folds
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.solvers import Options, Result, TrainingData, solve
from drosurv.solvers.device import check_device, resolve_device, solves_on_accelerator
from drosurv.solvers.networks import build, linear, network_scores, restored
from drosurv.solvers.solver import coefficients_without

SOLVERS = ("auto", "adam", "convex")
# Settings of networks and trees that the solvers use.
_TRAINING = ("max_iter", "batch_size", "early_stopping", "validation_fraction", "n_iter_no_change")
# Held-out patients whose features are copied at a time.
_TOGETHER = 4096
# Folds of recalibration.
N_FOLDS = 5
# With fewer events recalibrate="auto" does not recalibrate: the standard error of the factor, about
# 1 / (standard deviation of the log hazards * sqrt(events)), is 0.2 to 0.3 with 50 events, as large as the correction.
FEWEST_EVENTS = 50


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkEstimator(CoefficientInference, abstract=True):
    """Base class of estimators whose scores come from a network.

    An estimator is a dataclass; its fields, including these shared ones, are its parameters. A model with the fields
    ``alpha`` and ``ball`` minimises the worst case over subpopulations of at least mass alpha.
    """

    network: Any = "linear"
    solver: str = "auto"
    lr: float = 0.01
    max_iter: int = 500
    tol: float | None = None
    l2: float = 0.0
    ties: str = "breslow"
    recalibrate: bool | str = "auto"
    random_state: Any = None
    device: str = "auto"
    verbose: bool = False

    # Number of outputs of the network per patient.
    _n_outputs = 1

    def __init_subclass__(cls, abstract: bool = False, **rest: Any) -> None:
        """Add the shared parameters that a model does not document itself to its docstring."""
        super().__init_subclass__(abstract=abstract, **rest)
        cls.__doc__ = _with_shared_parameters(cls.__doc__ or "")

    def _check_parameters(self) -> None:
        able = self.capabilities
        check_choice("solver", self.solver, SOLVERS)
        self._check_network()
        if self.solver == "convex" and not self._is_linear:
            raise ArgumentError(
                "solver",
                f"{arg('solver', 'convex')} needs {arg('network', 'linear')}: other networks are not convex. Use "
                f"{arg('solver', 'adam')}.",
            )
        if self.solver == "convex" and not able.convex:
            raise ArgumentError(
                "solver",
                f"{arg('solver', 'convex')} cannot train {type(self).__name__}: its criterion is not convex. Use "
                f"{arg('solver', 'adam')}.",
            )
        check_choice("ties", self.ties, TIES)
        wanted = f"be 'breslow' for {able.no_ties}, which has no ties"
        require(not able.no_ties or self.ties == "breslow", "ties", wanted, self.ties)
        check_number("l2", self.l2)
        if self.tol is not None:
            check_number("tol", self.tol)
        check_choice("recalibrate", self.recalibrate, (True, False, "auto"))
        if self.recalibrate is True and able.no_recalibration:
            raise ArgumentError(
                "recalibrate",
                f"{arg('recalibrate', True)} multiplies log hazards by a factor, but {type(self).__name__} "
                f"{able.no_recalibration}. Use {arg('recalibrate', False)}.",
            )
        if self.device not in ("auto", "cpu"):
            require_extra("torch", "deep", f"device={self.device!r}")
        check_device(self.device)
        if not self._uses_convex and not isinstance(as_network(self.network), Trees):
            require_extra("torch", "deep", f"{type(self).__name__}, trained with Adam here,")
        fits = able.devices != "cpu" or resolve_device(self.device, worthwhile=False) == "cpu"
        wanted = f"be 'auto' or 'cpu': {type(self).__name__} trains on the CPU only"
        require(fits, "device", wanted, self.device)
        if hasattr(self, "ball"):
            check_share("alpha", self.alpha)
            check_ball(self.ball)

    def _check_network(self) -> None:
        """Check the network with its settings; lr and max_iter of the estimator are those of a linear model."""
        if self._is_linear:
            check_number("lr", self.lr, positive=True)
            check_count("max_iter", self.max_iter)
            return
        network: Any = as_network(self.network)
        kind = type(network).__name__
        for name in ("lr", "max_iter"):
            value = getattr(self, name)
            if value != getattr(type(self), name):
                wanted = "be left out beside a network or trees, because it is that of a linear model"
                raise ArgumentError.must(name, wanted, value, f"use network={kind}({name}={value!r})")
        network.check()
        if isinstance(network, Trees):
            require_extra("lightgbm", "trees", "network='trees'")
            require(self.solver == "auto", "solver", "be 'auto' for trees", self.solver)
        elif network.batch_size is not None and self.device not in ("auto", "cpu"):
            raise ArgumentError(
                "batch_size",
                f"batch_size={network.batch_size!r} trains on the CPU, but "
                f"{arg('device', self.device)}; use {arg('device', 'cpu')}, or no batches.",
            )

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of a network that is given as a value are ``network__lr`` and so on."""
        if nested := [name for name in params if name.startswith("network__")]:
            check_nested(params.get("network", self.network), nested)
        super().set_params(**params)
        return self

    @property
    def _is_linear(self) -> bool:
        return isinstance(self.network, str) and self.network == "linear"

    @property
    def _uses_convex(self) -> bool:
        return self.solver == "convex" or (
            self.solver == "auto" and self._is_linear and self.capabilities.convex
        )

    def _options(self, batch: Sequence[Self]) -> Options:
        """Return the options of the solver for a batch of models."""
        network = None if self._is_linear else as_network(self.network)
        trained: Sequence[Any] = batch if network is None else [as_network(each.network) for each in batch]
        solver = self.solver if self._uses_convex else "trees" if isinstance(network, Trees) else "adam"
        settings: dict[str, Any] = {"max_iter": self.max_iter}
        if network is not None:
            settings = {name: getattr(network, name) for name in _TRAINING if hasattr(network, name)}
            # The paper's networks are trained with solver="adam", without early stopping.
            if settings["early_stopping"] == "auto" and self.solver != "auto":
                settings["early_stopping"] = False
        if isinstance(network, Trees):
            settings["tree_params"] = network.params
        # Mini-batches and trees are implemented on the CPU.
        on_cpu = self.capabilities.devices == "cpu" or settings.get("batch_size") or solver != "adam"
        return Options(
            solver,
            type(self).__name__,
            np.array([each.lr for each in trained], dtype=np.float64),
            self._module,
            self._is_linear,
            tol=self.tol,
            l2=self.l2,
            verbose=self.verbose,
            device="cpu" if on_cpu else self.device,
            **settings,
        )

    def _objective(self, batch: Sequence[Any], masses: Sequence[FloatArray]) -> Any:
        """Return the objective of a batch: the mean, or the worst case of a model with ``alpha`` and ``ball``.

        `masses` are the masses of the patients in each block; the smallest mass of each block is enough.
        """
        if not hasattr(self, "ball"):
            return Mean()
        alphas = np.array([estimator.alpha for estimator in batch], dtype=np.float64)
        if len(batch) == 1 and self.ball != "cvar" and alphas[0] != 1.0:
            alpha = float(alphas[0])
            ball, smallest = BALLS[self.ball], [float(mass.min()) for mass in masses]
            protected = ball.smallest_mass(alpha)
            if protected <= max(smallest):
                least = ball.alpha_of_mass(max(smallest))
                named = f"{least:.4g}" if float(f"{least:.4g}") >= least else f"{1.001 * least:.4g}"
                warn_caller(
                    f"{arg('alpha', alpha)} protects groups smaller than one patient, so that training minimises only "
                    f"the largest loss; use alpha > {named} or more patients."
                )
            if protected <= min(smallest):
                # All weight can be on one patient, so the objective is the largest loss: CVaR with mass of one patient.
                return CVaR(min(smallest), tol=1e-8)
        return ball_objective(self.ball, alphas)

    def _halves(
        self, event: BoolArray, seed: int, position: IntArray | None = None
    ) -> list[BoolArray] | None:
        """Return flags (n,) of the scored halves, each compared with the other half; None without halves.

        `event` (n,) is in the order in which halves are drawn, `position` (n,) the given rows in this order.
        """
        return None

    def _seed(self) -> int:
        given = self.random_state
        if given is None or isinstance(given, np.random.RandomState):
            return int(check_random_state(given).randint(2**31 - 1))
        require(
            0 <= as_whole(given) < 2**32,
            "random_state",
            "be None, a RandomState or a whole number from 0 to 2**32 - 1",
            given,
        )
        return int(given)

    def _module(self, n_features: int, seed: int) -> Any:
        network = as_network(self.network)
        make = network.builder(self._n_outputs) if isinstance(network, MLP) else linear
        return build(make, n_features, seed)

    @property
    def _recalibrates(self) -> bool:
        """Whether scores are recalibrated; with "auto", if there are enough events."""
        if self.recalibrate != "auto":
            return bool(self.recalibrate)
        able = self.capabilities
        worst_case = able.objective == "worst case" and getattr(self, "alpha", None) != 1
        return worst_case and not able.no_recalibration and getattr(self, "ball", None) != "paper"

    def _on_accelerator(self, X: Any) -> bool:
        """Whether a linear model is solved on the device of a tensor, or on an accelerator."""
        if self.capabilities.devices != "cluster" or not self._uses_convex:
            return False
        if is_tensor(X):
            return True
        if self.device != "auto":
            return self.device != "cpu"
        # Lists and other array-likes have no shape; they are small.
        shape = getattr(X, "shape", ())
        return len(shape) == 2 and solves_on_accelerator(*shape)

    def _features(self, X: Any, y: Any) -> Any:
        return features_on_device(self, X, y) if self._on_accelerator(X) else super()._features(X, y)

    def _fit_on_accelerator(self, data: TrainingData) -> bool:
        return self._on_accelerator(data.X) and fit_on_device(self, data)

    def _recalibrated(self, result: Result) -> Result:
        """Multiply the scores by the factor that maximises the partial likelihood of held-out patients.

        The held-out score of each patient comes from a model trained without the patient's fold. If the best factor is
        not positive and finite, it is set to 1, with a warning. With ``recalibrate="auto"`` the model is not
        recalibrated in that case, with few events, or if training on a fold fails.
        """
        data, problem = result.problem.data, result.problem
        fold = self._folds(data.target.event, data.rows.cluster, data.seed, data.n_events, data.order)
        if fold is None:
            return result
        # Train a copy, because `_problem` may set attributes of its estimator.
        other, held_out = clone(self).set_params(verbose=False), []
        options = other._options([other])
        fold, folds = fold.astype(np.int8), np.flatnonzero(np.bincount(fold[data.target.event])).tolist()
        # Not needed any more.
        vars(data).pop("order", None)
        networks: list[Any] = coefficients_without(result, options, fold, folds)
        # In the order of times, the losses read memory in order.
        order = data.target.order
        patients = np.split(order[np.argsort(fold[order], kind="stable")], np.cumsum(np.bincount(fold)))
        for place, k in enumerate(folds):
            if networks[place] is None:
                with self._training_on_folds() as trained:
                    part = other._problem(data.take(order[fold[order] != k]), [other])
                    networks[place] = solve(part, options).network
                if not trained:
                    return result
                # Not in memory beside those of the next fold.
                del part
        scores = _held_out_scores(networks, data.X, fold, folds)
        for k in folds:
            rows = patients[k]
            loss, left_out = data.cox_loss(self.ties, rows), scores[rows]
            if not constant_features(left_out[:, None], loss.compared)[0]:
                mass = data.mass[rows[loss.rows]]
                held_out.append(HeldOut(loss, mass[None], left_out - left_out.mean()))
        factor = self._checked_factor(best_factor(held_out))
        if factor is None:
            return result
        result.factor, result.scores = factor, result.scores * factor
        if isinstance(result.network, np.ndarray):
            result.network = result.network * factor
        if problem.curves is not None:
            # A baseline that was trained together with the scores does not fit the multiplied scores.
            result.problem = replace(problem, curves=partial(cox_baseline, data.cox_loss(self.ties)))
        return result

    def _folds(
        self, event: BoolArray, clusters: Any, seed: int, n_events: float, order: IntArray | None = None
    ) -> IntArray | None:
        """Draw the fold (n,) of each row for recalibration; rows of one cluster are in the same fold.

        None if the model is not recalibrated. Without a random state the seed is 0, so that repeated fits of a linear
        model give the same result.
        """
        if not self._recalibrates or (self.recalibrate == "auto" and n_events < FEWEST_EVENTS):
            return None
        rng = np.random.default_rng(0 if self.random_state is None else seed)
        return draw_folds(len(event), N_FOLDS, rng, event, clusters, order=order)

    @contextmanager
    def _training_on_folds(self) -> Iterator[list[bool]]:
        """Yield a list that stays empty if training fails, which is an error with ``recalibrate=True``.

        Training on all patients has already given the warnings.
        """
        done: list[bool] = []
        try:
            with warnings.catch_warnings(action="ignore"):
                yield done
            done.append(True)
        except ValueError as error:
            if self.recalibrate != "auto":
                raise ArgumentError(
                    "recalibrate",
                    f"{arg('recalibrate', True)} also trains on four fifths of the patients, which failed: "
                    f"{str(error).rstrip('.')}; or use {arg('recalibrate', False)}.",
                ) from error

    def _checked_factor(self, factor: float) -> float | None:
        """Return the factor of recalibration; if the best one is not positive and finite, 1 with a warning or None."""
        if 0 < factor < np.inf:
            return factor
        if self.recalibrate == "auto":
            return None
        warn_caller(
            f"scores are not recalibrated: the best factor on held-out patients is {factor:.3g}. The model may not "
            "predict patients outside of the training set."
        )
        return 1.0

    def _accept(self, result: Result, follow_up: FollowUp | None = None) -> None:
        super()._accept(result, follow_up)
        if hasattr(self, "coef_"):
            self._kept_training, self._findings = result.problem.data, None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state of :meth:`__getstate__`; a torch module is built again."""
        super().__setstate__(state)
        if "network_" in state:
            self.network_ = restored(state["network_"], lambda: self._module(self.n_features_in_, 0))


def _held_out_scores(
    networks: Sequence[Any], X: FloatArray, fold: IntArray, folds: Sequence[int]
) -> FloatArray:
    """Return the score (n,) of each patient of one of the `folds` by the network that was trained without them."""
    scores = np.empty(len(fold))
    if all(isinstance(network, np.ndarray) for network in networks):
        # Products that are not needed take less time than reading the rows of one fold after the other.
        theta = np.zeros((X.shape[1], max(folds) + 1))
        theta[:, folds] = np.transpose(networks)
        for rows in batches(len(fold), _TOGETHER):
            scores[rows] = np.take_along_axis(X[rows] @ theta, fold[rows, None].astype(np.intp), axis=1)[:, 0]
        return scores
    for k, network in zip(folds, networks, strict=True):
        left_out = np.flatnonzero(fold == k)
        scores[left_out] = network_scores(network, X[left_out])
    return scores


@dataclass(eq=False)
class HeldOut:
    """The partial likelihood of the held-out patients of a fold as a function of the factor of their scores.

    `mass` (1, E) are the masses of the events, `scores` (n,) those of the model that was trained without the fold.
    """

    loss: CoxPartial
    mass: FloatArray
    scores: FloatArray

    def __post_init__(self) -> None:
        self._powers = np.stack([self.scores, self.scores**2], axis=1)
        self._pull = block_sums(self.mass, self.loss.block, len(self.loss.event_times))[0]

    @property
    def spread(self) -> float:
        """Difference between the highest and the lowest score."""
        return float(np.ptp(self.scores))

    def derivatives(self, factor: float) -> tuple[float, float]:
        """Return first and second derivative of the mean loss."""
        if self.loss.efron is None:
            offset = 0.0 if self.loss.offset is None else self.loss.offset
            self.loss.risk_sets.log_sums((factor * self.scores + offset)[None])
            # Means over the patients at risk of the scores and of their squares.
            first, second = self.loss.risk_sets.means(self._powers).T
            own = self.mass[0] @ self.scores[self.loss.rows]
            return float(self._pull @ first - own), float(self._pull @ (second - first**2))
        self.loss(factor * self.scores[None])
        slope = float(self.loss.pullback(self.mass)[0][0] @ self.scores)
        return slope, float(self.loss.hessian(self.mass, self.scores[:, None])[0, 0])


def _with_shared_parameters(documentation: str) -> str:
    """Add the parameters that CoxPH documents to the docstring of another model."""
    before, header, after = cleandoc(documentation).partition("Parameters\n----------\n")
    parameters, gap, rest = after.partition("\n\n")
    named = [line.split(" : ")[0].split(", ") for line in parameters.splitlines() if not line.startswith(" ")]
    shared = [field.name for field in fields(NetworkEstimator) if field.name not in chain(*named)]
    if not header or not shared:
        return documentation
    return f"{before}{header}{parameters}\n{', '.join(shared)}\n    As in :class:`drosurv.CoxPH`.{gap}{rest}"
