"""The patients of one repeat: training, validation and test part, standardised and ready to be scored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from drosurv.datasets import Dataset, data_fingerprint, load_flc, load_seer, load_support, split
from drosurv.paper.unit import Unit
from drosurv.standardise import standardise
from drosurv.target import FloatArray
from drosurv.tuning.held_out import HeldOut


def load_dataset(name: str, *, as_published: bool = True, seer_file: str | None = None) -> Dataset:
    """One of the paper's three datasets before splitting, by default imputed and ordered as behind its tables.

    `seer_file` is a copy of SEER to read instead of the downloaded one, whose rows stand in another order than in the
    file behind the published split.
    """
    if name == "seer":
        return load_seer(as_published, seer_file)
    return {"flc": load_flc, "support": load_support}[name](as_published)


@dataclass(frozen=True, eq=False)
class Cohort:
    """One repeat's patients.

    `X` holds the features of "train", "validation" and "test", standardised by the training part, or by as much of it
    as the method says; `unscaled` are those of the training part as they are, and `y_train` and `sensitive_features`
    its target and attributes. `held_out` are "validation" and "test", ready to be scored.
    """

    X: dict[str, FloatArray]
    unscaled: FloatArray
    y_train: Any
    sensitive_features: pd.DataFrame
    held_out: dict[str, HeldOut]


@lru_cache(maxsize=1)
def cohort_of(unit: Unit, seer_file: str | None = None) -> Cohort:
    """The patients that a unit is trained and then scored on; its fingerprint must be that of the data found."""
    protocol = unit.protocol
    dataset, fingerprint = _loaded(unit.dataset, protocol.as_published, seer_file)
    if fingerprint != unit.data_fingerprint:
        raise ValueError(
            f"{unit} was planned for other data than those found now (fingerprint "
            f"{unit.data_fingerprint[:12]} against {fingerprint[:12]}): plan again."
        )
    train, *others = split(dataset, unit.repeat, test_seed=protocol.test_seed)
    parts = dict(zip(("validation", "test"), others, strict=True))
    features = [np.asarray(part.X, dtype=np.float64) for part in (train, *others)]
    first = features[0][: round(len(features[0]) * unit.method.scaler_share)]
    X = dict(zip(("train", *parts), standardise(first, *features)[1:], strict=True))
    held_out = {
        name: HeldOut(
            train.y,
            X[name],
            part.y,
            part.sensitive_features[list(unit.attributes)],
            convention=protocol.convention,
        )
        for name, part in parts.items()
    }
    return Cohort(X, features[0], train.y, train.sensitive_features[list(unit.attributes)], held_out)


@lru_cache(maxsize=3)
def _loaded(name: str, as_published: bool, seer_file: str | None) -> tuple[Dataset, str]:
    """A process works on many units of the same data, and reads them once."""
    dataset = load_dataset(name, as_published=as_published, seer_file=seer_file)
    return dataset, data_fingerprint(dataset)
