"""Sensitive attributes and their labels."""

from __future__ import annotations

import numpy as np
import pandas as pd

# Label of code 0, then of code 1. Alphabetical order is the order of the codes: cells sorted by label stand
# in binary order, which the published splits need.
LABELS = {"age": ("<=65", ">65"), "gender": ("female", "male"), "race": ("non-white", "white")}


def label(**codes: pd.Series[float]) -> pd.DataFrame:
    """The labels of attributes given as columns of 0 and 1, each under its name in `LABELS`."""
    return pd.DataFrame({name: np.array(LABELS[name])[column.astype(int)] for name, column in codes.items()})
