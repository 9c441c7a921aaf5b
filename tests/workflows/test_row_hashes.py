"""Rows that a model was trained on are recognised, after a CSV round trip too, and chance matches are no leak."""

import json

import numpy as np
import pandas as pd
import pytest

from drosurv import Surv
from drosurv.workflows.row_hashes import RowHashes, RowsSeen, canonical_text


def cohort(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.normal(60, 10, n),
            "grade": rng.integers(1, 4, n),
            "sex": rng.choice(["f", "m"], n),
            "smokes": rng.random(n) < 0.3,
            "albumin": np.where(rng.random(n) < 0.2, np.nan, rng.normal(4, 1, n)),
            "admitted": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )
    return X, Surv.from_arrays(rng.random(n) < 0.5, rng.exponential(100, n))


def test_rows_are_recognised_after_a_csv_round_trip_in_any_order(tmp_path):
    X, y = cohort()
    X.assign(time=y["time"], event=y["event"]).to_csv(tmp_path / "t.csv", index=False)
    back = pd.read_csv(tmp_path / "t.csv").sample(frac=1, random_state=1)
    again = Surv.from_arrays(back.pop("event"), back.pop("time"))
    hashes = RowHashes.from_dict(json.loads(json.dumps(RowHashes.of(X, y).to_dict())))
    assert hashes.seen_in(back[back.columns[::-1]], again) == RowsSeen(300, 300, 0.0)
    assert hashes.seen_in(back, again).is_leak


def test_other_patients_are_not_recognised():
    hashes = RowHashes.of(*cohort())
    assert hashes.seen_in(*cohort(seed=1)) == RowsSeen(300, 0, 0.0)


@pytest.mark.parametrize(("shared", "leak"), [(10, False), (30, True)])
def test_more_than_five_percent_of_seen_rows_are_a_leak(shared, leak):
    X, y = cohort()
    other, y_other = cohort(seed=1)
    mixed, y_mixed = pd.concat([X[:shared], other[shared:]]), np.concatenate([y[:shared], y_other[shared:]])
    seen = RowHashes.of(X, y).seen_in(mixed, y_mixed)
    # Of 32 bits, two rows may have the same hash by chance.
    assert shared <= seen.seen <= shared + 1
    assert seen.is_leak == leak


def test_chance_matches_in_a_coarse_table_are_no_leak_and_a_real_leak_still_is():
    def coarse(n, seed):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"a": rng.integers(0, 2, n), "b": rng.integers(0, 3, n)})
        return X, Surv.from_arrays(rng.random(n) < 0.5, rng.integers(1, 60, n).astype(float))

    X, y = coarse(400, 0)
    hashes = RowHashes.of(X, y)
    by_chance = hashes.seen_in(*coarse(400, 1))
    assert by_chance.seen > 40
    assert not by_chance.is_leak
    assert hashes.seen_in(X[:200], y[:200]).is_leak


def test_a_changed_outcome_makes_another_row_and_a_missing_column_no_answer():
    X, y = cohort()
    later = Surv.from_arrays(y["event"], y["time"] + 1)
    hashes = RowHashes.of(X, y)
    assert hashes.seen_in(X, later).seen == 0
    assert hashes.seen_in(X.drop(columns="age"), y) is None


def test_the_same_rows_have_other_hashes_in_another_file():
    X, y = cohort()
    assert RowHashes.of(X, y).to_dict()["hashes"] != RowHashes.of(X, y).to_dict()["hashes"]


@pytest.mark.parametrize(
    "same",
    [
        (1, 1.0, "1", " 1.0 "),
        (0.1 + 0.2, 0.3, "0.3"),
        (pd.Timestamp("2020-03-01"), "2020-03-01"),
        (True, "True"),
    ],
)
def test_values_that_csv_writes_alike_have_one_text(same):
    assert len({canonical_text(value) for value in same}) == 1


def test_a_patient_is_seen_if_any_row_is():
    X, y = cohort()
    patient = np.arange(300) // 3
    changed = X.assign(age=X["age"].where((np.arange(300) % 3 == 1) & (patient < 40), X["age"] + 0.5))
    hashes = RowHashes.of(X, y)
    assert hashes.seen_in(changed, y) == RowsSeen(300, 40, 0.0)
    assert hashes.seen_in(changed, y, patient) == RowsSeen(100, 40, 0.0, "patients")
    assert str(hashes.seen_in(changed, y, patient)) == "40 of 100 patients"


def test_patients_with_more_rows_have_more_chance_matches():
    X, y = cohort(10)
    # Of the ten training rows two are equal: a share of 0.2.
    hashes = RowHashes.of(X.iloc[[0, *range(9)]], y[[0, *range(9)]])
    seen = hashes.seen_in(X[:3], y[:3], np.array([0, 0, 1]))
    assert seen.by_chance == pytest.approx(((1 - 0.8**2) + 0.2) / 2)
