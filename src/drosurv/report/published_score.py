"""Audit of a model that is known at some times only, such as a published score: of its predictions at these times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drosurv.errors import ArgumentError
from drosurv.predictions import final_step, prepared
from drosurv.report.predictions import audit_predictions
from drosurv.report.report import AuditReport


def is_score(model: Any) -> bool:
    """Whether a model, and not an array of predictions, is known at some times only."""
    final = final_step(model)
    return hasattr(final, "predict") and getattr(final, "curve_type", None) == "points"


def audit_score(
    model: Any,
    X: Any,
    y: Any,
    refused: Mapping[str, Any],
    warnings: Sequence[Mapping[str, str]],
    **options: Any,
) -> AuditReport:
    """Audit the predictions of a score at its times, and say that nothing is known between them.

    `refused` are arguments of :func:`drosurv.audit` that are only for models with curves, `options` those of
    :func:`audit_predictions`.
    """
    score = final_step(model)
    name = type(score).__name__
    for argument, value in refused.items():
        if value is not None:
            raise ArgumentError(
                argument, f"{argument} is not for {name}, which is known at some times only: leave it out."
            )
    features = prepared(model, X)
    if options.get("features") is None:
        options["features"] = X
    return audit_predictions(
        score.predict_survival_function(features, return_array=True),
        y,
        times=score.unique_times_,
        risk=score.predict(features),
        kind="survival",
        risk_kind="log risk",
        name=name,
        warnings=(*warnings, {"severity": "note", "text": score.known_times}),
        **options,
    )
