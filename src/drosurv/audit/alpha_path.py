"""The audited model's relatives: the same training at other shares of protected patients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drosurv.estimators import CoxPH, DROCox, DROCoxSplit, SubgroupRobustCox
from drosurv.estimators.grid import fit_grid

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
        Alpha to fitted model, from the largest alpha to the smallest.

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
    path = [relative(estimator, family, alpha=alpha) for alpha in wanted]
    fit_grid(path, prepared(model, X_train), y_train)
    return {alpha: _with_preparation(model, fitted) for alpha, fitted in zip(wanted, path, strict=True)}


def train_reference(model: Any, X_train: Any, y_train: Any) -> Any:
    """Plain Cox with the model's own network, penalty and preparation; parameters as in `train_alpha_path`."""
    reference = relative(final_estimator(model), CoxPH)
    return _with_preparation(model, reference.fit(prepared(model, X_train), y_train))


def final_estimator(model: Any) -> Any:
    """The model itself, or the last step of a Pipeline."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def prepared(model: Any, X: Any) -> Any:
    """The features that the last step of a Pipeline takes; X itself for other models."""
    return model[:-1].transform(X) if hasattr(model, "steps") and len(model.steps) > 1 else X


def relative(estimator: Any, family: type, **settings: Any) -> Any:
    """An unfitted model of a family with the settings that the estimator has too.

    The tolerance is left to the family, whose default suits its objective.
    """
    shared = family().get_params()
    ours = estimator.get_params(deep=False) if isinstance(estimator, (CoxPH, *_FAMILIES)) else {}
    if not isinstance(estimator, family):
        ours.pop("tol", None)
    return family(**{name: ours[name] for name in shared if name in ours} | settings)


def _with_preparation(model: Any, estimator: Any) -> Any:
    from sklearn.pipeline import Pipeline

    if not hasattr(model, "steps"):
        return estimator
    return Pipeline([*model.steps[:-1], (model.steps[-1][0], estimator)])
