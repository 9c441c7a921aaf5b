"""Choose the settings of a model on a table: the best worst group within an accuracy budget, or else plain Cox."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from drosurv.errors import ArgumentError, arg, require
from drosurv.evaluation import compare
from drosurv.evaluation.attributes import EVERYONE
from drosurv.evaluation.reference import plain_cox
from drosurv.presentation import written
from drosurv.presentation.progress import bar
from drosurv.presentation.sentences import LEAST_DIFFERENCE
from drosurv.report.cross_fit import cross_fitted, cross_fitted_cox, fold_parts
from drosurv.tables import SurvivalTable
from drosurv.workflows.comparison import GAIN, METRICS, PLAIN
from drosurv.workflows.training import Trained, fit_options, refuse_leaks, table_encoder, train

ALPHAS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
WEIGHTS = (1.0, 0.7, 0.4)
# Settings are compared with plain Cox at this level, adjusted for their number.
_LEVEL = 0.95
_REPLICATES = 999


@dataclass(frozen=True, eq=False)
class Tuned:
    """The settings that were tried, and the one that was chosen: its `parameters`, empty for plain Cox, and why.

    `trained` is the chosen model, trained on all patients. `settings` has plain Cox and every setting on patients not
    trained on: its parameters, ``concordance_index`` and ``likelihood_gain`` of everybody, ``worst_gain`` of the
    ``worst_group`` (of everybody, without groups), its ``difference`` from that of plain Cox with ``low``, ``high`` and
    the adjusted ``p``, ``calibration_slope``, and whether it was ``chosen``.
    """

    trained: Trained
    settings: pd.DataFrame
    parameters: dict[str, Any]
    reason: str


def default_grid(estimator: Any) -> dict[str, list[Any]]:
    """Return the values that are tried by default: of alpha, or of the weight of a penalty."""
    parameters = estimator.get_params(deep=False)
    grid: dict[str, list[Any]] = {
        name: list(values) for name, values in (("alpha", ALPHAS), ("weight", WEIGHTS)) if name in parameters
    }
    if not grid:
        raise ArgumentError(
            "grid",
            f"{type(estimator).__name__} has no parameter that is tuned by default: give a {arg('grid')}, such as l2 "
            "with the values 0, 0.01 and 0.1.",
        )
    return grid


def tune(
    table: SurvivalTable,
    estimator: Any,
    grid: Mapping[str, Sequence[Any]],
    *,
    tolerance: float = 0.1,
    folds: int = 5,
    categorical: Sequence[str] = (),
    keep_columns: Sequence[str] = (),
    n_jobs: int | None = None,
    random_state: int = 0,
    verbose: bool | None = None,
) -> Tuned:
    """Compare every combination of the values of a grid with plain Cox, choose one, and train it on all patients.

    Each setting predicts patients that it was not trained on, in `folds`; rows of one patient, or cluster, share a
    fold. All are compared with plain Cox on the same patients by :func:`drosurv.compare`, and :func:`choose` chooses.
    `categorical` and `keep_columns` are as in :func:`train`.
    """
    require(0 <= tolerance < 1, "tolerance", "be a share in [0, 1)", tolerance)
    if table.columns.entry is not None:
        raise ArgumentError(
            "entry",
            f"{arg('entry')} is not supported by a search, which scores settings on patients who are observed from "
            "time 0: fit each setting by itself, and compare them on held-out patients.",
        )
    refuse_leaks(table, keep_columns)
    points = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    settings = [clone(estimator).set_params(**point) for point in points]
    encoder = table_encoder(table, categorical, keep_columns=keep_columns)
    parts = fold_parts(table.event, folds, random_state, table.together)
    models = [Pipeline([("table", clone(encoder)), ("model", setting)]) for setting in settings]
    with warnings.catch_warnings(action="ignore"), bar("settings", len(models), shown=verbose) as advance:
        # Training on all patients gives the same warnings.
        found: dict[str, Any] = {PLAIN: cross_fitted_cox(models[0], table.X, table.y, parts)}
        options = fit_options(models[0][-1], table)
        if "clusters" in table.row_arguments:
            options["clusters"] = table.row_arguments["clusters"]
        predicted = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(cross_fitted)(model, table.X, table.y, parts, fit_options=options) for model in models
        )
        for number, one in enumerate(predicted):
            found[str(number)] = one.predictions
            advance()
    compared = compare(
        found,
        None,
        table.y,
        y_train=table.y,
        sensitive_features=table.groups,
        **table.judged_rows,
        metrics=METRICS,
        n_bootstrap=_REPLICATES,
        level=_LEVEL,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    tried = setting_table(compared, points)
    chosen, reason = choose(tried, tolerance)
    tried["chosen"] = tried.index == chosen
    parameters = points[chosen - 1] if chosen else {}
    model = settings[chosen - 1] if chosen else plain_cox(estimator)
    how: dict[str, Any] = {"categorical": categorical, "keep_columns": keep_columns}
    trained = train(table, model, observed=table.columns_of_rows, **how)
    return Tuned(trained, tried, parameters, reason)


def setting_table(compared: pd.DataFrame, points: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row per model, plain Cox first, from the table of :func:`drosurv.compare`."""
    everybody = compared[compared["attribute"] == EVERYONE]
    by_metric = {metric: rows.set_index("model") for metric, rows in everybody.groupby("metric")}
    worst = by_metric.get(f"worst_group_{GAIN}", by_metric[GAIN].assign(group="everybody"))
    parameters = pd.DataFrame([dict.fromkeys(points[0]), *points], dtype=object).set_index(worst.index)
    found = parameters.assign(
        concordance_index=by_metric["concordance_index"]["value"],
        likelihood_gain=by_metric[GAIN]["value"],
        worst_group=worst["group"],
        worst_gain=worst["value"],
        difference=worst["difference"],
        low=worst["difference_low"],
        high=worst["difference_high"],
        p=worst["p"],
        calibration_slope=by_metric["calibration_slope"]["value"],
    )
    return found.reset_index(drop=True)


def choose(settings: pd.DataFrame, tolerance: float) -> tuple[int, str]:
    """Return the row of the chosen setting, 0 for plain Cox, and why.

    Of the settings that keep at least (1 - tolerance) of plain Cox's gain in log likelihood for everybody, and whose
    gain for the worst group is significantly higher than plain Cox's, the one with the highest; plain Cox if there is
    none. The budget is in likelihood, because the c-index does not see that all predictions became alike.
    """
    plain = settings.iloc[0]
    least = plain["likelihood_gain"] - tolerance * max(plain["likelihood_gain"], 0.0)
    significant = (settings["difference"] >= LEAST_DIFFERENCE) & (settings["p"] < 1 - _LEVEL)
    better = significant & (settings["likelihood_gain"] >= least)
    whose = "everybody" if plain["worst_group"] == "everybody" else "the worst group"
    budget = f"a likelihood gain for everybody of at least {written(least)}"
    if not better.any():
        return 0, (
            f"no setting predicts {whose} significantly better than {PLAIN} (likelihood gain "
            f"{written(plain['worst_gain'])}) and has {budget}"
        )
    row = int(np.nanargmax(settings["worst_gain"].where(better).to_numpy(dtype=float)))
    return row, (
        f"likelihood gain for {whose} {written(settings['worst_gain'].iloc[row])}, significantly higher than that of "
        f"{PLAIN} ({written(plain['worst_gain'])}); the highest of {int(better.sum())} such settings with {budget}"
    )
