"""Predictions by models that have not seen the patient: a recipe trained on all folds but the patient's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from drosurv.errors import Argument, ArgumentError
from drosurv.estimators import CoxPH
from drosurv.evaluation import Predictions
from drosurv.evaluation.features import standardised_features
from drosurv.evaluation.observed import curve_times
from drosurv.evaluation.predictions import (
    final_step,
    gives_curves,
    predict_curves,
    predict_risk,
    prepared,
    take,
)
from drosurv.inference import draw_folds
from drosurv.target import IntArray, parse_target

Folds: TypeAlias = "int | Sequence[tuple[IntArray, IntArray]]"
CROSS_FITTED = (
    "The audited predictions come from several models, each trained without the patients it predicts. They say what "
    "this recipe does on such patients; the model trained on all of them is a little better, and another one.",
    "Intervals treat the predictions as given: they do not hold the noise of training.",
)


def cross_fitted(
    recipe: Any,
    X: Any,
    y: Any,
    folds: Folds,
    random_state: int,
    fit_options: Mapping[str, Any] | None = None,
) -> Predictions:
    """Out-of-fold risk scores of a recipe, and survival curves where it gives them.

    The recipe is copied and trained anew for every fold. Of a number of folds, patients with and without event are
    spread evenly over them; else the folds are the rows to train on and those to predict, which together are all
    rows. Options of ``fit`` have one entry per patient.
    """
    from sklearn.base import clone

    target = parse_target(y)
    parts = fold_parts(target.event, folds, random_state) if isinstance(folds, int) else folds
    if not np.array_equal(np.sort(np.concatenate([test for _, test in parts])), np.arange(len(target))):
        raise ArgumentError(
            Argument("folds"), " must predict every patient once: the rows to predict are not all rows."
        )
    times = curve_times(target.time[target.event])
    risk, survival = np.empty(len(target)), np.empty((len(target), len(times)))
    curves = True
    for train, test in parts:
        own = {name: take(values, train) for name, values in (fit_options or {}).items()}
        model = clone(recipe).fit(take(X, train), y[train], **own)
        estimator, seen = final_step(model), prepared(model, take(X, test))
        score = predict_risk(estimator, seen, len(test))
        # Scores of different models share no zero: each is taken from its own training patients' mean.
        risk[test] = score - np.mean(predict_risk(estimator, prepared(model, take(X, train)), len(train)))
        if curves := curves and gives_curves(estimator):
            found = predict_curves(estimator, seen, len(test))
            assert found is not None
            survival[test] = found.at(times)
    return Predictions(risk, survival, times) if curves else Predictions(risk)


def cross_fitted_cox(recipe: Any, X: Any, y: Any, folds: Folds, random_state: int) -> Predictions | None:
    """The same of plain Cox on the features that the recipe's last step takes; None if they are not numbers."""
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    steps = [(name, clone(step)) for name, step in getattr(recipe, "steps", ())[:-1]]
    plain = Pipeline([*steps, ("scale", StandardScaler()), ("cox", CoxPH())])
    seen = Pipeline(steps).fit(X, y).transform(X) if steps else X
    if standardised_features(seen, None).test is None:
        return None
    return cross_fitted(plain, X, y, folds, random_state)


def fold_parts(event: Any, folds: int, random_state: int) -> list[tuple[IntArray, IntArray]]:
    """Rows to train on and rows to predict, events spread evenly."""
    fewest = min(int(np.sum(event)), len(event))
    if not 2 <= folds <= max(fewest, 2):
        raise ArgumentError.must(
            "folds", f"be a whole number from 2 to the number of events, {fewest}", folds
        )
    numbers = draw_folds(len(event), folds, np.random.default_rng(random_state), event)
    return [(np.flatnonzero(numbers != fold), np.flatnonzero(numbers == fold)) for fold in range(folds)]
