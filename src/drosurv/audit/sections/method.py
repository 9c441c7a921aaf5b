"""The method card: what was audited, on whom, with which settings, and what the report cannot say."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from drosurv._version import __version__
from drosurv.audit.evidence import FEWEST, Evidence
from drosurv.audit.report import Part, Section
from drosurv.presentation import (
    Column,
    Table,
    first_upper,
    group_name,
    label_name,
    listing,
    moment,
    plain,
    written,
)

# Entries of a setting that are written out.
_LONGEST = 12
LIBRARIES = ("numpy", "pandas", "scikit-learn", "scikit-survival", "torch")
LIMITS = (
    "A gap that is not significant is not shown to be absent: with few patients or events, large gaps go unseen.",
    "The verdict, the group table and all p-values allow for the number of tests; other intervals do not: of twenty, "
    "one may miss by chance.",
    "Intervals say how the numbers would change with other patients like these. They do not say how another training "
    "would change the model, nor what happens where patients differ from these.",
    "Groups are as recorded. Who is wrongly recorded, or missing, is wrongly counted here.",
    "Harm is measured against predicting the same curve for everybody, not against what clinicians would have decided.",
    "Subgroups say where predictions are wrong, not why, and are no reason to treat anybody differently.",
)
COMPARED = (
    "The models of the slider were trained for comparison. Choosing one of them by these numbers makes the numbers too "
    "good: choose on other patients, then audit again."
)


def collect(evidence: Evidence) -> Part:
    """Three tables of names and values, what could not be computed, and the limits."""
    compares, tiny = len(evidence.stops) > 1, [group_name(*who) for who in evidence.tiny_groups]
    hidden = f"Groups of fewer than {FEWEST} patients are not shown, so that nobody can be recognised: "
    # That there is nothing to compare with is said in other words already.
    notes = [note for note in evidence.audited.notes if evidence.reference or "shrinkage control" not in note]
    replicates = {"Bootstrap replicates, models compared": evidence.compared_bootstrap} if compares else {}
    how = {
        "Bootstrap replicates, audited model": evidence.n_bootstrap,
        **replicates,
        "Level of intervals": evidence.level,
        "Seed": evidence.random_state,
        "drosurv version": __version__,
        "Python version": platform.python_version(),
        **_versions(),
    }
    return Part(
        tables=(
            pairs("data", "Patients of this report", "Fact", _patients(evidence)),
            pairs("settings", "Audited model and its settings", "Setting", evidence.model),
            pairs("audit", "How the audit was done", "Setting", how),
        ),
        facts={
            "missing": [*evidence.missing, *map(first_upper, notes)],
            "limits": [
                *evidence.limits,
                *([f"{hidden}{listing(tiny)}."] if tiny else []),
                *LIMITS,
                *([COMPARED] if compares else []),
            ],
        },
    )


@cache
def _versions() -> dict[str, str]:
    """Versions of the libraries that are installed; torch and scikit-survival are optional."""
    found = {}
    for library in LIBRARIES:
        with suppress(PackageNotFoundError):
            found[f"{library} version"] = version(library)
    return found


def _patients(evidence: Evidence) -> dict[str, str]:
    """Facts of the audited patients, and numbers of the training patients."""
    target, events = evidence.target, evidence.target.n_events
    trained = zip(("Patients trained on", "Events trained on"), evidence.trained_on or (), strict=False)
    return {
        "Patients": written(len(target), "count"),
        "Events": f"{written(events, 'count')} ({written(events / len(target), 'share')})",
        "Median time observed": moment(float(np.median(target.time)), evidence.time_unit),
        "Longest time observed": moment(float(target.time.max()), evidence.time_unit),
        **{
            f"Groups by {evidence.audited.headings[a.name]}": ", ".join(
                label_name(a.name, label) for label in a.labels
            )
            for a in evidence.attributes
        },
        **evidence.data,
        **{name: written(count, "count") for name, count in trained},
    }


def pairs(key: str, caption: str, heading: str, values: Mapping[str, Any]) -> Table:
    """A table of names and values."""
    columns = (Column("name", heading), Column("value", "Value"))
    rows = tuple({"name": str(name), "value": _shown(value)} for name, value in values.items())
    return Table(key, caption, columns, rows)


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "not set"}[value]
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    simple = plain(value)
    if isinstance(simple, str) and not isinstance(value, str):
        # What an object prints of itself may be long, differ from run to run, or hold rows of a table.
        return type(value).__name__
    if isinstance(simple, list):
        more = [f"and {len(simple) - _LONGEST:,} more"] if len(simple) > _LONGEST else []
        return ", ".join([*map(_shown, simple[:_LONGEST]), *more])
    return f"{simple:.6g}" if isinstance(simple, float) else str(simple)


SECTION = Section(
    key="method",
    heading="Method card",
    place=90,
    collect=collect,
    intro="<p>What was audited, on whom, with which settings, and what this report cannot say.</p>",
    template="""
<div class="cards">
{% for table in part.tables %}
  <div>{{ m.plain_table(table) }}</div>
{% endfor %}
</div>
{% for heading, entries in (("What could not be computed", part.facts.missing), ("Limits", part.facts.limits)) %}
{% if entries %}
<h3>{{ heading }}</h3>
<ul class="limits">
{% for entry in entries %}
  <li>{{ entry }}</li>
{% endfor %}
</ul>
{% endif %}
{% endfor %}
""",
)
