"""What an evaluation found, as readers want it: sentences, tables, plots and files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from drosurv.evaluation import plots
from drosurv.evaluation.attributes import whose
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.evaluated import Evaluated
from drosurv.evaluation.shown_tables import document
from drosurv.evaluation.summary import HARM_METRICS, harm_records, statements
from drosurv.presentation import Column, Statement, Table, plain

_TABLES = ("groups", "harm", "calibration", "d_calibration", "survival", "cross_group")


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationResult(Evaluated):
    """Every metric of one model on one set of patients.

    Attributes
    ----------
    rows : tuple of Row
        One per number; :meth:`to_frame` is their table.
    groups : DataFrame
        The group table: one row for everybody, then one per group, the most worrying first. ``patients``; ``observed``
        and ``expected`` events and their ``ratio`` with ``ratio_low``, ``ratio_high`` and ``ratio_p``; at the
        ``horizon``, ``survival_observed`` (Kaplan-Meier) and ``survival_predicted``; ``c_index``, which decides nothing;
        ``gain`` in log likelihood per patient over no model and ``gain_over_cox`` over plain Cox, with ``_low``,
        ``_high`` and ``_p``; whether the group was ``judged``, or ``why`` not; and the ``concern``: "calibration",
        "worse than no model" or "". Intervals and p-values of the ratio and the gains are adjusted together for all of
        them in the table.
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
        Gaps between the groups that are large enough to be judged, which the sentences speak of. Their p-values count
        the patients of these groups alone, also where a group's value (as of the concordance imparity) counts pairs
        with everybody.
    said : tuple of Statement
        Findings about the model itself: hazards that are not proportional.
    by_cause : DataFrame, optional
        Of a model of competing causes: the table of :func:`drosurv.estimators.competing.evaluate_by_cause`.
    """

    @property
    def harm(self) -> pd.DataFrame:
        """Is anybody worse served than by no model: Brier skill and likelihood gain, with a verdict.

        ``verdict`` is "harmed" if the whole interval is below 0, "served" if it is above, else "unclear". Of groups it
        is the interval ``low_adjusted`` to ``high_adjusted``, which allows for all groups; small ones stay "unclear".
        """
        return pd.DataFrame(harm_records(self))

    def statements(self, *, reference: str | None = None, time_unit: str = "") -> tuple[Statement, ...]:
        """What the numbers say, one finding each, with codes for programs.

        The reference model may be called otherwise than in the settings; `time_unit` is what times count: "days".
        """
        return (*statements(self, reference or self.settings.reference, time_unit), *self.said)

    def summary(self, *, time_unit: str = "") -> str:
        """Who is served worst, by how much, and whether that is noise, in plain sentences.

        The `time_unit` is what times count, such as "days".
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
