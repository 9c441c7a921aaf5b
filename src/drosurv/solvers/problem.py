"""Training data, the problem that training minimises, the solver's options, and the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight

from drosurv.errors import ArgumentError, InputError
from drosurv.losses import Loss
from drosurv.losses.cox_partial import CoxPartial
from drosurv.objectives import Objective
from drosurv.objectives.objective import Evaluation, Mean
from drosurv.patients.draws import row_order
from drosurv.patients.groups import parse_groups
from drosurv.patients.observation import Rows, ends_of_patients
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target
from drosurv.solvers.criterion import Criterion
from drosurv.solvers.neighborhoods import Neighborhoods
from drosurv.solvers.penalty import Penalty

if TYPE_CHECKING:
    from drosurv.solvers.convex import LinearProblem


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The checked arguments of fit, for the n rows of positive weight.

    `X` (n, d) are the features, called `names`; `target` has events and times, with entry times and strata if given;
    `mass` (n,) are the shares of the patients, summing to one, and `weight` (n,) the sample weights, None if all are
    one. `kept` (n,) are the positions of these rows among the `n_rows` rows passed to fit. `codes` (n,) are their
    groups, from 0 to `n_groups` - 1, and `rows` what else is known about the rows. `seed` is that of every random
    choice in this fit; `in_first` (n,) marks the first half, of a loss that compares halves, once it is drawn.
    """

    X: Any
    target: Target
    mass: FloatArray
    weight: FloatArray | None
    kept: IntArray
    n_rows: int
    names: list[str] | None = None
    codes: IntArray | None = None
    n_groups: int = 0
    seed: int = 0
    rows: Rows = field(default_factory=Rows)
    in_first: BoolArray | None = None

    @classmethod
    def parse(
        cls,
        X: Any,
        target: Target,
        sample_weight: ArrayLike | None,
        *,
        names: list[str] | None = None,
        seed: int = 0,
    ) -> TrainingData:
        """Check features, target and weights, and drop the rows of weight zero."""
        n = len(X)
        if len(target) != n:
            raise ArgumentError("X", f"X and y must have the same number of rows, got {n} and {len(target)}.")
        weight, kept = None, np.arange(n)
        if sample_weight is not None:
            given = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            kept = np.flatnonzero(given > 0)
            if len(kept) < n:
                X, target = X[kept], target.take(kept)
            weight = given[kept]
            if not target.event.any():
                raise ArgumentError(
                    "sample_weight",
                    "sample_weight leaves no patient with an event; every event has weight 0.",
                )
            if (weight == 1.0).all():
                weight = None
        if np.ptp(target.time) == 0:
            raise ArgumentError(
                "y", f"y has the same time, {target.time[0]}, for every patient, so no model can be fitted."
            )
        mass = np.full(len(X), 1.0 / len(X)) if weight is None else weight / weight.sum()
        return cls(X, target, mass, weight, kept, n, names, seed=seed)

    def observed(self, rows: Rows, *, name: str, robust: bool) -> TrainingData:
        """Add entry times, strata, clusters, offset and ids of all rows passed to fit.

        `name` is the estimator's name, for messages. `robust` says whether the objective weights patients by their
        losses: then each patient may have only one event.
        """
        rows, mass = rows.take(self.kept), self.mass
        patient = rows.patient
        if patient is not None:
            events = np.bincount(patient, self.target.event)
            if events.max() <= 1:
                # The mass is that of patients, not of rows: all of it is on a patient's last row, or that of the event.
                # Only events have a loss in the partial likelihood, so this equals summing a patient's losses.
                last = ends_of_patients(patient, self.target)[1]
                mass = np.zeros(len(self.target))
                mass[last] = 1.0 if self.weight is None else self.weight[last]
                mass /= mass.sum()
            elif robust:
                raise ArgumentError(
                    "id",
                    f"{name} weights patients by their loss, and one id has {int(events.max())} events: "
                    "give one event per id, or train the plain model.",
                )
        target = replace(self.target, entry=rows.entry, stratum=rows.stratum)
        return replace(self, target=target, mass=mass, rows=rows)

    def with_groups(self, sensitive_features: Any) -> TrainingData:
        """Add the groups, given for all rows passed to fit; several columns define groups by their combinations."""
        groups = parse_groups(sensitive_features, self.n_rows, name="sensitive_features", at_least=1)
        _, codes = np.unique(groups.codes[self.kept], return_inverse=True)
        return replace(self, codes=codes.astype(np.intp), n_groups=int(codes.max()) + 1)

    def cox_loss(self, ties: str = "breslow", rows: IntArray | None = None) -> CoxPartial:
        """Return the partial likelihood loss of these patients, or of some rows."""
        weight, offset = self.weight, self.rows.offset
        if rows is None:
            return CoxPartial(self.target, ties, weight, offset)
        weight, offset = (None if values is None else values[rows] for values in (weight, offset))
        return CoxPartial(self.target.take(rows), ties, weight, offset)

    @property
    def patient_weight(self) -> FloatArray | None:
        """Weights of the patients; a patient with several rows has the weight of the last row."""
        patient = self.rows.patient
        if self.weight is None or patient is None:
            return self.weight
        return self.weight[ends_of_patients(patient, self.target)[1]]

    @property
    def n_patients(self) -> int | float:
        """Number of patients; weight 2 counts a patient twice."""
        weight, patient = self.patient_weight, self.rows.patient
        if weight is not None:
            return _whole(float(weight.sum()))
        return len(self.target) if patient is None else len(np.unique(patient))

    @property
    def n_events(self) -> int | float:
        """Number of events; weight 2 counts an event twice."""
        return self.target.n_events if self.weight is None else _whole(float(self.weight @ self.target.event))

    @cached_property
    def order(self) -> IntArray:
        """The rows (n,) in the order in which folds and halves are drawn for them."""
        return row_order(self.target, self.X, self.weight, self.rows.offset, self.rows.cluster)

    @property
    def clusters(self) -> IntArray:
        """Cluster number (n,) of each row; without clusters each row is a cluster."""
        given = self.rows.cluster
        return np.arange(len(self.X)) if given is None else np.unique(given, return_inverse=True)[1]

    def in_given_rows(self, values: FloatArray) -> FloatArray:
        """Return values of all rows passed to fit, given those of these rows (n,); zero for the others."""
        if len(values) == self.n_rows:
            return values
        out = np.zeros(self.n_rows)
        out[self.kept] = values
        return out

    def in_double(self) -> TrainingData:
        """Convert the features to double precision."""
        X = np.asarray(self.X, dtype=np.float64)
        return self if X is self.X else replace(self, X=X)

    def take(self, rows: IntArray) -> TrainingData:
        """Return the given rows."""
        mass = self.mass[rows]
        codes = None if self.codes is None else np.unique(self.codes[rows], return_inverse=True)[1]
        return replace(
            self,
            X=self.X[rows],
            target=self.target.take(rows),
            mass=mass / mass.sum(),
            weight=None if self.weight is None else self.weight[rows],
            kept=self.kept[rows],
            codes=codes,
            n_groups=0 if codes is None else int(codes.max()) + 1,
            rows=self.rows.take(rows),
            in_first=None if self.in_first is None else self.in_first[rows],
        )

    def resample(self, counts: FloatArray) -> TrainingData:
        """Return a bootstrap replicate that contains each row as often as `counts` (n,) says."""
        rows = np.flatnonzero(counts)
        part, copies = self.take(rows), counts[rows]
        if not part.target.event.any():
            raise InputError("none of the patients drawn had an event.")
        mass = part.mass * copies
        weight = copies if part.weight is None else part.weight * copies
        return replace(part, mass=mass / mass.sum(), weight=weight)


