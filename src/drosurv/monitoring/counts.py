"""Events and expected events of patients in use, counted until each look, for everybody and each group.

The calendar has the starts of patients, the dates of looks, and dates after which a recent change may have begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drosurv.curves import PointCurves, SurvivalCurves
from drosurv.errors import ArgumentError, arg, as_number, check_choice, require, row_number, warn_caller
from drosurv.evaluation.evaluator import parse_attributes
from drosurv.patients.arrays import batches
from drosurv.patients.groups import ALL, EVERYONE
from drosurv.patients.observation import label_codes
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target
from drosurv.predictions import Predicted
from drosurv.predictions.any_model import final_step
from drosurv.presentation import DAYS, counted
from drosurv.tables.dates import dates_in_numbers, how_read, latest_date, to_dates
from drosurv.tables.reading import TableNote

# Number of cumulative hazards in memory at the same time.
_VALUES = 4_000_000
# A table of so many times says when events are expected, even if it is rounded or jumps somewhere.
_MANY_TIMES = 20
PERIODS = ("day", "month", "year")
_ENDS = {"day": "D", "month": "ME", "year": "YE"}
_EPOCH = pd.Timestamp("1970-01-01")


class Series(NamedTuple):
    """A series that is watched: its attribute and group, the rows of its patients, and its share of alpha."""

    attribute: str
    group: str
    rows: IntArray
    share: float


@dataclass(frozen=True, eq=False)
class Log:
    """Patients of a model in use.

    `start` (n,) is where time 0 of each row lies in the calendar; rows are at risk from `entry` on, until their time or
    the end of their curve. `patient` (n,) numbers the patients, and `weight` (n,) are the copies that rows stand for.
    """

    calendar: Calendar
    start: FloatArray
    target: Target
    entry: FloatArray
    curves: SurvivalCurves
    patient: IntArray
    weight: IntArray
    lag: float

    @property
    def until(self) -> FloatArray:
        """Time until which each row is followed, and its curve known, (n,)."""
        return np.minimum(self.target.time, np.asarray(self.curves.known_until, dtype=np.float64))

    @property
    def event(self) -> BoolArray:
        """Whether each row has an event that is counted, (n,)."""
        return self.target.event & np.asarray(self.target.time <= self.curves.known_until, dtype=np.bool_)

    @property
    def first(self) -> float:
        """When the first patient enters."""
        return float(self.entered[self.weight > 0].min())

    @property
    def last(self) -> float:
        """Last date of the table."""
        return float(self.ended[self.weight > 0].max())

    @property
    def entered(self) -> FloatArray:
        """When each row comes under observation, (n,)."""
        return self.start + self.calendar.unit * self.entry

    @property
    def ended(self) -> FloatArray:
        """When the observation of each row ends, (n,)."""
        return self.start + self.calendar.unit * self.target.time

    @property
    def happened(self) -> FloatArray:
        """When each counted event is known, after the lag."""
        return self.ended[self.event & (self.weight > 0)] + self.lag

    def series(self, sensitive_features: Any, alpha: float) -> list[Series]:
        """Return the series in the order in which they appear: everybody, then groups by their first patient.

        Everybody gets half of alpha, and the j-th group alpha / (2 j (j + 1)): a later group does not change the past.
        """
        counts = self.weight > 0
        found = [Series(EVERYONE, ALL, np.flatnonzero(counts), alpha / 2)]
        groups = [
            (float(self.entered[rows].min()), number, attribute.name, label, rows)
            for number, attribute in enumerate(parse_attributes(sensitive_features, len(counts), at_least=1))
            for label, members in sorted(attribute.rows.items())
            if len(rows := members[counts[members]])
        ]
        ordered = sorted(groups, key=lambda group: (*group[:2], group[3]))
        for j, (_, _, name, label, rows) in enumerate(ordered, start=1):
            found.append(Series(name, label, rows, alpha / (2 * j * (j + 1))))
        return found

    def expected(self, looks: FloatArray, series: Sequence[Series]) -> FloatArray:
        """Return the expected events of each series until each look, (S, K)."""
        total = np.zeros((len(series), len(looks)))
        member = np.zeros((len(series), len(self.start)))
        for k, one in enumerate(series):
            member[k, one.rows] = self.weight[one.rows]
        points = self.curves.times if isinstance(self.curves, PointCurves) else None
        values = max(len(looks) + 1, 0 if points is None else len(points))
        for batch in batches(len(self.start), max(1, _VALUES // values)):
            until, entry = self.until[batch, None], self.entry[batch, None]
            passed = (looks[None, :] - self.lag - self.start[batch, None]) / self.calendar.unit
            ends = np.clip(passed, entry, np.maximum(until, entry))
            curves, times = self.curves.take(batch), np.column_stack([entry, ends])
            if isinstance(curves, PointCurves):
                # They rise evenly between the times: a jump at the end of each step would come after its events.
                hazard = curves.cumulative_hazard(times)
            else:
                hazard = curves.summed_hazard(times).hazard
            total += member[:, batch] @ (hazard[:, 1:] - hazard[:, :1])
        return total

    def events(self, looks: FloatArray, series: Sequence[Series]) -> FloatArray:
        """Return the events of each series until each look, (S, K)."""
        rows = [one.rows[self.event[one.rows]] for one in series]
        return self._counted(looks, self.ended + self.lag, series, rows)

    def patients(self, looks: FloatArray, series: Sequence[Series]) -> FloatArray:
        """Return the patients of each series who have entered until each look, (S, K)."""
        rows = []
        for one in series:
            # The first row of each patient.
            order = one.rows[np.argsort(self.entered[one.rows], kind="stable")]
            rows.append(order[np.unique(self.patient[order], return_index=True)[1]])
        return self._counted(looks, self.entered + self.lag, series, rows)

    def _counted(
        self, looks: FloatArray, known: FloatArray, series: Sequence[Series], rows: Sequence[IntArray]
    ) -> FloatArray:
        """Return how many of the rows of each series are known by each look, (S, K)."""
        found = np.empty((len(series), len(looks)))
        for k, own in enumerate(rows):
            copies = np.repeat(known[own], self.weight[own])
            # Sums of dates and times are equal up to rounding.
            found[k] = np.searchsorted(np.sort(copies), looks + 1e-9, side="right")
        return found

    @property
    def in_future(self) -> BoolArray:
        """Whether each row ends after today, (n,); times in months may end a day later than their date."""
        late: BoolArray = self.ended >= self.calendar.latest + 1
        return late

    def warn_of_gaps(self) -> None:
        """Warn if outcomes are not complete until the last date of the table less the lag.

        Of the patients who were under observation shortly before that date and have no event until it, at least two
        thirds are also observed then, if survivors are known until today and few are lost. Patients with the longest
        follow-up were not lost: it ended. With dates in the future, the last date of the table is wrong.
        """
        if self.in_future.any():
            return
        end, until = self.ended, self.last - self.lag
        shortly = self.lag + max(10 * self._day, (self.last - self.first) / 20)
        lost = ~self.target.event & (
            self.target.time < self.target.time.max() - self._day / self.calendar.unit
        )
        before = (self.entered <= until - shortly) & (end > until - shortly)
        missed = before & lost & (end < until - self._day - 1e-9)
        if 3 * missed.sum() <= before.sum() - (before & self.target.event & (end <= until)).sum():
            return
        gap, unit = float(np.median((self.last - end)[lost])), " days" if self.calendar.dated else ""
        warn_caller(
            f"half of the patients without the event were last seen more than {gap:.4g}{unit} before the last date of "
            "the table. If deaths are known at once but survivors only until their last visit, too few events are "
            f"expected. Pass {arg('lag', text='N')} with N longer than the time between two visits; it is "
            f"{self.lag:g}{unit} now.",
            argument="lag",
        )

    @property
    def _day(self) -> float:
        """Precision of positions in the calendar: 1 for dates (a day) and whole numbers, 0 for other numbers."""
        whole = self.calendar.dated or not (np.append(self.start, self.target.time) % 1).any()
        return 1.0 if whole else 0.0

    def warn_of_future(self, start: Any) -> None:
        """Warn of rows that start, or end, after today; `start`, as the user gave it, names the rows."""
        late = self.in_future
        if late.any():
            row, n = int(late.argmax()), int(late.sum())
            started = self.start[row] >= self.calendar.latest + 1
            when = float((self.start if started else self.ended)[row])
            warn_caller(
                f"{counted(n, 'row')} {'starts or ends' if n == 1 else 'start or end'} after today: row "
                f"{row_number(row, start)} {'starts' if started else 'ends'} on "
                f"{self.calendar.text(when)}. Correct such dates: events until then are expected, but cannot have been "
                "recorded.",
                argument="start",
            )

    def warn_of_ends(self) -> None:
        """Warn of patients who are followed longer than their curves are known."""
        late = self.target.time > self.curves.known_until
        if late.any():
            end = float(np.min(np.broadcast_to(self.curves.known_until, late.shape)[late]))
            lost, n = int((late & self.target.event).sum()), int(late.sum())
            warn_caller(
                f"{counted(n, 'patient')} {'is' if n == 1 else 'are'} followed after time {end:.4g}, where the "
                f"predicted curves end: from there on they are not counted ({counted(lost, 'event')}).",
                argument="model",
            )


def curves_to_monitor(predicted: Predicted) -> SurvivalCurves:
    """Return the curves whose expected events are counted; raise if they are known at few times only."""
    curves = predicted.survival_curves
    if not curves.known_throughout and (curves.times is None or len(curves.times) < _MANY_TIMES):
        name = type(final_step(predicted.model)).__name__ if predicted.given is None else "the prediction"
        times = ", ".join(f"{time:g}" for time in (curves.times if curves.times is not None else [])[:5])
        raise ArgumentError(
            "model",
            f"monitor counts events as they happen, so it needs curves that are known at all times; {name} is known at "
            f"few times ({times}). Use a model with curves, or evaluate these predictions once patients reach them.",
        )
    return curves


def patient_numbers(
    id: Any, start: FloatArray, entry: FloatArray, time: FloatArray, event: BoolArray
) -> IntArray:
    """Return the number of each row's patient, (n,); raise if rows of one patient overlap, warn if they are equal."""
    n = len(start)
    if id is None:
        return np.arange(n)
    codes, _ = label_codes("id", id, n)
    order = np.lexsort((event, start + time, start + entry, codes))
    begin, end, happened = (part[order] for part in (start + entry, start + time, event))
    same = codes[order][1:] == codes[order][:-1]
    copied = (
        same
        & (np.abs(np.diff(begin)) < 1e-9)
        & (np.abs(np.diff(end)) < 1e-9)
        & (happened[1:] == happened[:-1])
    )
    overlap = same & ~copied & (begin[1:] < end[:-1] - 1e-9)
    require(
        not overlap.any(),
        "id",
        "name patients whose rows do not overlap in calendar time",
        f"{int(overlap.sum())} overlapping rows",
        "give each follow-up once, with entry where a row continues another",
    )
    if copied.any():
        number = int(copied.sum())
        repeats = "row repeats" if number == 1 else "rows repeat"
        warn_caller(
            f"{number:,} {repeats} the follow-up of another row of the same patient, and each row is counted: remove "
            "rows that were entered twice.",
            argument="id",
        )
    return codes


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
