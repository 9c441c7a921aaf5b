"""One split of one dataset, encoded the same way for every method."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from drosurv.datasets import Dataset
from drosurv.datasets.splits import drawn_rows
from drosurv.patients.target import Target, parse_target
from drosurv.tables import TableEncoder

TEST_SHARE = 0.4
# A level of fewer training patients counts as the most frequent one: one patient has no effect to estimate.
FEWEST_OF_LEVEL = 10
# A combination of sensitive attributes of fewer training patients is too small a group to be given.
FEWEST_OF_CELL = 50


@dataclass(frozen=True, eq=False)
class EncodedPart:
    """Patients of one side of a split: standardised features, target, and labels of the sensitive attributes.

    `cells` (n,) are the combinations of the attributes, small ones merged.
    """

    X: pd.DataFrame
    y: NDArray[Any]
    attributes: pd.DataFrame
    cells: NDArray[Any]

    @cached_property
    def target(self) -> Target:
        """The target, parsed."""
        return parse_target(self.y)


def split_in_two(dataset: Dataset, seed: int) -> tuple[EncodedPart, EncodedPart]:
    """Training and test patients, 60 to 40 with equal event rates; what is filled and scaled is learnt in training."""
    train, test = (dataset.take(np.sort(rows)) for rows in drawn_rows(dataset, TEST_SHARE, seed))
    return encode(train, test)


def encode(train: Dataset, test: Dataset) -> tuple[EncodedPart, EncodedPart]:
    """Both parts as every method gets them."""
    levels = {name: train.X[name].value_counts() for name in train.X.select_dtypes(exclude="float").columns}
    rare = {str(name): found.index[found < FEWEST_OF_LEVEL].tolist() for name, found in levels.items()}
    with warnings.catch_warnings(action="ignore"):
        encoder = TableEncoder().fit(_without(train.X, rare))
        frames = [encoder.transform(_without(part.X, rare)) for part in (train, test)]
    cells = [part.sensitive_features.astype(str).agg(" / ".join, axis="columns") for part in (train, test)]
    sizes = cells[0].value_counts()
    large = sizes.index[sizes >= FEWEST_OF_CELL]
    return tuple(  # type: ignore[return-value]
        EncodedPart(X, part.y, part.sensitive_features, cell.where(cell.isin(large), "others").to_numpy())
        for X, part, cell in zip(frames, (train, test), cells, strict=True)
    )


def _without(X: pd.DataFrame, rare: dict[str, list[str]]) -> pd.DataFrame:
    return X.assign(**{name: X[name].mask(X[name].isin(levels), None) for name, levels in rare.items()})
