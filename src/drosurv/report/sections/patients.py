"""The patients: their characteristics by group and those of the training patients, and Kaplan-Meier curves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import floor, log10
from typing import Any

import numpy as np
import pandas as pd

from drosurv.evaluation.evaluator import Attribute, rows_by_group
from drosurv.judging.group_picture import MANY_GROUPS
from drosurv.judging.rules import readable_table
from drosurv.metrics import FollowUp, log_rank_test, median_follow_up
from drosurv.metrics.nonparametric import KaplanMeier, aalen_johansen
from drosurv.patients.target import BoolArray, FloatArray, Target
from drosurv.presentation import (
    NOTHING,
    Column,
    Table,
    counted,
    label_name,
    listing,
    moment,
    p_text,
    plain,
    written,
)
from drosurv.report.charts import Axis, Chart, Frame, Line, Mark, steps
from drosurv.report.evidence import FEWEST, Evidence, Part, Section
from drosurv.tables import TableEncoder
from drosurv.tables.columns import CategoryColumn, NumberColumn
from drosurv.tables.dates import YEARS
from drosurv.tables.problems import CODE_NAME
from drosurv.tables.values import floats, labels

# Largest numbers of columns, of their levels, and of curves in a chart.
_MOST_COLUMNS = 15
_MOST_LEVELS = 12
# A column of at most so many whole numbers is shown by level.
_MOST_CODES = 5
_MOST_CURVES = 8
_TIMES_AT_RISK = 5
_MOST_POINTS = 2_000
ALL, TRAINING = "All audited", "training"
NOT_KEPT = "not kept"
_SIZE = ("Patients", "Events", "Median follow-up")
_AFTER_ANOTHER_CAUSE = (
    "An event of another cause ends a patient's follow-up and time at risk. The curves are cumulative incidences "
    "(Aalen-Johansen)."
)


@dataclass(frozen=True)
class ColumnSummary:
    """Summary of a column: patients, missing values, and mean and standard deviation or patients by level."""

    patients: int
    missing: int
    mean: float | None = None
    deviation: float | None = None
    levels: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, values: pd.Series[Any], *, by_level: bool) -> ColumnSummary:
        """Summarise the values of a column."""
        n, missing = len(values), int(values.isna().sum())
        if by_level:
            counts = labels(values).value_counts()
            return cls(n, missing, levels={str(level): int(rows) for level, rows in counts.items()})
        if missing == n:
            return cls(n, missing)
        known = floats(values.dropna())
        return cls(n, missing, float(known.mean()), _sample_deviation(float(known.var()), n - missing))

    @classmethod
    def of_encoder(cls, column: NumberColumn | CategoryColumn, n: int) -> ColumnSummary | None:
        """Summarise a column of n training patients from an encoder that standardises; None if it does not.

        The encoder's mean and standard deviation include missing values, filled with the median; they are subtracted.
        """
        known = n - column.n_missing
        if isinstance(column, CategoryColumn):
            if not any(column.means):
                return None
            shares = zip(column.others, column.means, strict=True)
            counts = {level: round(n * share) for level, share in shares}
            return cls(n, column.n_missing, levels=counts | {column.reference: known - sum(counts.values())})
        if not column.is_scaled:
            return None
        mean = (n * column.mean - column.n_missing * column.median) / known
        square = (n * (column.deviation**2 + column.mean**2) - column.n_missing * column.median**2) / known
        return cls(n, column.n_missing, mean, _sample_deviation(max(square - mean**2, 0.0), known))

    @property
    def mean_text(self) -> str:
        """Mean (standard deviation), both with as many decimals as give the deviation three digits."""
        if self.mean is None or self.deviation is None:
            return NOTHING
        size = max(abs(self.mean), self.deviation) if self.deviation == 0 else self.deviation
        decimals = min(max(2 - floor(log10(size)), 0), 6) if size > 0 else 0
        return f"{self.mean:,.{decimals}f} ({self.deviation:,.{decimals}f})"

    def of_two(self, low: float = 0.0, high: float = 1.0) -> int | None:
        """Return how often a column of two numbers, with variance p (1 - p), holds the higher; None of others."""
        if self.mean is None or self.deviation is None:
            return None
        known, share = self.patients - self.missing, (self.mean - low) / (high - low)
        of_indicator = _sample_deviation(max(share * (1.0 - share), 0.0), known)
        return round(share * known) if np.isclose(self.deviation / (high - low), of_indicator) else None

    def by_code(self, codes: FloatArray) -> ColumnSummary | None:
        """Return the summary by level of a column that holds these whole numbers; None if it cannot be known."""
        if self.levels or self.missing == self.patients:
            return self
        if len(codes) != 2 or (higher := self.of_two(*codes)) is None:
            return None
        low, high = (f"{code:.0f}" for code in codes)
        return replace(self, levels={low: self.patients - self.missing - higher, high: higher})

    def count_text(self, count: int) -> str:
        """Return a number of patients and their share."""
        return _count_text(count, self.patients)


@dataclass(frozen=True)
class TrainingPatients:
    """Summaries of the training patients' columns, and cells of other rows; `why` says why there are no columns."""

    cells: Mapping[str, str]
    columns: Mapping[str, ColumnSummary]
    why: str = ""

    @classmethod
    def of(cls, evidence: Evidence) -> TrainingPatients:
        """Summarise the training table or the encoder that was fitted to it, and what the model keeps."""
        if "Folds" in evidence.model:
            why = "The training patients have no column: they are the audited ones, in other folds."
            return cls({}, {}, why)
        follow_up = FollowUp.parse(evidence.follow_up)
        n, events = int(follow_up.patients), int(follow_up.events or 0)
        if isinstance(evidence.follow_up, FollowUp):
            # If the training patients are unknown, it is the follow-up of the audited patients.
            n, events = evidence.trained_on or ((0, 0) if follow_up.from_test_patients else (n, events))
        if not n:
            return cls({}, {}, "The training patients have no column: nothing is known about them.")
        # A model keeps its events by cause; a follow-up has those of any cause.
        of = "" if evidence.cause is None or evidence.trained_on else ", any cause"
        cells = {"Patients": written(n, "count"), "Events": f"{_count_text(events, n)}{of}"}
        if not follow_up.from_test_patients:
            cells["Median follow-up"] = _median(follow_up.median, evidence.time_unit)
        columns = _summaries(evidence.features_train, n)
        if columns:
            return cls(cells, columns)
        followed = cells.get("Median follow-up")
        why = (
            f"The model was trained on {counted(n, 'patient')} with {counted(events, 'event')}"
            f"{f' (median follow-up {followed})' if followed else ''}. It keeps no summary of their columns: to see "
            "them here, give the training table (--train, or features_train in Python)."
        )
        return cls(cells, {}, why)


