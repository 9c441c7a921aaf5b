"""Repairs looked for one after the other, until none passes the test."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from drosurv.insight import Rule
from drosurv.insight.wrongness import Limits
from drosurv.repairs.acceptance import Shadows, Trial, z_of
from drosurv.repairs.chain import Kind

# Two-sided, 95 %.
CLEAR_Z = 1.960


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

    @staticmethod
    def of(trial: Trial) -> Attempt:
        """What stays of a trial."""
        gain = float(trial.gains.sum())
        return Attempt(trial.kind, trial.rule, gain, trial.e, trial.overlap, trial.accepted)


def find_repairs(shadows: Shadows, limits: Limits, max_repairs: int) -> list[Trial]:
    """Every repair put to the test, in this order; the accepted ones are kept by the chains.

    Everyone is recalibrated first, so that no group is named for a fault of the whole. Where no group follows, the
    recalibration of a fitted model is kept only if its gain is clear.
    """
    trials: list[Trial] = []

    def passed(kind: Kind) -> bool:
        trial = shadows.try_kind(kind, replace(limits, level_only=kind == "level"))
        trials.extend([] if trial is None else [trial])
        return trial is not None and trial.accepted

    n_repairs = int(max_repairs > 0 and passed("everyone"))
    while n_repairs < max_repairs and len(shadows.table.atoms) and (passed("effects") or passed("level")):
        n_repairs += 1
    kept = [trial for trial in trials if trial.accepted]
    if len(kept) == 1 and kept[0].rule is None and not (shadows.frozen or _is_clear(kept[0], shadows)):
        return [replace(trial, accepted=False) for trial in trials]
    return trials


def _is_clear(trial: Trial, shadows: Shadows) -> bool:
    """Whether the interval of a cross-validated gain leaves out 0.

    The gain is that of K models, each fitted without a fold, and the model to be kept is none of them. They guess
    wildly for a few patients far from all others, whom the kept model has seen; so a few patients can make e as large
    as they like. The models also share most of their patients. A mean over K folds then varies 1 + K / (K - 1) times
    as much as its patients alone say (Nadeau and Bengio).
    """
    n_folds = len(shadows.without)
    return bool(z_of(trial.gains) >= CLEAR_Z * np.sqrt(1 + n_folds / (n_folds - 1)))
