"""The three datasets and their splits, against the counts published with them."""

from itertools import product

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from drosurv.datasets import load_flc, load_seer, load_support, split
from drosurv.datasets.catalog import list_datasets

LOADERS = {"flc": load_flc, "support": load_support, "seer": load_seer}
FEATURES = {
    "flc": ["age", "creatinine", "flc.grp", "kappa", "lambda", "sex"],
    "support": [
        *("age_over_65", "sex", "race", "num.co", "diabetes", "dementia", "ca"),
        *("meanbp", "hrt", "resp", "temp", "wblc", "sod", "crea"),
    ],
    "seer": [
        *("age_over_65", "race", "marital_status", "t_stage", "n_stage", "6th_stage", "grade", "a_stage"),
        *("tumor_size", "estrogen_status", "progesterone_status", "nodes_examined", "nodes_positive"),
    ],
}
MISSING = {
    "flc": {"creatinine": 1350},
    "support": {"wblc": 212, "crea": 67, "meanbp": 1, "hrt": 1, "resp": 1, "temp": 1, "sod": 1},
    "seer": {},
}
# Codes of 1 in the sensitive attributes, the most significant attribute of a cell first.
CELLS = {
    "flc": {"gender": "male", "age": ">65"},
    "support": {"age": ">65", "gender": "male", "race": "white"},
    "seer": {"age": ">65", "race": "white"},
}


@pytest.fixture(scope="module", params=LOADERS)
def name(request):
    if request.param != "flc":
        request.getfixturevalue("downloads")
    return request.param


@pytest.fixture(scope="module")
def dataset(name):
    return LOADERS[name]()


@pytest.fixture(scope="module")
def published(name):
    return LOADERS[name](as_published=True)


def test_size_censoring_and_times_are_the_known_ones(name, dataset):
    patients, censoring, n_times = {
        "flc": (7874, 0.725, 2977),
        "support": (9105, 0.319, 1724),
        "seer": (4024, 0.847, 107),
    }[name]
    assert len(dataset) == patients
    assert round(1 - dataset.y["event"].mean(), 3) == censoring
    assert len(np.unique(dataset.y["time"])) == n_times
    assert dataset.y.dtype.names == ("event", "time")
    assert dataset.name == name


def test_features_are_floats_and_missing_values_stay_missing(name, dataset):
    assert dataset.X.columns.tolist() == FEATURES[name]
    assert all(dtype == np.float64 for dtype in dataset.X.dtypes)
    missing = dataset.X.isna().sum()
    assert missing[missing > 0].to_dict() == MISSING[name]


def test_the_catalogue_tells_what_loading_gives(name, dataset):
    row = list_datasets().set_index("name").loc[name]
    assert row["patients"] == len(dataset)
    assert row["features"] == dataset.X.shape[1]
    assert row["censoring"] == round(dataset.censoring, 3)
    assert row["sensitive_attributes"] == ", ".join(dataset.sensitive_features)
    assert row["cached"]


def test_labels_agree_with_features(name, dataset):
    labels, X = dataset.sensitive_features, dataset.X
    over_65 = X["age"] > 65 if name == "flc" else X["age_over_65"] == 1
    assert labels["age"].tolist() == np.where(over_65, ">65", "<=65").tolist()
    if "gender" in labels:
        assert labels["gender"].tolist() == np.where(X["sex"] == 1, "male", "female").tolist()
    if "race" in labels:
        assert labels["race"].tolist() == np.where(X["race"] == 1, "white", "non-white").tolist()
    if name == "support":
        # Patients without a race are non-white.
        assert labels["race"].value_counts().to_dict() == {"white": 7191, "non-white": 1914}


def test_published_data_are_cell_medians_in_binary_order_of_cells(name, dataset, published):
    flags = np.column_stack([dataset.sensitive_features[a] == one for a, one in CELLS[name].items()])
    X, cells = dataset.X.to_numpy(), [tuple(row) for row in flags.tolist()]
    order, filled = [], X.copy()
    for cell in product([False, True], repeat=flags.shape[1]):
        rows = [row for row, found in enumerate(cells) if found == cell]
        order += rows
        for feature in range(X.shape[1]):
            values = X[rows, feature]
            known = sorted(values[~np.isnan(values)].tolist())
            median = (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2
            filled[rows, feature] = np.where(np.isnan(values), median, values)
    np.testing.assert_array_equal(published.X.to_numpy(), filled[order])
    np.testing.assert_array_equal(published.y, dataset.y[order])
    assert published.sensitive_features.index.tolist() == order


def test_split_sizes_are_the_published_ones(name, published):
    sizes = {"flc": (5039, 1260, 1575), "support": (5827, 1457, 1821), "seer": (2575, 644, 805)}[name]
    assert tuple(map(len, split(published, 1))) == sizes


def test_published_split_is_two_stratified_draws(published):
    X, y = published.X, published.y
    X, test, y, _ = train_test_split(X, y, test_size=0.2, stratify=y["event"], random_state=7)
    train, validation = train_test_split(X, test_size=0.2, stratify=y["event"], random_state=3)
    parts = split(published, 3)
    for part, rows in zip(parts, (train, validation, test), strict=True):
        assert part.X.equals(rows)
        np.testing.assert_array_equal(part.y["time"], published.y["time"][_positions(published, rows.index)])


def _positions(dataset, labels):
    return dataset.X.index.get_indexer(labels)


def test_three_flc_patients_die_at_time_zero():
    y = load_flc().y
    assert y["event"][y["time"] == 0].tolist() == [True] * 3
