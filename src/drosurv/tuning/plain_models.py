"""The plain Cox models that the settings of a search are held against."""

from __future__ import annotations

from collections.abc import Sequence

from drosurv.estimators import CoxPH
from drosurv.estimators.grid import batches
from drosurv.estimators.network_estimator import NetworkEstimator


def plain_models(candidates: Sequence[NetworkEstimator]) -> list[NetworkEstimator]:
    """Unregularised models: what a plain Cox model has of each candidate's parameters, each model once."""
    known = CoxPH().get_params()
    models: list[NetworkEstimator] = []
    for candidate in candidates:
        shared = {name: value for name, value in candidate.get_params(deep=False).items() if name in known}
        # Only robust training needs its risks spread out again.
        shared["recalibrate"] = False
        # Like is compared with like: 500 steps of Adam are not the optimum. Networks keep their solver, with which they
        # stop early or not.
        if candidate._is_linear:
            shared["solver"] = "convex" if candidate._uses_convex else "adam"
        if candidate._uses_convex:
            shared["lr"] = known["lr"]
        model = CoxPH(**shared)
        # Parameters that no batch may differ in and equal learning rates: the same model.
        if not any(len(batches([model, other])) == 1 and model.lr == other.lr for other in models):
            models.append(model)
    return models
