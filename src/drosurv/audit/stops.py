"""The stops of the slider: the audited model among its relatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drosurv.audit.alpha_path import ALPHAS, final_estimator, is_of_a_family, train_alpha_path
from drosurv.estimators import DROCox


@dataclass(frozen=True, eq=False)
class Stop:
    """One model of the report.

    Attributes
    ----------
    name : str
        What readers call it.
    alpha : float, optional
        Its place on the slider; None for an audited model that is of no such family.
    model : fitted model or Pipeline
    audited : bool
        Whether it is the one under audit.
    """

    name: str
    alpha: float | None
    model: Any
    audited: bool


def find_stops(
    model: Any, X_train: Any, y_train: Any, alpha_path: Mapping[float, Any] | Sequence[float] | None
) -> tuple[Stop, ...]:
    """The audited model and those to compare it with, from the largest share protected to the smallest.

    Parameters as in :func:`~drosurv.audit.audit`. An audited model without a place on the path comes first.
    """
    if not isinstance(alpha_path, Mapping):
        alphas = ALPHAS if alpha_path is None else alpha_path
        can_train = (
            X_train is not None and getattr(getattr(y_train, "dtype", None), "names", None) is not None
        )
        if len(alphas) and alpha_path is not None and not can_train:
            raise ValueError(
                "alpha_path names shares to train models at, which needs training patients: pass X_train and y_train."
            )
        alpha_path = train_alpha_path(model, X_train, y_train, alphas) if can_train and len(alphas) else {}
    others = [Stop(_name(fitted, alpha), float(alpha), fitted, False) for alpha, fitted in alpha_path.items()]
    estimator = final_estimator(model)
    on_path = is_of_a_family(estimator) and all(
        type(final_estimator(stop.model)) is type(estimator) for stop in others
    )
    alpha = float(estimator.alpha) if on_path else None
    audited = Stop(_name(model, alpha), alpha, model, True)
    if alpha is None:
        return (audited, *sorted(others, key=lambda stop: -(stop.alpha or 0.0)))
    kept = [stop for stop in others if stop.alpha != alpha]
    return tuple(sorted([audited, *kept], key=lambda stop: -(stop.alpha or 0.0)))


def _name(model: Any, alpha: float | None) -> str:
    estimator = final_estimator(model)
    name = type(estimator).__name__
    if alpha is None:
        return name
    plain = " (plain Cox)" if alpha == 1 and isinstance(estimator, DROCox) else ""
    return f"{name}, alpha {alpha:g}{plain}"
