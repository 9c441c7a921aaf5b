"""Sections on subgroups that columns define: significant ones, bounds for all, and remedies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from drosurv.judging.rules import readable_table
from drosurv.judging.subgroup_bounds import BRIER, GAIN, SubgroupBounds
from drosurv.judging.verdict import no_correction
from drosurv.judging.words import period
from drosurv.patients.draws import draw_folds, row_order
from drosurv.patients.target import BoolArray, FloatArray, IntArray, parse_competing_target
from drosurv.predictions import as_predictions
from drosurv.presentation import Column, Statement, Table, first_upper, moment, plain_rows
from drosurv.repairs import RepairedCox
from drosurv.repairs.bayes_factors import LARGEST, in_blocks, likelihood_gains_of, poisson_ridge
from drosurv.repairs.expected import Expected, expected_of_frozen, reference_times
from drosurv.repairs.repair import HeldOutNumber
from drosurv.report.evidence import EVENTS, EXPECTED, PATIENTS, Evidence, Part, Section

WHOLE = "whole follow-up"
SIGNIFICANT = (
    Column("group", "Subgroup"),
    PATIENTS,
    EVENTS,
    EXPECTED,
    Column("when", "When"),
    Column("ratio", "Observed / expected", "value"),
    Column("p", "p, adjusted", "p"),
)


def collect(evidence: Evidence) -> Part:
    """Return the bounds and the significant subgroups; or why subgroups were not searched."""
    bounds = evidence.bounds
    if isinstance(bounds, str):
        return Part(statements=(Statement("subgroups", evidence.excluded),))
    first, *more = bounds.summary(evidence.time_unit, overall=False).split("\n")
    statements = tuple(Statement("subgroups", text) for text in (first, " ".join(more)) if text)
    return Part(statements, tuple(_tables(bounds, evidence.time_unit)), facts={"bounds": bounds.to_dict()})


def _tables(bounds: SubgroupBounds, unit: str) -> Iterator[Table]:
    shown = bounds.to_table()
    columns = tuple(replace(column, label=first_upper(str(column.label))) for column in shown.columns)
    words = {BRIER: f"Brier score at {moment(bounds.horizon, unit)}", GAIN: "gain over no model"}
    named = [(row, words.get(row["measure"], row["measure"])) for row in shown.rows]
    measures = tuple(row | {"measure": first_upper(name)} for row, name in named)
    yield Table("subgroup_bounds", shown.caption, columns, measures)
    for key, found in (("significant", bounds.significant), ("rescaled", bounds.rescaled)):
        if found is not None and len(found):
            after = f", {bounds.correction}" if key == "rescaled" else ""
            rows = tuple(plain_rows(found))
            for row in rows:
                row["when"] = period(row["since"], row["until"], unit) or WHOLE
            caption = f"Subgroups that differ from the predictions{after}"
            if any(row["when"] != WHOLE for row in rows):
                caption += (
                    ". In a part of the follow-up, expected are the subgroup's events times the share that the model "
                    "predicts for that part"
                )
            yield Table(key, caption, SIGNIFICANT, rows)


MISSED = Section(
    key="missed",
    heading="What could have been missed",
    place=40,
    collect=collect,
    intro="""
