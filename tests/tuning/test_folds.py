import numpy as np
import pytest
from sklearn.model_selection import ShuffleSplit

from drosurv.tuning.folds import parse_folds

EVENT = np.arange(60) % 3 == 0


def test_every_patient_is_validated_once_and_events_are_shared_out():
    folds = parse_folds(4, EVENT, random_state=0)
    assert sorted(np.concatenate([held for _, held in folds])) == list(range(60))
    for train, held in folds:
        assert set(train) == set(range(60)) - set(held)
        assert EVENT[held].sum() == 5


def test_a_fraction_is_one_validation_part():
    ((train, held),) = parse_folds(0.25, EVENT, random_state=1)
    assert (len(train), len(held), EVENT[held].sum()) == (45, 15, 5)
    assert not set(train) & set(held)


def test_a_splitter_or_rows_or_masks_are_taken_as_they_are():
    splitter = ShuffleSplit(2, test_size=30, random_state=0)
    for ours, theirs in zip(parse_folds(splitter, EVENT), splitter.split(EVENT), strict=True):
        np.testing.assert_array_equal(ours[1], theirs[1])
    mask = np.arange(60) < 40
    ((train, held),) = parse_folds([(mask, ~mask)], EVENT)
    np.testing.assert_array_equal(held, np.arange(40, 60))
    np.testing.assert_array_equal(train, np.arange(40))


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "cv must be between 2 and 20, got 1"),
        (21, "cv must be between 2 and 20, got 21: each fold needs a patient with an event and a censored"),
        (1.0, r"cv=1.0 as a share of the patients must lie in \(0, 1\)"),
        (True, "got True"),
        ([(np.arange(50), np.arange(70))], "fold 0 of cv must be a pair"),
        ([(np.arange(50), np.array([1, 2]))], "validation set of fold 0 has no event"),
        ([np.arange(50)], "fold 0 of cv must be a pair"),
        (iter(()), "cv contains no fold"),
    ],
)
def test_folds_that_cannot_be_are_refused(cv, message):
    with pytest.raises(ValueError, match=message):
        parse_folds(cv, EVENT)


@pytest.mark.parametrize("cv", [4, 0.25])
def test_rows_of_one_patient_are_never_on_both_sides(cv):
    rng = np.random.default_rng(0)
    owners, event = np.sort(rng.integers(40, size=120)), rng.random(120) < 0.5
    for train, validation in parse_folds(cv, event, random_state=0, groups=owners):
        assert not set(owners[train]) & set(owners[validation])


def test_owners_of_other_rows_are_refused():
    with pytest.raises(ValueError, match=r"groups must hold one label for each of the 6 rows"):
        parse_folds(2, np.array([True, False] * 3), groups=[1, 2])
