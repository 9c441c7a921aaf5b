"""What the study of repairs measures: gains over the null model, and whom was repaired."""

import numpy as np

from experiments.studies.gains import patient_gains


def measured(method, model, follow_up, test, inside, seconds=np.nan):
    gains = patient_gains(model, follow_up, test.X, test.y)
    row = {"method": method, "overall": gains.mean(), "seconds": seconds}
    if inside.any():
        row |= {"minority": gains[inside].mean(), "rest": gains[~inside].mean()}
    return row | found_by(model, test, inside)


def found_by(model, test, inside):
    """What was repaired, and how well its groups overlap with the planted one."""
    if not hasattr(model, "repairs_"):
        return {}
    groups = [repair for repair in model.repairs_ if repair.rule is not None]
    members = [repair.rule.holds(test.X) for repair in groups]
    # A rule and its opposite cut the same group; several rules may make up one.
    sides = [*members, *(~one for one in members), *([np.any(members, axis=0)] if members else [])]
    overlaps = [(side & inside).sum() / max((side | inside).sum(), 1) for side in sides]
    return {
        "repairs": len(groups),
        "recalibrated": len(model.repairs_) - len(groups),
        "jaccard": max(overlaps, default=0.0),
        "largest_e": max((a.e for a in model.attempts_ if np.isfinite(a.e)), default=np.nan),
        "rules": "; ".join(
            f"{repair.who} [{repair.version} {repair.strength:g}]" for repair in model.repairs_
        ),
    }