<p>All subgroups that one or two conditions on the columns define (with more than 60 columns: on a single one), tested
together: how wrong can the audited model be in groups that were not named?</p>
""",
    template="""
{% for statement in part.statements %}
<p{% if loop.first %} class="lead"{% endif %}>{{ statement.text }}</p>
{% endfor %}
{% for table in part.tables %}
{% if loop.first %}{{ m.plain_table(table) }}{% else %}{{ m.folded(table) }}{% endif %}
{% endfor %}
""",
)


FOLDS = 5
TREES: dict[str, Any] = {"max_bins": 32, "max_iter": 60, "learning_rate": 0.05}
TREES |= {"max_leaf_nodes": 8, "min_samples_leaf": 30}
REMEDIES = (
    Column("group", "Group"),
    Column("remedy", "Remedy"),
    Column.measured("ratio", "Observed / expected there", right=1.0),
    Column.measured("gain", "Gain there"),
    Column.measured("elsewhere", "Gain elsewhere"),
)
MEASURED = (
    "Repair, recalibration and flexible correction are fitted on folds of the audited patients and evaluated on "
    "patients who were left out. Gain: log likelihood per patient over the audited model. Intervals are not adjusted."
)


def find_remedy(evidence: Evidence) -> Part | None:
    """Compare the repair with other remedies, fitted on folds, in the repaired groups; None without survival curves."""
    refit = evidence.refit
    repaired, cause, evidence = evidence.repaired, evidence.cause, evidence.sample
    target = evidence.target
    if cause is not None:
        # Other causes end the observation.
        target = parse_competing_target(evidence.y, complete=False).of_cause(cause)
    curves = as_predictions(*frozen, len(target), cause=cause).curves if (frozen := evidence.frozen) else None
    if repaired is None or curves is None or frozen is None:
        return None
    checked = zip(repaired.repairs_, repaired.checked_, repaired.in_words(evidence.time_unit), strict=True)
    helpful = [(one, rows, text) for one, rows, text in checked if one.helps]
    groups = [(one.who, rows) for one, rows, _ in helpful if one.rule]
    statements = [Statement("remedy", text, True) for _, _, text in helpful]
    if not groups:
        return Part(statements=tuple(statements or [Statement("remedy", no_correction(refit))]))
    times, level = reference_times(target), evidence.level
    expected = expected_of_frozen(*frozen, target, times, cause=cause)
    rng, clusters = np.random.default_rng(evidence.random_state), evidence.rows.cluster_codes
    order = row_order(target, evidence.features, clusters)
    folds = draw_folds(len(target), FOLDS, rng, clusters=clusters, order=order)
    measured = _corrections(repaired, expected, folds, evidence.features)

    def own(rows: BoolArray) -> IntArray | None:
        return None if clusters is None else clusters[rows]

    rows = tuple(
        {"group": who, "remedy": name, "patients": int(inside.sum())}
        | HeldOutNumber.ratio(expected.events[inside], hazard[inside], own(inside), level).named("ratio")
        | HeldOutNumber.mean(gains[inside], level, own(inside)).named("gain")
        | HeldOutNumber.mean(gains[~inside], level, own(~inside)).named("elsewhere")
        for who, inside in groups
        for name, (hazard, gains) in measured.items()
    )
    table = Table("remedies", "Remedies side by side", REMEDIES, rows)
    return Part(statements=tuple(statements), tables=(table,), facts={"note": MEASURED})


def _corrections(
    repaired: RepairedCox, expected: Expected, folds: Any, features: Any
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return expected events and gains (n,) of patients by corrections that were fitted without their fold."""
    n = len(folds)
    risk = expected.log_risk - expected.log_risk.mean()
    Z = np.column_stack([np.ones(n), risk / max(float(risk.std()), 1e-9)])
    numbers = pd.get_dummies(readable_table(features, n), dtype=np.float64)
    table = np.column_stack([numbers.to_numpy(dtype=np.float64, na_value=np.nan), expected.log_risk])

    def level_and_slope(rows: BoolArray) -> FloatArray:
        return Z @ poisson_ridge(
            in_blocks(Z[rows], expected.events[rows], expected.hazard[rows]), np.full(2, 1e-6)
        )

    def held_out(learned: Callable[[BoolArray], FloatArray]) -> FloatArray:
        r = np.zeros(n)
        for fold in range(FOLDS):
            r[folds == fold] = learned(folds != fold)[folds == fold]
        return np.clip(r, -LARGEST, LARGEST)

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
    """Return log hazard ratios (n,) by boosted Poisson trees that are fitted to some rows."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    if not expected.events[rows].any():
        return np.zeros(len(table))
    hazard = np.maximum(expected.hazard, 1e-4)
    trees = HistGradientBoostingRegressor(loss="poisson", early_stopping=False, random_state=0, **TREES)
    # Small trees take up to five times as long on several threads.
    with threadpool_limits(1, user_api="openmp"), np.errstate(over="ignore"):
        trees.fit(table[rows], (expected.events / hazard)[rows], sample_weight=hazard[rows])
        r: FloatArray = np.log(np.maximum(trees.predict(table), 1e-3))
    return r


REMEDY = Section(
    key="remedy",
    heading="Remedy",
    place=45,
    collect=lambda evidence: None if evidence.repaired is None else find_remedy(evidence),
    intro="""
<p>For whom the audited model is wrong in a way that can be corrected, and how. A repair is named only if it improves
the predictions of patients who were not used for it, and the interval of its gain excludes 0.</p>
""",
    template="{{ m.findings(part, below=true) }}",
)
