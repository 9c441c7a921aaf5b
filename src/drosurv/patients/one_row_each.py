"""One row for each patient: the first of several rows, with what is known of the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from drosurv.patients.arrays import is_tensor
from drosurv.patients.observation import Rows, ends_of_patients, in_pandas, select_rows
from drosurv.patients.target import IntArray, Surv, of_any_cause, parse_target
from drosurv.presentation import listing

# Largest number of columns that a note names.
_MOST_NAMED = 5


class Patients(NamedTuple):
    """Targets of patients, what is known about their rows, the `taken` rows of the table, and notes.

    `taken` are None if they are all rows in order. `changing`, the last note, names features that change over time;
    it is empty if none does.
    """

    y: NDArray[Any]
    rows: Rows
    taken: IntArray | None = None
    notes: tuple[str, ...] = ()
    changing: str = ""

    def of(self, given: Any) -> Any:
        """Select the patients' rows of an argument with one value per row of the table."""
        return given if self.taken is None else select_rows(given, self.taken)


def one_row_each(y: Any, rows: Rows, features: Any = None) -> Patients:
    """Return one row for each patient who has several rows (entry, time], and copies of rows of weight above 1.

    A prediction can use only the first row; a note says so if the `features` of later rows differ. The target of a
    patient is the first event, or the end of the last row. The result has neither ids, because every row is a patient,
    nor weights, and `y` only events and times. Without entry times, rows of one patient stay: they are correlated.
    """
    y, notes, changing = Surv.event_time(y), [], ""
    taken = until = np.arange(len(y))
    if rows.patient is not None and rows.entry is not None:
        patient = rows.patient
        target = parse_target(of_any_cause(y, require_event=False), require_event=False)
        taken, until = ends_of_patients(patient, target)
        rows = replace(rows, patient=None)
        if len(taken) < len(y):
            notes.append(
                f"the {len(y):,} rows are of {len(taken):,} patients: each is predicted from the first row, and "
                "followed until the first event or the end of the last row."
            )
            changing = _changing(features, taken[patient])
            notes += [changing] if changing else []
    copies = rows.take(taken).copies
    rows = replace(rows, weight=None)
    if copies is not None:
        taken, until = taken[copies], until[copies]
    if len(taken) == len(y) and np.array_equal(taken, np.arange(len(y))):
        return Patients(y, rows, None, tuple(notes), changing)
    return Patients(y[until], rows.take(taken), taken, tuple(notes), changing)


def _changing(features: Any, first: IntArray) -> str:
    """Name the columns with a known value that differs from that of the patient's `first` row, (n,); empty if none."""
    if features is None:
        return ""
    X = in_pandas(features)
    if not hasattr(X, "columns"):
        X = pd.DataFrame(np.asarray(X.detach().cpu() if is_tensor(X) else X)).add_prefix("x")
    known = ((str(name), pd.factorize(column)[0]) for name, column in X.items())
    names = [repr(name) for name, codes in known if ((codes != codes[first]) & (codes >= 0)).any()]
    change = "changes" if len(names) == 1 else "change"
    used = "only the values of each patient's first row were used to predict and to judge."
    return f"{listing(names, _MOST_NAMED)} {change} over time: {used}" if names else ""
