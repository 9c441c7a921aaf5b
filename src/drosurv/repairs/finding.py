"""Repairs looked for one after the other, until none passes the test."""

from __future__ import annotations

from dataclasses import dataclass, replace

from drosurv.insight import Rule
from drosurv.insight.wrongness import Limits
from drosurv.repairs.acceptance import Shadows, Trial
from drosurv.repairs.chain import Kind


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

    Everyone is recalibrated first, so that no group is named for a fault of the whole.
    """
    trials: list[Trial] = []

    def passed(kind: Kind) -> bool:
        trial = shadows.try_kind(kind, replace(limits, level_only=kind == "level"))
        trials.extend([] if trial is None else [trial])
        return trial is not None and trial.accepted

    n_repairs = int(passed("everyone"))
    while n_repairs < max_repairs and len(shadows.table.atoms) and (passed("effects") or passed("level")):
        n_repairs += 1
    return trials
