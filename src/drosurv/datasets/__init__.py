"""Datasets: the paper's three, synthetic ones with a known truth, and their splits."""

from drosurv.datasets.catalog import fetch, list_datasets
from drosurv.datasets.dataset import Dataset
from drosurv.datasets.flc import load_flc
from drosurv.datasets.seer import load_seer
from drosurv.datasets.splits import Split, split
from drosurv.datasets.support import load_support
from drosurv.datasets.synthetic import make_hidden_minority
from drosurv.datasets.wheels import DataUnavailableError

__all__ = [
    "DataUnavailableError",
    "Dataset",
    "Split",
    "fetch",
    "list_datasets",
    "load_flc",
    "load_seer",
    "load_support",
    "make_hidden_minority",
    "split",
]
