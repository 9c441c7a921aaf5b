"""Fingerprints of datasets, with which stored results name the data that they were computed from."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd

from drosurv.datasets import Dataset
from drosurv.patients.target import parse_target


def data_fingerprint(dataset: Dataset) -> str:
    """Return the SHA-256 of features, target and sensitive attributes, as 64 hexadecimal digits.

    It is the same on every machine and with every version of pandas.
    """
    digest = hashlib.sha256()

    def add(part: bytes) -> None:
        # With the length, so that moving a byte from one part to the next changes the digest.
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)

    for name in dataset.X.columns:
        add(str(name).encode())
        add(_content(dataset.X[name]))
    target = parse_target(dataset.y, require_event=False)
    add(target.event.astype(np.uint8).tobytes())
    add(target.time.astype("<f8").tobytes())
    for name in dataset.sensitive_features.columns:
        add(str(name).encode())
        add("\0".join(map(str, dataset.sensitive_features[name])).encode())
    return digest.hexdigest()


def _content(column: pd.Series[Any]) -> bytes:
    if not pd.api.types.is_numeric_dtype(column):
        return "\0".join("" if pd.isna(level) else f"={level}" for level in column).encode()
    values = column.to_numpy(dtype="<f8", copy=True)
    # NaN has many bit patterns: use one.
    values[np.isnan(values)] = np.nan
    return values.tobytes()
