"""Datasets: three of the paper, the National Wilms Tumor Study, a simulated hidden minority, and splits."""

from drosurv.datasets.bundled import load_flc, load_nwtco
from drosurv.datasets.catalog import available, card, fetch, load
from drosurv.datasets.dataset import Card, Dataset
from drosurv.datasets.seer import load_seer
from drosurv.datasets.splits import split
from drosurv.datasets.support import load_support
from drosurv.datasets.synthetic import make_hidden_minority
from drosurv.datasets.wheels import DataUnavailableError

__all__ = [
    "Card",
    "DataUnavailableError",
    "Dataset",
    "available",
    "card",
    "fetch",
    "load",
    "load_flc",
    "load_nwtco",
    "load_seer",
    "load_support",
    "make_hidden_minority",
    "split",
]
