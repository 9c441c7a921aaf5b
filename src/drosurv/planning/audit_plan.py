"""Plan of an audit: patients and events that each question needs, and what a given number of patients can answer.

Patients have hazards exp(s Z) times a constant, Z standard normal, and are all followed until one time, at which the
wanted share of them has had the event. A plan needs no more than this of a model that does not exist yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import norm

from drosurv.errors import ArgumentError, arg, as_number, check_count, check_mapping, require
from drosurv.judging.adjustment import SEARCH_SHARE, Question, adjust
from drosurv.judging.excluded_errors import SubgroupSearch, events_for_power, factor_of, power_of
from drosurv.judging.questions import KINDS
from drosurv.metrics.pair_order import PairOrder
from drosurv.patients.groups import ALL, EVERYONE
from drosurv.patients.target import FloatArray, Target
from drosurv.presentation import (
    Column,
    Table,
    line_style,
    lines_or_new,
    name_lines,
    plain,
    plain_rows,
    written,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVERYBODY = "everybody"
# Share of the patients and event rate by the name of the group.
Rates = dict[str, tuple[float, float]]
# Questions that every audit asks about everybody and each group.
_ASKED = ("level", "timing", "slope", "gain")
# Standard deviation of log risks if neither it nor a c-index is given: a c-index of about 0.75.
_USUAL_SPREAD = 1.0
# Values of the x axis of the plot.
_POINTS = 40
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# Largest standard deviation of log risks that is looked for: a c-index of about 0.98.
_MOST = 8.0
# Points at which the distribution of the lowest risks is read.
_QUANTILES = 200
# Patients of the cohort from which the standard error of the c-index is computed.
_COHORT = 10_000


@dataclass(frozen=True)
class PlannedQuestion:
    """A question of a plan.

    `events` are needed among those that the question is about; `rate` is their number per patient of the cohort.
    `answer` returns what some events give: a factor, the width of an interval, or a power, as `measure` says. `about`
    names these patients, for a legend.
    """

    text: str
    about: str
    measure: str
    wanted: float
    rate: float
    events: float
    answer: Callable[[float], float]

    def row(self, n: int | None) -> dict[str, Any]:
        """Return the row of the table; with `n` patients, also their events and what these give."""
        found = {
            "question": self.text,
            "patients": int(np.ceil(self.events / self.rate - 1e-9)),
            "events": round(self.events),
            "measure": self.measure,
            "wanted": self.wanted,
        }
        if n is None:
            return found
        return {**found, "n": n, "events_of_n": self.rate * n, "attained": self.answer(self.rate * n)}


def plan(
    *,
    event_rate: float | None = None,
    events: float | None = None,
    c_index: float | None = None,
    spread: float | None = None,
    groups: Mapping[str, float | tuple[float, float]] | None = None,
    ratio: float = 1.2,
    slope_width: float = 0.2,
    c_index_width: float = 0.1,
    subgroup_share: float = 0.05,
    subgroup_ratio: float = 1.5,
    power: float = 0.8,
    level: float = 0.95,
    n: int | None = None,
    n_columns: int = 10,
    n_tests: int | None = None,
) -> Plan:
    r"""Plan an audit: how many patients are needed to judge a survival model, or what `n` patients can show.

    Intervals and tests are adjusted as those of an audit (:func:`drosurv.audit`) of these groups with a search for
    subgroups. Events are those observed in the follow-up, D; z is the normal quantile of a question.

    - Observed over expected events within a factor w: :math:`D = (z / \ln w)^2`.
    - Calibration slope in an interval of width W: :math:`D = (2 z / W)^2 / V`, with V the variance of the log risks,
      weighted by expected events.
    - The c-index in an interval of a width: :math:`D = (2 z k / W)^2`, with k from a simulated cohort.
    - A group with r times the expected events is found: :math:`((z + z_{power}) / (2 (\sqrt r - 1)))^2` expected
      events, which end at each patient's event.
    - A subgroup of a share is found by the search: the same with its critical value.
    - The bounds of :func:`drosurv.certify` exclude a ratio in a subgroup where observed equal expected events; and in
      all subgroups, of which those at the lowest risk have the fewest events.

    The interval of the c-index, which is not tested, and the bounds are not adjusted.

    Parameters
    ----------
    event_rate : float
        Share of the patients who have the event in the follow-up, between 0 and 1.
    events : float
        Another name of `event_rate`, that of the option of the command.
    c_index : float, optional
        The model's c-index, above 0.5, from which the spread of risks is computed (normal log risks).
    spread : float, optional
        Instead of the c-index: standard deviation of the log risks, weighted by expected events; 1 by default.
    groups : mapping, optional
        Named groups: the share of the patients, or a pair (share, event rate) of a group with its own rate.
    ratio : float
        Factor, above 1, within which observed over expected events are wanted; also the error of a group to be found.
    slope_width, c_index_width : float
        Widths of the intervals of calibration slope and c-index.
    subgroup_share, subgroup_ratio : float
        Share of the patients that makes a subgroup, and its error to be found and excluded, above 1.
    power : float
        Probability with which errors are found, between 0 and 1.
    level : float
        Confidence of the intervals; 1 - level is the probability of a false alarm.
    n : int, optional
        Number of patients, if it is given.
    n_columns : int
        Columns that may define subgroups.
    n_tests : int, optional
        Instead of the adjustment of an audit: number of tests between which 1 - level is divided (Bonferroni); with 1,
        every question is planned as if it were the only one.

    Examples
    --------
    >>> import drosurv
    >>> found = drosurv.plan(event_rate=0.25, groups={"women": 0.4}, n=1000)
    >>> found.table[["patients", "events"]].iloc[:2].values.tolist()
    [[819, 205], [2314, 231]]
    """
    require(event_rate is None or events is None, "events", "be left out where event_rate is given", events)
    event_rate = events if event_rate is None else event_rate
    if event_rate is None:
        raise ArgumentError(
            "event_rate",
            f"{arg('event_rate')} is needed: the share of the patients who have the event, such as 0.25.",
        )
    rates = _checked(event_rate, c_index, spread, groups, n, n_columns, n_tests)
    for name, above in (("ratio", ratio), ("subgroup_ratio", subgroup_ratio)):
        require(1 < as_number(above) < np.inf, name, "be a factor above 1", above)
    for name, width in (("slope_width", slope_width), ("c_index_width", c_index_width)):
        require(0 < as_number(width) < np.inf, name, "be above 0", width)
    for name, share in (("subgroup_share", subgroup_share), ("power", power), ("level", level)):
        require(0 < as_number(share) < 1, name, "lie between 0 and 1", share)
    z = _critical_values(list(rates)[1:], level, n_tests)
    unadjusted = float(norm.isf((1 - level) / 2))
    of_search = SEARCH_SHARE if n_tests is None else 1 / n_tests
    if c_index is None:
        risks = NormalLogRisks.with_spread(spread or _USUAL_SPREAD, event_rate)
        variance = (spread or _USUAL_SPREAD) ** 2
    else:
        risks = NormalLogRisks.with_c_index(c_index, event_rate)
        variance = risks.variance_at_events
    search, bounds = (
        SubgroupSearch(n_columns, subgroup_share, 1 - share * (1 - level), risks.lowest(subgroup_share))
        for share in (of_search, 1.0)
    )
    questions = [
        *_within(ratio, z, rates),
        _in_interval(
            "calibration slope", slope_width, 2 * z["slope", EVERYBODY] / np.sqrt(variance), event_rate
        ),
        _in_interval("c-index", c_index_width, 2 * unadjusted * risks.c_index_error, event_rate),
        *_found(ratio, power, z, rates),
        *_in_subgroups(search, bounds, subgroup_ratio, power, event_rate),
    ]
    unknown = f": pass {arg('c_index')} or {arg('spread')} if you know them"
    adjusted = f", divided between {n_tests} tests" if n_tests is not None and n_tests > 1 else ""
    if n_tests is None:
        adjusted = ", adjusted as in an audit of these groups with a search for subgroups"
    notes = [
        f"Of 100 patients, {100 * event_rate:.3g} have the event in the follow-up.",
        f"Log risks have the standard deviation {np.sqrt(variance):.2f} at the events, a c-index of "
        f"{risks.c_index:.2f}{'' if c_index or spread else unknown}.",
        f"Confidence {100 * level:g} %{adjusted}; power "
        f"{100 * power:g} %; {n_columns} columns may define subgroups.",
    ]
    return Plan(tuple(questions), tuple(notes), n)


def _checked(
    event_rate: float,
    c_index: float | None,
    spread: float | None,
    groups: Mapping[str, float | tuple[float, float]] | None,
    n: int | None,
    n_columns: int,
    n_tests: int | None,
) -> Rates:
    """Return the share and event rate of everybody and of each group, after checking the arguments."""
    require(0 < as_number(event_rate) < 1, "event_rate", "lie between 0 and 1", event_rate)
    if c_index is not None:
        require(0.5 < as_number(c_index) < 0.98, "c_index", "lie between 0.5 and 0.98", c_index)
        require(spread is None, "spread", f"be left out where {arg('c_index')} is given", spread)
    if spread is not None:
        require(0 < as_number(spread) <= 5, "spread", "be above 0 and at most 5", spread)
    if n is not None:
        check_count("n", n)
    check_count("n_columns", n_columns)
    if n_tests is not None:
        check_count("n_tests", n_tests)
    rates = {EVERYBODY: (1.0, float(event_rate))}
    groups = {} if groups is None else groups
    check_mapping("groups", groups, "{'women': 0.5}, with the share of each group")
    for name, given in groups.items():
        share, rate = given if isinstance(given, tuple) else (given, event_rate)
        require(0 < as_number(share) <= 1, "groups", f"give {name!r} a share in (0, 1]", share)
        require(0 < as_number(rate) < 1, "groups", f"give {name!r} an event rate between 0 and 1", rate)
        # Of the other patients, between none and all have the event.
        least, most = share * rate, share * rate + 1 - share
        if not least - 1e-9 <= event_rate <= most + 1e-9:
            raise ArgumentError(
                "groups",
                f"{arg('groups')}: if {100 * share:g} % of the patients are in {name!r} and {100 * rate:g} % of these "
                f"have the event, {100 * least:.3g} to {100 * most:.3g} % of all patients have it, not "
                f"{100 * event_rate:g} %.",
            )
        rates[str(name)] = float(share), float(rate)
    return rates


def _critical_values(
    groups: Sequence[str], level: float, n_tests: int | None
) -> dict[tuple[str, str], float]:
    """Return the normal quantile of each test, by question and group.

    Tests are those of an audit of the groups with a search, and are taken as independent: an audit, which knows their
    correlations, needs slightly smaller ones.
    """
    named = [(EVERYONE, ALL), *(("group", name) for name in groups)]
    keys = [(name, EVERYBODY if who[0] == EVERYONE else who[1]) for name in _ASKED for who in named]
    if n_tests is not None:
        return dict.fromkeys(keys, float(norm.isf((1 - level) / n_tests / 2)))
    asked = [Question(KINDS[name], *who, None, few_events=True) for name in _ASKED for who in named]
    found = adjust(asked, level, searched=True)
    return {key: float(norm.isf(one.alpha / 2)) for key, one in zip(keys, found, strict=True)}


def _within(ratio: float, z: Mapping[tuple[str, str], float], rates: Rates) -> Iterator[PlannedQuestion]:
    """Yield the question how many patients give observed / expected events within a factor, for each group."""
    for name, (share, rate) in rates.items():
        own = z["level", name]
        text = f"observed / expected events within a factor of {ratio:g}, {name}"
        needed = (own / np.log(ratio)) ** 2
        yield PlannedQuestion(text, name, "factor", ratio, share * rate, needed, partial(factor_of, own))


def _in_interval(what: str, wanted: float, width: float, rate: float) -> PlannedQuestion:
    """Return the question how many patients give an interval of the wanted width; `width` is that of one event."""
    text = f"{what} in an interval of width {wanted:g}"
    needed = float((width / wanted) ** 2)
    return PlannedQuestion(
        text, EVERYBODY, "width", wanted, rate, needed, lambda events: float(width / np.sqrt(events))
    )


def _found(
    ratio: float, power: float, z: Mapping[tuple[str, str], float], rates: Rates
) -> Iterator[PlannedQuestion]:
    """Yield the question with how many patients a wrong number of events is found, for each group."""
    for name, (share, rate) in rates.items():
        text = f"{ratio:g} times the expected events found, {name}"
        answer = partial(power_of, ratio, critical_value=z["level", name])
        needed, expected = events_for_power(ratio, power, z["level", name]), share * _expected(rate, ratio)
        yield PlannedQuestion(text, name, "power", power, expected, needed, answer)


def _in_subgroups(
    search: SubgroupSearch, bounds: SubgroupSearch, ratio: float, power: float, rate: float
) -> Iterator[PlannedQuestion]:
    """Yield the questions what the search finds, and what the bounds exclude."""
    size = f"{100 * search.share:g} %"
    one = f"a subgroup of {size}"
    text = f"{ratio:g} times the expected events found in {one} (search)"
    needed = search.events_for_power(ratio, power)
    expected = search.share * _expected(rate, ratio)
    yield PlannedQuestion(text, one, "power", power, expected, needed, partial(search.power, ratio))
    for subgroups, needed, answer in (
        (one, bounds.events_to_exclude_in_one(ratio), bounds.bound_of_one),
        (f"all subgroups of {size}", bounds.events_to_exclude(ratio), bounds.bound),
    ):
        text = f"{ratio:g} times the expected events excluded in {subgroups} (bounds)"
        yield PlannedQuestion(text, subgroups, "factor", ratio, search.share * rate, needed, answer)


def _expected(rate: float, ratio: float) -> float:
    """Return the events that a model expects of a patient whose hazard is `ratio` times as high.

    With the right hazards the share `rate` has the event; follow-up ends at the event.
    """
    return float(-np.expm1(ratio * np.log1p(-rate)) / ratio)


def _events(row: Mapping[Any, Any]) -> str:
    """Return the events of a row of the table in words: where an error is to be found, those that are expected."""
    return f"{row['events']:,}{' expected' if row['measure'] == 'power' else ''}"


def _attained(row: Mapping[Any, Any]) -> str:
    """Return in words what the given number of patients attains."""
    if row["attained"] in (None, np.inf):
        return "subgroup with too few events"
    value = f"{100 * row['attained']:.0f} %" if row["measure"] == "power" else written(row["attained"])
    return f"{row['measure']} of {value}"


@dataclass(frozen=True, repr=False)
class Plan:
    """The plan of an audit, from :func:`drosurv.plan`.

    Parameters
    ----------
    questions : tuple of PlannedQuestion
        The questions, with the events that each needs.
    notes : tuple of str
        What was assumed.
    n : int or None
        Number of patients whose answers are also given.
    """

    questions: tuple[PlannedQuestion, ...]
    notes: tuple[str, ...]
    n: int | None

    @property
    def table(self) -> pd.DataFrame:
        """One row per question: question, patients needed in all, and events needed among those it is about.

        Where the measure is power, events are those that the model expects, and fewer than happen.

        Further columns are ``measure`` (factor, width or power) and the value ``wanted``; with `n`, their number of
        patients ``n``, the expected ``events_of_n`` among those the question is about, and the value ``attained``.
        """
        return pd.DataFrame([question.row(self.n) for question in self.questions])

    def summary(self) -> str:
        """Return the plan in sentences."""
        lines = [
            f"{row['question']}: {row['patients']:,} patients, {_events(row)} events"
            f"{'' if self.n is None else f'; {self.n:,} patients give a {_attained(row)}'}."
            for row in self.table.to_dict("records")
        ]
        return "\n".join([*lines, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        return {"table": plain(plain_rows(self.table), None), "notes": list(self.notes), "n": self.n}

    def to_table(self) -> Table:
        """Return the table for documents and notebooks."""
        columns = [
            Column("question", "question"),
            Column("patients", "patients", "count"),
            Column("events", "events"),
        ]
        rows = [{**row, "events": _events(row)} for row in plain_rows(self.table)]
        if self.n is not None:
            columns.append(Column("shown", f"with {self.n:,} patients"))
            rows = [{**row, "shown": _attained(row)} for row in rows]
        return Table(
            "plan", "Patients and events that an audit needs", tuple(columns), tuple(rows), self.notes
        )

    def __repr__(self) -> str:
        return self.to_table().to_text()

    def _repr_html_(self) -> str:
        return self.to_table().to_html()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the factors between observed and expected events that cannot be excluded, against the patients."""
        shown = [question for question in self.questions if question.measure == "factor"]
        ax = lines_or_new(ax, len(shown) + 1)
        needed = [question.events / question.rate for question in shown]
        n = np.geomspace(min(needed) / 4, 2 * max(needed), _POINTS)
        if self.n is not None:
            n = np.unique(np.append(n, self.n))
        for k, question in enumerate(shown):
            answers = [question.answer(question.rate * patients) for patients in n]
            ax.plot(n, answers, linestyle=line_style(k), label=question.about)
        if self.n is not None:
            ax.axvline(self.n, color="0.3", linewidth=0.8, label=f"{self.n:,} patients")
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        ax.set_ylim(1, min(ax.get_ylim()[1], 4))
        ax.set_xlabel("patients")
        ax.set_ylabel("error that cannot be excluded (times the events)")
        name_lines(ax)
        return ax


