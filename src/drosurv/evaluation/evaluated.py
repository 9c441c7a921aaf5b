"""The tables of an evaluation, which every view of it reads."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from drosurv.evaluation.control import ShrinkageControl
from drosurv.evaluation.rows import Kind, Row
from drosurv.evaluation.summary import HARM_METRICS
from drosurv.presentation import Statement

if TYPE_CHECKING:
    import pandas as pd


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
        return self.horizons[len(self.horizons) // 2]


@dataclass(frozen=True, eq=False)
class Evaluated:
    """The tables of an evaluation; :class:`EvaluationResult` describes them and adds sentences and pictures."""

    rows: tuple[Row, ...]
    calibration: pd.DataFrame
    d_calibration: pd.DataFrame
    survival: pd.DataFrame
    cross_group: pd.DataFrame
    control: ShrinkageControl | None
    notes: tuple[str, ...]
    settings: Settings
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
            ``status`` ("ok", "small group" or "undefined"). A gap's ``p_adjusted``, ``low_adjusted`` and
            ``high_adjusted`` allow for all attributes in which the metric was compared.
        """
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])

    @property
    def attributes(self) -> tuple[str, ...]:
        """Attributes that groups are shown of."""
        return tuple(dict.fromkeys(row.attribute for row in self.rows if row.kind == "group"))

    @property
    def harm(self) -> pd.DataFrame:
        """Is anybody worse served than by no model: Brier skill and likelihood gain, with a verdict.

        ``verdict`` is "harmed" if the whole interval is below 0, "served" if it is above, else "unclear".
        """
        import pandas as pd

        found = [row for row in self.rows if row.metric in HARM_METRICS and row.kind != "gap"]
        return pd.DataFrame([{**asdict(row), "verdict": row.verdict} for row in found])

    def select(
        self, *, metric: str | None = None, attribute: str | None = None, kind: Kind | None = None
    ) -> list[Row]:
        """Rows of the given metric, attribute and kind, in the order of the table."""
        wanted = (("metric", metric), ("attribute", attribute), ("kind", kind))
        return [
            row
            for row in self.rows
            if all(value is None or getattr(row, field) == value for field, value in wanted)
        ]

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
