"""A repaired linear model as a table: everyone's hazard ratios, then the exceptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from drosurv.insight.effect_columns import EffectColumns
from drosurv.presentation import Column, Table
from drosurv.repairs.chain import LARGEST_REPAIR
from drosurv.repairs.repair import Repair
from drosurv.repairs.repaired_predictions import is_proportional
from drosurv.tables import TableEncoder
from drosurv.tables.columns import CategoryColumn
from drosurv.target import FloatArray

# Log hazard ratios below this are no exception worth a row.
LEAST_SHOWN = 0.02
COLUMNS = (
    Column("who", "for"),
    Column("effect", "effect of"),
    Column("hazard_ratio", "hazard ratio", "value"),
    Column("everyone", "everyone's", "value"),
)


def hazard_ratio_table(base: Any, columns: EffectColumns, repairs: Sequence[Repair]) -> Table:
    """Everyone's hazard ratios per unit of a feature, then those of each group that differ.

    The base is a linear Cox model, or a Pipeline of a :class:`~drosurv.tables.TableEncoder` and one.
    """
    own = linear_effects(base)
    if own is None:
        raise ValueError(
            f"{type(base).__name__} has no coefficients that are log hazard ratios of the columns, so it does not "
            "read as a table of them; to_frame() lists the repairs of every model."
        )
    for_all = [repair.strength * repair.correction.everywhere for repair in repairs]
    for_all += [repair.strength * repair.correction.own for repair in repairs if repair.rule is None]
    everyone = _changed(own, columns, for_all)
    rows = [_row("everyone", name, value) for name, value in everyone.items()]
    for repair in repairs:
        if repair.rule is None:
            continue
        effects = repair.strength * repair.correction.own
        there = _changed(own, columns, [*for_all, effects])
        rows.append(_row(repair.who, "being there, for an average patient", effects[0], 0.0))
        rows += [
            _row(repair.who, name, value, everyone.get(name, 0.0))
            for name, value in there.items()
            if abs(value - everyone.get(name, 0.0)) >= LEAST_SHOWN
        ]
    notes = (
        "Per unit of the feature. Beyond the 1 and 99 % quantiles of a feature a repair changes no further, and no "
        f"repair multiplies a hazard by more than {np.exp(LARGEST_REPAIR):.0f}.",
    )
    return Table("hazard_ratios", "Hazard ratios", COLUMNS, tuple(rows), notes if repairs else ())


def _row(who: str, effect: str, log_ratio: float, usual: float | None = None) -> dict[str, Any]:
    """For whom, the effect of what, its hazard ratio, and everyone's."""
    everyone = None if usual is None else float(np.exp(usual))
    return {"who": who, "effect": effect, "hazard_ratio": float(np.exp(log_ratio)), "everyone": everyone}


def linear_effects(base: Any) -> dict[str, float] | None:
    """Log hazard ratios per unit of a linear model's features; None for any other model."""
    *steps, final = base if isinstance(base, Pipeline) else [base]
    steps += [final.encoder_] if hasattr(final, "encoder_") else []
    coefficients = np.ravel(getattr(final, "coef_", ()))
    known = len(steps) == 0 or (len(steps) == 1 and isinstance(steps[0], TableEncoder))
    if len(coefficients) == 0 or not known or not is_proportional(final):
        return None
    if not steps:
        names = getattr(final, "feature_names_in_", [f"x{j}" for j in range(len(coefficients))])
        return dict(zip(map(str, names), coefficients.tolist(), strict=True))
    encoder, labels = steps[0], []
    for column in encoder.columns_:
        if isinstance(column, CategoryColumn):
            labels += [f"{column.name} is {level}" for level in column.others]
        elif column.features:
            labels.append(column.name)
    return dict(zip(labels, (coefficients / encoder.scale_).tolist(), strict=True))


def _changed(
    coefficients: dict[str, float], columns: EffectColumns, changes: Sequence[FloatArray]
) -> dict[str, float]:
    """Coefficients after effects (p,) of scaled columns were added; those of the risk stretch all of them."""
    found = dict(coefficients)
    if not changes:
        return found
    total = np.sum(changes, axis=0)
    (risk, stretch), *features = zip(columns.columns, total[1:], strict=True)
    found = {name: value * (1 + stretch / risk.scale) for name, value in coefficients.items()}
    for column, effect in features:
        if effect != 0:
            name, sign = _coefficient(column.label, found)
            found[name] = found.get(name, 0.0) + sign * float(effect / column.scale)
    return found


def _coefficient(label: str, known: dict[str, float]) -> tuple[str, int]:
    """Which coefficient a column's effect changes, and its sign: a table encoder tells one of truth and falsehood."""
    possible = {label: 1, f"{label} is True": 1, f"{label} is False": -1}
    return next(((name, sign) for name, sign in possible.items() if name in known), (label, 1))
