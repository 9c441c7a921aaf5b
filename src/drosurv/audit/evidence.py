"""What is audited and what was computed of it: everything that sections are written from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from drosurv.audit.stops import Stop
from drosurv.evaluation import AgainstPlain, EvaluationResult
from drosurv.evaluation.attributes import Attribute
from drosurv.insight import WorstOff
from drosurv.repairs import RepairedCox, repair
from drosurv.target import FloatArray, Target, parse_target

# Of fewer patients than this a page that leaves the house shows nothing.
FEWEST = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class Case:
    """What is audited, and how; options as in :func:`~drosurv.audit.audit`.

    Attributes
    ----------
    stops : tuple of Stop
        The audited model, and those to compare it with.
    y : structured array, (n,)
        What happened to the audited patients.
    follow_up : structured array or FollowUp
        Of the training patients.
    reference : pair of fitted model, Predictions or (n,) array, and features; or None
        What the audited model is compared with, and what it takes.
    features : DataFrame or array, optional
        What rules may speak about.
    data, model : mapping
        Names and values for the method card.
    missing, limits : tuple of str
        What could not be computed, and what the report cannot say.
    horizons : (h,) float64, optional
        When calibration is looked at; by default at quartiles of the event times.
    time_unit : str
        What times count, such as "days"; empty where nobody said.
    """

    stops: tuple[Stop, ...]
    y: Any
    follow_up: Any
    sensitive_features: Any
    reference: tuple[Any, Any] | None = None
    reference_name: str = "plain Cox"
    features: pd.DataFrame | FloatArray | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    horizons: FloatArray | None = None
    title: str | None = None
    data_name: str = ""
    time_unit: str = ""
    n_bootstrap: int = 500
    n_bootstrap_path: int = 100
    level: float = 0.95
    search_rules: bool = True
    random_state: int = 0
    on_step: Callable[[str, int], None] | None = None
    also: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def target(self) -> Target:
        """What happened to the audited patients."""
        return parse_target(self.y)

    @cached_property
    def repaired(self) -> RepairedCox | None:
        """The audited model, repaired with the audited patients; None for one without survival curves."""
        audited = self.stops[self.start]
        if audited.frozen is None:
            return None
        X = self.features if audited.X is None else audited.X
        return repair(
            audited.frozen, X, self.y, features=self.features, frozen=True, random_state=self.random_state
        )

    @property
    def start(self) -> int:
        """Number of the audited model."""
        return next(k for k, stop in enumerate(self.stops) if stop.audited)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence(Case):
    """A case with what was computed of it.

    Attributes
    ----------
    attributes : sequence of Attribute
        The groups of the audited patients.
    results : tuple of EvaluationResult
        Of every stop.
    ranked_by_reference : mapping
        Attribute and group to the reference's c-index; empty without one.
    against : AgainstPlain or None
        The audited model beside the reference, everybody and each group; None without intervals or a reference.
    worst_off : WorstOff or None
        Rules for those served worst.
    not_searched : str
        Why there are no rules; empty where there are.
    """

    attributes: Sequence[Attribute]
    results: tuple[EvaluationResult, ...]
    ranked_by_reference: Mapping[tuple[str, str], float]
    against: AgainstPlain | None
    worst_off: WorstOff | None
    not_searched: str

    @property
    def audited(self) -> EvaluationResult:
        """Evaluation of the audited model."""
        return self.results[self.start]
