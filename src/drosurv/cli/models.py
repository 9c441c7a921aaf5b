"""Estimators by their names on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drosurv.errors import Argument, ArgumentError


def model_classes() -> dict[str, type[Any]]:
    """Every estimator by its plain name, such as ``dro-cox``."""
    from drosurv.discovery import all_estimators

    return {_plain(name): cls for name, cls in all_estimators(causes=True)}


def make_estimator(name: str, common: dict[str, Any], others: dict[str, Any], seed: int = 0) -> Any:
    """An estimator by its name on the command line, or its class's; a robust one is recalibrated unless told otherwise.

    Of the `common` parameters None keeps the default; one of any that this estimator lacks is an error.
    """
    classes = model_classes()
    cls = classes.get(_plain(name))
    if cls is None:
        known = ", ".join(sorted(found.__name__ for found in classes.values()))
        raise ArgumentError(Argument("model"), f" {name!r} is not one of {known}.")
    wanted = {**{key: value for key, value in common.items() if value is not None}, **others}
    check_parameters(cls(), wanted)
    drawn = {"random_state": seed} if "random_state" in cls().get_params() else {}
    estimator = cls(**{**drawn, **wanted})
    if "recalibrate" not in wanted and _shrinks(estimator):
        estimator.set_params(recalibrate=True)
    return estimator


def check_parameters(estimator: Any, names: Iterable[str]) -> None:
    """Raise if an estimator has no parameter of a given name."""
    taken = estimator.get_params()
    for name in names:
        if name not in taken:
            robust = name in ("alpha", "ball")
            remedy = (
                ": pass --model dro-cox, or another robust model"
                if robust
                else f", which takes {', '.join(taken)}"
            )
            raise ArgumentError(Argument(name), f" has no meaning for {type(estimator).__name__}{remedy}.")


def _shrinks(estimator: Any) -> bool:
    """Whether robust training draws an estimator's risks together, so that curves need them spread out again."""
    robust = "worst_case_weights_" in getattr(estimator, "_per_patient", ())
    stretchable = "recalibrate" in estimator.get_params() and not estimator._own_curves
    return robust and stretchable and getattr(estimator, "alpha", None) != 1


def _plain(name: str) -> str:
    return name.replace("-", "").lower().removesuffix("ph")