def _summaries(trained: pd.DataFrame | TableEncoder | None, n: int) -> dict[str, ColumnSummary]:
    if trained is None:
        return {}
    if isinstance(trained, pd.DataFrame):
        columns = {str(name): column for name, column in trained.items()}
        return {
            name: ColumnSummary.of(one, by_level=_is_shown_by_level(one)) for name, one in columns.items()
        }
    kept = [column for column in trained.columns_ if isinstance(column, (NumberColumn, CategoryColumn))]
    found = {column.name: ColumnSummary.of_encoder(column, n) for column in kept}
    return {name: summary for name, summary in found.items() if summary is not None}


def collect(evidence: Evidence) -> Part:
    """Return a table of characteristics, or of the sizes of many groups, and one of observed curves, by attribute."""
    trained = TrainingPatients.of(evidence)
    attributes: list[Attribute | None] = sorted(evidence.attributes, key=_has_many)
    if not attributes or _has_many(attributes[0]):
        attributes = [None, *attributes]
    tables = [
        table
        for a in attributes
        for table in (
            _sizes(evidence, a) if a and _has_many(a) else _characteristics(evidence, a, trained),
            _curves(evidence, a),
        )
    ]
    note = trained.why if evidence.cause is None else f"{trained.why} {_AFTER_ANOTHER_CAUSE}".lstrip()
    facts = {"time_unit": evidence.time_unit, "since": _since(evidence), "note": note}
    return Part(tables=tuple(tables), facts=facts)


def _since(evidence: Evidence) -> str:
    """Say from when times are counted, unless it is time 0 of the table."""
    return "" if evidence.rows.entry is None else " since entry"


def _has_many(attribute: Attribute | None) -> bool:
    """Whether an attribute has too many groups for a column each."""
    return attribute is not None and len(attribute.labels) > MANY_GROUPS


def _sizes(evidence: Evidence, attribute: Attribute) -> Table:
    """Return patients, events and follow-up of each group of an attribute, a row each."""
    rows = [{"name": name, **_size(evidence, rows)} for name, rows in _members(evidence, attribute).items()]
    columns = (Column("name", "Group"), *(Column(name, name) for name in _SIZE))
    caption = f"Patients by {evidence.audited.headings[attribute.name]}"
    return Table(f"patients {attribute.name}", caption, columns, tuple(rows))


