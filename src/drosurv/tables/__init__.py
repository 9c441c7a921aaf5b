"""Read a table of patients from a file, find its problems, and encode it as features and a target."""

from typing import TYPE_CHECKING, Any

from drosurv.tables.columns import UnseenLevelWarning
from drosurv.tables.guess import guess_columns
from drosurv.tables.leaks import LeakWarning
from drosurv.tables.reading import read_frame
from drosurv.tables.survival_table import SurvivalTable, read_survival_table

if TYPE_CHECKING:
    from drosurv.tables.encoder import TableEncoder

__all__ = [
    "LeakWarning",
    "SurvivalTable",
    "TableEncoder",
    "UnseenLevelWarning",
    "guess_columns",
    "read_frame",
    "read_survival_table",
]


def __getattr__(name: str) -> Any:
    """Import the encoder when it is first used: it needs scikit-learn, which takes longer to import than all else."""
    if name == "TableEncoder":
        from drosurv.tables.encoder import TableEncoder

        return TableEncoder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
