"""The method card: what was audited, on whom, with which settings, and what the report cannot say."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv._version import __version__
from drosurv.presentation import Column, Table, plain, written
from drosurv.target import Target

if TYPE_CHECKING:
    from drosurv.evaluation.attributes import Attribute

# Entries of a setting that are written out.
_LONGEST = 12
LIBRARIES = ("numpy", "pandas", "scikit-learn", "scikit-survival", "torch")
LIMITS = (
    "A gap that is not significant is not shown to be absent: with few patients or events, large gaps go unseen.",
    "The summary and the p-values allow for how many groups and attributes were looked at; single intervals do not: of "
    "twenty, one may miss by chance.",
    "Intervals say how the numbers would change with other patients like these. They do not say how another training "
    "would change the model, nor what happens where patients differ from these.",
    "Groups are as recorded. Who is wrongly recorded, or missing, is wrongly counted here.",
    "Harm is measured against predicting the same curve for everybody, not against what clinicians would have decided.",
    "Rules describe where predictions are poor; they are no causes, and no reason to treat anybody differently.",
    "The models of the slider were trained for comparison. Choosing one of them by these numbers makes the numbers too "
    "good: choose on other patients, then audit again.",
)


def data_facts(
    target: Target, X: Any, attributes: Sequence[Attribute], estimator: Any, time_title: str
) -> Table:
    """Facts of the audited and of the training patients."""
    follow_up = float(np.median(target.time))
    events = target.n_events
    facts = {
        "Patients": written(len(target), "count"),
        "Events": f"{written(events, 'count')} ({written(events / len(target), 'share')})",
        "Median time observed": f"{written(follow_up, 'time')} {time_title}",
        "Longest time observed": f"{written(float(target.time.max()), 'time')} {time_title}",
        "Features": written(np.shape(X)[1], "count"),
    }
    for attribute in attributes:
        facts[f"Groups by {attribute.name}"] = ", ".join(attribute.labels)
    if hasattr(estimator, "n_patients_"):
        facts["Patients trained on"] = written(estimator.n_patients_, "count")
        facts["Events trained on"] = written(estimator.n_events_, "count")
    return _pairs("data", "Patients of this report", "Fact", facts)


def model_settings(estimator: Any) -> Table:
    """Class, parameters and training status of the audited model."""
    settings: dict[str, Any] = {"Estimator": type(estimator).__name__}
    if hasattr(estimator, "get_params"):
        settings |= estimator.get_params(deep=False)
    for fitted, name in (
        ("status_", "Training ended"),
        ("n_iter_", "Iterations"),
        ("objective_", "Objective"),
    ):
        if hasattr(estimator, fitted):
            settings[name] = getattr(estimator, fitted)
    return _pairs("settings", "Audited model and its settings", "Setting", settings)


def audit_settings(settings: Mapping[str, Any]) -> Table:
    """How the audit was done, and with what software."""
    libraries = {f"{library} version": version(library) for library in LIBRARIES}
    software = {"drosurv version": __version__, "Python version": platform.python_version(), **libraries}
    return _pairs("audit", "How the audit was done", "Setting", {**settings, **software})


def _pairs(key: str, caption: str, heading: str, values: Mapping[str, Any]) -> Table:
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
