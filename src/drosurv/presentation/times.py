"""Times with their unit, where somebody said what they count."""

from __future__ import annotations

import re
from typing import Any

from drosurv.presentation.numbers import written

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