def _size(evidence: Evidence, members: BoolArray) -> dict[str, str]:
    """Return patients, events and median follow-up of some patients; where these have several rows, rows too."""
    rows = np.flatnonzero(members)
    n, events = len(rows), int(evidence.target.event[rows].sum())
    followed = _median(median_follow_up(_until_any_cause(evidence, members)), evidence.time_unit)
    count, patient = written(n, "count"), evidence.rows.patient
    if patient is not None and n > (patients := len(np.unique(patient[rows]))):
        count = f"{written(patients, 'count')} ({count} rows)"
    return dict(zip(_SIZE, (count, _count_text(events, n), followed), strict=True))


def _until_any_cause(evidence: Evidence, members: BoolArray) -> Target:
    """Return the events of any cause, and times since entry, of some patients."""
    target = evidence.target if evidence.causes is None else evidence.causes.of_any_cause()
    return target.take(np.flatnonzero(members))


def _members(evidence: Evidence, attribute: Attribute | None) -> dict[str, BoolArray]:
    """Return a mask of the patients of each group, by name; all audited patients first."""
    n, groups = len(evidence.target), rows_by_group([] if attribute is None else [attribute])
    masks = {label_name(*who): np.isin(np.arange(n), rows) for who, rows in groups.items()}
    return {ALL: np.ones(n, dtype=bool)} | masks


def _characteristics(evidence: Evidence, attribute: Attribute | None, trained: TrainingPatients) -> Table:
    # The prefix keeps names of groups different from names of other columns.
    known = _members(evidence, attribute)
    names = {f"group {name}": name for name in known}
    groups = {column: known[name] for column, name in names.items()}
    sizes = {group: _size(evidence, members) for group, members in groups.items()}
    rows: list[dict[str, Any]] = [
        {"name": name, TRAINING: trained.cells.get(name, NOT_KEPT), **{g: sizes[g][name] for g in groups}}
        for name in _SIZE
    ]
    if evidence.features is not None:
        table = readable_table(evidence.features, len(evidence.target))
        # The groups themselves are the columns of this table.
        shown = [name for name in table.columns if attribute is None or name != attribute.name]
        grouping = {a.name for a in evidence.attributes}
        for name in shown[:_MOST_COLUMNS]:
            rows += _of_column(table[name], groups, trained.columns.get(name), grouping)
    columns = [
        Column("name", "Characteristic"),
        *(Column(g, name) for g, name in names.items()),
        *([Column(TRAINING, "Training")] if trained.columns else []),
    ]
    by = "" if attribute is None else f", by {evidence.audited.headings[attribute.name]}"
    key = "patients" if attribute is None else f"patients {attribute.name}"
    return Table(key, f"Characteristics of the patients{by}", tuple(columns), tuple(rows))


def _of_column(
    column: pd.Series[Any],
    groups: dict[str, BoolArray],
    trained: ColumnSummary | None,
    grouping: Collection[str] = (),
) -> Iterator[dict[str, Any]]:
    """Yield rows of a column: mean (SD), shares of levels or of ones, and missing values; `grouping` define groups."""
    # Codes that were categories in training are shown as categories.
    by_level = _is_shown_by_level(column, grouping) or (trained is not None and bool(trained.levels))
    numeric = _is_number(column)
    if by_level and numeric and trained is not None:
        # Of numbers, a model may keep only mean and deviation.
        by_code = trained.by_code(np.unique(floats(column.dropna())))
        by_level, trained = by_code is not None, by_code or trained
    found = {g: ColumnSummary.of(column[members], by_level=by_level) for g, members in groups.items()}
    if trained is not None:
        found[TRAINING] = trained

    named = str(column.name)

    def row(name: str, cells: dict[str, str]) -> dict[str, Any]:
        return {"name": name, TRAINING: NOT_KEPT, **cells}

    if by_level:
        # The most frequent levels first, and those that only training patients have last; few codes by their size.
        levels = list(dict.fromkeys(level for one in found.values() for level in one.levels))
        if numeric and len(levels) <= _MOST_LEVELS:
            levels.sort(key=_size_of_code)
        shown = levels if len(levels) <= _MOST_LEVELS else levels[: _MOST_LEVELS - 1]
        for level in shown:
            cells = {g: one.count_text(one.levels.get(level, 0)) for g, one in found.items()}
            yield row(f"{named} = {label_name(named, level)}", cells)
        if others := levels[len(shown) :]:
            cells = {g: one.count_text(sum(one.levels.get(k, 0) for k in others)) for g, one in found.items()}
            yield row(f"{named}, {len(others)} other levels", cells)
    elif column.dropna().isin([0, 1]).all() and all(
        one.mean is None or one.of_two() is not None for one in found.values()
    ):
        ones = {g: one.of_two() for g, one in found.items()}
        cells = {g: NOTHING if k is None else found[g].count_text(k) for g, k in ones.items()}
        yield row(f"{named} = 1", cells)
    else:
        # Years such as 2021 are written without a comma.
        comma = "" if _holds_years(column) else ","
        yield row(f"{named}, mean (SD)", {g: one.mean_text.replace(",", comma) for g, one in found.items()})
    if any(one.missing for one in found.values()):
        yield row(f"{named}, missing", {g: one.count_text(one.missing) for g, one in found.items()})


