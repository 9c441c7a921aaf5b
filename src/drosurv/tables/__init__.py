"""Read a table of patients from a file, find its problems, and encode it as features and a target."""

from typing import TYPE_CHECKING, Any

from drosurv.tables.columns import CategoryColumn, LeftOutColumn, NumberColumn, UnseenLevelWarning
from drosurv.tables.guess import GuessedColumns, guess_columns
from drosurv.tables.leaks import LeakWarning, find_leaks
from drosurv.tables.reading import FileFormat, TableNote, read_frame
from drosurv.tables.rows import patients_not_in
from drosurv.tables.survival_table import SurvivalTable, group_labels, read_survival_table
from drosurv.tables.target_columns import TargetColumns

if TYPE_CHECKING:
    from drosurv.tables.encoder import TableEncoder

__all__ = [
    "CategoryColumn",
    "FileFormat",
    "GuessedColumns",
    "LeakWarning",
    "LeftOutColumn",
    "NumberColumn",
    "SurvivalTable",
    "TableEncoder",
    "TableNote",
    "TargetColumns",
    "UnseenLevelWarning",
    "find_leaks",
    "group_labels",
    "guess_columns",
    "patients_not_in",
    "read_frame",
    "read_survival_table",
]


def __getattr__(name: str) -> Any:
    """Import the encoder when it is first used: it needs scikit-learn, which takes longer to import than all else."""
    if name == "TableEncoder":
        from drosurv.tables.encoder import TableEncoder

        globals()[name] = TableEncoder
        return TableEncoder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
