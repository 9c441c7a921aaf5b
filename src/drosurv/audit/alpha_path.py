"""The audited model's relatives: the same training at other shares of protected patients."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from drosurv.estimators import DROCox, DROCoxSplit, SubgroupRobustCox
from drosurv.estimators.grid import fit_grid
from drosurv.estimators.network_estimator import NetworkEstimator

ALPHAS = (1.0, 0.7, 0.5, 0.3, 0.2, 0.15, 0.1)
_FAMILIES = (DROCox, DROCoxSplit, SubgroupRobustCox)


def train_alpha_path(
    model: Any, X_train: Any, y_train: Any, alphas: Sequence[float] = ALPHAS
) -> dict[float, Any]:
    """Train a model's family at every alpha, on the model's own preparation of the data.

    Parameters
    ----------
    model : fitted model or Pipeline
        A ``DROCox``, ``DROCoxSplit`` or ``SubgroupRobustCox`` gives models of its own class and settings; any other
        a ``DROCox`` with the settings that both have. The steps of a Pipeline before the model are used as fitted.
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
    estimator = final_estimator(model)
    family = next((cls for cls in _FAMILIES if type(estimator) is cls), DROCox)
    wanted = sorted(set(map(float, alphas)), reverse=True)
    path = {alpha: _relative(estimator, family, alpha) for alpha in wanted}
    fitted = _fitted(path, prepared(model, X_train), y_train)
    return {alpha: _with_preparation(model, fitted[alpha]) for alpha in fitted}


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


def is_of_a_family(estimator: Any) -> bool:
    """Whether the estimator protects a share alpha of patients that it can be trained anew at."""
    return type(estimator) in _FAMILIES


def final_estimator(model: Any) -> Any:
    """The model itself, or the last step of a Pipeline."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def prepared(model: Any, X: Any) -> Any:
    """The features that the last step of a Pipeline takes; X itself for other models."""
    return model[:-1].transform(X) if hasattr(model, "steps") and len(model.steps) > 1 else X


def _relative(estimator: Any, family: type, alpha: float) -> Any:
    """An unfitted model of a family with the settings that the estimator has too."""
    ours = estimator.get_params(deep=False) if isinstance(estimator, NetworkEstimator) else {}
    if type(estimator) is not family:
        # The family's default tolerance suits its objective.
        ours.pop("tol", None)
    shared = {name: ours[name] for name in family().get_params() if name in ours}
    return family(**{**shared, "alpha": alpha, "verbose": False})


def _with_preparation(model: Any, estimator: Any) -> Any:
    from sklearn.pipeline import Pipeline

    if not hasattr(model, "steps"):
        return estimator
    return Pipeline([*model.steps[:-1], (model.steps[-1][0], estimator)])
