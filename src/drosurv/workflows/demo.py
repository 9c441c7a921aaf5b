"""The demonstration: plain, cross-validated and repaired Cox regression on held-out patients of three datasets."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from drosurv.datasets import Dataset, load_flc, load_nwtco, make_hidden_minority
from drosurv.datasets.splits import drawn_rows
from drosurv.estimators import CoxPH, CoxPHCV
from drosurv.evaluation.evaluate import prepare
from drosurv.evaluation.group_table import group_table, rows_of
from drosurv.evaluation.risks_by_time import risks_by_time
from drosurv.judging.judged import Horizon
from drosurv.judging.words import SUBGROUP
from drosurv.patients.observation import Inference
from drosurv.patients.target import BoolArray, parse_target
from drosurv.predictions import as_predictions
from drosurv.presentation import first_upper
from drosurv.repairs import RepairedCox
from drosurv.report import AuditReport, Page, audit

PLAIN, CROSS_VALIDATED, REPAIRED = "plain Cox", "cross-validated Cox", "repaired Cox"
WILMS, SIMULATED, NOTHING_FOUND = "nwtco", "simulated", "flc"
# Share of the patients that is held out.
_HELD_OUT = 1 / 3
#: Time by which risks are compared, and its name in sentences: every stratum of risk is followed until then.
HORIZONS = {WILMS: (1826.0, "5 years"), SIMULATED: (0.8, "time 0.8"), NOTHING_FOUND: (3652.0, "10 years")}
# The subgroup that make_hidden_minority simulates.
_TRUTH = "x5 > 1.04"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Three models of the dataset `data`, trained on the same patients and compared on others with `n_events`.

    `rules` are the subgroups that the repaired model found; `group` is the subgroup of the table, "" for none. The
    table has one row per model: ``gain`` and ``c_index`` of all held-out patients; of the subgroup the mean
    ``predicted`` risk `by` a time, the ``observed`` one with its interval ``low`` to ``high``
    (:mod:`drosurv.metrics.risk_strata`), and ``group_gain``; ``seconds`` of training. A gain is in log likelihood per
    patient over the null model.
    """

    data: str
    n_train: int
    n_test: int
    n_events: int
    rules: tuple[str, ...]
    group: str
    n_group: int
    by: str
    table: pd.DataFrame

    def number(self, model: str, column: str) -> float:
        """Return one number of the table."""
        return float(self.table.set_index("model")[column][model])


def models(random_state: int = 0) -> dict[str, Any]:
    """Return the models of the demonstration, not fitted, by the names that tables show."""
    return {
        PLAIN: CoxPH(),
        CROSS_VALIDATED: CoxPHCV(random_state=random_state),
        REPAIRED: RepairedCox(CoxPH(), random_state=random_state),
    }


def datasets(random_state: int = 0, n_simulated: int = 6000) -> dict[str, Callable[[], Dataset]]:
    """Return loaders of the three datasets by name."""
    return {
        WILMS: load_nwtco,
        SIMULATED: lambda: make_hidden_minority(n_simulated, random_state=random_state),
        NOTHING_FOUND: load_flc,
    }


def demo(
    *,
    random_state: int = 0,
    loaders: Mapping[str, Callable[[], Dataset]] | None = None,
    on_model: Callable[[str], None] | None = None,
) -> dict[str, Comparison]:
    """Train and compare the models on held-out patients of each dataset.

    `random_state` seeds splits, folds and simulated patients; `loaders` of datasets are those of :func:`datasets` by
    default; `on_model` is called with the name of each model and dataset before training.
    """
    found = {}
    for name, load in (datasets(random_state) if loaders is None else loaders).items():
        data = load()
        truth = None
        if name == SIMULATED:
            truth = (data.sensitive_features["membership"] == "minority").to_numpy()
        found[name] = _compare(name, data, truth, random_state, on_model or (lambda text: None))
    return found


def held_out_rows(data: Dataset, random_state: int) -> BoolArray:
    """Draw a third of the patients, with the same share of events as the rest; return a mask (n,)."""
    return np.isin(np.arange(len(data)), drawn_rows(data, _HELD_OUT, random_state)[1])


def _compare(
    name: str,
    data: Dataset,
    truth: BoolArray | None,
    random_state: int,
    on_model: Callable[[str], None],
) -> Comparison:
    """Train all models and compare them; the subgroup is the true one, or else the first that repair found."""
    test = held_out_rows(data, random_state)
    fitted, seconds = {}, {}
    for model_name, model in models(random_state).items():
        on_model(f"{model_name} on {name}")
        start = perf_counter()
        fitted[model_name] = model.fit(data.X[~test], data.y[~test])
        seconds[model_name] = perf_counter() - start
    rules = [repair.rule for repair in fitted[REPAIRED].repairs_ if repair.rule is not None]
    X, y = data.X[test], data.y[test]
    horizon, by = HORIZONS[name]
    group, inside = "", np.zeros(len(y), dtype=np.bool_)
    if truth is not None:
        group, inside = _TRUTH, truth[test]
    elif rules:
        group, inside = str(rules[0]), rules[0].holds(X)
    rows = []
    for model_name, model in fitted.items():
        with warnings.catch_warnings(action="ignore"):
            # Only the group table, because compiling other metrics would take longer than everything else.
            evaluator = prepare(
                as_predictions(model, X, len(y)),
                y,
                y_train=data.y[~test],
                sensitive_features=None,
                reference=fitted[PLAIN],
                horizon=horizon,
                wanted=["concordance_index"],
            )
            numbers, _ = rows_of(evaluator, (), 0.95)
            subgroups = {group: np.flatnonzero(inside)} if group else None
            scored = group_table(evaluator, numbers, Horizon(), Inference(), subgroups=subgroups).table
        everybody = scored.iloc[0]
        row = {"model": model_name, "gain": everybody["gain"], "c_index": everybody["c_index"]}
        if group:
            row["group_gain"] = scored.loc[scored["attribute"] == SUBGROUP, "gain"].iloc[0]
            risks = risks_by_time(evaluator, 0.95, {group: np.flatnonzero(inside)}, alone=True)
            there = risks[risks["time"] == horizon].iloc[0]
            row |= {column: there[column] for column in ("predicted", "observed", "low", "high")}
        rows.append({**row, "seconds": seconds[model_name]})
    return Comparison(
        name,
        int((~test).sum()),
        int(test.sum()),
        parse_target(y).n_events,
        tuple(map(str, rules)),
        group,
        int(inside.sum()),
        by,
        pd.DataFrame(rows),
    )


def reports(
    *, random_state: int = 0, on_step: Callable[[str, int], None] | None = None
) -> dict[str, AuditReport]:
    """Audit plain and repaired Cox on the held-out children with Wilms tumour; by the names of the models."""
    data = load_nwtco()
    test = held_out_rows(data, random_state)
    found = {}
    for name, model in models(random_state).items():
        if name == CROSS_VALIDATED:
            continue
        if on_step is not None:
            on_step(name, 2)
        with warnings.catch_warnings(action="ignore"):
            found[name] = audit(
                model.fit(data.X[~test], data.y[~test]),
                data.X[test],
                data.y[test],
                sensitive_features=data.sensitive_features[test],
                X_train=data.X[~test],
                y_train=data.y[~test],
                random_state=random_state,
                verbose=False,
                page=Page(
                    title=f"{first_upper(name)}, on held-out children with Wilms tumour",
                    data_name="children with Wilms tumour",
                    time_unit="days",
                ),
            )
    return found
