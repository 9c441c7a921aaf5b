"""From the scores of every grid point to one setting per method and repeat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, cast, get_args

import numpy as np
import pandas as pd

from drosurv.errors import require, warn_caller
from drosurv.paper.methods import METHODS
from drosurv.paper.plan import TUNINGS, Experiment
from drosurv.paper.result import CONTROLS, PARAMETERS
from drosurv.paper.shrinkage import gain_share
from drosurv.paper.table_metrics import METRIC_NAMES
from drosurv.tuning import AccuracyBudget, BestScore, Choice, FixedSetting, SelectionRule

SelectOn = Literal["validation", "test"]
_SHOWN = (*PARAMETERS, *METRIC_NAMES, *CONTROLS, "gain_share")
CELL = ("experiment", "tuned_by", "dataset", "attribute", "method")


def choose_settings(
    grid: pd.DataFrame,
    experiment: Experiment,
    *,
    tuned_by: str = "ci",
    select_on: SelectOn = "validation",
) -> pd.DataFrame:
    """Choose one grid point per method and repeat, and show it on the test set.

    Cox and DeepSurv take their best c-index. Every other method takes the lowest CI (or F_A) among settings whose
    c-index is at least .95 of that of its unregularised method, in the same repeat. An experiment with a setting of
    its own shows that one. A repeat of a method whose unregularised method is not finished is left out with a
    warning.

    `grid` is from ``gather``; the cohorts and methods of the experiment are shown. Inside the accuracy budget
    `tuned_by` names what is minimised, "ci" or "fa", and `select_on` the part that the choice looks at: "test" is a
    diagnostic, which shows what choosing on the answers would give, and is no result.

    One row per cohort, method and repeat: test metrics and controls in the library's units, the setting's parameters,
    ``gain_share``, and ``reason`` and ``fallback`` of the choice.
    """
    require(tuned_by in TUNINGS, "tuned_by", f"be one of {', '.join(TUNINGS)}", tuned_by)
    select_on = parse_select_on(select_on)
    label = tuned_by if experiment.setting is None else "fixed"
    grid = grid.assign(gain_share=gain_share(grid, select_on=select_on))
    records: list[dict[str, Any]] = []
    for dataset, attribute in experiment.cohorts:
        cohort = grid.loc[(grid["dataset"] == dataset) & (grid["attribute"] == attribute)]
        for repeat, scores in cohort.groupby("repeat"):
            key = dict(zip(CELL, (experiment.name, label, dataset, attribute), strict=False))
            records.extend(
                {**key, "repeat": repeat, **row} for row in _choices(scores, experiment, tuned_by, select_on)
            )
    columns = [*CELL, "repeat", "candidate", *_SHOWN, "fallback", "reason"]
    return pd.DataFrame(records, columns=columns)


def parse_select_on(value: str) -> SelectOn:
    """The part that a choice looks at, checked."""
    require(value in get_args(SelectOn), "select_on", "be 'validation' or 'test'", value)
    return cast(SelectOn, value)


def _choices(
    scores: pd.DataFrame, experiment: Experiment, tuned_by: str, select_on: SelectOn
) -> Iterator[dict[str, Any]]:
    """The chosen rows of one cohort and repeat."""
    points = scores.set_index("candidate")
    read = [*PARAMETERS, "concordance_index", TUNINGS[tuned_by]]
    judged = dict(list(points.loc[points["part"] == select_on].groupby("method")[read]))
    shown = scores.loc[scores["part"] == "test", ["method", "candidate", *_SHOWN]].to_dict("records")
    on_test = {(row["method"], row["candidate"]): row for row in shown}
    for method in (METHODS[name] for name in experiment.methods if name in judged):
        if method.reference not in judged:
            warn_caller(
                f"{experiment.name}: a repeat of {method.name} is left out, because {method.reference}, "
                "which sets its accuracy budget, is not finished there; run again to finish it."
            )
            continue
        reference = float(judged[method.reference]["concordance_index"].max())
        setting = experiment.setting_of(method)
        rule: SelectionRule = AccuracyBudget(minimise=TUNINGS[tuned_by], reference=reference)
        if method.is_reference:
            rule = BestScore()
        elif setting is not None:
            rule = FixedSetting(dict(setting))
        try:
            choice = rule.choose(judged[method.name])
        except ValueError as error:
            # Every training of the grid diverged: the repeat has no number, and says so.
            choice = Choice(None, str(error))
        row = on_test.get((method.name, choice.index), {})
        yield {
            **{name: row.get(name, np.nan) for name in _SHOWN},
            "method": method.name,
            "candidate": choice.index,
            "fallback": choice.fallback,
            "reason": choice.reason,
        }
