"""Repairs looked for one after the other, until none passes the test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from drosurv.insight.coded_table import CodedTable
from drosurv.insight.wrongness import TAU, Limits, Residuals
from drosurv.repairs.acceptance import Progress, Shadows
from drosurv.repairs.chain import Kind
from drosurv.repairs.effect_columns import EffectColumns
from drosurv.repairs.repair import Repair
from drosurv.target import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

    from drosurv.repairs.expected_events import Expected


@dataclass(frozen=True)
class Settings:
    """How repairs are looked for; as the parameters of :class:`drosurv.RepairedCox`."""

    max_repairs: int
    max_conditions: int
    min_group: int
    min_events: int
    evidence: float
    tau: float = TAU
    universal: bool = False


def find_repairs(
    expected: Expected,
    features: pd.DataFrame,
    columns: EffectColumns,
    effects_of: pd.DataFrame,
    folds: IntArray,
    kinds: Sequence[Kind],
    settings: Settings,
    progress: Progress,
) -> tuple[list[Repair], FloatArray]:
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
    settings : Settings
    progress : callable

    Returns
    -------
    repairs : list of Repair
    r : (n,) float64
        Each patient's log hazard ratio from the repairs found without him.
    """
    table = CodedTable.from_table(features)
    residuals = Residuals(expected.events, expected.hazard, columns.of(effects_of, expected.log_risk))
    limits = Limits(settings.min_group, settings.min_events, settings.tau)
    shadows = Shadows(table, residuals, folds, settings.max_conditions, settings.evidence, progress)
    repairs: list[Repair] = []

    def tried(kind: Kind) -> bool:
        trial = shadows.try_kind(kind, replace(limits, level_only=kind == "level"))
        if trial is None or not trial.accepted:
            return False
        rule = table.rule(trial.found.atoms) if trial.found.atoms else None
        repairs.append(Repair.of(trial, rule, expected))
        return True

    if "everyone" in kinds and tried("everyone"):
        # From here on a group must gain more than the best level and slope of its own fold would.
        shadows.universal = settings.universal
    groups = [kind for kind in kinds if kind != "everyone"]
    while len(repairs) < settings.max_repairs and len(table.atoms) and any(tried(kind) for kind in groups):
        pass
    return repairs, shadows.held_out()


def draw_folds(n: int, n_folds: int, rng: np.random.Generator, event: BoolArray | None = None) -> IntArray:
    """A random fold for each of n patients; with event flags, events are spread evenly over the folds."""
    order = np.lexsort((rng.random(n), np.zeros(n) if event is None else event))
    folds = np.empty(n, dtype=np.intp)
    folds[order] = np.arange(n) % n_folds
    return folds
