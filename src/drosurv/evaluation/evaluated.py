"""What an evaluation found: every number, and how to pick some of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd

from drosurv.evaluation.attributes import text_of
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.control import ShrinkageControl
from drosurv.evaluation.rows import JUDGED_GAPS, Kind, Row
from drosurv.presentation import Statement, headings, plain

_ENDS = {"value": "", "low": "_low", "high": "_high"}


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
    horizon: float


@dataclass(frozen=True, eq=False, repr=False)
class Evaluated:
    """Numbers and tables of one model on one set of patients; :class:`EvaluationResult` explains the fields."""

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
    groups: pd.DataFrame = field(default_factory=pd.DataFrame)

    def to_frame(self) -> pd.DataFrame:
        """The tidy table, one row per number.

        Its columns are ``attribute`` and ``group`` ("overall" and "all" for everybody; a gap names the two groups, the
        higher value first), ``metric``, ``kind`` ("overall", "group" or "gap"), ``better`` (which values are good),
        ``value`` with the interval ``low`` to ``high`` and its ``standard_error``, ``p_value`` of "no gap" and the
        ``test`` it comes from, patients ``n``, ``events``, ``censoring`` and ``status`` ("ok", "small group" or
        "undefined"; of a gap, "small group" if one of the two that differ most is small). A gap's ``p_adjusted``,
        ``low_adjusted`` and ``high_adjusted`` allow for all attributes in which the metric was compared.
        """
        return pd.DataFrame([asdict(row) for row in self.rows])

    @property
    def attributes(self) -> tuple[str, ...]:
        """Attributes that groups are shown of."""
        return tuple(dict.fromkeys(row.attribute for row in self.rows if row.kind == "group"))

    @property
    def headings(self) -> dict[str, str]:
        """What each of these attributes is called."""
        groups: dict[str, list[str]] = {}
        for row in self.select(kind="group"):
            groups.setdefault(row.attribute, []).append(row.group)
        return headings(groups)

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
        """One number of the table: a metric of everybody ("overall"), or of a group of an attribute.

        Without a group, the gap between those of the attribute.
        """
        rows = self.select(metric=metric, attribute=attribute)
        rows = [
            row for row in rows if (row.kind != "group" if group is None else row.group == text_of(group))
        ]
        if len(rows) != 1:
            raise KeyError(
                f"{len(rows)} numbers are called metric={metric!r}, attribute={attribute!r}, group={group!r}; "
                f"metrics: {sorted({row.metric for row in self.rows})}; "
                f"attributes: {['overall', *self.attributes]}."
            )
        return rows[0].value

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
