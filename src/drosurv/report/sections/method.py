"""The method card: the audited model and patients, the settings, and the limits of the report."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from drosurv._version import __version__
from drosurv.evaluation.evaluator import compared_attributes
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
from drosurv.report.evidence import FEWEST, Evidence, Part, Section

# Largest number of entries of a setting that are shown.
_LONGEST = 12
LIBRARIES = ("numpy", "pandas", "scikit-learn", "scikit-survival", "torch")
LIMITS = (
    "This report is not anonymous: small numbers may follow from others, and curves show single events. Before others "
    "see it, make sure that nobody can be recognised.",
    "A gap that is not significant may still exist: with few patients or events, large gaps are not found.",
    "The verdict, the group table and all p-values are adjusted for the number of tests; other intervals are not: one "
    "of twenty may miss the true value by chance.",
    "Intervals show how the numbers would vary with other patients like these, not what happens if patients differ. "
    "Those of observed over expected events, timing and slope in the group table allow for the estimation error "
    "of the model where its training patients are known; most others take the predictions as given.",
    "Groups are as recorded. Patients who are recorded wrongly, or are missing, are counted wrongly.",
    "Harm is measured against predicting the same curve for everybody, not against what clinicians would have decided.",
    "Subgroups show where predictions are wrong, not why, and are no reason to treat anybody differently.",
)


def collect(evidence: Evidence) -> Part:
    """Return three tables of names and values, what was left out or computed otherwise, and the limits."""
    tiny = [group_name(*who) for who in evidence.tiny_groups]
    hidden = f"Groups of fewer than {FEWEST} patients are not shown: "
    single = compared_attributes(evidence.sensitive_features, len(evidence.target))[1]
    # Without a reference, `evidence.missing` already says that there is no comparison.
    said = () if evidence.reference else (evidence.audited.not_compared,)
    notes = [note for note in evidence.audited.notes if note not in said]
    how = {
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
            "missing": [*evidence.missing, *map(first_upper, (*single, *notes))],
            "limits": [
                *evidence.limits,
                *([sampled(len(evidence.sample.y))] if evidence.sample is not evidence else []),
                *([f"{hidden}{listing(tiny)}."] if tiny else []),
                *LIMITS,
            ],
        },
    )


def sampled(size: int) -> str:
    """Return the sentence on what a sample of very many patients is used for."""
    return (
        f"Repairs, remedies, decision curves and calibration curves are of a random sample of {size:,} patients, and "
        "replicates are drawn from samples; findings and the values of metrics are of all patients."
    )


@cache
def _versions() -> dict[str, str]:
    """Return the versions of the installed libraries; torch and scikit-survival are optional."""
    found = {}
    for library in LIBRARIES:
        with suppress(PackageNotFoundError):
            found[f"{library} version"] = version(library)
    return found


def _patients(evidence: Evidence) -> dict[str, str]:
    """Return facts about the audited patients, and the numbers of training patients and events."""
    target, events = evidence.target, evidence.target.n_events
    trained = zip(("Patients trained on", "Events trained on"), evidence.trained_on or (), strict=False)
    return {
        "Patients": written(evidence.n_patients, "count"),
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
    """Return a table of names and values."""
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
        # The text of an object may be long, differ from run to run, or hold data of patients.
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
    intro="<p>The audited model and patients, the settings, and the limits of this report.</p>",
    template="""
<div class="cards">
{% for table in part.tables %}
  <div>{{ m.plain_table(table) }}</div>
{% endfor %}
</div>
{% for heading, entries in (("Left out, or computed otherwise", part.facts.missing), ("Limits", part.facts.limits)) %}
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
