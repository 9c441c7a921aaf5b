"""Robust objectives: the worst case over a ball of weights around the patients' masses.

A ball is known by its name (`BALLS`). A robust objective has kinks where the largest losses are equal, because the
distribution of the weight among them is not determined. It is determined in the smoothed objective

    max over allowed q of  sum_i q_i l_i - (t/2) sum_i (q_i - p_i)^2 / p_i

with t > 0. Its weights q are allowed too, so that sum_i q_i l_i is at most the unsmoothed objective.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numba
import numpy as np
from numpy.typing import ArrayLike

from drosurv.errors import check_alpha, check_choice
from drosurv.objectives.objective import (
    Curvature,
    Evaluation,
    LossSums,
    Mean,
    Moments,
    Objective,
    WorstCase,
    uniform_mass,
)
from drosurv.patients.arrays import is_tensor
from drosurv.patients.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor, device

Documented = TypeVar("Documented")


# The worst case before the first evaluation, and of losses that are not finite.
_UNKNOWN = WorstCase(*(np.nan,) * 5)


class RobustObjective(Objective):
    """The worst case over a ball of weights around the patients' masses.

    To add a ball, write a subclass with ``__call__`` for arrays and ``torch_evaluation`` for tensors, and register it
    with :func:`drosurv.objectives.register_ball`. `alpha` is the smallest share of patients to protect, one for all
    rows of a batch or one for each.
    """

    def __init__(self, alpha: ArrayLike) -> None:
        self.alpha = check_alpha(alpha)
        self._alpha_on: dict[device, Tensor] = {}

    def alpha_of_row(self, row: int) -> float:
        """Return the alpha of one row of a batch."""
        return float(self.alpha.flat[row % self.alpha.size])

    @abstractmethod
    def torch_evaluation(self, losses: Tensor, mass: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return value (...,) and weights (..., n) in float64 at detached losses (..., n).

        `mass` (..., n) are the patients' masses, with any sum; None for equal masses.
        """

    def torch(self, losses: Tensor, mass: Tensor | None = None) -> Tensor:
        """See :meth:`Objective.torch`. The gradient is the vector of weights (Danskin's theorem)."""
        value, weights = self.torch_evaluation(losses.detach(), mass)
        return value.to(losses.dtype) + (weights.to(losses.dtype) * (losses - losses.detach())).sum(-1)

    def torch_alpha(self, losses: Tensor) -> Tensor:
        """Return alpha (...,) in float64 on the device of losses (..., n), one for each row of losses.

        It is copied to a device only once, because a copy would slow down every training step.
        """
        import torch

        if (on := losses.device) not in self._alpha_on:
            self._alpha_on[on] = torch.tensor(self.alpha, dtype=torch.float64, device=on)
        return self._alpha_on[on].expand(np.broadcast_shapes(losses.shape[:-1], self.alpha.shape))


def _unchanged(value: float) -> float:
    return value


@dataclass(frozen=True, eq=False)
class Ball:
    """A family of robust objectives.

    `objective` maps alpha to the objective, `description` says in a few words what the ball is, `smallest_mass` maps
    alpha to the mass of the smallest subpopulation that can get all weight, and `alpha_of_mass` is its inverse.
    """

    objective: Callable[[FloatArray], RobustObjective]
    description: str
    smallest_mass: Callable[[float], float] = _unchanged
    alpha_of_mass: Callable[[float], float] = _unchanged


BALLS: dict[str, Ball] = {}
# Classes and functions whose docstrings list the balls, with the text before the names were filled in.
_documented: list[tuple[Any, str]] = []


def register_ball(
    name: str,
    objective: Callable[[FloatArray], RobustObjective],
    description: str,
    *,
    smallest_mass: Callable[[float], float] = _unchanged,
    alpha_of_mass: Callable[[float], float] = _unchanged,
) -> None:
    """Register a ball under a name, for all robust estimators, :func:`worst_case_weights` and the command line.

    Parameters
    ----------
    name : str
        The value of ``ball`` that users pass.
    objective : callable
        Maps alphas, one or an array, to a :class:`RobustObjective`; usually its class.
    description : str
        A few words for the documentation.
    smallest_mass, alpha_of_mass : callable
        Map alpha to the mass of the smallest subpopulation that can get all weight, and back. By default this mass is
        alpha, as for the smallest ball that contains all subpopulations of mass alpha.
    """
    BALLS[name] = Ball(objective, description, smallest_mass, alpha_of_mass)
    for documented, text in _documented:
        documented.__doc__ = _filled(text)


