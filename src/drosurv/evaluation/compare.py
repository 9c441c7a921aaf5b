"""Compare models on the same patients: a difference has the difference of the patients' influences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drosurv.curves import rounding_unit
from drosurv.errors import ArgumentError, arg, as_names, check_mapping, warn_caller
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.evaluate import prepare
from drosurv.evaluation.evaluator import Evaluator, Key, warn_of_undefined, whose, within
from drosurv.evaluation.group_table import judged_numbers
from drosurv.judging.few_times import common_times
from drosurv.judging.from_predictions import at_times, judged_times, with_predicted_times, without_event
from drosurv.metrics.estimates import Estimate, Estimates, Interval, joint
from drosurv.metrics.likelihood_gain import scored_times
from drosurv.metrics.scores import warn_undefined
from drosurv.patients.groups import ALL, EVERYONE
from drosurv.patients.observation import Inference, Rows, one_row_each
from drosurv.patients.target import FloatArray, IntArray, chosen_cause
from drosurv.predictions import Predicted, as_predictions, of_causes
from drosurv.predictions.any_model import final_step
from drosurv.presentation import first_upper, listing

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
    strata: Any = None,
    offset: Any = None,
    cause: int | str | None = None,
    metrics: Sequence[str] | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Compare models on the same patients.

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
    X, y, sensitive_features, X_train
        As in :func:`~drosurv.evaluation.evaluate`.
    y_train : structured array or FollowUp, optional
        Training targets, for the null model; by default those that the first model keeps. Not with entry times.
    reference : fitted model, Predictions, or (n,) array, optional
        For the share of likelihood gain; by default the first model, unless it gives survival curves alone.
    strata, offset : (n,) arrays, optional
        As in :func:`~drosurv.evaluation.evaluate`, for the models that were fitted with them.
    cause : int or str, optional
        One of several causes, as in :func:`~drosurv.evaluation.evaluate`; by default an event of any cause.
    metrics : sequence of str, optional
        Names of the metrics to compute, such as "concordance_index" and "likelihood_gain"; by default all but those of
        the paper's tables, such as "concordance_imparity", which have no intervals.
    level : float
        Nominal coverage of the intervals.

    Returns
    -------
    DataFrame
        One row per model and number: ``model``, ``attribute``, ``metric`` (metrics of everybody, gaps of an
        attribute, and ``worst_group_...``, the lowest value over its groups of at least 50 patients and 10 events, or
        over those of all attributes, with that ``group``), ``value``
        with ``low``, ``high`` and ``adjusted``; ``difference`` from the first model with ``difference_low``,
        ``difference_high`` and the ``p`` of no difference, both adjusted for the number of models that are compared
        with the first; NaN for the first model itself. ``low`` and ``high`` of likelihood gains and calibration slopes
        that are judged are those of :func:`~drosurv.evaluation.evaluate` of the model, ``adjusted`` for its tests. The
        difference of two lowest values is that of the two groups that have them.

    Examples
    --------
    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> train, test = make_hidden_minority(400, random_state=0), make_hidden_minority(400, random_state=1)
    >>> models = {
    ...     "Cox": drosurv.CoxPH().fit(train.X, train.y),
    ...     "DRO-COX": drosurv.DROCox().fit(train.X, train.y),
    ... }
    >>> table = drosurv.compare(models, test.X, test.y, y_train=train.y)
    >>> table.query("metric == 'concordance_index'")["model"].tolist()
    ['Cox', 'DRO-COX']
    """
    Inference(level)
    observed = Rows.parse(y, strata=strata, offset=offset, require_event=False)
    check_mapping("models", models, "{'Cox': model, 'published': other}")
    if not models:
        raise ArgumentError("models", "models is empty: give at least one model by name.")
    metrics = None if metrics is None else as_names(metrics)
    if unknown := [name for name in metrics or () if name not in CATALOGUE]:
        raise ArgumentError.must("metrics", f"be among {', '.join(CATALOGUE)}", unknown[0])
    patients = one_row_each(y, observed)
    y, observed = patients.y, patients.rows
    X, sensitive_features, reference = map(patients.of, (X, sensitive_features, reference))
    models = {
        name: of_causes(patients.of(model), cause, y, name=f"models[{name!r}]")[0]
        for name, model in models.items()
    }
    reference_given = reference is not None
    if reference_given:
        reference, _ = of_causes(reference, cause, y, name="reference")
    whole, judged_cause = _predicted(models, X, len(y), observed), chosen_cause(cause, y)
    for one in whole.values():
        y = with_predicted_times(y, one)
    predicted, scored_at = _at_common_times(whole, y, judged_cause)
    name_of_first, first = next(iter(whole.items()))
    if y_train is None and observed.entry is None:
        y_train = first.follow_up
    first = first if first.given is None else predicted[name_of_first]
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
    evaluators = {name: prepare(one, y, **how) for name, one in predicted.items()}
    found = {name: _numbers(evaluator, level) for name, evaluator in evaluators.items()}
    judged, undefined = {}, {}
    for name, evaluator in evaluators.items():
        judged[name] = judged_numbers(evaluator, level, with_reference=reference_given)
        undefined[name] = [
            f"{metric} of {whose(attribute, group)}"
            for (attribute, group, metric), number in evaluator.estimates.items()
            if np.isnan(number.value) and (attribute, group, metric) not in judged[name]
        ]
    first_of_all = evaluators[name_of_first]
    if reason := without_event(first_of_all.everyone.data.outcome, y, judged_cause):
        warn_undefined(reason)
    else:
        warn_of_undefined([f"{name}: {', '.join(numbers)}" for name, numbers in undefined.items() if numbers])
    differences: dict[tuple[str, Key], Interval] = {}
    for key in dict.fromkeys(key for numbers in found.values() for key in numbers):
        numbers = {name: found[name][key].estimate for name in found if key in found[name]}
        own = _differences(numbers, name_of_first, level, first_of_all.clusters)
        differences |= {(name, key): one for name, one in own.items()}
    rows = []
    for name, numbers_of_model in found.items():
        for key, number in numbers_of_model.items():
            of_group = *(number.group or (key[0], ALL)), key[1].removeprefix(_LOWEST)
            adjusted = judged[name].get(of_group)
            interval = adjusted or number.interval
            difference = differences.get((name, key), _unknown(level))
            rows.append(
                {
                    "model": name,
                    "attribute": key[0],
                    "metric": key[1],
                    "group": _group(key[0], number.group),
                    "value": number.estimate.value if adjusted is None else adjusted.value,
                    "low": interval.low,
                    "high": interval.high,
                    "adjusted": adjusted is not None,
                    "difference": difference.estimate,
                    "difference_low": difference.low,
                    "difference_high": difference.high,
                    "p": difference.p,
                }
            )
    return pd.DataFrame(rows)