@dataclass(frozen=True, eq=False)
class Problem:
    """What a batch of B models minimises on one training set: objective(losses) + penalty.

    Attributes
    ----------
    data : TrainingData
        Features and outcomes of the patients.
    loss : Loss
        One loss per patient.
    objective : Objective
        Combines the losses into one number; the mean by default.
    mass : (n,), optional
        Masses of the patients in the objective; those of `data` by default.
    blocks : list of (m,) int, optional
        Rows of each block; the objectives of the blocks are summed.
    regret : bool
        Whether the objective uses regrets: the losses minus those of the null model.
    neighborhoods : Neighborhoods or callable, optional
        Averages of losses over similar patients, or a function that makes them from the regrets (n,) of the plain
        model, which is then trained first.
    penalty, penalty_weight : Penalty and (B,), optional
        Penalty that is added to the objective, and its weights.
    curves : callable, optional
        Maps (data, scores (n,), extra (K,)) to the fitted survival curves, a
        :class:`drosurv.curves.FittedCurves`; by default those of a Cox model with Breslow's or Efron's baseline.
    """

    data: TrainingData
    loss: Loss
    objective: Objective = field(default_factory=Mean)
    mass: FloatArray | None = None
    blocks: Sequence[IntArray] | None = None
    regret: bool = False
    neighborhoods: Neighborhoods | Callable[[FloatArray], Neighborhoods] | None = None
    penalty: Penalty | None = None
    penalty_weight: FloatArray | None = None
    curves: Callable[[TrainingData, FloatArray, FloatArray], Any] | None = None

    @property
    def finds_neighborhoods(self) -> bool:
        """Whether the plain model must be trained first to find the neighbourhoods."""
        return callable(self.neighborhoods) and not isinstance(self.neighborhoods, Neighborhoods)

    @cached_property
    def criterion(self) -> Criterion:
        """The objective as a function of scores and extra parameters."""
        assert not self.finds_neighborhoods, "neighbourhoods are found before training"
        neighborhoods: Any = self.neighborhoods
        return Criterion(
            self.loss,
            self.objective,
            self.data.mass if self.mass is None else self.mass,
            self.blocks,
            neighborhoods=neighborhoods,
            null_losses=self.loss.null_losses() if self.regret else None,
            penalty=self.penalty,
            penalty_weight=self.penalty_weight,
        )


