"""Compare models by paired differences, on the same patients and the same bootstrap replicates of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from drosurv.any_model import final_step
from drosurv.errors import ArgumentError, arg, as_names, check_mapping, warn_caller
from drosurv.evaluation.attributes import ALL, EVERYONE, warn_of_undefined, whose
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.evaluate import prepare
from drosurv.evaluation.evaluator import BootstrapValues, Evaluator, Key
from drosurv.evaluation.group_table import judged_numbers
from drosurv.findings.from_predictions import at_times, judged_times
from drosurv.findings.known_curves import common_times
from drosurv.findings.log_score import rounding_unit, scored_times
from drosurv.metrics.inference import Draws, adjusted_p, compare_draws, shared_level
from drosurv.metrics.inference.intervals import seed_sequence
from drosurv.observation import Inference, Rows
from drosurv.patient_rows import one_row_each
from drosurv.predictions import Predicted, as_predictions, of_causes
from drosurv.presentation import first_upper, listing
from drosurv.presentation.progress import bar
from drosurv.target import FloatArray, chosen_cause

# Metrics whose lowest value over an attribute's groups is shown.
_WORST = ("concordance_index", "brier_skill", "likelihood_gain")
_LOWEST = "worst_group_"


def compare(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    y_train: Any = None,
    sensitive_features: Any = None,
    X_train: Any = None,
    reference: Any = None,
    entry: Any = None,
    strata: Any = None,
    offset: Any = None,
    id: Any = None,
    clusters: Any = None,
    sample_weight: Any = None,
    cause: int | str | None = None,
    metrics: Sequence[str] | None = None,
    n_bootstrap: int = 500,
    level: float = 0.95,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: bool | None = None,
) -> pd.DataFrame:
    """Compare models on the same patients and the same bootstrap replicates.

    Differences are paired, and vary less than the numbers of each model: models may differ although their intervals
    overlap.

    Parameters
    ----------
    models : mapping
        Name to a fitted model, :class:`~drosurv.evaluation.Predictions`, a pair (times, survival) or an array of risk
        scores; the first is the one that the others are compared with. With predictions at few times, all models are
        compared at the times that these have in common, with a warning if others have other times or whole curves.
        With log hazards alone, calibration slopes of all are those of their scores
        (:func:`drosurv.metrics.calibration_slope`), not of their curves.
    X, y, sensitive_features, X_train, id, clusters, sample_weight
        As in :func:`~drosurv.evaluation.evaluate`.
    y_train : structured array or FollowUp, optional
        Training targets, for censoring weights and the null model; by default those that the first model keeps. Not
        with `entry`.
    reference : fitted model, Predictions, or (n,) array, optional
        For the share of likelihood gain; by default the first model, unless it gives survival curves alone.
    entry, strata, offset : (n,) arrays, optional
        As in :func:`~drosurv.evaluation.evaluate`, for fitted models. Entry times are for all of them; strata and
        offset for those that were fitted with them.
    cause : int or str, optional
        One of several causes, as in :func:`~drosurv.evaluation.evaluate`; by default an event of any cause.
    metrics : sequence of str, optional
        Names of the metrics to compute, such as "concordance_index" and "likelihood_gain"; by default all.
    n_bootstrap : int
        Bootstrap replicates. With 0, only likelihood gains and calibration slopes have intervals.
    level, random_state, n_jobs, verbose
        As in :func:`~drosurv.evaluation.evaluate`.

    Returns
    -------
    DataFrame
        One row per model and number: ``model``, ``attribute``, ``metric`` (metrics of everybody, gaps of an
        attribute, and ``worst_group_...``, the lowest value over its groups of at least 50 patients and 10 events, or
        over those of all attributes, with that ``group``), ``value``
        with ``low`` and ``high``; ``difference`` from the first model with ``difference_low``,
        ``difference_high`` and the ``p`` of no difference, both adjusted for the number of models that are compared
        with the first; NaN for the first model itself. ``low`` and ``high`` of likelihood gains and calibration slopes
        are those of :func:`~drosurv.evaluation.evaluate` of the model, adjusted for its tests.

    Examples
    --------
    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> train, test = make_hidden_minority(400, random_state=0), make_hidden_minority(400, random_state=1)
    >>> models = {
    ...     "Cox": drosurv.CoxPH().fit(train.X, train.y),
    ...     "DRO-COX": drosurv.DROCox().fit(train.X, train.y),
    ... }
    >>> table = drosurv.compare(models, test.X, test.y, y_train=train.y, n_bootstrap=20)
    >>> table.query("metric == 'concordance_index'")["model"].tolist()
    ['Cox', 'DRO-COX']
    """
    inference = Inference(level, n_bootstrap, random_state, n_jobs, verbose)
    given = {"entry": entry, "strata": strata, "offset": offset, "id": id, "clusters": clusters}
    observed = Rows.parse(y, **given, sample_weight=sample_weight)
    check_mapping("models", models, "{'Cox': model, 'published': other}")
    if not models:
        raise ArgumentError("models", "models is empty: give at least one model by name.")
    metrics = None if metrics is None else as_names(metrics)
    if unknown := [name for name in metrics or () if name not in CATALOGUE]:
        raise ArgumentError.must("metrics", f"be among {', '.join(CATALOGUE)}", unknown[0])
    patients = one_row_each(y, observed)
    y, observed = patients.y, patients.observed
    X, sensitive_features, reference = map(patients.of, (X, sensitive_features, reference))
    given_causes = {
        name: of_causes(patients.of(model), cause, y, name=f"models[{name!r}]")
        for name, model in models.items()
    }
    models = {name: model for name, (model, _) in given_causes.items()}
    reference_given = reference is not None
    if reference_given:
        reference, _ = of_causes(reference, cause, y, name="reference")
    whole, judged_cause = _predicted(models, X, len(y), observed), chosen_cause(cause, y)
    predicted, scored_at = _at_common_times(whole, y, judged_cause)
    name, first = next(iter(whole.items()))
    if y_train is None and entry is None:
        y_train = first.follow_up
    first = first if first.given is None else predicted[name]
    reference = first.model if reference is None and first.has_risk else reference
    how: dict[str, Any] = {
        "y_train": y_train,
        "sensitive_features": sensitive_features,
        "X_train": X_train,
        "reference": reference,
        "wanted": metrics,
        "cause": judged_cause,
        "scored_at": scored_at,
        "slope_of_scores": not all(one.has_curves for one in whole.values())
        and all(one.has_log_hazards for one in whole.values()),
    }
    # Made once: without a seed, each model would otherwise draw other replicates.
    same = replace(inference, random_state=seed_sequence(inference.random_state))
    rows: list[dict[str, Any]] = []
    # Numbers of the first model. It has no differences itself; those of numbers that it lacks are NaN.
    baseline: dict[Key, Draws] = {}
    unknown_draws = Draws(float("nan"), np.full(inference.n_bootstrap, np.nan))
    undefined: list[str] = []
    n_compared = len(models) - 1
    with bar("comparing", len(models) * inference.n_bootstrap, shown=verbose, late=True) as advance:
        for name, one in predicted.items():
            evaluator = prepare(one, y, **how)
            drawn = evaluator.draw(same, advance=advance)
            numbers, worst = _numbers(evaluator, drawn)
            judged = judged_numbers(evaluator, level, with_reference=reference_given)
            unknown = [
                f"{metric} of {whose(attribute, group)}"
                for (attribute, group, metric), number in drawn.numbers.items()
                if np.isnan(number.estimate)
            ]
            if unknown:
                undefined.append(f"{name}: {', '.join(unknown)}")
            for key, number in numbers.items():
                of_group = *worst.get(key, (key[0], ALL)), key[1].removeprefix(_LOWEST)
                interval = judged.get(of_group) or number.interval(level)
                from_first = compare_draws(
                    number, baseline.get(key, unknown_draws), shared_level(level, n_compared)
                )
                rows.append(
                    {
                        "model": name,
                        "attribute": key[0],
                        "metric": key[1],
                        "group": _group(key[0], worst.get(key)),
                        "value": number.estimate,
                        "low": interval.low,
                        "high": interval.high,
                        "difference": from_first.difference.estimate,
                        "difference_low": from_first.difference.low,
                        "difference_high": from_first.difference.high,
                        "p": adjusted_p(from_first.p, n_compared),
                    }
                )
            baseline = baseline or numbers
    warn_of_undefined(undefined)
    return pd.DataFrame(rows)


def _predicted(models: Mapping[str, Any], X: Any, n: int, observed: Rows) -> dict[str, Predicted]:
    """Return the predictions of each model, which gets the strata and offset that it was fitted with."""
    fitted_with = {name: getattr(final_step(model), "_fitted_with", ()) for name, model in models.items()}
    for what in observed.for_models:
        if not any(what in names for names in fitted_with.values()):
            raise ArgumentError(what, f"none of the models was fitted with {arg(what)}: leave it out.")
    found = {
        name: as_predictions(model, X, n, rows=observed.only(fitted_with[name]), name=f"models[{name!r}]")
        for name, model in models.items()
    }
    for name, one in found.items():
        if observed.observed and not one.has_curves:
            raise ArgumentError(
                "models",
                f"models[{name!r}] must be a fitted model with predict_survival_function, which "
                f"{', '.join(observed.observed)} needs, got {one.title}.",
            )
    return found


def _at_common_times(
    predicted: dict[str, Predicted], y: Any, cause: int | None
) -> tuple[dict[str, Predicted], FloatArray | None]:
    """Return predictions at the times that all models predict, and the times between which gains are scored.

    With predictions at few times, these are their common times, with a warning if some models have others, or curves
    that are known throughout. Without, predictions are returned unchanged, and None.
    """
    times = {name: judged_times(one, y, cause) for name, one in predicted.items() if one.has_curves}
    few = {name: own for name, own in times.items() if own is not None}
    if not few:
        return predicted, None
    shared = common_times(few, "models")
    common, note = (next(iter(few.values())), "") if shared is None else shared
    whole = [name for name in times if name not in few]
    if whole:
        common = common[
            common <= min(float(np.min(predicted[name].survival_curves.known_until)) for name in whole)
        ]
        if not (common > 0).any():
            raise ArgumentError(
                "models", f"{arg('models')}: the curves of {listing(whole)} end before the first common time."
            )
        at = listing([f"{time:g}" for time in common])
        also = f"whole curves of {listing(whole)} are compared at the times of the other predictions, {at}."
        note = f"{note} {first_upper(also)}".strip()
    if note:
        warn_caller(first_upper(note), argument="models")
    found, scored = dict(predicted), common
    for name in times:
        own = times[name]
        if own is None or cause is not None or not np.array_equal(own, common):
            found[name] = at_times(predicted[name], y, common, cause)
        if own is not None:
            # Rounded probabilities are scored between times at which they differ visibly: the same for all models.
            survival = found[name].survival_curves.survival(common)
            scored = np.intersect1d(scored, common[scored_times(survival, rounding_unit(survival))])
    return found, scored


def _group(attribute: str, worst: tuple[str, str] | None) -> str:
    """Return the name of the group with the lowest value; with its attribute if it is the lowest of all attributes."""
    if worst is None:
        return ALL
    return whose(*worst) if attribute == EVERYONE else worst[1]


def _numbers(
    evaluator: Evaluator, drawn: BootstrapValues
) -> tuple[dict[Key, Draws], dict[Key, tuple[str, str]]]:
    """Return the numbers of one model by attribute and metric, and the attribute and group of each lowest value."""
    numbers = evaluator.numbers(drawn)
    found = {
        key: number
        for key, number in numbers.items()
        if key[0] == EVERYONE or CATALOGUE[key[1]].of == "attribute"
    }
    worst: dict[Key, tuple[str, str]] = {}
    for attribute in evaluator.attributes:
        large = [label for label in attribute.labels if not evaluator.counts[attribute.name, label].is_small]
        for metric in _WORST:
            if (attribute.name, metric) in numbers and large:
                values, draws = drawn.groups(attribute.name, large, metric)
                key = attribute.name, f"{_LOWEST}{metric}"
                found[key] = Draws(float(np.fmin.reduce(values)), np.fmin.reduce(draws, axis=1))
                label = large[int(np.nanargmin(values))] if np.isfinite(values).any() else ALL
                worst[key] = attribute.name, label
    return _with_worst_of_all(found, worst)


def _with_worst_of_all(
    found: dict[Key, Draws], worst: dict[Key, tuple[str, str]]
) -> tuple[dict[Key, Draws], dict[Key, tuple[str, str]]]:
    """Add the lowest value over the groups of all attributes, with that group."""
    for metric in dict.fromkeys(name for _, name in worst):
        keys = [key for key in worst if key[1] == metric]
        lowest = min(keys, key=lambda key: np.nan_to_num(found[key].estimate, nan=np.inf))
        draws = np.fmin.reduce([found[key].draws for key in keys])
        found[EVERYONE, metric] = Draws(found[lowest].estimate, draws)
        worst[EVERYONE, metric] = worst[lowest]
    return found, worst