def lists_balls(documented: Documented) -> Documented:
    """In a docstring, replace ``{balls}`` by the names of all balls and ``{described}`` by their descriptions."""
    text = documented.__doc__ or ""
    _documented.append((documented, text))
    documented.__doc__ = _filled(text)
    return documented


def _filled(text: str) -> str:
    names = ", ".join(f'"{name}"' for name in BALLS)
    return text.replace("{balls}", f"{{{names}}}").replace("{described}", describe_balls())


def describe_balls() -> str:
    """Return the names of all balls with their descriptions, as one line of text."""
    return "; ".join(f"{name}: {ball.description}" for name, ball in BALLS.items())


def check_ball(ball: str, allowed: Collection[str] | None = None) -> None:
    """Raise unless `ball` is one of the allowed names, by default those of all balls."""
    check_choice("ball", ball, tuple(BALLS if allowed is None else allowed))


def ball_objective(ball: str, alphas: FloatArray) -> Objective:
    """Return the robust objective of a ball and one or more alphas; the mean if every alpha is 1."""
    return Mean() if (alphas == 1.0).all() else BALLS[ball].objective(alphas)


def worst_case_weights(losses: Any, alpha: ArrayLike, *, ball: str = "chi2") -> Any:
    """Worst-case weights: those in the ball that give the largest weighted mean of the losses.

    Parameters
    ----------
    losses : (..., n) array or tensor
        One loss per patient; leading axes are a batch.
    alpha : float or (...,) array or tensor
        Smallest share of patients to protect, in (0, 1].
    ball : {balls}
        Set of weights over which to take the worst case. {described}.

    Returns
    -------
    (..., n) array or tensor
        Not negative, summing to one: the gradient of the objective in the losses.

    Examples
    --------
    >>> from drosurv.objectives import worst_case_weights
    >>> worst_case_weights([1.0, 2.0, 3.0, 4.0], alpha=0.5, ball="cvar")
    array([0. , 0. , 0.5, 0.5])
    """
    check_ball(ball)
    if is_tensor(losses):
        weights = BALLS[ball].objective(numpy_alpha(alpha)).torch_evaluation(losses.detach())[1]
        return weights.to(losses.dtype)
    return evaluate_rows(BALLS[ball].objective, losses, alpha)[1]


worst_case_weights = lists_balls(worst_case_weights)


def robust_value(objective: Callable[[FloatArray], RobustObjective], losses: Any, alpha: ArrayLike) -> Any:
    """Return the objective (...,) of losses (..., n), an array or a tensor (differentiable, on any device)."""
    if is_tensor(losses):
        return objective(numpy_alpha(alpha)).torch(losses)
    values = evaluate_rows(objective, losses, alpha)[0]
    return float(values) if values.ndim == 0 else values


def numpy_alpha(alpha: Any) -> FloatArray:
    """Return checked alphas as an array; they may be a tensor on any device."""
    return check_alpha(alpha.detach().cpu().numpy() if is_tensor(alpha) else alpha)