class _Number(NamedTuple):
    """A number of one model with its interval, and the group with this lowest value."""

    estimate: Estimate
    interval: Interval
    group: Key | None = None


def _unknown(level: float) -> Interval:
    return Interval(np.nan, np.nan, np.nan, level)


def _differences(
    numbers: Mapping[str, Estimate], first: str, level: float, clusters: IntArray | None
) -> dict[str, Interval]:
    """Return the difference of each model's number from that of the first, adjusted for all; none without the first."""
    others = [name for name in numbers if name != first]
    if first not in numbers or not others:
        return {}
    own = Estimates([numbers[name].minus(numbers[first]) for name in others], clusters)
    intervals, p = own.intervals(level, together=len(others) > 1), own.p_values()
    if len(others) > 1:
        p = joint(own.counted_covariance).adjusted(p)
    adjusted = (replace(interval, p=float(value)) for interval, value in zip(intervals, p, strict=True))
    return dict(zip(others, adjusted, strict=True))


def _predicted(models: Mapping[str, Any], X: Any, n: int, observed: Rows) -> dict[str, Predicted]:
    """Return the predictions of each model, which gets the strata and offset that it was fitted with."""
    fitted_with = {name: getattr(final_step(model), "_fitted_with", ()) for name, model in models.items()}
    for what in observed.for_models:
        if not any(what in names for names in fitted_with.values()):
            raise ArgumentError(what, f"none of the models was fitted with {arg(what)}: leave it out.")
    found = {}
    for name, model in models.items():
        rows = observed.only(fitted_with[name])
        found[name] = as_predictions(model, X, n, rows=rows, name=f"models[{name!r}]")
    for one in found.values():
        for needed_by in observed.observed:
            one.require_curves(needed_by)
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
        end = min(float(np.min(predicted[name].survival_curves.known_until)) for name in whole)
        common = common[common <= end]
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
    for name, own in times.items():
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


def _numbers(evaluator: Evaluator, level: float) -> dict[Key, _Number]:
    """Return the numbers of one model by attribute and metric, with the lowest of each attribute's large groups."""
    intervals, n = evaluator.intervals(level), len(evaluator.everyone)
    found = {
        (EVERYONE, key[2]): _Number(each, intervals[key])
        for key, each in evaluator.estimates.items()
        if key[0] == EVERYONE
    }
    for (attribute, _, metric), value in evaluator.papers_metrics.items():
        if CATALOGUE[metric].of != "groups":
            alone = replace(Estimate.undefined(n), value=value)
            found[attribute, metric] = _Number(alone, replace(_unknown(level), estimate=value))
    large = [key for key, count in evaluator.counts.items() if not count.is_small]
    # Those of all attributes come last.
    for name in [*(attribute.name for attribute in evaluator.attributes), EVERYONE]:
        for metric in _WORST:
            own = (key for key in large if name in (key[0], EVERYONE))
            groups = [key for key in own if (*key, metric) in evaluator.estimates]
            if groups:
                found[name, f"{_LOWEST}{metric}"] = _lowest(evaluator, groups, metric, level)
    return found


def _lowest(evaluator: Evaluator, groups: Sequence[Key], metric: str, level: float) -> _Number:
    """Return the lowest value of a metric in some groups."""
    estimates = [evaluator.estimates[(*key, metric)] for key in groups]
    place, interval = Estimates(estimates, evaluator.clusters).lowest(level)
    if place < 0:
        return _Number(estimates[0], interval)
    return _Number(estimates[place], within(interval, CATALOGUE[metric]), groups[place])
