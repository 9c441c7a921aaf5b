"""What would help: repairs that pass, beside robust training, recalibration and a flexible correction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.evaluation.predictions import predict_curves
from drosurv.insight import Estimate
from drosurv.metrics import likelihood_gains
from drosurv.observation import draw_folds
from drosurv.presentation import Column, Statement, Table
from drosurv.repairs import RepairedCox
from drosurv.repairs.curves import Expected, expected_of_frozen, reference_times
from drosurv.repairs.evidence import likelihood_gains_of, poisson_ridge
from drosurv.repairs.rules import readable_table
from drosurv.target import BoolArray, FloatArray

FOLDS = 5
TREES: dict[str, Any] = {
    "max_bins": 32,
    "max_iter": 60,
    "learning_rate": 0.05,
    "max_leaf_nodes": 8,
    "min_samples_leaf": 30,
}
COLUMNS = (
    Column("group", "Group"),
    Column("remedy", "Remedy"),
    Column.measured("ratio", "Observed / expected there"),
    Column.measured("gain", "Gain there"),
    Column.measured("elsewhere", "Gain elsewhere"),
)
NOTE = (
    "Repair, recalibration and flexible correction are learned from the audited patients in folds and measured on "
    "patients not used for them; models trained otherwise are measured as they are. Gain: log likelihood per "
    "patient over the audited model. Intervals are of each number alone."
)


def collect(evidence: Evidence) -> Part | None:
    """Return the repairs in words, and every remedy on the same groups; None where nothing is to be repaired."""
    return None if evidence.repaired is None else find_remedy(evidence)


def find_remedy(evidence: Evidence) -> Part | None:
    """Repair the audited model with the audited patients, and hold other remedies against it.

    None for a model without survival curves. Everything is learned and measured on folds of the audited patients, each
    patient by what was learned without that patient; models trained more robustly are measured as they are.
    """
    audited, target, repaired = evidence.stop, evidence.target, evidence.repaired
    curves = predict_curves(audited.model, audited.X, len(target))
    frozen = audited.frozen(evidence.features)
    if repaired is None or curves is None or frozen is None:
        return None
    groups = [(r.who, rows) for r, rows in zip(repaired.repairs_, repaired.checked_, strict=True) if r.rule]
    said = [Statement("remedy", text, True) for text in repaired.in_words()]
    if not groups:
        return Part(statements=tuple(said or [Statement("remedy", repaired.status_)]))
    times, level = reference_times(target), evidence.level
    expected = expected_of_frozen(*frozen, target, times)
    folds = draw_folds(len(target), FOLDS, np.random.default_rng(evidence.random_state))
    measured = _corrections(repaired, expected, folds, evidence.features)
    as_it_is = likelihood_gains(evidence.follow_up, target, curves)
    for stop in evidence.stops:
        theirs = None if stop.audited else predict_curves(stop.model, stop.X, len(target))
        other = stop.frozen(evidence.features)
        if theirs is not None and other is not None:
            hazard = expected_of_frozen(*other, target, times).hazard
            gained = likelihood_gains(evidence.follow_up, target, theirs)
            kind = "plain" if stop.alpha == 1 else "robust"
            measured[f"{kind} training, {stop.name}"] = (hazard, gained - as_it_is)
    rows = tuple(
        {"group": who, "remedy": name, "patients": int(inside.sum())}
        | Estimate.ratio(expected.events[inside].sum(), hazard[inside].sum(), level).named("ratio")
        | Estimate.mean(gains[inside], level).named("gain")
        | Estimate.mean(gains[~inside], level).named("elsewhere")
        for who, inside in groups
        for name, (hazard, gains) in measured.items()
    )
    table = Table("remedies", "Remedies side by side", COLUMNS, rows)
    return Part(statements=tuple(said), tables=(table,), facts={"note": NOTE})


def _corrections(
    repaired: RepairedCox, expected: Expected, folds: Any, features: Any
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Expected events and gains (n,) of each patient under corrections learned without that patient."""
    n = len(folds)
    risk = expected.log_risk - expected.log_risk.mean()
    Z = np.column_stack([np.ones(n), risk / max(float(risk.std()), 1e-9)])
    numbers = pd.get_dummies(readable_table(features, n), dtype=np.float64)
    table = np.column_stack([numbers.to_numpy(dtype=np.float64, na_value=np.nan), expected.log_risk])

    def level_and_slope(rows: BoolArray) -> FloatArray:
        effects = poisson_ridge(Z[rows], expected.events[rows], expected.hazard[rows], np.full(2, 1e-6))
        return Z @ effects

    def held_out(learned: Callable[[BoolArray], FloatArray]) -> FloatArray:
        r = np.zeros(n)
        for fold in range(FOLDS):
            r[folds == fold] = learned(folds != fold)[folds == fold]
        return r

    ratios = {
        "as it is": np.zeros(n),
        "repair": repaired.held_out_,
        "recalibration of everyone": held_out(level_and_slope),
        "flexible correction (boosted trees)": held_out(lambda rows: _trees(table, expected, rows)),
    }
    return {
        name: (expected.hazard * np.exp(r), likelihood_gains_of(r, expected.events, expected.hazard))
        for name, r in ratios.items()
    }


def _trees(table: FloatArray, expected: Expected, rows: BoolArray) -> FloatArray:
    """Log hazard ratios (n,) by boosted Poisson trees, learned from some rows."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    hazard = np.maximum(expected.hazard, 1e-4)
    trees = HistGradientBoostingRegressor(loss="poisson", early_stopping=False, random_state=0, **TREES)
    trees.fit(table[rows], (expected.events / hazard)[rows], sample_weight=hazard[rows])
    r: FloatArray = np.log(np.maximum(trees.predict(table), 1e-3))
    return r


SECTION = Section(
    key="remedy",
    heading="Remedy",
    place=45,
    collect=collect,
    intro="""
<p>For whom the audited model is wrong in a way that can be put right, and what would do it. A repair is named only if
patients who were not used for it gain.</p>
""",
    template="{{ m.findings(part, below=true) }}",
)
