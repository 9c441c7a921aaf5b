"""Rows of totals, rows of several events of one patient, and codes that mean the opposite of the convention."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from drosurv import Surv
from drosurv.errors import InputError
from drosurv.estimators import NullModel
from drosurv.tables import TableEncoder, read_survival_table
from drosurv.workflows.saved_model import OpenedModel
from drosurv.workflows.table_to_check import WantedColumns, prepare_table

N = 100


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "days": rng.integers(10, 900, N),
            "died": rng.integers(0, 2, N),
            "age": rng.integers(40, 90, N),
            "sex": rng.choice(["f", "m"], N),
        }
    )


def checked(frame, **wanted):
    return prepare_table(frame, WantedColumns(**wanted), None, "the table")


@pytest.mark.parametrize("died", [1, 52])
def test_a_row_of_totals_is_no_patient(frame, tmp_path, died):
    total = pd.DataFrame({"days": [frame["days"].sum()], "died": [died], "age": [frame["age"].mean()]})
    pd.concat([frame, total]).to_csv(tmp_path / "t.csv", index=False)
    message = "row 101, the last, holds the sum of 'days': it is a row of totals and no patient"
    with pytest.raises(InputError, match=message):
        checked(tmp_path / "t.csv")
    with pytest.raises(InputError, match=message):
        read_survival_table(tmp_path / "t.csv", time="days", event="died")
    X, y = frame[["age", "sex"]], Surv.from_arrays(frame["died"] == 1, frame["days"])
    model = OpenedModel(tmp_path / "model", make_pipeline(TableEncoder(), NullModel()).fit(X, y), {})
    with pytest.raises(InputError, match=message):
        model.predictions(pd.concat([frame, total], ignore_index=True))
    # Without an event, the row is left out like every other.
    pd.concat([frame, total.assign(died=None)]).to_csv(tmp_path / "t.csv", index=False)
    assert len(checked(tmp_path / "t.csv").table) == N


@pytest.mark.parametrize("named", ["status", "event", "delta", "died"])
def test_a_status_of_which_1_has_the_longest_times_is_asked_about(frame, named):
    """Of Everitt's leukaemia patients, Status 1 means alive."""
    alive = (frame["days"] > 700).astype(int)
    table = frame.drop(columns="died").assign(**{named: alive})
    with pytest.raises(InputError, match="have longer times than the others, as those of survivors have"):
        checked(table)
    assert int(checked(table, event_value="0").table.event.sum()) == int((alive == 0).sum())
    # Values that say it are believed.
    told = checked(table.assign(**{named: np.where(alive == 1, "dead", "alive")}))
    assert int(told.table.event.sum()) == int(alive.sum())


def test_rows_for_each_kind_of_event_of_a_patient_are_warned_of(frame):
    """As colon of R's survival, with a row for recurrence and one for death."""
    twice = frame.assign(id=range(N)).loc[np.repeat(range(N), 2)].reset_index(drop=True)
    twice["days"] += np.tile([0, 50], N)
    told = checked(twice.assign(etype=np.tile([1, 2], N)), id="id").problems
    assert any("different events of one patient, such as relapse and death" in text for text in told)