@dataclass(frozen=True)
class NormalLogRisks:
    """Log risks with a normal distribution and their standard `deviation`; `event_rate` is the share of events."""

    deviation: float
    event_rate: float

    @classmethod
    def with_c_index(cls, c_index: float, event_rate: float) -> NormalLogRisks:
        """Return the log risks whose c-index is given, above 1/2."""
        return cls._solved(lambda risks: risks.c_index - c_index, event_rate)

    @classmethod
    def with_spread(cls, spread: float, event_rate: float) -> NormalLogRisks:
        """Return the log risks whose standard deviation, weighted by expected events, is given."""
        return cls._solved(lambda risks: risks.variance_at_events - spread**2, event_rate)

    @classmethod
    def _solved(cls, excess: Callable[[NormalLogRisks], float], event_rate: float) -> NormalLogRisks:
        # The highest variance at the events is reached before the largest deviation if events are frequent.
        grid = np.linspace(0.01, _MOST, 100)
        above = np.flatnonzero([excess(cls(float(s), event_rate)) >= 0 for s in grid])
        if len(above) == 0:
            return cls(_MOST, event_rate)
        if above[0] == 0:
            return cls(0.01, event_rate)
        low, high = grid[above[0] - 1], grid[above[0]]
        return cls(float(brentq(lambda s: excess(cls(float(s), event_rate)), low, high)), event_rate)

    @cached_property
    def hazard(self) -> FloatArray:
        """Cumulative hazards at the end of follow-up, at the nodes of the quadrature; their events have the rate."""
        relative = np.exp(self.deviation * _NODES)

        def excess(log_scale: float) -> float:
            return float(_WEIGHTS @ -np.expm1(-np.exp(log_scale) * relative)) - self.event_rate

        scale: FloatArray = np.exp(brentq(excess, -60.0, 60.0)) * relative
        return scale

    @cached_property
    def c_index(self) -> float:
        """Harrell's c-index: how often the patient with the higher risk has the event first, within the follow-up."""
        first, other = self.hazard[:, None], self.hazard[None, :]
        both = first + other
        # Probability that the event of the first patient comes before that of the other and before the end.
        earlier = _WEIGHTS[:, None] * _WEIGHTS * first / both * -np.expm1(-both)
        concordant = earlier[first > other].sum() + earlier[first == other].sum() / 2
        return float(concordant / earlier.sum())

    @cached_property
    def variance_at_events(self) -> float:
        """Variance of the log risks, weighted by expected events."""
        weight = _WEIGHTS * -np.expm1(-self.hazard)
        weight, log_risk = weight / weight.sum(), self.deviation * _NODES
        return float(weight @ (log_risk - weight @ log_risk) ** 2)

    def lowest(self, share: float) -> float:
        """Return the event rate of the share of patients with the lowest risks, over the rate of all patients."""
        quantiles = norm.ppf(share * (np.arange(_QUANTILES) + 0.5) / _QUANTILES)
        hazard = self.hazard[len(_NODES) // 2] * np.exp(self.deviation * quantiles)
        return float(-np.expm1(-hazard).mean() / self.event_rate)

    @cached_property
    def c_index_error(self) -> float:
        """Standard error of the c-index, times the square root of the number of events."""
        rng = np.random.default_rng(0)
        log_risk = self.deviation * rng.standard_normal(_COHORT)
        end = self.hazard[len(_NODES) // 2]
        reached = rng.exponential(size=_COHORT) / np.exp(log_risk)
        target = Target(reached <= end, np.minimum(reached, end))
        concordant, comparable = PairOrder.for_harrell(target, log_risk).counts(np.ones(_COHORT))
        c_index = concordant.sum() / comparable.sum()
        # Every pair is counted for both of its patients.
        influence = 2 * (concordant - c_index * comparable) / comparable.sum()
        return float(np.sqrt((influence**2).sum() * target.n_events))