@dataclass(frozen=True, eq=False)
class Options:
    """How a batch of B models is trained; parameters of the same name are explained in :class:`drosurv.CoxPH`.

    The `solver` "convex" finds the global optimum for linear scores, "adam" takes steps of Adam, "trees" grows boosted
    trees, "none" keeps all scores at zero; "auto" is "convex" if the loss has second derivatives, else "adam". `name`
    is the estimator's, for messages. `lr` (B,) are learning rates; `module` maps (number of features, seed) to a torch
    module, and is `linear` if it is one linear map to one score without bias. `early_stopping` True raises if there are
    too few events for a validation set; "auto" then does without.
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
    early_stopping: bool | str = False
    validation_fraction: float = 0.2
    n_iter_no_change: int = 20
    tree_params: Mapping[str, Any] | None = None


@dataclass(eq=False)
class Result:
    """One trained model of a `problem`.

    `network` are coefficients (d,) or (K, d), a torch module or trees, `scores` (n,) or (n, K) those of the training
    patients, `extra` (K,) the extra parameters of the loss. `n_iter`, `status`, `gap` and `history` are the number of
    iterations, why training stopped, the certified relative gap (NaN without one), and the objective after each
    iteration. `factor` is that by which recalibration has multiplied network and scores, `linear` the convex problem
    that was solved. `objective` is the final one,
    with penalties; `losses` (1, m) are its arguments (losses, or averaged regrets), and `evaluation` is the objective
    at these.
    """

    problem: Problem
    network: Any
    scores: FloatArray
    extra: FloatArray
    n_iter: int
    status: str
    gap: float
    history: FloatArray
    factor: float | None = None
    linear: LinearProblem | None = None
    objective: float = field(init=False)
    losses: FloatArray = field(init=False)
    evaluation: Evaluation = field(init=False)

    @property
    def eta(self) -> float | tuple[float, ...]:
        """The threshold above which losses have weight; with blocks, one for each."""
        eta = self.evaluation.eta
        return tuple(map(float, eta[0])) if eta.ndim == 2 else float(eta[0])

    @property
    def worst_case_weights(self) -> FloatArray:
        """Worst-case weights of all rows passed to fit, summing to one."""
        weights = self.problem.criterion.patient_weights(self.evaluation)[0]
        return self.problem.data.in_given_rows(weights / weights.sum())


def _whole(count: float) -> int | float:
    """Return a count as an int if it is one up to rounding."""
    return round(count) if abs(count - round(count)) < 1e-9 * count else count