def _sample_deviation(variance: float, n: int) -> float:
    """Return the standard deviation with n - 1 in the denominator, from the variance with n."""
    return float(np.sqrt(variance * n / max(n - 1, 1)))


def _is_number(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _is_shown_by_level(column: pd.Series[Any], grouping: Collection[str] = ()) -> bool:
    """Whether a column holds texts, or whole numbers, but 0 and 1, that are few, named like codes, or define groups."""
    if not _is_number(column):
        return True
    values = np.unique(floats(column.dropna()))
    if len(values) < 2 or not (values == np.floor(values)).all() or np.isin(values, (0.0, 1.0)).all():
        return False
    name = str(column.name)
    return len(values) <= _MOST_CODES or name in grouping or CODE_NAME.search(name) is not None


def _holds_years(column: pd.Series[Any]) -> bool:
    """Whether all values are whole numbers that may be calendar years."""
    values = floats(column.dropna())
    return bool(((values == np.floor(values)) & (values >= YEARS[0]) & (values <= YEARS[1])).all())


def _size_of_code(level: str) -> float:
    """Return the number that a level is; levels that are none come last."""
    try:
        return float(level)
    except ValueError:
        return np.inf


def _count_text(count: int, of: int) -> str:
    """Return a count and its share; small counts are not shown."""
    return f"under {FEWEST}" if 0 < count < FEWEST else f"{count:,} ({written(count / max(of, 1), 'share')})"


def _median(time: float, unit: str) -> str:
    return "not reached" if np.isnan(time) else moment(time, unit)


def _curves(evidence: Evidence, attribute: Attribute | None) -> Table:
    """Return the observed curves of all groups while five patients are at risk; of a cause, Aalen-Johansen's."""
    groups = _members(evidence, attribute)
    if len(groups) > 1:
        groups.pop(ALL)
    rows, causes, since = [], evidence.causes, _since(evidence)
    what, label, start = "survival", "Kaplan-Meier survival", 1.0
    if causes is not None:
        what, label, start = "incidence", "Cumulative incidence", 0.0
    for name, members in groups.items():
        curve = KaplanMeier.of(_until_any_cause(evidence, members))
        share = curve.survival
        if causes is not None and evidence.cause is not None:
            share = aalen_johansen(causes.cause[members], causes.time[members], of=evidence.cause).incidence
        shown = np.flatnonzero(curve.at_risk >= FEWEST)
        if evidence.sample is not evidence and len(shown) > _MOST_POINTS:
            # Of very many patients; the chart is not as wide as so many points.
            shown = shown[np.linspace(0, len(shown) - 1, _MOST_POINTS).astype(np.intp)]
        rows.append({"group": name, "time": 0.0, what: start, "at_risk": int(members.sum())})
        for at in shown:
            reached = {"time": plain(curve.times[at]), what: plain(share[at])}
            rows.append({"group": name, **reached, "at_risk": int(curve.at_risk[at])})
    unit = f" ({evidence.time_unit})" if evidence.time_unit else ""
    columns = (
        Column("group", "Group"),
        Column("time", f"Time{since}{unit}", "time"),
        Column(what, label, "share"),
        Column("at_risk", "At risk", "count"),
    )
    key = "kaplan_meier" if attribute is None else f"kaplan_meier {attribute.name}"
    by = "" if attribute is None else f" by {evidence.audited.headings[attribute.name]}"
    notes = () if attribute is None else _log_rank(evidence, groups)
    of = "" if causes is None else f" of {evidence.event_name}"
    return Table(key, f"Observed {what}{since}{of}{by}", columns, tuple(rows), notes)


def _log_rank(evidence: Evidence, groups: Mapping[str, BoolArray]) -> tuple[str, ...]:
    """Return the log-rank test of the groups in words; nothing where some rows may be alike."""
    if evidence.rows.cluster_codes is not None or len(groups) < 2:
        return ()
    label, inside = np.full(len(evidence.target), -1), np.zeros(len(evidence.target), dtype=bool)
    for k, members in enumerate(groups.values()):
        label[members], inside = k, inside | members
    target, same = evidence.target, f"survival{_since(evidence)}"
    if evidence.causes is not None and evidence.cause is not None:
        target = evidence.causes.of_cause(evidence.cause)
        same = f"hazard of {evidence.event}, with other causes counted as censored"
    test = log_rank_test(target.take(inside).to_structured(), label[inside])
    if np.isnan(test.p):
        return ()
    return (
        f"Log-rank test that all groups have the same {same}: {p_text(test.p)} (chi-square {test.chi_square:.2f}, "
        f"{counted(test.degrees, 'degree')} of freedom).",
    )


def draw(part: Part) -> list[tuple[Table, Chart, Table, Table]]:
    """Return, for every attribute: characteristics, chart of curves, numbers at risk, and the curves as a table."""
    pairs = zip(part.tables[::2], part.tables[1::2], strict=True)
    unit, since = part.facts["time_unit"], part.facts["since"]
    return [(patients, *_chart(curves, unit, since), curves) for patients, curves in pairs]


def _chart(curves: Table, unit: str, since: str) -> tuple[Chart, Table]:
    by_group = {str(name): list(rows) for name, rows in groupby(curves.rows, key=lambda row: row["group"])}
    times = [row["time"] for row in curves.rows]
    title = f"{unit or 'time'}{since}"
    x = Axis.over(title, times, kind="time", count=_TIMES_AT_RISK, include=(0.0,), margin=0.0)
    what = "survival" if "survival" in curves.rows[0] else "incidence"
    y = Axis.over("free of the event", [], kind="share", count=4, include=(0.0, 1.0))
    if what == "incidence":
        # Of a rare cause, curves to 100 % would be flat.
        shares = [row[what] for row in curves.rows]
        y = Axis.over("cumulative incidence", shares, kind="share", count=4, include=(0.0,))
    largest = sorted(by_group, key=lambda name: -by_group[name][0]["at_risk"])[:_MOST_CURVES]
    drawn = {name: rows for name, rows in by_group.items() if name in largest}
    left_out = [name for name in by_group if name not in drawn]
    notes = (f"Not drawn, because they are the smallest groups: {listing(left_out)}.",) if left_out else ()
    chart = Chart(
        curves.caption,
        f"Observed {'curve' if len(drawn) == 1 else 'curves'} of {listing([*drawn])}; the table below has the "
        "numbers at risk.",
        Frame(x, y, width=640, height=336, left=64, top=32, bottom=52),
        lines=tuple(
            Line(steps([(row["time"], row[what]) for row in rows]), f"group-{k}", name)
            for k, (name, rows) in enumerate(drawn.items(), start=1)
        ),
        marks=tuple(
            Mark(
                row["time"],
                row[what],
                f"{name}, {moment(row['time'], unit)}: {written(row[what], 'share')}, {row['at_risk']:,} at risk",
            )
            for name, rows in drawn.items()
            for row in rows[:: max(1, len(rows) // 12)]
        ),
        nearest="point",
    )
    # Just before the time of a tick; None if fewer than five.
    at_risk = [
        {"group": name}
        | {t.label: next((row["at_risk"] for row in rows if row["time"] >= t.value), None) for t in x.ticks}
        for name, rows in drawn.items()
    ]
    columns = (Column("group", "Group"), *(Column(tick.label, tick.label, "count") for tick in x.ticks))
    return chart, Table("at_risk", "Number at risk", columns, tuple(at_risk), notes)


SECTION = Section(
    key="patients",
    heading="Patients",
    place=15,
    collect=collect,
    draw=draw,
    intro="""
<p>Who was audited, group by group{% if "Training" in part.tables[0].header %}, beside the training patients{% endif %}.
Follow-up is the median time to censoring (reverse Kaplan-Meier). Curves are shown while at least five patients are at
risk; the log-rank test is about the patients, not about the model. Counts from 1 to 4 are written as “under 5”; they
may follow from other numbers of this page, which is not anonymous.</p>
""",
    template="""
{% for patients, chart, at_risk, curves in drawn %}
{% if loop.first %}
{{ m.plain_table(patients) }}
{% if part.facts.note %}<p class="aside">{{ part.facts.note }}</p>{% endif %}
{% else %}
{{ m.folded(patients) }}
{% endif %}
{{ m.chart(chart) }}
{{ m.risk_table(at_risk, chart.frame) }}
{% for note in curves.notes %}<p class="aside">{{ note }}</p>{% endfor %}
{{ m.downloads(curves) }}
{% endfor %}
""",
)
