"""Competing causes one by one: incidence, calibration, ranking, and what censoring the others would claim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from drosurv.audit.evidence import FEWEST, Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.evaluation.attributes import EVERYONE, whose
from drosurv.evaluation.by_cause import judged_by_cause
from drosurv.evaluation.views import named, time_column
from drosurv.presentation import Column, Statement, Table, headings, moment, plain_rows, written


def collect(evidence: Evidence) -> Part | None:
    """The table of causes, and sentences; nothing for a model of one event."""
    found: pd.DataFrame | None = evidence.also.get("causes")
    if found is None:
        return None
    found = found[found["patients"] >= FEWEST]
    called = headings({str(name): [*own] for name, own in found.groupby("attribute")["group"]})
    table = Table(
        "causes",
        "Cumulative incidence by cause and group: predicted, and observed (Aalen-Johansen)",
        (
            Column("cause", "Cause", "count"),
            Column("group", "Group"),
            Column("attribute", "Attribute"),
            time_column("horizon", evidence.time_unit),
            Column("predicted", "Predicted", "share"),
            Column("observed", "Observed", "share", ("low", "high")),
            Column("others_censored", "If others counted as censored", "share"),
            Column("overstated", "Overstated by", "share"),
            Column("brier", "Brier score", "value"),
            Column("c_index", "c-index", "value"),
            Column("patients", "Patients", "count"),
            Column("events", "Events", "count"),
        ),
        tuple(named(row, called) for row in plain_rows(found)),
    )
    judged = judged_by_cause(found, evidence.level)
    return Part(statements=tuple(_said(judged, evidence.time_unit)), tables=(table,))


def _said(judged: pd.DataFrame, time_unit: str) -> Iterator[Statement]:
    """For each cause: where predictions fail, whom it ranks worst, whom censoring the others would misinform most."""
    for cause, rows in judged.groupby("cause"):
        at = moment(rows["horizon"].iloc[0], time_unit)
        for row in plain_rows(rows[rows["off"]]):
            yield Statement(
                "cause_calibration",
                f"Cause {cause}: {_who(row)} had it by {at} in {written(row['observed'], 'share')}, predicted were "
                f"{written(row['predicted'], 'share')}.",
                concern=True,
            )
        yield from _ranking(cause, rows[rows["attribute"] != EVERYONE])
        # Where follow-up is too short to tell, nothing is claimed.
        *others, most = [None, *plain_rows(rows[rows["overstated"].notna()].sort_values("overstated"))]
        if most is not None:
            yield Statement(
                "cause_censored",
                f"Cause {cause}: counting the other causes as censored would claim "
                f"{written(most['others_censored'], 'share')} by {at} for {_who(most)}, where "
                f"{written(most['observed'], 'share')} had it"
                f"{': no other group is misinformed as much' if len(others) > 1 else ''}.",
            )


def _ranking(cause: Any, groups: pd.DataFrame) -> Iterator[Statement]:
    """The largest difference in ranking between two groups of one attribute."""
    ranked = groups[groups["c_index"].notna()].sort_values("c_index")
    gaps = ranked.groupby("attribute")["c_index"].agg(lambda values: values.max() - values.min())
    if len(gaps) and gaps.max() > 0:
        own = plain_rows(ranked[ranked["attribute"] == gaps.idxmax()])
        yield Statement(
            "cause_ranking",
            f"Cause {cause}: the c-index is lowest for {_who(own[0])}, {written(own[0]['c_index'])}, against "
            f"{written(own[-1]['c_index'])} for {_who(own[-1])}. Whether it is chance was not tested.",
        )


def _who(row: dict[str, Any]) -> str:
    return whose(row["attribute"], row["group"])


SECTION = Section(
    key="causes",
    heading="Cause by cause",
    place=35,
    collect=collect,
    intro="""
<p>The rest of this report is about an event of any cause. Here each cause stands by itself, with the others as what
they are: events after which it can no longer happen.</p>
""",
)
