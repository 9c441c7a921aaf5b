"""What an evaluation found: tables first, and views of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from drosurv.evaluation import plots
from drosurv.evaluation.attributes import whose
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.control import ShrinkageControl
from drosurv.evaluation.markdown import document
from drosurv.evaluation.patients import middle
from drosurv.evaluation.rows import JUDGED_GAPS, Kind, Row
from drosurv.evaluation.summary import HARM_METRICS, harm_records, statements
from drosurv.presentation import Column, Statement, Table, plain

_ENDS = {"value": "", "low": "_low", "high": "_high"}
_TABLES = ("harm", "calibration", "d_calibration", "survival", "cross_group")


@dataclass(frozen=True)
class Settings:
    """How an evaluation was made; as in :func:`~drosurv.evaluation.evaluate`."""

    model: str
    reference: str
    n_bootstrap: int
    n_permutations: int
    level: float
    convention: str
    missing: str
    horizons: tuple[float, ...]

    @property
    def horizon(self) -> float:
        """The middle horizon, where metrics of one horizon are taken."""
        return middle(self.horizons)


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationResult:
    """Every metric of one model on one set of patients.

    Attributes
    ----------
    rows : tuple of Row
        One per number; :meth:`to_frame` is their table.
    calibration : DataFrame
        Kaplan-Meier against mean predicted survival by attribute, group and horizon, and the bootstrap interval of the
        difference.
    d_calibration : DataFrame
        Share of patients in each tenth of predicted survival at the event, by attribute and group.
    survival : DataFrame
        Mean predicted survival and Kaplan-Meier over time, by attribute and group.
    cross_group : DataFrame
        Concordance of pairs between groups: who had the event first, against whom.
    control : ShrinkageControl, optional
        The "Cox x c" curve and its point of equal likelihood gain; None without a reference.
    notes : tuple of str
        What was left out, and why.
    settings : Settings
        How the evaluation was made.
    between_large : tuple of Row
        Gaps between the groups that are large enough to be judged, which the sentences speak of.
    said : tuple of Statement
        Findings about the model itself: hazards that are not proportional.
    by_cause : DataFrame, optional
        Of a model of competing causes: the table of :func:`drosurv.competing.evaluate_by_cause`.
    """

    rows: tuple[Row, ...]
    calibration: pd.DataFrame
    d_calibration: pd.DataFrame
    survival: pd.DataFrame
    cross_group: pd.DataFrame
    control: ShrinkageControl | None
    notes: tuple[str, ...]
    settings: Settings
    between_large: tuple[Row, ...] = ()
    said: tuple[Statement, ...] = ()
    by_cause: pd.DataFrame | None = None

    def to_frame(self) -> pd.DataFrame:
        """The tidy table, one row per number.

        Returns
        -------
        DataFrame
            ``attribute`` and ``group`` ("overall" and "all" for everybody; a gap names the two groups, the
            higher value first), ``metric``, ``kind`` ("overall", "group" or "gap"), ``better`` (which values
            are good), ``value`` with the interval ``low`` to ``high`` and its ``standard_error``, ``p_value``
            of "no gap" and the ``test`` it comes from, patients ``n``, ``events``, ``censoring`` and
            ``status`` ("ok", "small group" or "undefined"; of a gap, "small group" if one of the two that differ
            most is small). A gap's ``p_adjusted``, ``low_adjusted`` and
            ``high_adjusted`` allow for all attributes in which the metric was compared.
        """
        return pd.DataFrame([asdict(row) for row in self.rows])

    @property
    def attributes(self) -> tuple[str, ...]:
        """Attributes that groups are shown of."""
        return tuple(dict.fromkeys(row.attribute for row in self.rows if row.kind == "group"))

    @property
    def harm(self) -> pd.DataFrame:
        """Is anybody worse served than by no model: Brier skill and likelihood gain, with a verdict.

        ``verdict`` is "harmed" if the whole interval is below 0, "served" if it is above, else "unclear". Of groups it
        is the interval ``low_adjusted`` to ``high_adjusted``, which allows for all groups; small ones stay "unclear".
        """
        return pd.DataFrame(harm_records(self))

    @property
    def small_groups(self) -> tuple[tuple[str, str], ...]:
        """Attribute and label of the groups that are too small to be judged."""
        found = (row for row in self.select(kind="group") if row.status == "small group")
        return tuple(dict.fromkeys((row.attribute, row.group) for row in found))

    def select(
        self, *, metric: str | None = None, attribute: str | None = None, kind: Kind | None = None
    ) -> list[Row]:
        """Rows of the given metric, attribute and kind, in the order of the table."""
        return [
            row
            for row in self.rows
            if metric in (None, row.metric)
            and attribute in (None, row.attribute)
            and kind in (None, row.kind)
        ]

    def gaps(self, metric: str) -> list[Row]:
        """Gaps of a metric, by attribute; of how well groups are served, between those large enough to be judged."""
        if metric in JUDGED_GAPS:
            return [row for row in self.between_large if row.metric == metric]
        return self.select(metric=metric, kind="gap")

    def value(self, metric: str, attribute: str = "overall", group: str | None = None) -> float:
        """One number of the table.

        Parameters
        ----------
        metric : str
            Which metric.
        attribute : str
            "overall", or an attribute.
        group : str, optional
            One of its groups; by default everybody, or the gap between the attribute's groups.
        """
        rows = self.select(metric=metric, attribute=attribute)
        rows = [row for row in rows if (row.kind != "group" if group is None else row.group == str(group))]
        if len(rows) != 1:
            raise KeyError(
                f"{len(rows)} numbers are called metric={metric!r}, attribute={attribute!r}, group={group!r}; "
                f"metrics: {sorted({row.metric for row in self.rows})}; "
                f"attributes: {['overall', *self.attributes]}."
            )
        return rows[0].value

    def statements(self, *, reference: str | None = None, time_unit: str = "") -> tuple[Statement, ...]:
        """What the numbers say, one finding each, with codes for programs.

        Parameters
        ----------
        reference : str, optional
            What the reference model is called.
        time_unit : str
            What times count, such as "days".
        """
        return (*statements(self, reference or self.settings.reference, time_unit), *self.said)

    def summary(self, *, time_unit: str = "") -> str:
        """Who is served worst, by how much, and whether that is noise, in plain sentences.

        Parameters
        ----------
        time_unit : str
            What times count, such as "days".
        """
        found = [statement.text for statement in self.statements(time_unit=time_unit)]
        if not self.settings.n_bootstrap:
            found.append(
                "No intervals were computed (no bootstrap replicates), so noise cannot be told from difference."
            )
        return "\n".join([*found, *(note[0].upper() + note[1:] for note in self.notes)])

    def group_records(self) -> list[dict[str, Any]]:
        """Everybody and every group, a record each, its metrics side by side: the value, ends as _low and _high."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for row in self.rows:
            # What is of pairs of patients or of intersections is no group's.
            if row.kind == "gap" or CATALOGUE[row.metric].of == "everybody":
                continue
            counts = {"patients": row.n, "events": row.events, "censoring": plain(row.censoring)}
            who = {"attribute": row.attribute, "group": row.group}
            own = found.setdefault((row.attribute, row.group), {**who, **counts, "status": "ok"})
            if row.status == "small group" or own["status"] == "ok":
                own["status"] = row.status
            own |= {f"{row.metric}{end}": plain(getattr(row, name)) for name, end in _ENDS.items()}
        return list(found.values())

    def to_table(self) -> Table:
        """Who is served how well: c-index and, with curves, gains over no model, of everybody and of every group."""
        wanted = [name for name in ("concordance_index", *HARM_METRICS) if self.select(metric=name)]
        rows = self.group_records()
        for row in rows:
            row["who"] = whose(row["attribute"], row["group"], "all patients")
        columns = (
            Column("who", "group"),
            Column("patients", "patients", "count"),
            Column("events", "events", "count"),
            *(Column.measured(name, CATALOGUE[name].label) for name in wanted),
        )
        caption = f"Evaluation of {self.settings.model}; summary() says it in words"
        return Table("evaluation", caption, columns, tuple(rows))

    def __repr__(self) -> str:
        return self.to_table().to_text()

    def _repr_html_(self) -> str:
        return self.to_table().to_html()

    def to_markdown(self) -> str:
        """The summary and all tables as Markdown."""
        return document(self, self.summary().split("\n"))

    def to_dict(self) -> dict[str, Any]:
        """Everything as lists, strings and numbers that JSON can hold; what is undefined is None."""
        control = self.control and {
            "factor": self.control.factor,
            "curve": _records(self.control.curve),
            "at_equal_gain": _records(self.control.at_equal_gain),
        }
        return {
            "settings": {**asdict(self.settings), "horizons": list(self.settings.horizons)},
            "metrics": _records(self.to_frame()),
            **{name: _records(getattr(self, name)) for name in _TABLES},
            "control": control,
            **({} if self.by_cause is None else {"by_cause": _records(self.by_cause)}),
            "notes": list(self.notes),
            "summary": self.summary().split("\n"),
        }

    plot_groups = plots.groups_plot
    plot_calibration = plots.calibration_plot
    plot_survival = plots.survival_plot
    plot_control = plots.control_plot


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dicts of plain Python values; NaN and infinite numbers are None."""
    rows: list[dict[str, Any]] = plain(table.to_dict("records"), digits=None)
    return rows
