"""The Cox table of a Pipeline, on the units its features had before they were scaled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.preprocessing import MinMaxScaler

from drosurv.estimators.coefficients import CoxTable
from drosurv.tables import TableEncoder
from drosurv.tables.columns import CategoryColumn
from drosurv.target import FloatArray


def encoder_notes(encoder: Any) -> list[str]:
    """What a TableEncoder did that a reader of coefficients must know; nothing of other steps.

    Which level the others are compared with, and where missing values were filled in.
    """
    if not isinstance(encoder, TableEncoder):
        return []
    used = [column for column in encoder.columns_ if column.features]
    levels = [f"{c.name} with {c.reference!r}" for c in used if isinstance(c, CategoryColumn)]
    filled = [f"{column.name} ({column.n_missing:,})" for column in used if column.n_missing]
    notes = []
    if levels:
        notes.append(f"Levels are compared with the most frequent: {', '.join(levels)}.")
    if filled:
        notes.append(
            f"Missing values were filled in: {', '.join(filled)}. R and lifelines leave such patients out: drop the "
            "rows first, or train with `drosurv fit ... --complete-cases`."
        )
    return notes


def summary(model: Any, level: float = 0.95, method: str = "auto", **options: Any) -> CoxTable:
    """The Cox table of a fitted linear model, or of a Pipeline that ends in one, on natural units.

    A hazard ratio is per unit of the feature as it was before a step of the Pipeline divided it: per year, or of one
    level of a category against its reference.

    Parameters
    ----------
    model : estimator or Pipeline
        Steps may be a :class:`drosurv.tables.TableEncoder`, or scikit-learn's scalers.
    level, method, **options
        As in :meth:`drosurv.CoxPH.summary`.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import drosurv
    >>> data = drosurv.datasets.make_hidden_minority(n_samples=500, random_state=0)
    >>> scaled = make_pipeline(StandardScaler(), drosurv.CoxPH()).fit(data.X, data.y)
    >>> plain = drosurv.CoxPH().fit(data.X, data.y)
    >>> bool(abs(drosurv.summary(scaled)["coef"] - plain.summary()["coef"]).max() < 1e-6)
    True
    """
    last = model[-1] if hasattr(model, "steps") else model
    if not hasattr(last, "summary"):
        raise ValueError(
            f"{type(last).__name__} has no table of coefficients: summary is for linear models of drosurv."
        )
    if not hasattr(model, "steps"):
        plain: CoxTable = model.summary(level=level, method=method, **options)
        return plain
    steps = list(_working(model[:-1]))
    names, units = _units(steps)
    if hasattr(last, "feature_names_in_"):
        names = None
    table: CoxTable = last.summary(level=level, method=method, scale=units, names=names, **options)
    table.notes = (*table.notes, *(note for step in steps for note in encoder_notes(step)))
    return table


def _working(steps: Any) -> Iterator[Any]:
    """The steps of a Pipeline, and of Pipelines within it, that do something."""
    for step in steps:
        if hasattr(step, "steps"):
            yield from _working(step)
        elif step not in (None, "passthrough"):
            yield step


def _units(steps: list[Any]) -> tuple[list[str] | None, FloatArray | None]:
    """Names (d,) of the features that the steps make, and what each was divided by; None where nobody can tell."""
    names: list[str] | None = None
    units: dict[str, float] = {}
    for step in steps:
        if not hasattr(step, "get_feature_names_out"):
            names, units = None, {}
            continue
        names = [str(name) for name in step.get_feature_names_out(names)]
        own = getattr(step, "scale_", None)
        known = own is not None and np.shape(own) == (len(names),)
        own = np.asarray(own) if known else np.ones(len(names))
        if isinstance(step, MinMaxScaler):
            own = 1.0 / own
        # A feature of a new name, such as a principal component, has units of its own.
        units = {name: units.get(name, 1.0) * float(unit) for name, unit in zip(names, own, strict=True)}
    return names, None if names is None else np.array([units[name] for name in names])
