"""The labels and the preparation behind the published tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from drosurv.datasets.dataset import Dataset

# Label of code 0, then of code 1. Alphabetical order is the order of the codes: cells sorted by label stand
# in binary order, which the published splits need.
LABELS = {"age": ("<=65", ">65"), "gender": ("female", "male"), "race": ("non-white", "white")}


def label(**codes: pd.Series[float]) -> pd.DataFrame:
    """The labels of attributes given as columns of 0 and 1, each under its name in `LABELS`."""
    return pd.DataFrame({name: np.array(LABELS[name])[column.astype(int)] for name, column in codes.items()})


def prepare_as_published(dataset: Dataset, attributes: Sequence[str]) -> Dataset:
    """Impute and reorder as was done for the published tables: for comparison, not for use.

    Missing values become the median of their intersectional cell over all rows, test rows included, and rows are
    regrouped by cell in binary order of the attributes, the most significant first, which the published splits depend
    on.
    """
    # Groups are numbered in the order of their labels, which is the binary order.
    cell = dataset.sensitive_features.groupby(list(attributes)).ngroup()
    medians = dataset.X.groupby(cell).transform("median")
    imputed = replace(dataset, X=dataset.X.fillna(medians))
    return imputed.take(np.argsort(cell.to_numpy(), kind="stable"))
