"""Models of the alpha slider: the audited one, and models of its family that were trained with other alphas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from drosurv.errors import ArgumentError
from drosurv.estimators import DROCox
from drosurv.estimators.grid import fit_grid
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.evaluation.predictions import Predictions, final_step, prepared

ALPHAS = (1.0, 0.7, 0.5, 0.3, 0.2, 0.15, 0.1)


@dataclass(frozen=True, eq=False)
class Stop:
    """One model of the report, or Predictions, with the features it takes of the audited and of the training patients.

    Alpha is its place on the slider; None for an audited model that is of no such family. The model may be the last
    step of a Pipeline: the `whole`, beside the features that it takes.
    """

    name: str
    alpha: float | None
    model: Any
    X: Any = None
    X_train: Any = None
    audited: bool = True
    whole: tuple[Any, Any] | None = None

    def frozen(self, features: Any) -> tuple[Any, Any] | None:
        """The model, or times and survival of its predictions, and its features, as a repair takes them.

        A Pipeline is repaired as a whole, since readers know the columns that it takes. Of Predictions without columns
        those are taken that rules speak about. None without curves.
        """
        X = features if self.X is None else self.X
        if isinstance(self.model, Predictions):
            times, survival = self.model.times, self.model.survival
            return None if survival is None or times is None else ((times, survival), X)
        if not hasattr(self.model, "predict_survival_function"):
            return None
        return self.whole or (self.model, X)


def find_stops(
    model: Any, X: Any, X_train: Any, y_train: Any, alpha_path: Mapping[float, Any] | Sequence[float] | None
) -> tuple[tuple[Stop, ...], tuple[str, ...]]:
    """The audited model and those to compare it with, and a sentence for each share that could not be trained.

    Parameters as in :func:`~drosurv.audit.audit`. From the largest share protected to the smallest; an audited model
    without a place on the path comes first.
    """

    def stop(fitted: Any, alpha: float | None, audited: bool) -> Stop:
        seen = None if X_train is None else prepared(fitted, X_train)
        estimator = final_step(fitted)
        whole = None if estimator is fitted else (fitted, X)
        return Stop(_name(estimator, alpha), alpha, estimator, prepared(fitted, X), seen, audited, whole)

    skipped: list[str] = []
    if not isinstance(alpha_path, Mapping):
        alphas = ALPHAS if alpha_path is None else alpha_path
        can_train = X_train is not None and has_rows(y_train)
        if len(alphas) and alpha_path is not None and not can_train:
            raise ArgumentError(
                "alpha_path",
                "alpha_path names shares to train models at, which needs training patients: pass "
                "X_train and y_train.",
            )
        path = train_alpha_path(model, X_train, y_train, alphas) if can_train and len(alphas) else {}
        skipped = [
            f"The slider has no alpha {alpha:g}: the model cannot be trained at that share of these patients."
            for alpha in sorted(set(map(float, alphas)), reverse=True)
            if path and alpha not in path
        ]
        alpha_path = path
    others = [stop(fitted, float(alpha), False) for alpha, fitted in alpha_path.items()]
    own = final_step(model)
    alpha = protected_share(own) if all(type(other.model) is type(own) for other in others) else None
    # None is larger than every share, so that a model without one comes first.
    ordered = sorted(
        [stop(model, alpha, True), *(other for other in others if other.alpha != alpha)],
        key=lambda stop: -2.0 if stop.alpha is None else -stop.alpha,
    )
    return tuple(ordered), tuple(skipped)


def protected_share(estimator: Any) -> float | None:
    """The share of patients that a model's training protects: its place on the slider, None without one.

    Nor has one that is trained with groups, of which the slider knows nothing.
    """
    if not getattr(estimator, "_weights_losses", False) or estimator._compares_groups is not None:
        return None
    alpha = getattr(estimator, "alpha", None)
    return None if alpha is None else float(alpha)


def has_rows(y_train: Any) -> bool:
    """Whether a training target has a row per patient, to train on, or is only what is known of their follow-up."""
    return getattr(getattr(y_train, "dtype", None), "names", None) is not None


def train_alpha_path(
    model: Any, X_train: Any, y_train: Any, alphas: Sequence[float] = ALPHAS
) -> dict[float, Any]:
    """Train a model's family at every alpha, on the model's own preparation of the data.

    Parameters
    ----------
    model : fitted model or Pipeline
        One that protects a share alpha, such as ``DROCox``, gives models of its own class and settings; any other a
        ``DROCox`` with the settings that both have. The steps of a Pipeline before the model are used as fitted.
    X_train : DataFrame or array, (n, d)
        Training features, as `model` takes them.
    y_train : structured array, (n,)
        Training target.
    alphas : sequence of float
        Shares of patients to protect, in (0, 1].

    Returns
    -------
    dict
        Alpha to fitted model, from the largest alpha to the smallest. A share that this family cannot be trained at,
        such as one of fewer patients than its smallest group, is left out.

    Examples
    --------
    >>> from drosurv import DROCox
    >>> from drosurv.audit import train_alpha_path
    >>> from drosurv.datasets import make_hidden_minority
    >>> data = make_hidden_minority(300, random_state=0)
    >>> path = train_alpha_path(DROCox().fit(data.X, data.y), data.X, data.y, alphas=(0.2, 1.0))
    >>> [(alpha, model.alpha) for alpha, model in path.items()]
    [(1.0, 1.0), (0.2, 0.2)]
    """
    wanted = sorted(set(map(float, alphas)), reverse=True)
    path = {alpha: _relative(final_step(model), alpha) for alpha in wanted}
    fitted = _fitted(path, prepared(model, X_train), y_train)
    if not hasattr(model, "steps"):
        return fitted
    *before, (name, _) = model.steps
    return {alpha: Pipeline([*before, (name, found)]) for alpha, found in fitted.items()}


def _fitted(path: dict[float, Any], X: Any, y: Any) -> dict[float, Any]:
    """The models that can be trained; if none can, the first error."""
    try:
        fit_grid(list(path.values()), X, y)
        return path
    except ValueError as first:
        # A batch fails as a whole: tell the shares that fail from those that do not.
        kept = {}
        for alpha, estimator in path.items():
            with suppress(ValueError):
                kept[alpha] = estimator.fit(X, y)
        if not kept:
            raise first
        return kept


def _relative(estimator: Any, alpha: float) -> Any:
    """An unfitted model of the estimator's family, or else a DROCox with the settings that the estimator has too."""
    if protected_share(estimator) is not None:
        return clone(estimator).set_params(alpha=alpha, verbose=False)
    ours = estimator.get_params(deep=False) if isinstance(estimator, NetworkEstimator) else {}
    # Its default tolerance suits its objective.
    own = DROCox().get_params().keys() - {"tol"}
    return DROCox(**{**{name: ours[name] for name in own if name in ours}, "alpha": alpha, "verbose": False})


def _name(estimator: Any, alpha: float | None) -> str:
    name = type(estimator).__name__
    if alpha is None or (alpha == 1 and getattr(type(estimator)(), "alpha", None) == 1):
        return name
    # At alpha 1 the mean loss is trained on: where that is Cox's, which alone has ties, the model is plain Cox.
    is_cox = hasattr(estimator, "ball") and estimator._is_linear and not estimator._no_ties
    return f"{name}, alpha {alpha:g}{' (plain Cox)' if alpha == 1 and is_cox and not estimator.l2 else ''}"
