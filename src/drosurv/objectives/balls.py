"""Balls by name: which objective protects which subpopulations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from drosurv.errors import check_alpha, require
from drosurv.objectives.objective import Mean, Objective, uniform_mass
from drosurv.objectives.worst_case import RobustObjective
from drosurv.target import FloatArray

Documented = TypeVar("Documented")


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
    """Make a ball known by its name, to all robust estimators, :func:`worst_case_weights` and the command line.

    Parameters
    ----------
    name : str
        The value of ``ball`` that users pass.
    objective : callable
        Maps alphas, one or an array, to a :class:`RobustObjective`; usually its class.
    description : str
        A few words for the documentation.
    smallest_mass, alpha_of_mass : callable
        The mass of the smallest subpopulation that can get all weight at alpha, and the inverse. By default both are
        alpha itself, as for every ball that just contains the subpopulations of mass alpha.
    """
    BALLS[name] = Ball(objective, description, smallest_mass, alpha_of_mass)
    for documented, text in _documented:
        documented.__doc__ = _filled(text)


def lists_balls(documented: Documented) -> Documented:
    """Fill the names of all balls into a docstring, for ``{balls}``, and their descriptions, for ``{described}``."""
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
    """Raise unless the name is that of a ball, or one of those allowed."""
    names = tuple(BALLS if allowed is None else allowed)
    require(ball in names, "ball", f"be one of {names}", ball)


def ball_objective(ball: str, alphas: FloatArray) -> Objective:
    """Return the objective that protects subpopulations of at least mass alpha; the mean if every alpha is 1."""
    return Mean() if (alphas == 1.0).all() else BALLS[ball].objective(alphas)


def worst_case_weights(losses: Any, alpha: ArrayLike, *, ball: str = "chi2") -> Any:
    """Weights of the worst-off subpopulation that a ball allows.

    Parameters
    ----------
    losses : (..., n) array or tensor
        One loss per patient; leading axes are a batch.
    alpha : float or (...,) array or tensor
        Smallest share of patients to protect, in (0, 1].
    ball : {balls}
        Shape of the worst case. {described}.

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


def is_tensor(losses: Any) -> bool:
    """Return whether losses are a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(losses, torch.Tensor)


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
    rows = np.ascontiguousarray(np.broadcast_to(given, (*shape, n)).reshape(-1, n))
    found = objective(np.broadcast_to(alphas, shape).ravel())(rows, uniform_mass(n))
    return found.value.reshape(shape), found.weights.reshape(*shape, n)
