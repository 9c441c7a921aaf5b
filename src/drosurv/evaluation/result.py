"""What an evaluation found: tables first, and views of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv.evaluation import plots
from drosurv.evaluation.catalogue import label_of
from drosurv.evaluation.evaluated import Evaluated
from drosurv.evaluation.markdown import document
from drosurv.evaluation.summary import HARM_METRICS, statements
from drosurv.presentation import Column, Statement, Table, group_name, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_ENDS = {"value": "", "low": "_low", "high": "_high"}


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationResult(Evaluated):
    """Every metric of one model on one set of patients.

    Attributes
    ----------
    rows : tuple of Row
        One per number; :meth:`to_frame` is their table.
    calibration : DataFrame
        Kaplan-Meier against mean predicted survival by attribute, group and horizon.
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
    said : tuple of Statement
        Findings about the model itself: hazards that are not proportional.
    by_cause : DataFrame, optional
        Of a model of competing causes: the table of :func:`drosurv.competing.evaluate_by_cause`.
    """

    def statements(self, *, reference: str | None = None, time_unit: str = "") -> tuple[Statement, ...]:
        """What the numbers say, one finding each, with codes for programs.

        Parameters
        ----------
        reference : str, optional
            What the reference model is called.
        time_unit : str
            What times count, such as "days".
        """
        found = statements(
            self.rows,
            self.calibration,
            self.control,
            level=self.settings.level,
            horizon=self.settings.horizon,
            reference=reference or self.settings.reference,
            time_unit=time_unit,
        )
        return (*found, *self.said)

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

    def to_table(self) -> Table:
        """Who is served how well: c-index and, with curves, gains over no model, of everybody and of every group."""
        wanted = [name for name in ("concordance_index", *HARM_METRICS) if self.select(metric=name)]
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for row in self.rows:
            if row.kind != "gap" and row.metric in wanted:
                who = "all patients" if row.kind == "overall" else group_name(row.attribute, row.group)
                found = rows.setdefault(
                    (row.attribute, row.group), {"who": who, "patients": row.n, "events": row.events}
                )
                found |= {f"{row.metric}{end}": plain(getattr(row, name)) for name, end in _ENDS.items()}
        columns = (
            Column("who", "group"),
            Column("patients", "patients", "count"),
            Column("events", "events", "count"),
            *(Column(name, label_of(name), "value", (f"{name}_low", f"{name}_high")) for name in wanted),
        )
        caption = f"Evaluation of {self.settings.model}; summary() says it in words"
        return Table("evaluation", caption, columns, tuple(rows.values()))

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
            "harm": _records(self.harm),
            "calibration": _records(self.calibration),
            "d_calibration": _records(self.d_calibration),
            "survival": _records(self.survival),
            "cross_group": _records(self.cross_group),
            "control": control,
            **({} if self.by_cause is None else {"by_cause": _records(self.by_cause)}),
            "notes": list(self.notes),
            "summary": self.summary().split("\n"),
        }

    def plot_groups(self, metric: str = "concordance_index", *, ax: Axes | None = None) -> Axes:
        """Forest plot: a metric of every group with its interval. `metric` is one that groups have."""
        return plots.groups_plot(self, metric, ax=ax)

    def plot_calibration(
        self, attribute: str = "overall", *, horizon: float | None = None, ax: Axes | None = None
    ) -> Axes:
        """Observed against predicted survival of an attribute's groups, at every horizon or one."""
        return plots.calibration_plot(self, attribute, horizon=horizon, ax=ax)

    def plot_survival(self, attribute: str = "overall", *, ax: Axes | None = None) -> Axes:
        """Mean predicted survival of an attribute's groups against Kaplan-Meier."""
        return plots.survival_plot(self, attribute, ax=ax)

    def plot_control(
        self, metric: str = "individual_disparity", attribute: str = "overall", *, ax: Axes | None = None
    ) -> Axes:
        """A disparity against the likelihood gain, beside the curve of shrunken Cox."""
        return plots.control_plot(self, metric, attribute, ax=ax)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dicts of plain Python values; NaN and infinite numbers are None."""

    def plain(value: Any) -> Any:
        value = value.item() if isinstance(value, np.generic) else value
        return None if isinstance(value, float) and not np.isfinite(value) else value

    return [{str(k): plain(v) for k, v in row.items()} for row in table.to_dict("records")]
