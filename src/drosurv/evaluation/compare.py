"""Several models on the same patients: their metrics, and their differences from the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, as_number, require
from drosurv.evaluation.attributes import ALL, EVERYONE, warn_of_undefined, whose
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.engine import Key, Panel, Sheet, replicates_of
from drosurv.evaluation.evaluate import prepare
from drosurv.evaluation.predictions import gives_risk
from drosurv.groups import Missing
from drosurv.metrics.inference import Draws, Number, compare_draws
from drosurv.metrics.inference.resampling import seed_sequence
from drosurv.metrics.pair_disparities import Convention
from drosurv.presentation.progress import bar

# Metrics whose lowest value over an attribute's groups is shown.
_WORST = ("concordance_index", "brier_skill", "likelihood_gain")


def compare(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    y_train: Any,
    sensitive_features: Any = None,
    X_train: Any = None,
    reference: Any = None,
    convention: Convention = "paper",
    scale: float = 0.01,
    missing: Missing = "group",
    labels: Mapping[str, Sequence[Any]] | None = None,
    n_bootstrap: int = 500,
    level: float = 0.95,
    min_group: int = 50,
    min_events: int = 10,
    random_state: Any = 0,
    threads: int | None = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Compare models on the same patients, each difference on the same bootstrap replicates.

    What the patients have in common cancels in a difference, so that it is surer than two separate intervals,
    whose overlap says little.

    Parameters
    ----------
    models : mapping
        Name to a fitted model, :class:`~drosurv.evaluation.Predictions` or array of risk scores; the first is
        the one that the others are compared with.
    X, y, y_train, sensitive_features, X_train, convention, scale, missing, labels
        As in :func:`~drosurv.evaluation.evaluate`.
    reference : fitted model, Predictions, or (n,) array, optional
        For the share of likelihood gain; by default the first model, unless it gives survival curves alone.
    n_bootstrap : int
        Bootstrap replicates; 0 for values alone.
    min_group, min_events : int
        Groups with fewer patients or events are not named as the worst served.
    level, random_state, threads, progress
        As in :func:`~drosurv.evaluation.evaluate`.

    Returns
    -------
    DataFrame
        One row per model and number: ``model``, ``attribute``, ``metric`` (metrics of everybody, gaps of an
        attribute, and ``worst_group_...``, the lowest value over its large groups, with that ``group``), ``value``
        with ``low`` and ``high``; ``difference`` from the first model with ``difference_low``,
        ``difference_high`` and the ``p_value`` of no difference, NaN for the first model itself.

    Examples
    --------
    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> from drosurv.evaluation import compare
    >>> train, test = make_hidden_minority(400, random_state=0), make_hidden_minority(400, random_state=1)
    >>> models = {
    ...     "Cox": drosurv.CoxPH().fit(train.X, train.y),
    ...     "DRO-COX": drosurv.DROCox().fit(train.X, train.y),
    ... }
    >>> table = compare(models, test.X, test.y, y_train=train.y, n_bootstrap=50)
    >>> table.query("metric == 'concordance_index'")["model"].tolist()
    ['Cox', 'DRO-COX']
    """
    require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
    if not models:
        raise ArgumentError("models", "models is empty: give at least one model by name.")
    first = next(iter(models.values()))
    reference = first if reference is None and gives_risk(first) else reference
    # One seed draws the same patients for every model, whatever it is made from.
    replicates, streams = replicates_of("n_bootstrap", n_bootstrap), seed_sequence(random_state)
    rows: list[dict[str, Any]] = []
    # Numbers of the first model. It has no differences, nor have numbers that it lacks.
    baseline: dict[Key, Number] = {}
    nothing = Draws(float("nan"), np.full(replicates, np.nan))
    undefined: list[str] = []
    with bar("comparing", len(models) * replicates, shown=progress, late=True) as advance:
        for name, model in models.items():
            panel = prepare(
                model,
                X,
                y,
                y_train=y_train,
                sensitive_features=sensitive_features,
                X_train=X_train,
                reference=reference,
                convention=convention,
                scale=scale,
                missing=missing,
                labels=labels,
                name=f"models[{name!r}]",
            )
            sheet = panel.sheet(replicates, random_state=streams, threads=threads, advance=advance)
            numbers, worst = _numbers(panel, sheet, min_group, min_events)
            told = [
                f"{place.metric} of {whose(place.attribute, place.group)}"
                for place, number in sheet.numbers.items()
                if np.isnan(number.estimate)
            ]
            if told:
                undefined.append(f"{name}: {', '.join(told)}")
            for key, number in numbers.items():
                interval = number.interval(level)
                from_first = compare_draws(number, baseline.get(key, nothing), level)
                rows.append(
                    {
                        "model": name,
                        "attribute": key[0],
                        "metric": key[1],
                        "group": worst.get(key, ALL),
                        "value": number.estimate,
                        "low": interval.low,
                        "high": interval.high,
                        "difference": from_first.difference.estimate,
                        "difference_low": from_first.difference.low,
                        "difference_high": from_first.difference.high,
                        "p_value": from_first.p_value,
                    }
                )
            baseline = baseline or numbers
    warn_of_undefined(undefined)
    return pd.DataFrame(rows)


def _numbers(
    panel: Panel, sheet: Sheet, min_group: int, min_events: int
) -> tuple[dict[Key, Number], dict[Key, str]]:
    """Numbers of one model by attribute and metric, and the group that each lowest value belongs to."""
    numbers = panel.numbers(sheet)
    found = {
        key: number
        for key, number in numbers.items()
        if key[0] == EVERYONE or CATALOGUE[key[1]].of == "attribute"
    }
    worst: dict[Key, str] = {}
    for attribute in panel.attributes:
        large = [
            label
            for label in attribute.labels
            if not panel.counts[attribute.name, label].is_small(min_group, min_events)
        ]
        for metric in _WORST:
            if (attribute.name, metric) in numbers and large:
                values, draws = sheet.groups(attribute.name, large, metric)
                key = attribute.name, f"worst_group_{metric}"
                found[key] = Draws(float(np.fmin.reduce(values)), np.fmin.reduce(draws, axis=1))
                worst[key] = large[int(np.nanargmin(values))] if np.isfinite(values).any() else ALL
    return found, worst
