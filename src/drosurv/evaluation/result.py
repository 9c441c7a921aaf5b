"""The result of an evaluation: one table of numbers, and sentences, tables, plots and files made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.evaluation import plots
from drosurv.evaluation.calibration_curves import CalibrationCurves
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.curves_by_group import shrunken_ratios
from drosurv.evaluation.evaluator import text_of
from drosurv.evaluation.group_table import Kind, Row, rows_in
from drosurv.evaluation.result_views import document, statements
from drosurv.evaluation.risks_by_time import no_risks
from drosurv.judging.group_picture import GroupPicture, picture_of
from drosurv.judging.verdict import FindingRow, Judgement, judge, to_frame
from drosurv.judging.words import who
from drosurv.paper.shrinkage import ShrinkageControl
from drosurv.patients.groups import EVERYONE
from drosurv.patients.target import IntArray
from drosurv.presentation import (
    Column,
    Statement,
    Table,
    headings,
    in_years,
    listing,
    moment,
    plain,
    plain_rows,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ENDS = {"value": "", "low": "_low", "high": "_high"}
_TABLES = (
    *("findings", "times", "groups", "decision_curves", "shrunken"),
    *("calibration", "d_calibration", "survival", "cross_group"),
)


@dataclass(frozen=True)
class Settings:
    """Arguments of :func:`~drosurv.evaluation.evaluate`, whether a patient has several events, and the event in words.

    `other_events` is the number of patients who had an event of another cause than the one that is evaluated, and
    `rows` that of the rows of the table, of which a patient may have several; `clusters` is the number of clusters that
    were given, 0 without, and `clusters_name` the name of their column. `since` says from when times of patients who
    entered late count, or who of them is judged. Findings are adjusted for `n_tests` tests
    (see :mod:`drosurv.judging.adjustment`); the number of events of everybody as by Bonferroni's method for
    `as_many_tests`.
    """

    model: str
    reference: str
    level: float
    horizons: tuple[float, ...]
    horizon: float
    threshold: float | None = None
    n_tests: int = 0
    as_many_tests: float = 1.0
    time_unit: str = ""
    several_events: bool = False
    event: str = "the event"
    other_events: int = 0
    rows: int = 0
    clusters: int = 0
    clusters_name: str = ""
    since: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationResult:
    """Every metric of one model on one set of patients.

    Attributes
    ----------
    table : DataFrame
        Every number, one row each; see :meth:`to_frame`.
    found : tuple of FindingRow
        What was found, the most serious first; everything that is said about the model reads these records.
    findings : DataFrame
        The same as a table. ``status`` (docs/guide/verdict.md), ``question`` ("level", "timing", "slope", "gain", "gain
        over reference", "above threshold", "below threshold", "ranking"), ``attribute`` and ``group`` ("overall" and
        "all" for everybody), ``time``, ``value`` with ``low``, ``high`` and ``p``, adjusted together for all
        ``settings.n_tests`` tests, and ``text``, a sentence.
    groups : DataFrame
        The group table: one row for everybody, then one per group, serious problems first. ``patients``; ``observed``
        and ``expected`` events and their ``ratio``, of predictions at few times by the last of them, weighted for
        censoring (docs/guide/verdict.md); the calibration ``slope``; at the ``horizon``, ``survival_observed`` and
        ``survival_predicted``, one less the risks in :attr:`times`; ``c_index``, which decides nothing; ``gain`` in log
        likelihood per patient over one curve for everybody and ``gain_over_reference``; whether the group was
        ``judged``, or ``why`` not; and the most serious ``status`` of its findings. Ratio, slope and gains are those of
        the findings, with ``_low``, ``_high`` and ``_p``.
    d_calibration : DataFrame
        Share of patients in each tenth of predicted survival at the event, by attribute and group.
    survival : DataFrame
        Mean predicted survival and the plain Kaplan-Meier curve over time, by attribute and group. The curve assumes
        that censoring has nothing to do with risk, which the observed risks of :attr:`times` and `calibration` do not.
    cross_group : DataFrame
        Concordance of pairs between groups, by the group of the patient with the earlier event and that of the other.
    control : ShrinkageControl, optional
        The "Cox x c" curve and its point of equal likelihood gain; None without a reference, and if the paper's metrics
        were not asked for.
    notes : tuple of str
        What was left out, and why.
    not_judged, not_compared : str
        The notes on patients who are not judged, and on why there is no reference; empty if there are none.
    design_effects : mapping of str to float
        How many times larger the variance of observed events is than that of independent patients, if patients are in
        clusters: of everybody ("overall"), and of the groups of each attribute.
    settings : Settings
        Arguments of the evaluation.
    between_large : DataFrame
        Gaps between the groups that are large enough to be judged; columns as in `table`.
    by_cause : DataFrame, optional
        For a model of competing causes: the table of :func:`drosurv.evaluation.evaluate_by_cause`.
    subgroups : mapping of str to array
        Rows of the patients of the subgroups that were given, by name.
    hazards, risks, curves, calibrated : callable
        Compute, when asked for, the statements on effects that change with time, the table :attr:`times` (with more
        subgroups, by their rows), decision and calibration curves, and the table :attr:`calibration`.
    """

    table: pd.DataFrame
    found: tuple[FindingRow, ...]
    groups: pd.DataFrame
    d_calibration: pd.DataFrame
    survival: pd.DataFrame
    cross_group: pd.DataFrame
    control: ShrinkageControl | None
    notes: tuple[str, ...]
    settings: Settings
    between_large: pd.DataFrame
    hazards: Callable[[], tuple[Statement, ...]] = tuple
    by_cause: pd.DataFrame | None = None
    curves: Callable[[], dict[str, Any]] = dict
    calibrated: Callable[[], pd.DataFrame] = pd.DataFrame
    subgroups: Mapping[str, IntArray] = field(default_factory=dict)
    risks: Callable[..., pd.DataFrame] = no_risks
    not_judged: str = ""
    not_compared: str = ""
    design_effects: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def findings(self) -> pd.DataFrame:
        """What was found, as a table."""
        return to_frame(self.found)

    def to_frame(self) -> pd.DataFrame:
        """Return the tidy table, one row per number.

        Its columns are ``attribute`` and ``group`` ("overall" and "all" for everybody; a gap names the two groups, the
        higher value first), ``metric``, ``kind`` ("overall", "group" or "gap"), ``better`` (which values are good),
        ``value`` with the interval ``low`` to ``high`` and its ``standard_error``, ``p`` of "no gap", ``patients``,
        ``events``, ``censoring``, ``status`` ("ok", "small group" or "undefined"; a gap is "small group" if one of the
        two groups that differ most is small), and whether the interval is ``adjusted``. A gap is tested if all groups
        are large enough and the metric does not depend on how long they were followed; `between_large` has the gaps
        between large groups. Interval and p-value of a gap are adjusted for all attributes in which the metric was
        compared. Likelihood gain and calibration slope of all patients and of groups that are judged have the number
        and interval of `findings` and `groups`, adjusted for all tests.
        """
        return self.table

    @cached_property
    def calibration(self) -> pd.DataFrame:
        """Mean ``predicted`` and ``observed`` survival by attribute, group and ``horizon``: one less :attr:`times`.

        ``low`` and ``high`` are the interval of the observed one, and the ``difference`` has its own.
        """
        return self.calibrated()

    @cached_property
    def _drawn(self) -> dict[str, Any]:
        return self.curves()

    @property
    def decision_curves(self) -> pd.DataFrame:
        """Net benefit of treating patients whose predicted risk at the horizon is at least a threshold.

        Columns are ``attribute``, ``group``, ``threshold``, ``net_benefit`` with a band ``low`` to ``high`` that
        contains the whole curve of a group, net benefit of treating everybody (``treat_all``) and nobody
        (``treat_none``), and ``avoided_per_100``, how many fewer of 100 patients are treated than if everybody is, at
        the same benefit. Empty without curves.
        """
        found: pd.DataFrame | None = self._drawn.get("decision_curves")
        return pd.DataFrame() if found is None else found

    @property
    def decisions(self) -> pd.DataFrame | None:
        """Measures of decisions at the threshold, by group, and their largest differences; None without a threshold.

        Columns are ``attribute``, ``group`` ("gap" for the difference), ``metric`` (sensitivity, specificity, ppv, npv,
        net_benefit), ``value`` with ``low`` and ``high``, what right predictions imply (``predicted``), ``patients``,
        ``positives`` (those treated), and the ``reason`` why a value is not known. Outcomes are weighted for censoring
        as in ``decision_curves``, whose net benefit is the same; that of R's dcurves, which uses Kaplan-Meier among the
        treated, differs slightly (:func:`drosurv.metrics.decisions`).
        """
        return None if self.settings.threshold is None else self._drawn.get("decisions")

    @property
    def calibration_curves(self) -> CalibrationCurves | None:
        """Observed against predicted risk at the horizon, with numbers and histograms; None without curves."""
        return self._drawn.get("calibration_curves")

    @cached_property
    def shrunken(self) -> pd.DataFrame:
        """Shrunken ratios of observed to expected events, for attributes with more than 8 groups, such as hospitals.

        Columns are ``observed`` and ``expected`` events, their ``ratio``, and the ratio ``shrunken`` towards the mean
        of all groups, with ``low`` and ``high``. The last row of an attribute, "a new one", is the prediction interval
        of a new group.
        """
        return shrunken_ratios(self.groups, self.settings.level, self.design_effects)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The rows of the table."""
        return rows_in(self.table)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Attributes whose groups are shown."""
        return tuple(dict.fromkeys(row.attribute for row in self.rows if row.kind == "group"))

    @property
    def headings(self) -> dict[str, str]:
        """Heading of each of these attributes."""
        groups: dict[str, list[str]] = {}
        for row in self.select(kind="group"):
            groups.setdefault(row.attribute, []).append(row.group)
        return headings(groups)

    def select(
        self, *, metric: str | None = None, attribute: str | None = None, kind: Kind | None = None
    ) -> list[Row]:
        """Return the rows of a metric, attribute and kind, in the order of the table."""
        return [
            row
            for row in self.rows
            if metric in (None, row.metric)
            and attribute in (None, row.attribute)
            and kind in (None, row.kind)
        ]

    def gaps(self, metric: str) -> list[Row]:
        """Return the gaps of a metric by attribute: between large groups, of the paper's metrics between all groups."""
        if CATALOGUE[metric].is_papers:
            return self.select(metric=metric, kind="gap")
        return [row for row in rows_in(self.between_large) if row.metric == metric]

    def value(self, metric: str, attribute: str = "overall", group: str | None = None) -> float:
        """Return one number of the table: a metric of everybody ("overall"), or of a group of an attribute.

        For an attribute without a group, return the gap between its groups.
        """
        rows = self.select(metric=metric, attribute=attribute)
        rows = [
            one for one in rows if (one.kind != "group" if group is None else one.group == text_of(group))
        ]
        if len(rows) != 1:
            raise KeyError(
                f"{len(rows)} numbers are called metric={metric!r}, attribute={attribute!r}, group={group!r}; "
                f"metrics: {sorted({row.metric for row in self.rows})}; "
                f"attributes: {['overall', *self.attributes]}."
            )
        return rows[0].value

    def group_records(self) -> list[dict[str, Any]]:
        """Return a record for everybody and for every group, with each metric and its interval (_low, _high)."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for row in self.rows:
            # Metrics of everybody, such as those of intersections, have no value for a group.
            if row.kind == "gap" or CATALOGUE[row.metric].of == "everybody":
                continue
            counts = {"patients": row.patients, "events": row.events, "censoring": plain(row.censoring)}
            called = {"attribute": row.attribute, "group": row.group}
            record = found.setdefault((row.attribute, row.group), {**called, **counts, "status": "ok"})
            if row.status == "small group" or record["status"] == "ok":
                record["status"] = row.status
            record |= {f"{row.metric}{end}": plain(getattr(row, name)) for name, end in _ENDS.items()}
        return list(found.values())

    def _of_groups(self, attribute: str | None) -> pd.DataFrame:
        """Return the metrics, one column each, of every group of an attribute; None is the only attribute."""
        known = self.attributes
        if attribute is None and len(known) == 1:
            attribute = known[0]
        if attribute not in known:
            raise ArgumentError.must("attribute", f"be one of {list(known)}", attribute)
        rows = self.table[(self.table["kind"] == "group") & (self.table["attribute"] == attribute)]
        by_group = rows.groupby("group", sort=False)
        found = {group: part.set_index("metric")["value"] for group, part in by_group}
        return pd.DataFrame(found).T.rename_axis(index="group", columns=None)

    @property
    def overall(self) -> pd.Series:
        """Metrics of everybody, by name; as in fairlearn's MetricFrame."""
        rows = self.table[self.table["kind"] == "overall"]
        return pd.Series(rows["value"].to_numpy(), index=rows["metric"].to_list())

    @property
    def by_group(self) -> pd.DataFrame:
        """Metrics of every group: attribute and group in the index, metrics in the columns."""
        found = {name: self._of_groups(name) for name in self.attributes}
        return pd.concat(found, names=["attribute", "group"]) if found else pd.DataFrame()

    def difference(
        self, attribute: str | None = None, method: Literal["between_groups", "to_overall"] = "between_groups"
    ) -> pd.Series:
        """Return the largest absolute difference of each metric between two groups, or ("to_overall") from everybody.

        The attribute may be left out if there is only one. For gaps with intervals and tests see `table`.
        """
        return compare_groups(self._of_groups(attribute), self.overall, method, "difference")

    def ratio(
        self, attribute: str | None = None, method: Literal["between_groups", "to_overall"] = "between_groups"
    ) -> pd.Series:
        """Return the smallest ratio, at most 1, of what :meth:`difference` compares; parameters as there."""
        return compare_groups(self._of_groups(attribute), self.overall, method, "ratio")

    @property
    def verdict(self) -> Judgement:
        """The verdict on the model: status, text, problems, and what to do next."""
        return judge(self.found, reference=self.settings.reference)

    def statements(self, *, reference: str | None = None) -> tuple[Statement, ...]:
        """Return the findings as statements with codes for programs; `reference` names the reference model in them."""
        return (*statements(self, reference or self.settings.reference), *self.hazards())

    def summary(self) -> str:
        """Return the findings in sentences: what was found for which group, and whether it may be chance."""
        found = [statement.text for statement in self.statements()]
        return "\n".join([*found, *(note[0].upper() + note[1:] for note in self.notes)])

    def to_table(self) -> Table:
        """Return a table of c-index and, with curves, Brier skill and likelihood gain, of everybody and every group."""
        wanted = [
            name
            for name in ("concordance_index", "brier_skill", "likelihood_gain")
            if self.select(metric=name)
        ]
        rows = [{**row, "who": who(row["attribute"], row["group"])} for row in self.group_records()]
        columns = (
            Column("who", "group"),
            Column("patients", "patients", "count"),
            Column("events", "events", "count"),
            *(Column.measured(name, CATALOGUE[name].label) for name in wanted),
        )
        caption = f"Evaluation of {self.settings.model}; summary() says it in words"
        of_tests = {"likelihood_gain": "the likelihood gain", "calibration_slope": "the calibration slope"}
        judged = [name for metric, name in of_tests.items() if metric in wanted and self.settings.n_tests > 0]
        tests = f"all {self.settings.n_tests:,} tests"
        notes = (f"Intervals of {listing(judged)} are adjusted for {tests}, others are not.",)
        return Table("evaluation", caption, columns, tuple(rows), notes if judged else ())

    def __repr__(self) -> str:
        return self.to_table().to_text()

    def _repr_html_(self) -> str:
        return self.to_table().to_html()

    def to_markdown(self) -> str:
        """Return the summary and all tables as Markdown."""
        return document(self, self.summary().split("\n"))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as lists, strings and numbers that JSON can hold; undefined numbers are None."""
        curves = self.calibration_curves
        control = self.control and {
            "factor": self.control.factor,
            "curve": _records(self.control.curve),
            "at_equal_gain": _records(self.control.at_equal_gain),
        }
        return {
            "settings": {**asdict(self.settings), "horizons": list(self.settings.horizons)},
            "metrics": _records(self.table),
            **{name: _records(getattr(self, name)) for name in _TABLES},
            "control": control,
            **(
                {}
                if curves is None
                else {"calibration_curves": {k: _records(v) for k, v in vars(curves).items()}}
            ),
            **({} if self.by_cause is None else {"by_cause": _records(self.by_cause)}),
            **({} if self.decisions is None else {"decisions": _records(self.decisions)}),
            "notes": list(self.notes),
            "summary": self.summary().split("\n"),
        }

    @property
    def last_judged(self) -> float | None:
        """Time by which events of predictions at few times are counted; None where curves are known throughout."""
        levels = (row.time for row in self.found if (row.attribute, row.question) == (EVERYONE, "level"))
        return next((time for time in levels if np.isfinite(time)), None)

    @cached_property
    def times(self) -> pd.DataFrame:
        """Predicted and observed risk by a few times, of everybody and each group.

        Columns are ``attribute``, ``group``, ``time``, ``patients``, mean ``predicted`` risk, ``observed`` risk with
        its interval ``low`` to ``high``, which is not adjusted, and the ``ratio`` of both with ``ratio_low`` and
        ``ratio_high``. The observed risk is Kaplan-Meier, with causes Aalen-Johansen, within strata of predicted risk,
        averaged over the same patients (:mod:`drosurv.metrics.risk_strata`). Patients whose stratum is not followed
        until the time are ``left_out``. Times are the predicted ones, or quarter points of the follow-up until which at
        most a tenth is left out, and the horizon. Empty without survival curves, and if patients have several events.
        """
        return self.risks(self.subgroups)

    def by_horizon(self, times: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the rows of the horizon of a table of times, by attribute and group."""
        rows = plain_rows(times[times["time"] == self.settings.horizon])
        return {(row["attribute"], row["group"]): row for row in rows}

    def counts(self, unit: str = "") -> str:
        """Say how many of 100 patients had the event by the horizon, and how many the model expected."""
        until = self.last_judged
        return self.picture_by(unit).counts(self.settings.event, "" if until is None else moment(until, unit))

    @property
    def picture(self) -> GroupPicture:
        """Observed over predicted risk of everybody and every group by the horizon, which :meth:`plot` draws."""
        return self.picture_by(self.settings.time_unit)

    def picture_by(self, unit: str) -> GroupPicture:
        """Return the picture, with times in a unit."""
        by = self.by_horizon(self.times), self.horizon_in_words(unit)
        return picture_of(plain_rows(self.groups), self.found, *by)

    def horizon_in_words(self, unit: str) -> str:
        """Return the horizon, also in years where its unit is known, and what it counts from if some entered late."""
        horizon, since = self.settings.horizon, self.settings.since
        return f"{moment(horizon, unit)}{in_years(horizon, unit)}{since}"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw observed over predicted risk of everybody and every group by the horizon, with intervals.

        Groups with a problem are red and come first; groups that are too small to be judged are grey.
        """
        return self.picture.plot(ax)

    plot_groups = plots.groups_plot
    plot_decision_curves = plots.decision_curves_plot
    plot_funnel = plots.funnel_plot
    plot_calibration = plots.calibration_plot
    plot_survival = plots.survival_plot
    plot_control = plots.control_plot


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as dicts of plain Python values; NaN and infinite numbers are None."""
    rows: list[dict[str, Any]] = plain(table.to_dict("records"), digits=None)
    return rows


def compare_groups(
    groups: pd.DataFrame,
    overall: pd.Series,
    method: Literal["between_groups", "to_overall"],
    how: Literal["difference", "ratio"],
) -> pd.Series:
    """Return the largest difference, or smallest ratio, of each metric (column) of groups (rows), or to overall."""
    if method not in ("between_groups", "to_overall"):
        raise ArgumentError.must("method", "be 'between_groups' or 'to_overall'", method)
    centre = overall[groups.columns.intersection(overall.index)]
    with np.errstate(divide="ignore", invalid="ignore"):
        if method == "between_groups":
            found = groups.max() - groups.min() if how == "difference" else groups.min() / groups.max()
            return found.where(groups.notna().sum() > 1)
        if how == "difference":
            return (groups - centre).abs().max()
        ratios = groups / centre
        return ratios.where(ratios <= 1, 1 / ratios).min()
