"""A user's table taken apart: features as they stand, target, groups."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from drosurv.tables.group_columns import group_labels
from drosurv.tables.reading import read_frame, require_columns
from drosurv.tables.target_columns import TargetColumns


@dataclass(frozen=True, eq=False)
class SurvivalTable:
    """Patients of one table.

    Attributes
    ----------
    frame : DataFrame, (n, ...)
        The whole table.
    columns : TargetColumns
        Where the target stands.
    y : structured array, (n,)
        Event and time.
    X : DataFrame, (n, d)
        Every other column, as it stands; :class:`TableEncoder` makes numbers of it.
    sensitive_features : DataFrame, (n, J)
        One column of labels per group wanted; without columns if none was.
    """

    frame: pd.DataFrame
    columns: TargetColumns
    y: NDArray[Any]
    X: pd.DataFrame
    sensitive_features: pd.DataFrame

    @staticmethod
    def parse(
        frame: pd.DataFrame,
        columns: TargetColumns,
        *,
        groups: Sequence[str] = (),
        drop: Sequence[str] = (),
    ) -> SurvivalTable:
        """Take a DataFrame apart; parameters as in :func:`read_survival_table`."""
        y = columns.parse(frame)
        require_columns(frame, drop, "drop")
        features = frame.drop(columns=[columns.time, columns.event, *drop])
        return SurvivalTable(frame, columns, y, features, group_labels(frame, groups))

    def __len__(self) -> int:
        return len(self.frame)

    def take(self, rows: NDArray[Any]) -> SurvivalTable:
        """The given rows, by position."""
        return SurvivalTable(
            self.frame.iloc[rows],
            self.columns,
            self.y[rows],
            self.X.iloc[rows],
            self.sensitive_features.iloc[rows],
        )

    def hold_out(self, share: float, seed: int = 0) -> tuple[SurvivalTable, SurvivalTable]:
        """Split the patients at random into a part to train on and a part to keep away, with equal event rates.

        Parameters
        ----------
        share : float
            Of the patients to keep away, in (0, 1).
        seed : int
            Draws them.
        """
        import numpy as np
        from sklearn.model_selection import train_test_split

        if not 0 < share < 1:
            raise ValueError(f"share must lie between 0 and 1, got {share}.")
        try:
            kept, away = train_test_split(
                np.arange(len(self)), test_size=share, stratify=self.y[self.columns.event], random_state=seed
            )
        except ValueError as error:
            raise ValueError(
                f"{len(self)} patients are too few to hold out {share:g} of those with and of those without the event."
            ) from error
        return self.take(np.sort(kept)), self.take(np.sort(away))


def read_survival_table(
    path: str | os.PathLike[str],
    *,
    time: str,
    event: str,
    event_value: str | None = None,
    groups: Sequence[str] = (),
    drop: Sequence[str] = (),
    separator: str = ",",
    decimal: str = ".",
    missing: Sequence[str] = (),
) -> SurvivalTable:
    r"""Read a CSV or Parquet file of patients.

    Parameters
    ----------
    path, separator, decimal, missing
        As in :func:`read_frame`.
    time, event, event_value
        As in :class:`TargetColumns`.
    groups : sequence of str
        As in :func:`group_labels`; the columns stay among the features unless dropped.
    drop : sequence of str
        Columns that are no features, such as a patient's number.

    Examples
    --------
    >>> import tempfile
    >>> from drosurv import CoxPH
    >>> from drosurv.tables import TableEncoder, read_survival_table
    >>> from sklearn.pipeline import make_pipeline
    >>> lines = ["days,died,age,sex", "5,1,61,f", "9,0,50,m", "2,1,70,f", "7,1,44,m", "8,0,65,f"]
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("\n".join(lines))
    ...     file.flush()
    ...     table = read_survival_table(file.name, time="days", event="died", groups=["sex"])
    >>> model = make_pipeline(TableEncoder(), CoxPH(l2=0.1)).fit(table.X, table.y)
    >>> model[:-1].get_feature_names_out().tolist()
    ['age', 'sex=m']
    """
    frame = read_frame(path, separator=separator, decimal=decimal, missing=missing)
    table = SurvivalTable.parse(frame, TargetColumns(time, event, event_value), groups=groups, drop=drop)
    if table.X.shape[1] == 0:
        raise ValueError(
            f"{path} has no column to predict from besides {time!r}, {event!r} and those dropped: drop fewer, or "
            "add some."
        )
    if not table.y[event].any():
        raise ValueError(
            f"event column {event!r} holds no event: every one of the {len(table):,} patients is censored. Pass "
            "event_value if another value means the event."
        )
    return table
