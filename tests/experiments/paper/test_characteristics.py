"""Table 1 counts patients, features and censoring."""

import numpy as np
import pandas as pd

from drosurv import Surv
from drosurv.datasets import Dataset
from experiments.paper.tables import characteristics, characteristics_table


def test_what_is_counted_stands_beside_what_was_printed():
    data = Dataset(
        "seer",
        pd.DataFrame(np.zeros((8, 13))),
        Surv.from_arrays([1, 0, 0, 0, 0, 0, 0, 1], np.arange(8.0)),
        pd.DataFrame({"age": ["a"] * 8, "race": ["b"] * 8}),
    )
    frame = characteristics([data])
    assert frame.loc[0, ["samples", "published_samples", "features"]].tolist() == [8, 4024, 13]
    assert frame.loc[0, "censoring"] == 0.75
    table = characteristics_table(frame)
    assert table.cells()[0] == ["SEER", "age, race", "8 / 4,024", "13 / 13", "0.750 / 0.847"]
