"""Models of the slider: the audited model, and models of the same class trained with other alphas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from drosurv.any_model import final_step, prepared
from drosurv.errors import ArgumentError, arg
from drosurv.estimators import DROCox
from drosurv.estimators.capabilities import WEIGHTED
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.predictions import Predictions, select_rows
from drosurv.target import IntArray

ALPHAS = (1.0, 0.7, 0.5, 0.3, 0.2, 0.15, 0.1)


@dataclass(frozen=True, eq=False)
class Stop:
    """A model of the report, or Predictions, with its features of the audited and of the training patients.

    `alpha` is its position on the slider; None for an audited model without alpha. If the model is the last step of a
    Pipeline, `whole` is the Pipeline with its features.
    """

    name: str
    alpha: float | None
    model: Any
    X: Any = None
    X_train: Any = None
    audited: bool = True
    whole: tuple[Any, Any] | None = None

    def frozen(self, features: Any) -> tuple[Any, Any] | None:
        """Return the model (or a pair of times and survival) and its features, as a repair takes them.

        A Pipeline is repaired as a whole, because readers know its columns. Predictions without columns get `features`,
        those that rules may use. None without curves.
        """
        X = features if self.X is None else self.X
        if isinstance(self.model, Predictions):
            times, survival = self.model.times, self.model.survival
            return None if survival is None or times is None else ((times, survival), X)
        if not hasattr(self.model, "predict_survival_function"):
            return None
        return self.whole or (self.model, X)

    def take(self, rows: IntArray) -> Stop:
        """Return the stop with some of the audited patients."""
        whole = None if self.whole is None else (self.whole[0], select_rows(self.whole[1], rows))
        model, X = select_rows(self.model, rows), select_rows(self.X, rows)
        return replace(self, model=model, X=X, whole=whole)


def find_stops(
    model: Any, X: Any, X_train: Any, y_train: Any, alpha_path: Mapping[float, Any] | Sequence[float] | None
) -> tuple[tuple[Stop, ...], tuple[str, ...]]:
    """Return the models of the slider, and a sentence for each alpha that could not be trained.

    Parameters are those of :func:`~drosurv.report.audit`. Models are sorted from the largest alpha to the smallest; an
    audited model without alpha comes first.
    """

    def stop(fitted: Any, alpha: float | None, audited: bool) -> Stop:
        train = None if X_train is None else prepared(fitted, X_train)
        estimator = final_step(fitted)
        whole = None if estimator is fitted else (fitted, X)
        return Stop(_name(estimator, alpha), alpha, estimator, prepared(fitted, X), train, audited, whole)

    skipped: list[str] = []
    if not isinstance(alpha_path, Mapping):
        alphas = ALPHAS if alpha_path is None else alpha_path
        can_train = X_train is not None and has_rows(y_train)
        if len(alphas) and alpha_path is not None and not can_train:
            raise ArgumentError(
                "alpha_path",
                f"{arg('alpha_path')} names alphas to train models with, which needs training patients: pass "
                f"{arg('X_train')} and y_train.",
            )
        path = train_alpha_path(model, X_train, y_train, alphas) if can_train and len(alphas) else {}
        skipped = [
            f"The slider has no alpha {alpha:g}: the model cannot be trained at that share of these patients."
            for alpha in sorted(set(map(float, alphas)), reverse=True)
            if path and alpha not in path
        ]
        alpha_path = path
    others = [stop(fitted, float(alpha), False) for alpha, fitted in alpha_path.items()]
    estimator = final_step(model)
    same_class = all(type(other.model) is type(estimator) for other in others)
    alpha = protected_share(estimator) if same_class else None
    # A model without alpha comes first.
    ordered = sorted(
        [stop(model, alpha, True), *(other for other in others if other.alpha != alpha)],
        key=lambda stop: -2.0 if stop.alpha is None else -stop.alpha,
    )
    return tuple(ordered), tuple(skipped)


def protected_share(estimator: Any) -> float | None:
    """Return alpha, the share of patients that a model's training protects; None if it has none.

    None too for models that are trained with groups: the models of the slider are trained without them.
    """
    if not isinstance(estimator, NetworkEstimator) or estimator.capabilities.objective not in WEIGHTED:
        return None
    if estimator._compares_groups is not None:
        return None
    alpha = getattr(estimator, "alpha", None)
    return None if alpha is None else float(alpha)


def has_rows(y_train: Any) -> bool:
    """Whether a training target has one row per patient, and is not only their follow-up."""
    return getattr(getattr(y_train, "dtype", None), "names", None) is not None


def train_alpha_path(
    model: Any, X_train: Any, y_train: Any, alphas: Sequence[float] = ALPHAS
) -> dict[float, Any]:
    """Train models like a given one with several alphas, the shares of patients to protect.

    If the model has a parameter alpha, like ``DROCox``, models of its class and settings are trained; otherwise a
    ``DROCox`` with the settings that both have. The first steps of a Pipeline are used as fitted. Return fitted models
    by alpha, from the largest to the smallest. An alpha with which the model cannot be trained, such as one of fewer
    patients than its smallest group, is left out.
    """
    wanted = sorted(set(map(float, alphas)), reverse=True)
    path = {alpha: _with_alpha(final_step(model), alpha) for alpha in wanted}
    fitted = _fitted(path, prepared(model, X_train), y_train)
    if not hasattr(model, "steps"):
        return fitted
    *before, (name, _) = model.steps
    return {alpha: Pipeline([*before, (name, found)]) for alpha, found in fitted.items()}


def _fitted(path: dict[float, Any], X: Any, y: Any) -> dict[float, Any]:
    """Return the models that can be trained; raise the first error if none can."""
    kept, errors = {}, []
    for alpha, estimator in path.items():
        try:
            kept[alpha] = estimator.fit(X, y)
        except ValueError as error:
            errors.append(error)
    if not kept:
        raise errors[0]
    return kept


def _with_alpha(estimator: Any, alpha: float) -> Any:
    """Return an unfitted copy of the estimator with this alpha, or a DROCox with the settings that both have."""
    if protected_share(estimator) is not None:
        return clone(estimator).set_params(alpha=alpha, verbose=False)
    given = estimator.get_params(deep=False) if isinstance(estimator, NetworkEstimator) else {}
    # DROCox keeps its default tolerance, which suits its objective.
    shared = {name: given[name] for name in DROCox().get_params() if name in given and name != "tol"}
    return DROCox(**{**shared, "alpha": alpha, "verbose": False})


def _name(estimator: Any, alpha: float | None) -> str:
    name = type(estimator).__name__
    if alpha is None or (alpha == 1 and getattr(type(estimator)(), "alpha", None) == 1):
        return name
    # At alpha 1 the mean loss is minimised: if it is Cox's, the only one with ties, the model is plain Cox.
    is_cox = hasattr(estimator, "ball") and estimator._is_linear and not estimator.capabilities.no_ties
    return f"{name}, alpha {alpha:g}{' (plain Cox)' if alpha == 1 and is_cox and not estimator.l2 else ''}"