def evaluate_rows(
    objective: Callable[[FloatArray], RobustObjective], losses: Any, alpha: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return values (...,) and weights (..., n) of an array of losses (..., n), with equal masses."""
    given, alphas = np.asarray(losses, dtype=np.float64), numpy_alpha(alpha)
    shape = np.broadcast_shapes(given.shape[:-1], alphas.shape)
    n = given.shape[-1]
    # A copy: numba would compile the objective again for read-only losses.
    rows = np.array(np.broadcast_to(given, (*shape, n)).reshape(-1, n), order="C")
    found = objective(np.broadcast_to(alphas, shape).ravel())(rows, uniform_mass(n))
    return found.value.reshape(shape), found.weights.reshape(*shape, n)


def torch_shares(values: Tensor, mass: Tensor | None) -> Tensor:
    """Return masses (..., n) that sum to one in each row, in the shape of the values (..., n)."""
    import torch

    if mass is None:
        return torch.full_like(values, 1.0 / values.shape[-1])
    return (mass.double() / mass.double().sum(-1, keepdim=True)).expand(values.shape)


class FromSums(RobustObjective):
    """A robust objective that can be computed from sums over the losses; a subclass implements ``from_sums``."""

    smoothing = 0.0
    _last: tuple[WorstCase, ...] = ()

    def smoothed(self, smoothing: float) -> FromSums:
        """Return the same objective with smoothing t > 0."""
        other = copy.copy(self)
        other.smoothing, other._last = smoothing, ()
        return other

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Return value, weights and threshold; the search for the threshold starts at the last one."""
        last = self._last if len(self._last) == len(losses) else (_UNKNOWN,) * len(losses)
        self._last = tuple(self._worst_case(losses[b], mass, last[b].eta, b) for b in range(len(losses)))
        weights = np.empty_like(losses)
        for found, row, out in zip(self._last, losses, weights, strict=True):
            np.multiply(mass, found.ratio(row), out=out)
            # With little smoothing, rounding of the threshold changes the sum of the weights: normalise.
            out /= out.sum()
        values, etas = np.array([(found.value, found.eta) for found in self._last]).T
        return Evaluation(values, weights, etas)

    def curvature(self, losses: FloatArray, mass: FloatArray, at: Evaluation) -> Curvature | None:
        """Return the second derivative at one row of losses (n,)."""
        eta = float(at.eta[0])
        # Usually these are the losses of the last call.
        known = self._last and self._last[0].eta == eta
        found = self._last[0] if known else self._worst_case(losses, mass, eta, 0)
        return curvature_of(found, losses, mass)

    def _worst_case(self, losses: FloatArray, mass: FloatArray, start: float, row: int) -> WorstCase:
        lowest, highest = _ends(losses, mass)
        if np.isnan(lowest):
            return _UNKNOWN

        def members(low: float, high: float) -> tuple[FloatArray, FloatArray]:
            inside = (losses > low) & (losses <= high)
            return losses[inside], mass[inside]

        sums = LossSums(partial(moments, losses, mass), members, lowest, highest, start)
        return self.from_sums(sums, self.smoothing, row)


def curvature_of(found: WorstCase, losses: FloatArray, mass: FloatArray) -> Curvature | None:
    """Return the second derivative of a worst case in its losses (n,) of masses (n,); None if no weight changes."""
    if found.scale == 0.0:
        return None
    over = losses - found.eta
    active = mass * ((over > 0.0) & (over < found.cap / found.slope))
    scales, by_active, by_excess = zip(*found.terms, strict=True)
    vectors = np.outer(by_active, active)
    if any(by_excess):
        vectors += np.outer(by_excess, active * over)
    return Curvature(found.scale * active, np.array(scales), vectors)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _ends(losses: FloatArray, mass: FloatArray) -> tuple[float, float]:
    """Return the smallest and largest loss with positive mass; NaN if a loss is not finite."""
    lowest, highest, total = np.inf, -np.inf, 0.0
    for i in range(losses.shape[0]):
        if mass[i] > 0.0:
            lowest = losses[i] if losses[i] < lowest else lowest
            highest = losses[i] if losses[i] > highest else highest
            total += losses[i]
    return (lowest, highest) if np.isfinite(total) else (np.nan, np.nan)


def moments(losses: FloatArray, mass: FloatArray, low: float, high: float, base: float) -> Moments:
    """Return the moments about a base of the losses (n,) between two bounds."""
    return Moments(*_moments(losses, mass, low, high, base))


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _moments(
    losses: FloatArray, mass: FloatArray, low: float, high: float, base: float
) -> tuple[float, float, float, float]:
    above = share = first = second = 0.0
    for i in range(losses.shape[0]):
        # Selections in place of branches: only then does the compiler vectorise the loop.
        part = mass[i] if low < losses[i] < high else 0.0
        off = losses[i] - base
        above += mass[i] if losses[i] >= high else 0.0
        share += part
        first += part * off
        second += part * off * off
    return above, share, first, second
