"""From a table of patients to the settings that serve them best, and the model trained with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from drosurv.tables import SurvivalTable
from drosurv.tuning import GridSearch, SelectionRule
from drosurv.workflows.training import Trained, fit_options, table_encoder


def tune(
    table: SurvivalTable,
    estimator: Any,
    grid: Mapping[str, Sequence[Any]],
    rule: SelectionRule,
    *,
    categorical: Sequence[str] = (),
    **options: Any,
) -> tuple[GridSearch, Trained]:
    """Search a grid of settings on parts that no patient straddles; the chosen model is trained on everybody.

    Options are those of :class:`GridSearch`, `categorical` is as in :class:`TableEncoder`.
    """
    table.refuse_entry(
        "a search, which scores settings on patients seen from the beginning",
        "fit each setting by itself, and compare them on patients kept away",
    )
    search = GridSearch(
        Pipeline([("table", table_encoder(table, categorical)), ("model", estimator)]),
        {name: list(values) for name, values in grid.items()},
        rule=rule,
        **options,
    )
    search.fit(table.X, table.y, sensitive_features=table.groups, groups=table.repeated)
    best = search.best_estimator_
    return search, Trained(best, best[0], table, fit_options(best[-1], table))
