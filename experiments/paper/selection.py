"""From the scores of every grid point to one setting per method and repeat, and to means over repeats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast, get_args

import numpy as np
import pandas as pd

from drosurv.errors import require, warn_caller
from drosurv.metrics.partial_likelihood import kept_share
from experiments.paper.methods import METHODS, METRIC_NAMES, TABLE_METRICS
from experiments.paper.plan import TUNINGS, Experiment
from experiments.paper.rules import AccuracyBudget, BestScore, Choice, FixedSetting, SelectionRule
from experiments.paper.unit import CONTROLS, DRAWS, PARAMETERS

SelectOn = Literal["validation", "test"]
_SHOWN = (*PARAMETERS, *METRIC_NAMES, *CONTROLS, DRAWS, "gain_share")
# Shown beside every table, because disparities fall when all scores are multiplied by c < 1.
SHRINKAGE = ("gain_share", "calibration_slope")
_REPEAT = ["dataset", "attribute", "repeat"]
OVER_REPEATS = ("mean", "sd", "repeats", "se", "low", "high", "draws")
_SCALE = {metric.name: metric.printed_scale for metric in TABLE_METRICS}
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
    records: list[dict[str, Any]] = []
    for dataset, attribute in experiment.cohorts:
        cohort = grid.loc[(grid["dataset"] == dataset) & (grid["attribute"] == attribute)]
        cohort = cohort.assign(gain_share=gain_share(cohort, select_on=select_on))
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
        rule: SelectionRule = AccuracyBudget(reference, minimise=TUNINGS[tuned_by])
        if method.name == method.reference:
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


def gain_share(grid: pd.DataFrame, *, select_on: str = "validation") -> pd.Series[float]:
    """Gain in log partial likelihood over the null model, as a share of plain Cox's; aligned with the grid.

    (LPL - LPL_0) / (LPL_cox - LPL_0) on the same patients, where LPL_0 is that of equal scores for everyone and Cox
    is at its best c-index of the same repeat on the part `select_on`. Near 0: the model says next to nothing, however
    fair it looks. Negative: worse than no model. NaN where the repeat has no Cox, or a Cox that gains nothing.
    """
    cox = grid.loc[grid["method"] == "cox"]
    judged = cox.loc[(cox["part"] == select_on) & cox["concordance_index"].notna()]
    best = judged.sort_values("concordance_index", ascending=False, kind="stable").drop_duplicates(_REPEAT)
    chosen = cox.merge(best[[*_REPEAT, "candidate"]], on=[*_REPEAT, "candidate"])
    chosen = chosen[[*_REPEAT, "part", "log_partial_likelihood"]]
    aligned = grid[[*_REPEAT, "part"]].merge(chosen, on=[*_REPEAT, "part"], how="left")
    null = grid["null_log_partial_likelihood"].to_numpy(dtype=float)
    cox_gain = aligned["log_partial_likelihood"].set_axis(grid.index) - null
    share: pd.Series[float] = kept_share(grid["log_partial_likelihood"] - null, cox_gain)
    return share


def over_repeats(rows: pd.DataFrame, metric: str) -> dict[str, Any]:
    """Mean and sd, in the printed unit, of one metric over rows that are repeats of the same thing.

    A repeat without a finite value is left out and not counted in ``repeats``; ``sd`` is NaN for one repeat. ``se``,
    ``low`` and ``high`` are the bootstrap standard error and interval, averaged over repeats where rows hold one: all
    repeats share one test set, so repeating does not make that interval narrower. ``draws`` are the bootstrap
    replicates, averaged likewise: each replicate draws the same patients in every repeat and for every method.
    """
    scale = _SCALE.get(metric, 1.0)
    values = scale * rows[metric].to_numpy(dtype=float)
    values = values[np.isfinite(values)]
    record: dict[str, Any] = {
        "mean": values.mean() if len(values) else np.nan,
        "sd": values.std(ddof=1) if len(values) > 1 else np.nan,
        "repeats": len(values),
    }
    for bound in ("se", "low", "high"):
        column = f"{metric}_{bound}"
        record[bound] = scale * rows[column].mean() if column in rows else np.nan
    draws = [row for row in rows.get(f"{metric}_draws", ()) if isinstance(row, list)]
    record["draws"] = scale * np.mean(draws, axis=0) if draws else None
    return record


def average(rows: pd.DataFrame, keys: Sequence[str], metrics: Sequence[str]) -> pd.DataFrame:
    """One row per combination of the keys, in their order, and metric: what :func:`over_repeats` gives."""
    records = [
        {**dict(zip(keys, key, strict=True)), "metric": metric, **over_repeats(part, metric)}
        for key, part in rows.groupby(list(keys), sort=False)
        for metric in metrics
    ]
    return pd.DataFrame(records, columns=[*keys, "metric", *OVER_REPEATS])


def summarise(chosen: pd.DataFrame) -> pd.DataFrame:
    """Every metric of every chosen method over repeats, the shrinkage control and the misaligned IBS among them.

    One row per cohort, method and metric: what :func:`over_repeats` gives, CI in percent, and ``fallbacks``, in how
    many repeats no setting met the accuracy budget.
    """
    summary = average(chosen, CELL, (*METRIC_NAMES, *SHRINKAGE, "misaligned_brier_score"))
    fallbacks = chosen["fallback"].astype(bool).groupby([chosen[name] for name in CELL]).sum()
    return summary.join(fallbacks.rename("fallbacks"), on=list(CELL))
