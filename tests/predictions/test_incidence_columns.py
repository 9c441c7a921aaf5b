"""Columns of incidences of competing causes: which they are, and what is read from them."""

import numpy as np
import pandas as pd
import pytest

from drosurv import Surv
from drosurv.predictions.columns import prediction_columns
from drosurv.predictions.given import read_columns

NAMED = ("cancer", "other death")


def incidences(*names, step=0.1):
    """A table whose columns rise in the order of their names."""
    base = np.linspace(0.01, 0.2, 8)
    return pd.DataFrame({name: base + step * k for k, name in enumerate(names)}).assign(
        age=np.arange(8) * 7 % 5
    )


@pytest.mark.parametrize(
    ("names", "causes", "unit"),
    [
        (("incidence_1_365", "incidence_1_730", "incidence_2_365", "incidence_2_730"), ("1", "2"), ""),
        (("cif1_1y", "cif1_2y", "cif2_1y", "cif2_2y"), NAMED, "years"),
        (("CIF cancer 365", "CIF cancer 730", "CIF other death 365", "CIF other death 730"), NAMED, ""),
        (("cancer_365", "cancer_730", "other_death_365", "other_death_730"), ("cancer", "other_death"), ""),
        (("F1(365)", "F1(730)", "F2(365)", "F2(730)"), ("1", "2"), ""),
    ],
)
def test_incidences_of_causes_are_recognised_however_programs_name_them(names, causes, unit):
    frame = incidences(*names).assign(survival_365=0.5, log_risk_2=0.1)
    found = prediction_columns(frame, causes=causes)
    assert found.times.tolist() == ([1, 2] if unit else [365, 730])
    beside = ("survival_365", "log_risk_2")
    assert (found.unit, found.names, found.survival) == (unit, (*names, *beside), None)
    for cause, own in ((1, names[:2]), (2, names[2:])):
        np.testing.assert_array_equal(found.incidence[cause], frame[list(own)])
    assert list(found.features) == ["age"]
    assert found.unread == ()
    y = Surv.competing([0, 1, 2, 1, 0, 2, 1, 0], np.arange(1.0, 9.0) * 100)
    read = read_columns(found, y, unit="days")
    assert read.predictions.times.tolist() == pytest.approx([365.25, 730.5] if unit else [365, 730], rel=1e-3)
    assert read.notes[0].startswith(f"read as incidences: of cause 1, {names[0]} at 36")
    percent = prediction_columns(frame[list(names)] * 100, causes=causes)
    for cause in (1, 2):
        np.testing.assert_allclose(
            read_columns(percent, y, unit="days").predictions.incidence[cause], found.incidence[cause]
        )


def test_numbers_in_names_are_causes_only_after_a_word_and_before_a_time():
    frame = incidences("risk15", "p53", "1_365", "incidence_3_365")
    assert not prediction_columns(frame, causes=("1", "2")).incidence


def test_one_column_is_the_incidence_of_the_cause_that_is_named():
    y = Surv.competing([0, 1, 2, 1, 0, 2, 1, 0], np.arange(1.0, 9.0))
    for frame, survival in ((incidences("risk_5"), ()), (incidences("a"), ("a=5",))):
        read = read_columns(prediction_columns(frame, survival=survival, causes=NAMED), y, cause=2)
        assert list(read.predictions.incidence) == [2]
        np.testing.assert_array_equal(read.predictions.incidence[2][:, 0], frame.iloc[:, 0])
