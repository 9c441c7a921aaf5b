"""The stops of the slider: the audited model among its relatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drosurv.audit.alpha_path import ALPHAS, final_estimator, is_of_a_family, prepared, train_alpha_path
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
    model : fitted model, or Predictions
        What is evaluated.
    X, X_train : features or None
        Of the audited and of the training patients, as `model` takes them.
    audited : bool
        Whether it is the one under audit.
    """

    name: str
    alpha: float | None
    model: Any
    X: Any
    X_train: Any
    audited: bool

    @property
    def label(self) -> str:
        """What stands below the slider."""
        return "audited" if self.alpha is None else f"{self.alpha:g}"


def find_stops(
    model: Any, X: Any, X_train: Any, y_train: Any, alpha_path: Mapping[float, Any] | Sequence[float] | None
) -> tuple[tuple[Stop, ...], tuple[str, ...]]:
    """The audited model and those to compare it with, and a sentence for each share that could not be trained.

    Parameters as in :func:`~drosurv.audit.audit`. From the largest share protected to the smallest; an audited model
    without a place on the path comes first.
    """

    def stop(fitted: Any, alpha: float | None, audited: bool) -> Stop:
        seen = None if X_train is None else prepared(fitted, X_train)
        return Stop(_name(fitted, alpha), alpha, final_estimator(fitted), prepared(fitted, X), seen, audited)

    skipped: tuple[str, ...] = ()
    if not isinstance(alpha_path, Mapping):
        alphas = ALPHAS if alpha_path is None else alpha_path
        can_train = (
            X_train is not None and getattr(getattr(y_train, "dtype", None), "names", None) is not None
        )
        if len(alphas) and alpha_path is not None and not can_train:
            raise ValueError(
                "alpha_path names shares to train models at, which needs training patients: pass X_train and y_train."
            )
        alpha_path = {}
        if can_train and len(alphas):
            alpha_path = train_alpha_path(model, X_train, y_train, alphas)
            skipped = tuple(
                f"The slider has no alpha {alpha:g}: the model cannot be trained at that share of these patients."
                for alpha in sorted(set(map(float, alphas)), reverse=True)
                if alpha not in alpha_path
            )
    others = [stop(fitted, float(alpha), False) for alpha, fitted in alpha_path.items()]
    estimator = final_estimator(model)
    on_path = is_of_a_family(estimator) and all(type(other.model) is type(estimator) for other in others)
    alpha = float(estimator.alpha) if on_path else None
    audited = stop(model, alpha, True)
    if alpha is None:
        return (audited, *sorted(others, key=lambda other: -(other.alpha or 0.0))), skipped
    kept = [other for other in others if other.alpha != alpha]
    return tuple(sorted([audited, *kept], key=lambda other: -(other.alpha or 0.0))), skipped


def _name(model: Any, alpha: float | None) -> str:
    estimator = final_estimator(model)
    name = type(estimator).__name__
    if alpha is None:
        return name
    plain = " (plain Cox)" if alpha == 1 and isinstance(estimator, DROCox) else ""
    return f"{name}, alpha {alpha:g}{plain}"
