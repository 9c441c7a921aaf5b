"""One row for each patient: the first of several rows, with what is known of the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from drosurv.observation import Rows, ends_of_patients, in_pandas, parse_observation
from drosurv.predictions import select_rows
from drosurv.presentation import listing
from drosurv.solvers.arrays import on_host
from drosurv.target import IntArray, of_any_cause, parse_target

# Largest number of columns that a note names.
_MOST_NAMED = 5


class Patients(NamedTuple):
    """Targets of patients, the arguments about their rows, the `rows` of the table that they come from, and notes.

    `rows` are None if they are all rows in order. `changing`, the last note, names features that change over time;
    it is empty if none does.
    """

    y: NDArray[Any]
    observed: Rows
    rows: IntArray | None = None
    notes: tuple[str, ...] = ()
    changing: str = ""

    def of(self, given: Any) -> Any:
        """Select the patients' rows of an argument with one value per row of the table."""
        return given if self.rows is None else select_rows(given, self.rows)


def one_row_each(y: Any, observed: Rows, features: Any = None) -> Patients:
    """Return one row for each patient who has several rows (entry, time], and copies of rows of weight above 1.

    A prediction can use only the first row; a note says so if the `features` of later rows differ. The target of a
    patient is the first event, or the end of the last row. The result has no ids, because every row is a patient.
    Without entry times, rows of one patient stay: they are correlated.
    """
    y, notes, changing = np.asarray(y), [], ""
    rows = until = np.arange(len(y))
    if observed.id is not None and observed.entry is not None:
        target = parse_target(of_any_cause(y))
        patient = parse_observation(target, entry=observed.entry, id=observed.id).patient
        assert patient is not None, "parsed from an id"
        rows, until = ends_of_patients(patient, target)
        observed = replace(observed, id=None)
        if len(rows) < len(y):
            notes.append(
                f"the {len(y):,} rows are of {len(rows):,} patients: each is predicted from the first row, and "
                "followed until the first event or the end of the last row."
            )
            changing = _changing(features, rows[patient])
            notes += [changing] if changing else []
    copies = observed.take(rows).copies
    if copies is not None:
        rows, until = rows[copies], until[copies]
    if len(rows) == len(y) and np.array_equal(rows, np.arange(len(y))):
        return Patients(y, observed, None, tuple(notes), changing)
    return Patients(y[until], observed.take(rows), rows, tuple(notes), changing)


def _changing(features: Any, first: IntArray) -> str:
    """Name the columns with a known value that differs from that of the patient's `first` row, (n,); empty if none."""
    if features is None:
        return ""
    X = in_pandas(features)
    if not hasattr(X, "columns"):
        X = pd.DataFrame(np.asarray(on_host(X))).add_prefix("x")
    known = ((str(name), pd.factorize(column)[0]) for name, column in X.items())
    names = [repr(name) for name, codes in known if ((codes != codes[first]) & (codes >= 0)).any()]
    change = "changes" if len(names) == 1 else "change"
    used = "only the values of each patient's first row were used to predict and to judge."
    return f"{listing(names, _MOST_NAMED)} {change} over time: {used}" if names else ""
