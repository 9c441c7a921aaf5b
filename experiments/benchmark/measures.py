"""What a method is judged on: everybody, the worst named group, and the worst groups that a forest finds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from drosurv.curves import parse_survival
from drosurv.errors import InputError
from drosurv.metrics import calibration_slope, concordance_index, integrated_brier_score
from drosurv.metrics.likelihood_gain import likelihood_gains
from drosurv.patients.target import BoolArray, FloatArray
from experiments.benchmark.encoded_part import EncodedPart

# A named group is judged if it has this many test patients and events.
FEWEST_PATIENTS, FEWEST_EVENTS = 20, 5
FOUND_SHARE = 0.15
# Curves are steps: read at fewer times than they have, they would lag behind the null model.
MOST_TIMES = 2000
# The Brier score is an integral of a smooth function, which needs fewer.
MOST_BRIER_TIMES = 200
TREES = 100


# Numbers of each method and split. Larger is better, but of the Brier score, distances and seconds; 1 is a right slope.
MEASURES = {
    "gain": "full log likelihood per patient over the null model",
    "c_index": "Harrell's concordance index",
    "ibs": "integrated Brier score up to the time that 90 % of the test patients' times lie below",
    "slope": "calibration slope",
    "slope_error": "distance of the logarithm of the calibration slope from 0",
    "worst_named_gain": "gain of the named group with the lowest one",
    "worst_named_c_index": "c-index of the named group with the lowest one",
    "worst_named_oe": "largest distance of the logarithm of observed over expected events from 0 over named groups",
    "found_gain": "gain of the 15 % a forest expects to gain least",
    "found_oe": "distance of the logarithm of observed over expected events from 0, mean of the two 15 % in which a "
    "forest expects the most and the fewest unforeseen events",
    "seconds_to_fit": "on one core; the first fit of a process also loads libraries",
}


def time_grid(train: EncodedPart) -> FloatArray:
    """Times at which every method's curves are read: the training event times, thinned to at most 2,000."""
    times = event_times(train, MOST_TIMES)
    return times[times > 0]


def event_times(train: EncodedPart, most: int) -> FloatArray:
    """Distinct event times, or as many quantiles of the events' times: where there are many events, there are many."""
    times = train.target.time[train.target.event]
    distinct = np.unique(times)
    if len(distinct) > most:
        distinct = np.unique(np.quantile(times, np.linspace(0, 1, most), method="nearest"))
    return distinct


def judge(
    train: EncodedPart,
    test: EncodedPart,
    risk: FloatArray,
    survival: FloatArray,
    times: FloatArray,
    seed: int,
) -> dict[str, float]:
    """Every measure but the time, of log risks (n,) and survival (n, k) that were predicted for the test patients.

    `times` (k,) come from :func:`time_grid`; `seed` draws the halves for the forest.
    """
    if not (np.isfinite(risk).all() and np.isfinite(survival).all()):
        raise InputError("the model predicts numbers that are not finite.")
    with warnings.catch_warnings(action="ignore"):
        # Groups without comparable pairs and scores without spread are NaN here, and said so in the document.
        curves = parse_survival(survival, len(test.y), times, "step")
        gains = likelihood_gains(train.y, test.y, curves)
        # Each patient's cumulative hazard at the own time: events expected of such patients until then.
        own = curves.survival(test.target.time[:, None])[:, 0]
        expected = -np.log(np.maximum(own, 1e-10))
        slope = calibration_slope(test.y, risk) if np.ptp(risk) > 0 else float("nan")
        return {
            "gain": float(gains.mean()),
            "c_index": concordance_index(test.y, risk),
            "ibs": _brier(train, test, survival, times),
            "slope": slope,
            "slope_error": abs(float(np.log(max(slope, 0.05)))) if np.isfinite(slope) else float("nan"),
            **_named(test, risk, gains, expected),
            **_found(test, gains, expected, seed),
        }


def _brier(train: EncodedPart, test: EncodedPart, survival: FloatArray, times: FloatArray) -> float:
    first, last = test.target.time.min(), np.quantile(test.target.time, 0.9)
    inside = (times > first) & (times <= min(last, train.target.time.max() * (1 - 1e-9)))
    chosen = np.flatnonzero(inside)
    if len(chosen) > MOST_BRIER_TIMES:
        chosen = chosen[np.linspace(0, len(chosen) - 1, MOST_BRIER_TIMES).astype(int)]
    return integrated_brier_score(train.y, test.y, survival[:, chosen], times[chosen])


def _named(test: EncodedPart, risk: FloatArray, gains: FloatArray, expected: FloatArray) -> dict[str, float]:
    # NaN where no group is large enough to be judged.
    rows = [(np.nan, np.nan)]
    event = test.target.event
    for own in _judged_groups(test):
        rows.append((concordance_index(test.y[own], risk[own]), _distance(event[own], expected[own])))
    c_indices, distance = np.array(rows).T
    return {
        "worst_named_gain": worst_named_gain(test, gains),
        "worst_named_c_index": float(np.nanmin(c_indices)),
        "worst_named_oe": float(np.nanmax(distance)),
    }


def worst_named_gain(test: EncodedPart, gains: FloatArray) -> float:
    """Mean gain of the named group with the lowest one; NaN where no group is large enough to be judged."""
    return min((float(gains[own].mean()) for own in _judged_groups(test)), default=float("nan"))


def _judged_groups(test: EncodedPart) -> Iterator[BoolArray]:
    """Who belongs to each named group that is large enough."""
    event = test.target.event
    for attribute in test.attributes.columns:
        labels = test.attributes[attribute].to_numpy()
        for label in np.unique(labels.astype(str)):
            own: BoolArray = np.asarray(labels == label)
            if label != "unknown" and own.sum() >= FEWEST_PATIENTS and event[own].sum() >= FEWEST_EVENTS:
                yield own


def _found(test: EncodedPart, gains: FloatArray, expected: FloatArray, seed: int) -> dict[str, float]:
    """Groups that a forest grown on half of the test patients points to in the other half, both ways round."""
    X = test.X.to_numpy(dtype=np.float32)
    half = np.random.default_rng(seed).permutation(len(X)) < len(X) // 2
    residual = test.target.event - expected
    worst, distances = [], []
    for seen in (half, ~half):
        shown = ~seen
        gain = _forest(X[seen], gains[seen], X[shown], seed)
        worst.append(float(gains[shown][_lowest(gain)].mean()))
        foreseen = _forest(X[seen], residual[seen], X[shown], seed)
        event, cumulative = test.target.event[shown], expected[shown]
        distances += [_distance(event[at], cumulative[at]) for at in (_lowest(foreseen), _lowest(-foreseen))]
    return {"found_gain": float(np.mean(worst)), "found_oe": float(np.mean(distances))}


def _forest(X: Any, values: FloatArray, others: Any, seed: int) -> FloatArray:
    from sklearn.ensemble import RandomForestRegressor

    leaf = min(25, max(5, len(X) // 10))
    forest = RandomForestRegressor(
        TREES, min_samples_leaf=leaf, max_features=0.5, random_state=seed, n_jobs=1
    )
    predicted: FloatArray = forest.fit(X, values).predict(others)
    return predicted


def _lowest(predicted: FloatArray) -> BoolArray:
    return predicted <= np.quantile(predicted, FOUND_SHARE)


def _distance(event: BoolArray, expected: FloatArray) -> float:
    """|log O/E|, with half an event added to both, so that a group without events has a number."""
    return abs(float(np.log((event.sum() + 0.5) / (expected.sum() + 0.5))))
