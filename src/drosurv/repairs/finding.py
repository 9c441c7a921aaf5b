"""Repairs looked for one after the other, until none passes the test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from drosurv.insight import Rule
from drosurv.insight.coded_table import CodedTable
from drosurv.insight.effect_columns import EffectColumns
from drosurv.insight.wrongness import Limits, Residuals
from drosurv.repairs.acceptance import Progress, Shadows
from drosurv.repairs.chain import Kind
from drosurv.repairs.repair import Repair
from drosurv.target import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

    from drosurv.insight.expected_events import Expected


@dataclass(frozen=True)
class RepairSettings:
    """How repairs are looked for: the parameters of :class:`drosurv.RepairedCox`, and whether the model is frozen."""

    max_repairs: int
    max_conditions: int
    min_group: int
    min_events: int
    evidence: float
    tau: float
    frozen: bool


@dataclass(frozen=True)
class Attempt:
    """A repair that was put to the test, whether it passed or not.

    Parameters
    ----------
    kind : {"everyone", "effects", "level"}
    rule : Rule or None
        None for everyone.
    gain : float
        Log likelihood gained by patients not used for it, summed.
    e, overlap : float
        The e-value (NaN where another test had failed first) and the overlap of groups found without a fold.
    accepted : bool
    """

    kind: Kind
    rule: Rule | None
    gain: float
    e: float
    overlap: float
    accepted: bool


@dataclass(frozen=True, eq=False)
class FoundRepairs:
    """What a search for repairs found.

    Parameters
    ----------
    repairs : list of Repair
    attempts : list of Attempt
        What was put to the test, in this order.
    checked : (k, n) bool
        Whom each repair's group holds, each patient by the rule found without him.
    r : (n,) float64
        Each patient's log hazard ratio from the repairs found without him.
    """

    repairs: list[Repair]
    attempts: list[Attempt]
    checked: BoolArray
    r: FloatArray


def find_repairs(
    expected: Expected,
    features: pd.DataFrame,
    columns: EffectColumns,
    effects_of: pd.DataFrame,
    folds: IntArray,
    kinds: Sequence[Kind],
    settings: RepairSettings,
    progress: Progress,
) -> FoundRepairs:
    """Find repairs of a model from what it expected of n patients.

    Everyone is recalibrated first, so that no group is named for a fault of the whole.

    Parameters
    ----------
    expected : Expected
        Of a model that has not seen the patients it is asked about.
    features : DataFrame
        What rules may speak about.
    columns, effects_of : EffectColumns, DataFrame
        What effects may differ in, and the table it is read from.
    folds : (n,) int
    kinds : sequence of {"everyone", "effects", "level"}
        What to try, in this order; "everyone" once.
    settings : RepairSettings
    progress : callable
    """
    table = CodedTable.from_table(features)
    residuals = Residuals(expected.events, expected.hazard, columns.of(effects_of, expected.log_risk))
    limits = Limits(settings.min_group, settings.min_events, settings.tau)
    shadows = Shadows(
        table, residuals, folds, settings.max_conditions, settings.evidence, progress, frozen=settings.frozen
    )
    repairs: list[Repair] = []
    attempts: list[Attempt] = []
    checked: list[BoolArray] = []

    def tried(kind: Kind) -> bool:
        trial = shadows.try_kind(kind, replace(limits, level_only=kind == "level"))
        if trial is None:
            return False
        rule = table.rule(trial.found.atoms) if trial.found.atoms else None
        gain = float(trial.gains.sum())
        attempts.append(Attempt(kind, rule, gain, trial.e, trial.overlap, trial.accepted))
        if trial.accepted:
            repairs.append(Repair.of(trial, rule, expected))
            checked.append(trial.inside)
        return trial.accepted

    if "everyone" in kinds:
        tried("everyone")
    groups = [kind for kind in kinds if kind != "everyone"]
    while len(repairs) < settings.max_repairs and len(table.atoms) and any(tried(kind) for kind in groups):
        pass
    held = np.array(checked, dtype=np.bool_).reshape(len(checked), len(folds))
    return FoundRepairs(repairs, attempts, held, shadows.held_out())
