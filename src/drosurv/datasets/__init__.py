"""Datasets: the paper's three, more real ones with sex, race, age or class recorded, synthetic ones, and splits."""

from drosurv.datasets.catalog import available, card, fetch, list_datasets, load
from drosurv.datasets.dataset import Card, Dataset, data_fingerprint
from drosurv.datasets.published import load_flc, load_seer, load_support
from drosurv.datasets.splits import Split, split
from drosurv.datasets.synthetic import make_hidden_minority
from drosurv.datasets.wheels import DataUnavailableError

__all__ = [
    "Card",
    "DataUnavailableError",
    "Dataset",
    "Split",
    "available",
    "card",
    "data_fingerprint",
    "fetch",
    "list_datasets",
    "load",
    "load_flc",
    "load_seer",
    "load_support",
    "make_hidden_minority",
    "split",
]
