"""Groups of patients named by columns, or by a cut of a column of numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.tables.columns import MOST_LEVELS
from drosurv.tables.reading import require_columns
from drosurv.tables.values import holds_numbers, labels, to_floats

MOST_NUMBERS = 12
_CUT = re.compile(r"(?P<column>.+?)\s*>\s*(?P<cut>-?(\d+\.?\d*|\.\d+))")


def group_labels(frame: pd.DataFrame, groups: Sequence[str], categorical: Sequence[str] = ()) -> pd.DataFrame:
    """Labels (n, len(groups)) of each patient's groups, missing where the column is.

    A group is named by its column, or by a cut of one, such as ``"age>65"``. More than a dozen different numbers are
    taken for amounts, which ask for a cut, unless the column is among the `categorical` ones.

    Examples
    --------
    >>> import pandas as pd
    >>> from drosurv.tables import group_labels
    >>> group_labels(pd.DataFrame({"age": [50, 70]}), ["age>65"])["age>65"].tolist()
    ['<=65', '>65']
    """
    return pd.DataFrame({spec: _labels(frame, spec, categorical) for spec in groups}, index=frame.index)


def _labels(frame: pd.DataFrame, spec: str, categorical: Sequence[str]) -> pd.Series[str]:
    cut = _CUT.fullmatch(spec)
    if cut is None and spec not in frame.columns and re.search("[<>=]", spec):
        raise ArgumentError(
            "groups",
            f"groups {spec!r} is neither a column nor a cut: cuts are written like 'age>65', which "
            "divides into '<=65' and '>65'.",
        )
    if spec in frame.columns or cut is None:
        require_columns(frame, [spec], "groups")
        column = frame[spec]
        if holds_numbers(column) and column.nunique() > MOST_NUMBERS and spec not in categorical:
            middle = f"{np.nanmedian(to_floats(column)):g}"
            raise ArgumentError(
                "groups",
                f"groups column {spec!r} holds {column.nunique():,} different numbers: cut it in two, "
                f"for example groups={f'{spec}>{middle}'!r}, or name it in categorical if "
                "they are codes.",
            )
        if column.nunique() > MOST_LEVELS:
            raise ArgumentError(
                "groups",
                f"groups column {spec!r} holds {column.nunique():,} different values, too many groups to "
                f"compare: choose a column with at most {MOST_LEVELS}.",
            )
        return labels(column)
    name, limit = cut["column"], cut["cut"]
    require_columns(frame, [name], "groups")
    if not holds_numbers(frame[name]):
        raise ArgumentError("groups", f"groups {spec!r} cuts column {name!r}, which does not hold numbers.")
    values = to_floats(frame[name])
    above = pd.Series(np.where(values > float(limit), f">{limit}", f"<={limit}"), frame.index, dtype=object)
    return above.mask(np.isnan(values))
