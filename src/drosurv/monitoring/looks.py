"""Calendar dates: starts of patients, dates of looks, and dates after which a recent change may have begun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, arg, as_number, check_choice, require, warn_caller
from drosurv.patients.target import FloatArray
from drosurv.presentation import DAYS
from drosurv.tables.dates import dates_in_numbers, how_read, latest_date, to_dates
from drosurv.tables.reading import TableNote

PERIODS = ("day", "month", "year")
_ENDS = {"day": "D", "month": "ME", "year": "YE"}
_EPOCH = pd.Timestamp("1970-01-01")


@dataclass(frozen=True)
class Calendar:
    """Positions in calendar time as numbers: days since 1970 for dates, or numbers as the user gave them.

    `unit` is the number of such days, or numbers, in one unit of the patients' times.
    """

    dated: bool
    unit: float = 1.0

    @staticmethod
    def parse(start: Any, n: int, time_unit: str) -> tuple[Calendar, FloatArray]:
        """Return the calendar of n starts, dates or numbers, and their positions (n,)."""
        given = pd.Series(start, name=getattr(start, "name", None) or "start")
        if len(given) != n:
            raise ArgumentError(
                "start", f"{arg('start')} has {len(given)} values for {n} patients: give one each."
            )
        if missing := int(given.isna().sum()):
            raise ArgumentError(
                "start",
                f"{arg('start')} is missing for {missing:,} of {n:,} patients: fill it in, or drop these rows.",
            )
        form = dates_in_numbers(given)
        if given.dtype.kind in "iuf" and not form:
            return Calendar(False), given.to_numpy(dtype=np.float64)
        if form == "YYYYMM":
            # Patients of a month start on its first day.
            given = (given * 100 + 1).astype(np.int64)
        check_choice("time_unit", time_unit, tuple(DAYS))
        if note := how_read(given, "start"):
            warn_caller(note, category=TableNote)
        return Calendar(True, DAYS[time_unit]), days(to_dates(given, "start"))

    @property
    def latest(self) -> float:
        """Position of the latest date that is not in the future; infinite if positions are numbers, not dates."""
        return float(days(pd.Series([latest_date()]))[0]) if self.dated else np.inf

    def dates(self, positions: FloatArray) -> Any:
        """Return positions as dates, or unchanged as numbers."""
        if not self.dated:
            return positions
        return _EPOCH + pd.to_timedelta(np.asarray(positions), unit="D")

    def text(self, position: float) -> str:
        """Return a position as text."""
        return f"{self.dates(np.array([position]))[0]:%Y-%m-%d}" if self.dated else f"{position:.6g}"

    def chosen(self, every: Any) -> Any:
        """Return how often to look: if it is "auto", every month of dates, and at each event (None) of numbers."""
        if not (isinstance(every, str) and every == "auto"):
            return every
        return "month" if self.dated else None

    def looks(self, every: Any, first: float, last: float, happened: FloatArray) -> FloatArray:
        """Return the positions of looks: the ends of periods, steps of a number, or each event if `every` is None.

        Only complete periods count, so that a look does not change when the table grows.
        """
        if every is None:
            found = np.unique(happened)
        elif isinstance(every, str):
            if not self.dated:
                raise ArgumentError.must("every", "be a number or None where start holds numbers", every)
            check_choice("every", every, PERIODS)
            found = self._ends(every, first, last)
        else:
            require(
                0 < as_number(every) < np.inf,
                "every",
                f'be "auto", one of {PERIODS}, a number above 0 or None',
                every,
            )
            found = first + float(every) * np.arange(1, np.floor((last - first) / every + 1e-9) + 1)
        found = found[(found > first) & (found <= last + 1e-9)]
        if len(found) == 0:
            raise ArgumentError(
                "every",
                f"{arg('every', every)} gives no look: the table goes from {self.text(first)} to {self.text(last)}. "
                "Choose a shorter period.",
            )
        return found

    def starts(self, every: Any, first: float, last: float) -> FloatArray:
        """Return the positions at which a recent change may have begun: ends of months, or steps of a number."""
        if self.dated:
            return self._ends("month", first, last)
        if every is None:
            return np.empty(0)
        return first + float(every) * np.arange(1, np.floor((last - first) / every + 1e-9) + 1)

    def _ends(self, period: str, first: float, last: float) -> FloatArray:
        """Return the last days of all periods between two positions."""
        between = self.dates(np.array([np.floor(first), np.floor(last + 1e-9)]))
        return days(pd.Series(pd.date_range(between[0], between[1], freq=_ENDS[period])))


def days(dates: pd.Series[Any]) -> FloatArray:
    """Return dates as days since 1970."""
    plain = dates.dt.tz_localize(None) if dates.dt.tz is not None else dates
    return np.asarray((plain - _EPOCH) / pd.Timedelta(days=1), dtype=np.float64)
