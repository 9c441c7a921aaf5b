"""The preparation behind the published tables: kept for comparison, not for use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from drosurv.datasets.dataset import Dataset


def prepare_as_published(dataset: Dataset, attributes: Sequence[str]) -> Dataset:
    """Impute and reorder as was done for the published tables.

    Missing values become the median of their intersectional cell over all rows, test rows included, and rows are
    regrouped by cell in binary order of the attributes, the most significant first, which the published splits depend
    on.
    """
    # Groups are numbered in the order of their labels, which is the binary order (attributes.py).
    cell = dataset.sensitive_features.groupby(list(attributes)).ngroup()
    medians = dataset.X.groupby(cell).transform("median")
    imputed = replace(dataset, X=dataset.X.fillna(medians))
    return imputed.take(np.argsort(cell.to_numpy(), kind="stable"))
