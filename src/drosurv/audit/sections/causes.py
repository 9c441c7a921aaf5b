"""Competing causes one by one: incidence, calibration, ranking, and what censoring the others would claim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from drosurv.audit.evidence import FEWEST, Evidence
from drosurv.audit.sections.section import Part, Section, named, time_column
from drosurv.evaluation.by_cause import EVERYBODY
from drosurv.evaluation.patients import middle
from drosurv.inference import widening
from drosurv.presentation import Column, Statement, Table, group_name, moment, plain_rows, written

if TYPE_CHECKING:
    import pandas as pd

# A group with fewer events of a cause says little of it.
_FEWEST_EVENTS = 10


def collect(evidence: Evidence) -> Part | None:
    """The table of causes, and sentences; nothing for a model of one event."""
    found: pd.DataFrame | None = evidence.also.get("causes")
    if found is None:
        return None
    found = found[found["patients"] >= FEWEST]
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
        tuple(row | named(row["attribute"], row["group"]) for row in plain_rows(found)),
    )
    return Part(statements=tuple(_said(found, evidence.time_unit, evidence.level)), tables=(table,))


def _said(found: pd.DataFrame, time_unit: str, level: float) -> Iterator[Statement]:
    """For each cause: where predictions fail, whom it ranks worst, whom censoring the others would misinform most."""
    horizon = middle(sorted(found["horizon"].unique()))
    at = moment(horizon, time_unit)
    judged = found[(found["horizon"] == horizon) & (found["events"] >= _FEWEST_EVENTS)]
    # Of so many intervals one misses by chance: wider ones hold together.
    wider = widening(level, len(judged))
    for cause, rows in judged.groupby("cause"):
        low, high = (rows["observed"] + wider * (rows[end] - rows["observed"]) for end in ("low", "high"))
        wrong = rows[(rows["predicted"] < low) | (rows["predicted"] > high)]
        for row in plain_rows(wrong):
            yield Statement(
                "cause_calibration",
                f"Cause {cause}: {_who(row)} had it by {at} in {written(row['observed'], 'share')}, predicted were "
                f"{written(row['predicted'], 'share')}.",
                concern=True,
            )
        groups = rows[(rows["attribute"] != EVERYBODY) & rows["c_index"].notna()]
        if groups["c_index"].min() < groups["c_index"].max():
            worst, best = (
                plain_rows(groups.loc[[place]])[0]
                for place in (groups["c_index"].idxmin(), groups["c_index"].idxmax())
            )
            yield Statement(
                "cause_ranking",
                f"Cause {cause}: the c-index is lowest for {_who(worst)}, {written(worst['c_index'])}, and highest for "
                f"{_who(best)}, {written(best['c_index'])}.",
            )
        most = plain_rows(rows.loc[[rows["overstated"].idxmax()]])[0]
        yield Statement(
            "cause_censored",
            f"Cause {cause}: counting the other causes as censored would claim "
            f"{written(most['others_censored'], 'share')} by {at} for {_who(most)}, where "
            f"{written(most['observed'], 'share')} had it: no other group is misinformed as much.",
        )


def _who(row: dict[str, Any]) -> str:
    return EVERYBODY if row["attribute"] == EVERYBODY else group_name(row["attribute"], row["group"])


SECTION = Section(
    key="causes",
    heading="Cause by cause",
    place=35,
    collect=collect,
    template="""
{% call m.section_head(section) %}
<p>The rest of this report is about an event of any cause. Here each cause stands by itself, with the others as what
they are: events after which it can no longer happen.</p>
{% endcall %}
<div class="body">
{% for statement in part.statements %}<p class="lead">{{ statement.text }}</p>{% endfor %}
{{ m.folded(part.tables[0]) }}
</div>
""",
)
