"""A fingerprint changes with every part of the data, and with nothing else."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from drosurv import Surv
from experiments.fingerprint import data_fingerprint


@dataclass
class Data:
    X: pd.DataFrame
    y: Any
    sensitive_features: pd.DataFrame


def make(
    x=(1.0, np.nan, 3.0), time=(1.0, 2.0, 3.0), event=(1, 0, 1), labels=("a", "b", "b"), names=("x", "g")
):
    return Data(
        pd.DataFrame({names[0]: x}), Surv.from_arrays(event, time), pd.DataFrame({names[1]: list(labels)})
    )


@pytest.mark.parametrize(
    "change",
    [
        {"x": (1.0, np.nan, 3.0000001)},
        {"x": (1.0, 2.0, 3.0)},
        {"time": (1.0, 2.0, 3.5)},
        {"event": (1, 1, 1)},
        {"labels": ("a", "b", "a")},
        {"labels": ("a", "bb", "")},
        {"names": ("z", "g")},
        {"names": ("x", "h")},
    ],
    ids=str,
)
def test_any_change_of_the_data_changes_the_fingerprint(change):
    assert data_fingerprint(make(**change)) != data_fingerprint(make())


def test_the_order_of_rows_is_part_of_the_data():
    data = make()
    turned = Data(data.X.iloc[::-1], data.y[::-1], data.sensitive_features.iloc[::-1])
    assert data_fingerprint(turned) != data_fingerprint(data)


def test_row_labels_dtypes_of_strings_and_field_names_do_not_matter():
    data = make()
    same = Data(
        data.X.set_axis([7, 8, 9]),
        Surv.from_dataframe(
            "death", "days", pd.DataFrame({"death": data.y["event"], "days": data.y["time"]})
        ),
        data.sensitive_features.astype("category"),
    )
    assert data_fingerprint(same) == data_fingerprint(data)


def test_every_nan_is_the_same_nan():
    odd = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    assert data_fingerprint(make(x=(1.0, odd, 3.0))) == data_fingerprint(make())


def test_the_data_are_left_as_they_were():
    data = make()
    before = data.X.copy()
    data_fingerprint(data)
    pd.testing.assert_frame_equal(data.X, before)
