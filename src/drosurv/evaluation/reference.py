"""The reference model of an evaluation: plain Cox on standardised features, and its scores multiplied by factors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from drosurv.errors import ArgumentError, arg
from drosurv.estimators import CoxPH
from drosurv.evaluation.data import Subset, hazards_exist
from drosurv.evaluation.evaluator import Evaluator, Key
from drosurv.metrics import FollowUp, calibration_slope, log_partial_likelihood
from drosurv.metrics.partial_likelihood import gain_over_null, kept_share
from drosurv.paper.sampled_pairs import Pairs
from drosurv.patients.target import FloatArray, Target
from drosurv.predictions import as_predictions
from drosurv.predictions.any_model import final_step
from drosurv.solvers.arrays import on_host
from drosurv.solvers.neighborhoods import standardise

# Features with a larger mean or standard deviation are not standardised.
_MEAN, _SPREAD = 1.0, 3.0


@dataclass(frozen=True, eq=False)
class Features:
    """Standardised features of the test (n, d) and of the training patients (m, d); None if not known.

    The note says if features are not standardised, or if distances are left out.
    """

    test: FloatArray | None
    train: FloatArray | None
    note: str = ""


def standardised_features(X: Any, X_train: Any, *, in_folds: bool = False) -> Features:
    """Scale features to mean 0 and standard deviation 1 in the training patients; without them, return X unchanged.

    Without X, the note says whether that is because the patients were predicted `in_folds`.
    """
    test, train = _as_numbers(X), _as_numbers(_in_order_of(X, X_train))
    if test is None:
        reason = "the features hold text or missing values"
        if X is None:
            reason = "they compare patients by the features of the model, which predictions do not tell"
        if X is None and in_folds:
            reason = "they compare patients by one model of their features, and every fold has its own"
        return Features(
            None,
            None,
            f"disparities between patients (F_I, F_A and their censoring-aware forms) are left out: {reason}.",
        )
    if train is None:
        far = np.abs(test.mean(axis=0)).max() > _MEAN or test.std(axis=0).max() > _SPREAD
        note = f"F_I takes distances in X as it is, not standardised: pass a numeric {arg('X_train')} to scale by."
        return Features(test, None, note if far else "")
    if train.shape[1] != test.shape[1]:
        raise ArgumentError(
            "X_train",
            f"{arg('X_train')} has {train.shape[1]} columns, X has {test.shape[1]}: they must be the same.",
        )
    scaled_train, scaled_test = standardise(train, test)
    return Features(scaled_test, scaled_train)


def plain_cox(model: Any) -> CoxPH:
    """Return a plain Cox model with the same method for ties as the model."""
    return CoxPH(ties=getattr(final_step(model), "ties", "breslow"))


def fit_plain_cox(model: Any, features: Features, y_train: Any) -> tuple[CoxPH | None, str]:
    """Fit plain Cox on the training patients; if that is not possible, return None and a note that says why."""
    if isinstance(y_train, FollowUp) or features.train is None or features.test is None:
        return None, (
            "the share of plain Cox's likelihood gain and the shrinkage control are left out: pass a fitted reference "
            "model, or, where there are no entry times, strata, offsets or causes, y_train and numeric "
            f"{arg('X_train')} to fit "
            "plain Cox on."
        )
    if len(features.train) != len(y_train):
        raise ArgumentError(
            "X_train",
            f"{arg('X_train')} has {len(features.train)} rows, y_train has {len(y_train)}: they must match.",
        )
    return plain_cox(model).fit(features.train, y_train), ""


def _in_order_of(X: Any, X_train: Any) -> Any:
    """Return training features with their columns in the order of X, if both have names."""
    if not (hasattr(X, "columns") and hasattr(X_train, "columns")):
        return X_train
    if odd := set(X.columns) ^ set(X_train.columns):
        raise ArgumentError(
            "X_train",
            f"{arg('X_train')} and X must have the same columns; only one of them has "
            f"{', '.join(sorted(map(str, odd)))}.",
        )
    return X_train[list(X.columns)]


def _as_numbers(X: Any) -> FloatArray | None:
    """Return X as a finite (n, d) float64 array; None if that is not possible."""
    if X is None:
        return None
    try:
        rows = np.asarray(on_host(X), dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return rows if rows.ndim == 2 and rows.shape[1] > 0 and np.isfinite(rows).all() else None


# Disparities that change if scores are multiplied by a factor.
DISPARITIES = ("individual_disparity", "intersectional_disparity", "group_disparity")
# F_I is computed for a dozen scores; if there are more pairs than this, from the same random sample of so many.
SAMPLED_PAIRS = 2_000_000
_FACTORS = np.linspace(0.0, 1.0, 11)


@dataclass(frozen=True, eq=False)
class ShrinkageControl:
    """Disparities of the reference with its scores multiplied by factors c, to compare the model's disparities with.

    The `curve` has a row per ``factor`` c: ``log_partial_likelihood`` per event, ``share_of_gain`` over the null model,
    ``calibration_slope`` and one column per disparity (see `disparity_column`). `factor` is the c at which the
    reference has the same likelihood gain as the model: 0 if the model has none, and the c with the largest gain if
    none reaches the model's. `at_equal_gain` has a row per disparity: its value for the ``model``, the ``reference``
    and, at the factor, the ``shrunken`` reference. A model whose disparity is not below the latter is no fairer than
    shrinking alone makes it.
    """

    curve: pd.DataFrame
    factor: float
    at_equal_gain: pd.DataFrame
    notes: tuple[str, ...] = ()


def shrinkage_control(evaluator: Evaluator) -> ShrinkageControl | None:
    """Compute the shrinkage control if the paper's metrics are wanted and there is a reference.

    None too if hazards overflow or are 0.
    """
    target, reference = evaluator.everyone.target, evaluator.everyone.data.reference_risk
    if not evaluator.paper or reference is None or not evaluator.has_hazards or not hazards_exist(reference):
        return None
    risk = evaluator.everyone.risk
    full = gain_over_null(target, reference)
    slope = calibration_slope(target, reference)
    null = log_partial_likelihood(target, np.zeros(len(target)))
    rows = []
    for factor in _FACTORS.tolist():
        likelihood = log_partial_likelihood(target, factor * reference)
        found = disparities(evaluator, factor * reference)
        rows.append(
            {
                "factor": factor,
                "log_partial_likelihood": likelihood,
                "share_of_gain": float(kept_share(likelihood - null, full)),
                "calibration_slope": slope / factor if factor else np.nan,
                **{disparity_column(*key): value for key, value in found.items()},
            }
        )
    factor = _factor_of_equal_gain(target, reference, gain_over_null(target, risk), slope)
    of_model, shrunken = disparities(evaluator, risk), disparities(evaluator, factor * reference)
    # The last factor was 1.
    of_reference = found
    columns = ["attribute", "metric", "model", "reference", "shrunken"]
    at_equal_gain = pd.DataFrame(
        [(*key, of_model[key], of_reference[key], shrunken[key]) for key in of_model], columns=columns
    )
    sampled = evaluator.everyone.data.features is not None and _pairs(evaluator) != "all"
    note = f"the shrinkage control estimates F_I from {SAMPLED_PAIRS:,} random pairs of patients."
    return ShrinkageControl(pd.DataFrame(rows), factor, at_equal_gain, (note,) if sampled else ())


def disparities(evaluator: Evaluator, risk: FloatArray) -> dict[Key, float]:
    """Return F_I, F_cap and every attribute's F_G of risk scores (n,), as far as there are features and groups."""
    data = replace(
        evaluator.everyone.data,
        predicted=as_predictions(risk, None, len(risk)),
        reference=None,
        pairs=_pairs(evaluator),
    )
    scored = replace(evaluator, everyone=Subset(data), wanted=DISPARITIES)
    found = {(key[0], key[2]): value for key, value in scored.papers_metrics.items()}
    return {key: found[key] for name in DISPARITIES for key in found if key[1] == name}


def _pairs(evaluator: Evaluator) -> Pairs:
    """Return the pairs for F_I: all, or a sample if computing all for a dozen scores would take long."""
    n, pairs = len(evaluator.everyone), evaluator.everyone.data.pairs
    return "all" if pairs == "all" or n * (n - 1) / 2 <= SAMPLED_PAIRS else SAMPLED_PAIRS


def disparity_column(attribute: str, metric: str) -> str:
    """Return the name of a disparity's column in the curve: the metric, and for F_G the attribute."""
    return f"{metric} {attribute}" if metric == "group_disparity" else metric


def _factor_of_equal_gain(target: Target, reference: FloatArray, gain: float, best: float) -> float:
    def surplus(factor: float) -> float:
        return gain_over_null(target, factor * reference) - gain

    # The gain is concave in c, 0 at c = 0 and largest at the calibration slope.
    best = best if np.isfinite(best) and best > 0 else 1.0
    if gain <= 0:
        return 0.0
    return best if surplus(best) <= 0 else float(brentq(surplus, 0.0, best, xtol=1e-6))
