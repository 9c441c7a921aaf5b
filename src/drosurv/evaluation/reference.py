"""The reference that a model is compared with: plain Cox on standardised features, and shrunken copies of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from drosurv.errors import ArgumentError
from drosurv.estimators import CoxPH
from drosurv.evaluation.data import Subset, hazards_exist
from drosurv.evaluation.evaluator import Evaluator, Key
from drosurv.evaluation.predictions import final_step
from drosurv.metrics import FollowUp, calibration_slope, gain_over_null, log_partial_likelihood
from drosurv.metrics.partial_likelihood import kept_share
from drosurv.metrics.sampled_pairs import Pairs
from drosurv.solvers.arrays import on_host
from drosurv.standardise import standardise
from drosurv.target import FloatArray, Target

# Columns further out than this are not standardised, whatever the sample.
_MEAN, _SPREAD = 1.0, 3.0


@dataclass(frozen=True, eq=False)
class Features:
    """Standardised features of the scored (n, d) and of the training patients (m, d), where there are any.

    The note says where distances are taken in features that are not standardised, or left out.
    """

    test: FloatArray | None
    train: FloatArray | None
    note: str = ""


def standardised_features(X: Any, X_train: Any) -> Features:
    """Features scaled to mean 0 and deviation 1 by the training patients, if given, else as they are."""
    test, train = _as_numbers(X), _as_numbers(_in_order_of(X, X_train))
    if test is None:
        reason = "X was not given" if X is None else "X holds text or missing values"
        return Features(
            None, None, f"disparities between patients (F_I, F_A, censoring-aware) are left out: {reason}."
        )
    if train is None:
        far = np.abs(test.mean(axis=0)).max() > _MEAN or test.std(axis=0).max() > _SPREAD
        note = "F_I takes distances in X as it is, which is not standardised: pass a numeric X_train to scale by."
        return Features(test, None, note if far else "")
    if train.shape[1] != test.shape[1]:
        raise ArgumentError(
            "X_train", f"X_train has {train.shape[1]} columns, X has {test.shape[1]}: they must be the same."
        )
    scaled_train, scaled_test = standardise(train, test)
    return Features(scaled_test, scaled_train)


def plain_cox(model: Any) -> CoxPH:
    """Plain Cox that treats ties as the model does, so that the difference of the two is not one of ties."""
    return CoxPH(ties=getattr(final_step(model), "ties", "breslow"))


def fit_plain_cox(model: Any, features: Features, y_train: Any) -> tuple[CoxPH | None, str]:
    """Plain Cox fitted on the training patients; or None, and a note that says why."""
    if isinstance(y_train, FollowUp) or features.train is None or features.test is None:
        return None, (
            "the share of plain Cox's likelihood gain and the shrinkage control are left out: pass a fitted reference "
            "model, or, where there are no entry times, strata, offsets or causes, y_train and numeric X_train to fit "
            "plain Cox on."
        )
    if len(features.train) != len(y_train):
        raise ArgumentError(
            "X_train", f"X_train has {len(features.train)} rows, y_train has {len(y_train)}: they must match."
        )
    return plain_cox(model).fit(features.train, y_train), ""


def _in_order_of(X: Any, X_train: Any) -> Any:
    """Training features in the order of the scored patients' columns, where both have names."""
    if not (hasattr(X, "columns") and hasattr(X_train, "columns")):
        return X_train
    if odd := set(X.columns) ^ set(X_train.columns):
        raise ArgumentError(
            "X_train",
            f"X_train and X must have the same columns; only one of them has "
            f"{', '.join(sorted(map(str, odd)))}.",
        )
    return X_train[list(X.columns)]


