import numpy as np
import pandas as pd
import pytest
from sksurv.datasets import load_flchain

from drosurv import Surv
from drosurv.datasets import Dataset, load_flc, load_nwtco


def small(**changes):
    parts = {
        "name": "small",
        "X": pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [0.0, 1.0, 1.0]}),
        "y": Surv.from_arrays([True, False, True], [3.0, 2.0, 1.0]),
        "sensitive_features": pd.DataFrame({"gender": ["male", "female", "male"]}),
    }
    return Dataset(**{**parts, **changes})


@pytest.mark.parametrize("rows", [np.array([2, 0]), np.array([True, False, True])])
def test_every_part_keeps_the_same_rows(rows):
    dataset = small(truth=pd.DataFrame({"event_time": [0.0, 1.0, 2.0]}))
    part = dataset.take(rows)
    kept = np.arange(3)[rows]
    assert len(part) == 2
    assert part.name == "small"
    assert part.X.index.tolist() == part.sensitive_features.index.tolist() == kept.tolist()
    assert part.y["time"].tolist() == [3.0 - row for row in kept]
    assert part.truth["event_time"].tolist() == [float(row) for row in kept]
    assert len(dataset) == 3


def test_repr_says_what_it_holds():
    assert repr(small()) == (
        "small: 3 patients x 2 features, 33.3 % censored, 1 missing values, sensitive: gender"
    )


def test_a_dataset_cannot_be_changed():
    with pytest.raises(AttributeError):
        small().name = "other"


def test_categories_are_text_or_missing():
    dataset = small(X=pd.DataFrame({"stage": ["I", None, "II"], "age": [50.0, 60.0, np.nan]}))
    assert dataset.X["stage"].isna().tolist() == [False, True, False]
    assert "2 missing values" in repr(dataset)


def test_bundled_free_light_chain_data_equal_scikit_survivals():
    X, y = load_flchain()
    ours = load_flc()
    for column in ("age", "creatinine", "flc.grp", "kappa", "lambda"):
        np.testing.assert_array_equal(ours.X[column], X[column].astype(float))
    np.testing.assert_array_equal(ours.X["sex"], X["sex"] == "M")
    np.testing.assert_array_equal(ours.y["event"], y["death"])
    np.testing.assert_array_equal(ours.y["time"], y["futime"])


def test_wilms_tumour_data_have_the_counts_that_r_prints():
    # with(survival::nwtco, table(stage, rel)), table(histol, instit) and sum(edrel)
    data = load_nwtco()
    relapses = pd.crosstab(data.X["stage"], data.y["event"])
    assert relapses.to_numpy().tolist() == [[1455, 117], [886, 166], [769, 175], [347, 113]]
    histology = pd.crosstab(data.X["histol"], data.X["instit"])
    assert histology.to_numpy().tolist() == [[3493, 76], [129, 330]]
    assert data.y["time"].sum() == 9170468
