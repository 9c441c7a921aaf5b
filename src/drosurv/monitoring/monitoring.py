"""Monitor a model in use: compare observed with expected events over calendar time, with few false alarms."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from drosurv.errors import (
    ArgumentError,
    arg,
    as_number,
    each_warning_once,
    recording_warnings,
    require,
    warn_caller,
)
from drosurv.evaluation.evaluator import whose
from drosurv.judging.excluded_errors import Interval, excluded_sentence
from drosurv.metrics.scores import metric_target
from drosurv.monitoring.counts import Calendar, Log, Series, curves_to_monitor, patient_numbers
from drosurv.monitoring.e_process import log_detector, log_e_value, ratio_interval
from drosurv.patients.groups import EVERYONE
from drosurv.patients.observation import copies
from drosurv.patients.target import (
    FloatArray,
    IntArray,
    Target,
    cause_names,
    has_causes,
    of_events,
    y_field,
)
from drosurv.predictions import as_predictions, of_causes
from drosurv.presentation import (
    cause_in_words,
    counted,
    line_style,
    lines_or_new,
    name_lines,
    plain,
    ratio_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Starting months, on average, between two false alarms of a recent change, over all series: 20 years.
MONTHS_BETWEEN_FALSE_ALARMS = 240
_COUNTS = ("date", "attribute", "group", "patients", "events", "expected", "ratio")
# Largest log of a number.
_MOST = 700.0
# No patient is followed for so many years.
_MOST_YEARS = 150
# More series are drawn without bands, which would cover each other.
_MOST_BANDS = 3


@each_warning_once
def monitor(
    model: Any,
    X: Any,
    y: Any,
    *,
    start: Any,
    sensitive_features: Any = None,
    every: str | float | None = "auto",
    alpha: float = 0.05,
    tolerance: float = 1.1,
    lag: float = 0.0,
    cause: int | str | None = None,
    time_unit: str = "days",
) -> Monitoring:
    """Compare the events of a model in use with those it expects, date by date, overall and by group.

    At each date c, every patient who has entered is followed until c less the lag. An alarm means that the ratio of
    true to predicted hazards lies outside of 1 / tolerance to tolerance. If it lies inside, the probability of any
    alarm is at most alpha, over all groups and for any number of looks. Recent changes are searched for separately:
    false ones are on average 20 years, or 240 starting points, apart.

    Parameters
    ----------
    model : fitted survival model, Predictions, or a pair (times, survival)
        It needs curves that are known at all times: scores known at some times only are refused.
    X : (n, d) array or DataFrame
        Features, as the model takes them.
    y : structured array (n,)
        Events and times, until the last date at which each patient is known to be free of the event. The fields
        ``entry``, the times from which rows are under observation, and ``id``, if patients have several rows, which
        must not overlap, are used; a row of ``weight`` 2 counts as two. A row that repeats the follow-up of another one
        of the same patient is counted, with a warning.
    start : (n,) dates or numbers
        Where time 0 of each patient lies in the calendar. Numbers are in the unit of the times, except for dates such
        as 20210331.
    sensitive_features : DataFrame, Series, mapping, (n,) or (n, J) labels, optional
        One column of group labels per attribute.
    every : {"auto", "day", "month", "year"}, number, or None
        How often to look: at the end of each period; every so many days (of dates) or units (of numbers); or at each
        event (None). By default every month of dates, and at each event of numbers. Periods that are not complete are
        left out.
    alpha : float
        Largest probability of any false alarm, however long the model is monitored. The test of all patients uses half
        of it, and the test of the j-th group that appears alpha / (2 j (j + 1)).
    tolerance : float
        Ratios between 1 / tolerance and tolerance are no reason for an alarm, since every estimated model is a little
        wrong. At least 1.
    lag : float
        Time until outcomes are known, in days (of dates) or units (of numbers). If deaths are known at once but
        survivors only until their last visit, it must exceed the time between two visits.
    cause : int or str, optional
        With competing causes, the cause whose events are counted; by default those of any cause.
    time_unit : {"days", "weeks", "months", "years"}
        Unit of the times where `start` holds dates.

    Examples
    --------
    >>> import numpy as np, pandas as pd, drosurv
    >>> rng = np.random.default_rng(0)
    >>> X, entered = rng.normal(size=(600, 2)), rng.uniform(0, 2, 600)
    >>> time, end = rng.exponential(np.exp(-X[:, 0])), 2.5 - entered
    >>> y = drosurv.Surv.from_arrays(time <= end, np.minimum(time, end))
    >>> model = drosurv.CoxPH().fit(X[:300], y[:300])
    >>> found = drosurv.monitor(model, X[300:], y[300:], start=entered[300:], every=0.25)
    >>> found.path.columns.tolist()
    ['date', 'attribute', 'group', 'patients', 'events', 'expected', 'ratio', 'low', 'high', 'e_value']
    """
    require(0 < as_number(alpha) < 1, "alpha", "lie between 0 and 1", alpha)
    require(1 <= as_number(tolerance) < np.inf, "tolerance", "be a factor of at least 1", tolerance)
    require(0 <= as_number(lag) < np.inf, "lag", "be a time of at least 0", lag)
    model, cause = of_causes(model, cause, y)
    target = _target(y, cause)
    n, weight = len(target), y_field(y, "weight")
    weight = np.ones(n) if weight is None else copies(weight, n)
    if y_field(y, "clusters") is not None:
        warn_caller(
            f"monitoring takes patients as independent: if those of one of the {arg('clusters')} are alike, false "
            f"alarms are more frequent than {alpha:g}.",
            argument="clusters",
        )
    since = np.zeros(n) if target.entry is None else target.entry
    with recording_warnings() as how_read:
        calendar, started = Calendar.parse(start, n, time_unit)
        begin, end = calendar.unit * since, calendar.unit * target.time
        patient = patient_numbers(y_field(y, "id"), started, begin, end, target.event)
    every = calendar.chosen(every)
    log = Log(
        calendar,
        started,
        target,
        since,
        curves_to_monitor(as_predictions(model, X, n, cause=cause)),
        patient,
        weight.astype(np.intp),
        float(lag),
    )
    years = calendar.unit * target.time.max() / 365.25
    if calendar.dated:
        longest = f"be the unit of the times; the longest would be {years:,.0f} years"
        require(years < _MOST_YEARS, "time_unit", longest, time_unit)
    series = log.series(sensitive_features, float(alpha))
    looks = calendar.looks(every, log.first, log.last, log.happened)
    with recording_warnings() as warned:
        log.warn_of_future(start)
        log.warn_of_ends()
        log.warn_of_gaps()
    starts = calendar.starts(every, log.first, float(looks[-1]))
    grid = np.unique(np.concatenate([[log.first], looks, starts]))
    dates = grid, np.searchsorted(grid, looks), np.searchsorted(grid, starts)
    counts = (count(grid, series) for count in (log.patients, log.events, log.expected))
    watched = [
        _MonitoredSeries(one, calendar, float(log.entered[one.rows].min()), tolerance, *dates, *of_series)
        for one, *of_series in zip(series, *counts, strict=True)
    ]
    path = pd.concat([one.path() for one in watched], ignore_index=True)
    if path.empty:
        raise ArgumentError(
            "lag",
            f"{arg('lag', lag)} leaves no patient with a known outcome: the table goes from "
            f"{calendar.text(log.first)} to {calendar.text(log.last)}. Choose a shorter lag.",
        )
    threshold = MONTHS_BETWEEN_FALSE_ALARMS * alpha
    return Monitoring(
        path=path,
        alarms=_by_date([row for one in watched for row in one.alarms()], path, ("low", "high")),
        changes=_by_date([row for one in watched for row in one.changes(threshold)], path, ("since",)),
        calendar=calendar,
        every=every,
        alpha=float(alpha),
        tolerance=float(tolerance),
        lag=float(lag),
        of=cause_in_words(cause, cause_names(y)) if has_causes(y) else "",
        notes=tuple(str(one) for one in (*how_read, *warned)),
    )


def _by_date(rows: list[dict[str, Any]], path: pd.DataFrame, more: tuple[str, ...]) -> pd.DataFrame:
    """Return rows as a table by date; without rows too, its columns have the types of the path."""
    types = {name: path["date" if name == "since" else name].dtype for name in (*_COUNTS, *more)}
    found = pd.DataFrame(rows, columns=list(types)).astype(types)
    return found.sort_values("date", kind="stable").reset_index(drop=True)


def _target(y: Any, cause: int | None) -> Target:
    """Return events and times; with causes, those of one or of any cause."""
    if has_causes(y):
        causes = y[y.dtype.names[0]]
        y = of_events(y, causes > 0 if cause is None else causes == cause)
    else:
        require(cause is None, "cause", "be left out where y has no causes", cause)
    return metric_target(y, late_entry=True, weighted=True)


@dataclass(frozen=True, eq=False)
class _MonitoredSeries:
    """One series: when its first patient enters, and its patients, events and expected events (K,).

    They are counted until K dates, the `grid`, of which some are `looks` and some `starts` of changes.
    """

    series: Series
    calendar: Calendar
    first: float
    tolerance: float
    grid: FloatArray
    looks: IntArray
    starts: IntArray
    patients: FloatArray
    events: FloatArray
    expected: FloatArray

    def path(self) -> pd.DataFrame:
        """Return the rows of the path: looks from the first patient on."""
        at = self.looks[self.patients[self.looks] > 0]
        events, expected = self.events[at], self.expected[at]
        low, high = ratio_interval(events, expected, self.series.share)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = events / expected
        return pd.DataFrame(
            {
                "date": self.calendar.dates(self.grid[at]),
                "attribute": self.series.attribute,
                "group": self.series.group,
                "patients": self.patients[at].astype(int),
                "events": events.astype(int),
                "expected": expected,
                "ratio": ratio,
                "low": low,
                "high": high,
                "e_value": np.exp(np.minimum(log_e_value(events, expected, self.tolerance), _MOST)),
            }
        )

    def alarms(self) -> list[dict[str, Any]]:
        """Return the first alarm, in a list, if there is one."""
        logs = log_e_value(self.events[self.looks], self.expected[self.looks], self.tolerance)
        reached = self.looks[logs >= -np.log(self.series.share)]
        if len(reached) == 0:
            return []
        at = int(reached[0])
        low, high = ratio_interval(self.events[at], self.expected[at], self.series.share)
        return [self._row(at, 0) | {"low": float(low), "high": float(high)}]

    def changes(self, threshold: float) -> list[dict[str, Any]]:
        """Return every recent change that is found; after each, counting starts again."""
        looks, starts, found = self.looks, self.starts, []
        begin = int(np.searchsorted(self.grid, self.first + 1e-9, side="right")) - 1
        while len(starts):
            own = np.append(begin, starts[starts > begin])
            logs, leading = log_detector(self.events, self.expected, own, self.tolerance)
            reached = looks[(logs[looks] >= np.log(threshold / self.series.share)) & (looks > begin)]
            if len(reached) == 0:
                break
            begin = int(reached[0])
            since = int(leading[begin])
            found.append(self._row(begin, since) | {"since": self.calendar.dates(self.grid[[since]])[0]})
        return found

    def _row(self, at: int, since: int) -> dict[str, Any]:
        """Return the counts at a date; what happened before `since` is not counted."""
        events, expected = (part[at] - part[since] for part in (self.events, self.expected))
        counts = int(self.patients[at]), int(events), float(expected), float(events / max(expected, 1e-12))
        whose = self.series.attribute, self.series.group
        return dict(zip(_COUNTS, (self.calendar.dates(self.grid[[at]])[0], *whose, *counts), strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class Monitoring:
    """What was found about a model in use, from :func:`drosurv.monitor`.

    Parameters
    ----------
    path : DataFrame
        One row for each look and series: date, attribute, group, patients, events and expected events until then,
        ratio, and the ends ``low`` and ``high`` of an interval that holds at all dates together. ``e_value`` is the
        evidence against every ratio within the tolerance; an alarm is given where it reaches 1 over the series' share
        of alpha, which is where the interval leaves out all these ratios.
    alarms : DataFrame
        The first alarm of each series that has one: columns as in the path.
    changes : DataFrame
        Recent changes that were found: as alarms, with events counted from the date ``since`` on, without interval.
    calendar : Calendar
        Whether dates are dates or numbers.
    every, alpha, tolerance, lag
        As given.
    of : str
        The cause of the events in words; empty if there are no causes.
    notes : tuple of str
        Warnings about the dates and the outcomes, and how dates were read.
    """

    path: pd.DataFrame
    alarms: pd.DataFrame
    changes: pd.DataFrame
    calendar: Calendar
    every: Any
    alpha: float
    tolerance: float
    lag: float
    of: str = ""
    notes: tuple[str, ...] = ()

    @property
    def latest(self) -> pd.DataFrame:
        """The last row of the path of everybody and of each group, by attribute."""
        last = self.path.groupby(["attribute", "group"], sort=False).tail(1)
        order = {name: k for k, name in enumerate(last["attribute"].unique())}
        key = [(order[name], group) for name, group in zip(last["attribute"], last["group"], strict=True)]
        return last.iloc[sorted(range(len(last)), key=key.__getitem__)].reset_index(drop=True)

    def series(self, attribute: str, group: str) -> pd.DataFrame:
        """Return the path of one series."""
        chosen = (self.path["attribute"] == attribute) & (self.path["group"] == group)
        return self.path[chosen].reset_index(drop=True)

    def date(self, value: Any) -> str:
        """Return a date, or a number, as text."""
        return f"{value:%Y-%m-%d}" if self.calendar.dated else f"{value:.6g}"

    @property
    def sentences(self) -> list[str]:
        """Return the alarms, or that there is none, and recent changes in sentences."""
        found = [
            f"Alarm on {self.date(row['date'])}, {whose(row['attribute'], row['group'])}: {_counted(row)} "
            f"({_interval(row)})."
            for row in self.alarms.to_dict("records")
        ]
        if not found:
            found = [
                "No alarm: over the whole time, events agree with the predictions within chance and tolerance."
            ]
        for _, own in self.changes.groupby(["attribute", "group"], sort=False):
            row, last, more = own.iloc[0].to_dict(), self.date(own["date"].iloc[-1]), len(own) - 1
            again = {0: "", 1: f" Again on {last}."}.get(more, f" {more} more until {last}.")
            found.append(
                f"Recent change, found on {self.date(row['date'])}, {whose(row['attribute'], row['group'])}: since "
                f"{self.date(row['since'])}, {_counted(row)}.{again}"
            )
        return found

    @property
    def excluded(self) -> str:
        """Return a sentence on the errors that the latest intervals cannot exclude."""
        everybody, *groups = self.latest.to_dict("records")
        errors: dict[str, Interval] = {"everybody": (everybody["low"], everybody["high"])}
        if groups:
            smallest = min(groups, key=lambda row: row["events"])
            name = f"{whose(smallest['attribute'], smallest['group'])} (the group with the fewest events)"
            errors[name] = smallest["low"], smallest["high"]
        return excluded_sentence(everybody["patients"], everybody["events"], errors)

    def summary(self) -> str:
        """Return alarms and the latest numbers in sentences."""
        dates = self.path.loc[self.path["attribute"] == EVERYONE, "date"]
        of = f" Events are those of {self.of}." if self.of else ""
        lines = [
            f"{counted(len(dates), 'look')} from {self.date(dates.iloc[0])} to {self.date(dates.iloc[-1])}.{of}",
            *self.sentences,
        ]
        for row in self.latest.to_dict("records"):
            lines.append(
                f"{whose(row['attribute'], row['group'], 'Everybody')}: {counted(row['patients'], 'patient')}, "
                f"{counted(row['events'], 'event')}, {row['expected']:.1f} expected; ratio {_interval(row)}."
            )
        return "\n".join([*lines, self.excluded])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        return {
            "every": self.every,
            "alpha": self.alpha,
            "tolerance": self.tolerance,
            "lag": self.lag,
            "notes": list(self.notes),
            **{
                name: plain(self.with_text(getattr(self, name)).to_dict("records"), None)
                for name in ("alarms", "changes", "path")
            },
        }

    def with_text(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table with dates as text."""
        dated = {name: list(map(self.date, table[name])) for name in ("date", "since") if name in table}
        return table.assign(**dated)

    def __repr__(self) -> str:
        return self.summary()

    def plot(self, attribute: str = EVERYONE, group: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw the ratio of observed to expected events over time with its band, and alarms; by default of everybody.

        Parameters
        ----------
        attribute, group : str
            Whose ratio, as in the path; without a group, all groups of the attribute, of more than three without bands.
        ax : Axes, optional
            Axes to draw on.
        """
        chosen = self.path[self.path["attribute"] == attribute]
        if group is not None:
            chosen = chosen[chosen["group"] == group]
        if chosen.empty:
            raise ArgumentError.must(
                "attribute", "be one of the path, with one of its groups", (attribute, group)
            )
        series = list(chosen.groupby("group", sort=False))
        ax = lines_or_new(ax, len(series))
        for k, (label, part) in enumerate(series):
            ratio = part["ratio"].where(part["events"] > 0)
            (line,) = ax.plot(
                part["date"],
                ratio,
                linestyle=line_style(k),
                label=whose(attribute, str(label)).replace("$", r"\$"),
            )
            if len(series) <= _MOST_BANDS:
                ax.fill_between(
                    part["date"], part["low"], part["high"], alpha=0.15, color=line.get_color(), lw=0
                )
            own = self.alarms[(self.alarms["attribute"] == attribute) & (self.alarms["group"] == label)]
            for date in own["date"]:
                ax.axvline(date, color=line.get_color(), linestyle=":")
        ax.axhline(1, color="0.3", linewidth=0.8)
        for edge in (1 / self.tolerance, self.tolerance):
            ax.axhline(edge, color="0.6", linewidth=0.8, linestyle="--")
        ax.set_yscale("log")
        ax.set_ylim(0.25, 4)
        ax.set_yticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"])
        ax.minorticks_off()
        ax.set_ylabel("events observed / expected")
        name_lines(ax)
        return ax

    def to_html(self, path: str | os.PathLike[str] | None = None, *, title: str = "A model in use") -> str:
        """Return the page, with one chart for everybody and each group; also write it to `path` if given."""
        from drosurv.monitoring.monitoring_page import monitoring_page

        return monitoring_page(self, path, title)


def _counted(row: Mapping[Any, Any]) -> str:
    """Return events and expected events as text."""
    times = f"{ratio_text(row['ratio'])} times as many"
    return f"{counted(row['events'], 'event')} where {row['expected']:.1f} were expected, {times}"


def _interval(row: Mapping[Any, Any]) -> str:
    """Return an interval as text."""
    low, high = row["low"], row["high"]
    return f"{ratio_text(low)} to {ratio_text(high)}" if np.isfinite(high) else f"above {low:.2f}"
