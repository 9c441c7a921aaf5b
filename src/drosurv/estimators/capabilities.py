"""What a survival model is and supports: a record that every model states in full."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

# Fields of y, and arguments of fit, with one value per row.
ROW_ARGUMENTS = ("entry", "strata", "clusters", "offset", "id")
# Objectives that weight patients by their losses.
WEIGHTED = ("worst case", "reweighted losses")


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a survival model is and supports. No field has a default, so that each model states all of them.

    Attributes
    ----------
    score : {"log hazard", "log time", "other"}
        What ``predict`` returns: log hazards up to a constant, minus the expected log time, or something else. Metrics
        that compare log hazards are defined only for "log hazard".
    exp_coef : {"hazard ratio", "odds ratio", "time ratio"} or None
        What exp(coef) is; None if it has no meaning: the table of coefficients then has no such columns.
    own_curves : bool
        False if survival curves are those of a Cox model: a baseline hazard times exp(score).
    no_recalibration : str
        Why scores cannot be recalibrated by a factor, as the end of a sentence; empty if they can.
    row_arguments : tuple of str
        Which of the fields ``entry``, ``clusters`` and ``id`` of y, and of the arguments ``strata`` and ``offset``,
        ``fit`` supports.
    no_row_arguments : str
        Why it does not support the others; empty if it supports all.
    objective : {"partial likelihood", "worst case", "reweighted losses", "other"}
        What training minimises: the mean loss of plain Cox; a worst case over weights of the patients (the mean, with
        ``alpha=1``); losses with weights that are chosen in another way; or anything else.
    no_ties : str
        Name of the loss if it does not depend on ties of event times; empty if it does (parameter ``ties``).
    convex : bool
        Whether the criterion of a linear model is convex with second derivatives, so that its optimum is found.
    devices : {"cpu", "accelerator", "cluster"}
        Where it can be trained: on the CPU; also by Adam on an accelerator; or, if linear, also by the convex solver
        on an accelerator and in :func:`drosurv.distributed.fit`.
    """

    score: Literal["log hazard", "log time", "other"]
    exp_coef: Literal["hazard ratio", "odds ratio", "time ratio"] | None
    own_curves: bool
    no_recalibration: str
    row_arguments: tuple[str, ...]
    no_row_arguments: str
    objective: Literal["partial likelihood", "worst case", "reweighted losses", "other"]
    no_ties: str
    convex: bool
    devices: Literal["cpu", "accelerator", "cluster"]


def require_capabilities(model: type[Any]) -> None:
    """Raise TypeError if a class of models does not state its capabilities."""
    if not isinstance(getattr(model, "capabilities", None), Capabilities | property):
        values = ", ".join(f"{field.name}=..." for field in fields(Capabilities))
        raise TypeError(
            f"{model.__name__} does not state what it is: add `capabilities = Capabilities({values})` to the class; "
            "drosurv.estimators.capabilities.Capabilities explains each value."
        )
