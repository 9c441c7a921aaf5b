"""Times with their unit, where somebody said what they count."""

from __future__ import annotations

import math
import re
from typing import Any

from drosurv.presentation.numbers import written

_PER_YEAR = {"days": 365.25, "weeks": 52.18, "months": 12.0}
_UNIT = re.compile(r"(?<![a-z])(minute|hour|day|week|month|year)s?(?![a-z])", re.IGNORECASE)


def moment(time: Any, unit: str = "") -> str:
    """A time as a sentence says it: "2,255 days", or "time 2,255" where nobody knows what times count.

    Examples
    --------
    >>> from drosurv.presentation import moment
    >>> moment(2255.0, "days"), moment(2255.0)
    ('2,255 days', 'time 2,255')
    """
    return f"{written(time, 'time')} {unit}" if unit else f"time {written(time, 'time')}"


def in_years(time: float, unit: str) -> str:
    """The same time in years, in brackets, where that is easier to grasp: from two years on.

    Examples
    --------
    >>> from drosurv.presentation import in_years
    >>> in_years(1592.0, "days"), in_years(60.0, "months"), in_years(300.0, "days"), in_years(5.0, "years")
    (' (4.4 years)', ' (5.0 years)', '', '')
    """
    years = time / _PER_YEAR.get(unit, math.inf)
    return f" ({years:.1f} years)" if years >= 2 else ""


def unit_in(name: str) -> str:
    """The unit that a column's name says its times count; empty where it says none.

    Examples
    --------
    >>> from drosurv.presentation import unit_in
    >>> unit_in("survival_months"), unit_in("days.to.death"), unit_in("dtime")
    ('months', 'days', '')
    """
    found = _UNIT.search(name)
    return "" if found is None else f"{found[1].lower()}s"