def _as_numbers(X: Any) -> FloatArray | None:
    """X as a finite (n, d) float64 array; None if it is not one."""
    if X is None:
        return None
    try:
        rows = np.asarray(on_host(X), dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return rows if rows.ndim == 2 and rows.shape[1] > 0 and np.isfinite(rows).all() else None


# Disparities that shrinking moves.
DISPARITIES = ("individual_disparity", "intersectional_disparity", "group_disparity")
# F_I is computed for a dozen scores: where there are more pairs than this, all use the same random ones.
SAMPLED_PAIRS = 2_000_000
_FACTORS = np.linspace(0.0, 1.0, 11)


@dataclass(frozen=True, eq=False)
class ShrinkageControl:
    """The curve "reference x c", and its point that gains as much likelihood as the model.

    The `curve` has a row per ``factor`` c: ``log_partial_likelihood`` per event, ``share_of_gain`` over the null model,
    ``calibration_slope`` and one column per disparity (see `disparity_column`). The c-index and concordance imparity
    are not there: they do not change. At the `factor` the shrunken reference gains as much as the model; it is 0 if the
    model gains nothing, and the c with the largest gain if none gains as much. `at_equal_gain` has a row per disparity:
    ``attribute``, ``metric``, the ``model``'s value, the ``reference``'s and, at the factor, the ``shrunken``
    reference's. A model whose disparity is not below the last has only shrunk. The notes say whether pairs of patients
    were sampled.
    """

    curve: pd.DataFrame
    factor: float
    at_equal_gain: pd.DataFrame
    notes: tuple[str, ...] = ()


def shrinkage_control(evaluator: Evaluator) -> ShrinkageControl | None:
    """Compare a model with shrunken copies of its reference; None without one, or where hazards overflow or are 0."""
    target, reference = evaluator.everyone.target, evaluator.everyone.data.reference
    if reference is None or not evaluator.has_hazards or not hazards_exist(reference):
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
    # The last factor is 1, the reference itself.
    of_model, full_size, shrunken = (
        disparities(evaluator, risk),
        found,
        disparities(evaluator, factor * reference),
    )
    columns = ["attribute", "metric", "model", "reference", "shrunken"]
    beside = pd.DataFrame(
        [(*key, of_model[key], full_size[key], shrunken[key]) for key in of_model], columns=columns
    )
    sampled = evaluator.everyone.data.features is not None and _pairs(evaluator) != "all"
    note = f"the shrinkage control estimates F_I from {SAMPLED_PAIRS:,} random pairs of patients."
    return ShrinkageControl(pd.DataFrame(rows), factor, beside, (note,) if sampled else ())


def disparities(evaluator: Evaluator, risk: FloatArray) -> dict[Key, float]:
    """F_I, F_cap and every attribute's F_G of scores that are compared with each other.

    Those without features or groups are left out.
    """
    data = replace(evaluator.everyone.data, model=risk, reference=None, pairs=_pairs(evaluator))
    scored = evaluator.of_scores(Subset(data), DISPARITIES)
    numbers = scored.numbers(scored.draw())
    return {key: numbers[key].estimate for name in DISPARITIES for key in numbers if key[1] == name}


def _pairs(evaluator: Evaluator) -> Pairs:
    """Pairs that F_I is computed from: all, or a sample where all would take long for a dozen scores."""
    n, pairs = len(evaluator.everyone), evaluator.everyone.data.pairs
    return "all" if pairs == "all" or n * (n - 1) / 2 <= SAMPLED_PAIRS else SAMPLED_PAIRS


def disparity_column(attribute: str, metric: str) -> str:
    """Column of the control curve: the metric, and for F_G the attribute."""
    return f"{metric} {attribute}" if metric == "group_disparity" else metric


def _factor_of_equal_gain(target: Target, reference: FloatArray, gain: float, best: float) -> float:
    def surplus(factor: float) -> float:
        return gain_over_null(target, factor * reference) - gain

    # The gain is concave in c, 0 at c = 0 and largest at the calibration slope.
    best = best if np.isfinite(best) and best > 0 else 1.0
    if gain <= 0:
        return 0.0
    return best if surplus(best) <= 0 else float(brentq(surplus, 0.0, best, xtol=1e-6))
