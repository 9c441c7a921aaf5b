"""What an audit has computed: the models, their evaluations, and everything that sections are written from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from drosurv.audit.observed_survival import Bands
from drosurv.audit.remedy import Remedy
from drosurv.audit.stops import Stop
from drosurv.target import Target

if TYPE_CHECKING:
    from drosurv.evaluation import AgainstPlain, EvaluationResult
    from drosurv.evaluation.attributes import Attribute
    from drosurv.insight import WorstOff


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything that the sections of a report are written from.

    Attributes
    ----------
    target : Target
        What happened to the audited patients.
    attributes : sequence of Attribute
        Their groups.
    stops, results : tuples of equal length
        The models, and their evaluations.
    start : int
        Which of them is under audit.
    level : float
        Of the intervals.
    time_unit : str
        What times count, such as "days".
    reference : str
        What the reference model is called; empty without one.
    reference_result : EvaluationResult or None
        Its evaluation on the same patients, without intervals.
    against : AgainstPlain or None
        The audited model beside the reference, everybody and each group; None without intervals or a reference.
    bands : dict
        Observed survival of each group with its interval.
    worst_off : WorstOff or None
        Rules for those served worst.
    not_searched : str
        Why there are no rules; empty where there are.
    settings, data, model : mapping
        Names and values for the method card: of the audit, of the patients, and of the audited model.
    missing : tuple of str
        What could not be computed, and why.
    limits : tuple of str
        What the report cannot say, beside what no report can.
    also : mapping
        What further sections read, by their key.
    remedy : Remedy or None
        What would help those whom the audited model is wrong about.
    """

    target: Target
    attributes: Sequence[Attribute]
    stops: tuple[Stop, ...]
    results: tuple[EvaluationResult, ...]
    level: float
    time_unit: str
    reference: str
    reference_result: EvaluationResult | None
    against: AgainstPlain | None
    bands: Bands
    worst_off: WorstOff | None
    not_searched: str
    settings: Mapping[str, Any]
    data: Mapping[str, Any]
    model: Mapping[str, Any]
    missing: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    also: Mapping[str, Any] = field(default_factory=dict)
    remedy: Remedy | None = None

    @property
    def start(self) -> int:
        """Number of the audited model."""
        return next(k for k, stop in enumerate(self.stops) if stop.audited)

    @property
    def audited(self) -> EvaluationResult:
        """Evaluation of the audited model."""
        return self.results[self.start]
