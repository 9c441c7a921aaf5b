"""Audits of patients who entered late, belong to strata or have several rows."""

import numpy as np
import pandas as pd
import pytest

from drosurv import CoxPH, Surv
from drosurv.audit import audit


@pytest.fixture(scope="module")
def cohort():
    """Patients with one row each, and cut in two rows whose second has other features."""
    rng = np.random.default_rng(0)
    n = 160
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    time = rng.exponential(np.exp(-0.8 * X["a"])) + 0.5
    y, entry = Surv.from_arrays(rng.random(n) < 0.7, time), rng.uniform(0, 0.4, n)
    strata, groups = rng.choice(["north", "south"], n), pd.DataFrame({"sex": rng.choice(["f", "m"], n)})
    cut = (entry + time) / 2
    shuffled = rng.permutation(2 * n)
    rows = {
        "X": pd.concat([X, X + 5], ignore_index=True).iloc[shuffled],
        "y": Surv.from_arrays(np.r_[np.zeros(n, bool), y["event"]], np.r_[cut, time])[shuffled],
        "entry": np.r_[entry, cut][shuffled],
        "strata": np.r_[strata, strata][shuffled],
        "sensitive_features": pd.concat([groups, groups], ignore_index=True).iloc[shuffled],
        "id": np.r_[:n, :n][shuffled],
    }
    whole = {"X": X, "y": y, "entry": entry, "strata": strata, "sensitive_features": groups}
    return CoxPH().fit(X, y, strata=strata), whole, rows


def audited(model, **given):
    X, y = given.pop("X"), given.pop("y")
    return audit(model, X, y, **given, n_bootstrap=10, search_rules=False)


def test_patients_of_several_rows_are_audited_once_by_what_was_known_first(cohort):
    model, whole, rows = cohort
    split, alone = audited(model, **rows), audited(model, **whole)
    assert set(split.audited.tables) == set(alone.audited.tables)
    for key, table in alone.audited.tables.items():
        found, wanted = (pd.DataFrame(list(t.rows)) for t in (split.audited.tables[key], table))
        pd.testing.assert_frame_equal(found, wanted, rtol=1e-9)
    assert "320 rows are of 160 patients" in split.to_markdown()
    assert "rows are of" not in alone.to_markdown()


def test_a_reference_for_each_row_goes_with_the_rows(cohort):
    model, whole, rows = cohort
    risk = whole["X"]["a"].to_numpy()
    # The second rows' scores must not be looked at.
    of_rows = np.r_[risk, -risk][rows["X"].index]
    split = audited(model, **rows, reference=of_rows, reference_name="a")
    alone = audited(model, **whole, reference=risk, reference_name="a")
    assert split.audited.headline == alone.audited.headline
