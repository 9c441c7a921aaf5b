"""Groups of patients, of columns and of cuts such as age>65: their labels, and those that a table suggests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, arg
from drosurv.tables.columns import MOST_LEVELS
from drosurv.tables.dates import holds_dates
from drosurv.tables.ids import names_people
from drosurv.tables.problems import CODE_NAME
from drosurv.tables.reading import require_columns
from drosurv.tables.units import OLDEST
from drosurv.tables.values import coded, floats, holds_numbers, labels, to_floats

# A column of more different numbers must be cut.
_MOST_NUMBERS = 12
_CUT = re.compile(r"(?P<column>.+?)\s*(?P<sign>[<>]=?)\s*(?P<cut>-?(\d+\.?\d*|\.\d+))")
# Names of sensitive attributes.
_GROUPS = re.compile(
    r"(^|[._ ])(sex|gender|(fe)?male|race|ethnic\w*|age|region|site|cent(er|re)|hospital|insurance|income|education|"
    r"institution|country|geschlecht|alter|klinik|krankenhaus|zentrum|sexe|hopital|pays)([._ ]|$)",
    re.IGNORECASE,
)
# So many are guessed, of columns with few levels.
_MOST_GROUPS, _FEW_LEVELS = 4, 6
# A group is compared with others only if it has at least this share of the rows.
_SMALLEST_SHARE = 0.03
# Ages in years are cut here.
_OLD = 65


def group_labels(frame: pd.DataFrame, groups: Sequence[str], categorical: Sequence[str] = ()) -> pd.DataFrame:
    """Return the group labels of each patient, (n, len(groups)); missing where the column is.

    `groups` are columns, or cuts of columns such as ``"age>65"`` or ``"age>=65"``; ``"age<=65"`` makes the same two
    groups as ``"age>65"``. A column of more than a dozen different numbers must be cut, unless it is `categorical`.
    """
    return pd.DataFrame({spec: _labels(frame, spec, categorical) for spec in groups}, index=frame.index)


def _labels(frame: pd.DataFrame, spec: str, categorical: Sequence[str]) -> pd.Series[str]:
    cut = _CUT.fullmatch(spec)
    if spec in frame.columns or (cut is None and not re.search("[<>=]", spec)):
        require_columns(frame, [spec], "groups")
        column, fault = frame[spec], ""
        declared = spec in categorical
        if not declared and holds_numbers(column) and column.nunique() > _MOST_NUMBERS:
            example = arg("groups", [_cut_at(spec, float(f"{np.nanmedian(to_floats(column)):g}"))])
            fault = (
                f"{column.nunique():,} different numbers: cut it in two, for example {example}, or name it in "
                f"{arg('categorical')} if they are codes."
            )
        elif not declared and names_people(spec, column):
            fault = "names, which no page may show: leave it out."
        elif column.nunique() > MOST_LEVELS:
            fault = (
                f"{column.nunique():,} different values, too many groups to compare: choose a column with at most "
                f"{MOST_LEVELS}."
            )
        if fault:
            raise ArgumentError("groups", f"{arg('groups')} column {spec!r} holds {fault}")
        return labels(column)
    if cut is None:
        raise ArgumentError(
            "groups",
            f"{arg('groups')} {spec!r} is neither a column nor a cut: cuts are written like 'age>65', which "
            "divides into '<=65' and '>65'.",
        )
    name, limit = cut["column"], cut["cut"]
    require_columns(frame, [name], "groups")
    if not holds_numbers(frame[name]):
        raise ArgumentError(
            "groups", f"{arg('groups')} {spec!r} cuts column {name!r}, which does not hold numbers."
        )
    values = to_floats(frame[name])
    if cut["sign"] in (">", "<="):
        sides = np.where(values > float(limit), f">{limit}", f"<={limit}")
    else:
        sides = np.where(values >= float(limit), f">={limit}", f"<{limit}")
    return pd.Series(sides, frame.index, dtype=object).mask(np.isnan(values))


def guess_groups(frame: pd.DataFrame, features: Sequence[str]) -> tuple[str, ...]:
    """Return columns named like sensitive attributes, or else text features of few levels, with groups large enough."""
    named = [spec for name in frame.columns if _GROUPS.search(str(name)) and (spec := _group(frame[name]))]
    texts = (frame[name] for name in frame.columns if name in features and not holds_numbers(frame[name]))
    named = named or [spec for column in texts if (spec := _group(column))]
    # Of columns that divide the patients in the same way, such as sex and sex.factor, the last.
    sides = {tuple(coded(frame[spec])[0]) if spec in frame else spec: spec for spec in named}
    return tuple(list(sides.values())[:_MOST_GROUPS])


def _group(column: pd.Series[Any]) -> str | None:
    """Return a column as a group: itself if it has few levels, a cut if it holds numbers; None if neither works."""
    name = str(column.name)
    if holds_dates(column):
        return None
    if holds_numbers(column) and column.nunique() > _FEW_LEVELS:
        if CODE_NAME.search(name):
            # Numbers of hospitals are names, not amounts: they are not cut into low and high ones.
            return None
        values = floats(column)
        years = re.search("age|alter", name, re.IGNORECASE) and np.nanmax(values) <= OLDEST
        cut = _OLD if years and _large(values > _OLD) else float(f"{np.nanmedian(values):.3g}")
        return _cut_at(name, cut) if _large(values > cut) else None
    shares = labels(column).value_counts(normalize=True)
    few_levels = 2 <= len(shares) <= _FEW_LEVELS
    return name if few_levels and shares.iloc[1] >= _SMALLEST_SHARE else None


def _cut_at(name: str, limit: float) -> str:
    """Return a cut as `groups` takes it, where numbers have no exponent."""
    return f"{name}>{np.format_float_positional(limit, trim='-')}"


def _large(above: Any) -> bool:
    return bool(_SMALLEST_SHARE < np.mean(above) < 1 - _SMALLEST_SHARE)
