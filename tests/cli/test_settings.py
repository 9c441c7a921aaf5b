import pytest

from drosurv.cli.options import read_settings


def test_values_are_read_as_messages_write_them():
    assert read_settings(["a=True", "b=None", "c='efron'", "d=(24, 24)", "e=inf"]) == {
        "a": True,
        "b": None,
        "c": "efron",
        "d": (24, 24),
        "e": float("inf"),
    }


def test_values_are_numbers_where_they_can_be():
    assert read_settings(["lr=.5", "ties=efron", "tol=null", "hidden=[24, 24]", "solver = adam"]) == {
        "lr": 0.5,
        "ties": "efron",
        "tol": None,
        "hidden": [24, 24],
        "solver": "adam",
    }
    assert read_settings(None) == {}


@pytest.mark.parametrize("entry", ["alpha", "alpha=", "=3", " = "])
def test_what_is_no_pair_is_refused(entry):
    with pytest.raises(ValueError, match="--set needs NAME=VALUE, such as"):
        read_settings([entry])


def test_a_name_given_twice_is_refused():
    with pytest.raises(ValueError, match="names 'alpha' twice"):
        read_settings(["alpha=0.1", "alpha=0.2"])
