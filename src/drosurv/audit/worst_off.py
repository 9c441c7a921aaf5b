"""The patients served worst, described by rules, as a part of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drosurv.audit.alpha_path import final_estimator, prepared
from drosurv.audit.report import WorstOffAudit
from drosurv.insight import Estimate, worst_off
from drosurv.presentation import Column, Table

if TYPE_CHECKING:
    import pandas as pd

# Fewer patients cannot hold two groups that say anything.
LEAST_PATIENTS = 50
COLUMNS = (
    Column("rule", "Rule"),
    Column("patients", "Patients", "count"),
    Column("share", "Of all", "share"),
    Column("events", "Events", "count"),
    Column("harm", "Harm there", "value", ("harm_low", "harm_high")),
    Column("rest", "Harm elsewhere", "value", ("rest_low", "rest_high")),
    Column("stability", "Found again", "share"),
    Column("verdict", "Verdict"),
)
CAPTION = "Every rule that the search proposed"


def describe_worst_off(
    model: Any,
    X: Any,
    y: Any,
    y_train: Any,
    features: pd.DataFrame | None,
    level: float,
    random_state: int,
) -> WorstOffAudit:
    """Search for rules; parameters as in :func:`~drosurv.audit.audit`."""
    estimator = final_estimator(model)
    if len(y) < LEAST_PATIENTS:
        return _not_searched(f"{len(y)} patients are too few, it takes {LEAST_PATIENTS}")
    if not hasattr(estimator, "predict_survival_function"):
        return _not_searched("the model gives no survival curves")
    found = worst_off(
        estimator,
        prepared(model, X),
        y,
        y_train=y_train,
        features=_readable(X) if features is None else features,
        min_group=max(20, min(50, len(y) // 20)),
        confidence=level,
        random_state=random_state,
    )
    note = (
        "Harm is how much worse than by no model a patient is predicted, in log likelihood, averaged over patients not "
        f"used to find the rule; negative is a gain. All patients: {_signed(found.overall)}. Smallest group looked "
        f"for: {found.min_group} patients."
    )
    if found.findings:
        note += (
            " Found again: share of repeated samples in which the search comes back to the same group. Each end of an "
            f"interval holds with {100 * level:g} % confidence, for all rules together. A patient who meets several "
            "rules counts under the first."
        )
    rules = Table.of("worst_off", CAPTION, COLUMNS, found.to_frame())
    return WorstOffAudit(found.status, rules, note)


def _not_searched(why: str) -> WorstOffAudit:
    return WorstOffAudit(
        f"Rules for the worst off were not searched: {why}.", Table("worst_off", CAPTION, COLUMNS, ()), ""
    )


def _readable(X: Any) -> pd.DataFrame | None:
    import pandas as pd

    return X if isinstance(X, pd.DataFrame) else None


def _signed(estimate: Estimate) -> str:
    return str(estimate).replace("-", "−")
