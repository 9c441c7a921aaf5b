"""From a table of patients to the settings that serve them best, and the model trained with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from drosurv.errors import ArgumentError, as_number
from drosurv.tables import SurvivalTable
from drosurv.tuning import GridSearch, SelectionRule
from drosurv.workflows.training import Trained, fit_options, table_encoder


def tune(
    table: SurvivalTable,
    estimator: Any,
    grid: Mapping[str, Sequence[Any]],
    rule: SelectionRule,
    *,
    metrics: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    folds: int = 5,
    validation: float | None = None,
    n_jobs: int = 1,
    random_state: int = 0,
    verbose: bool | None = False,
) -> tuple[GridSearch, Trained]:
    """Search a grid of settings on parts that no patient straddles; the chosen model is trained on everybody.

    Every setting is scored on `folds` parts or, with `validation`, on one part of that share of the patients. The
    rest is as in :class:`GridSearch` and :class:`TableEncoder`.
    """
    if validation is not None and not 0 < as_number(validation) < 1:
        raise ArgumentError.must("validation", "be a share of the patients, in (0, 1)", validation)
    table.refuse_entry(
        "a search, which scores settings on patients seen from the beginning",
        "fit each setting by itself, and compare them on patients kept away",
    )
    search = GridSearch(
        Pipeline([("table", table_encoder(table, categorical)), ("model", estimator)]),
        {name: list(values) for name, values in grid.items()},
        rule=rule,
        cv=folds if validation is None else validation,
        metrics=metrics,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )
    search.fit(table.X, table.y, sensitive_features=table.groups, groups=table.repeated)
    best = search.best_estimator_
    return search, Trained(best, best[0], table, fit_options(best[-1], table))
