"""``drosurv evaluate``: accuracy and disparities of a saved model on patients it has not seen."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from drosurv.cli.model_options import JudgedModel
from drosurv.cli.options import (
    FileOptions,
    Groups,
    Horizon,
    RunOptions,
    TargetOptions,
    Threshold,
    cause_number,
    command,
    option,
)
from drosurv.cli.outputs import check_outputs, print_frame, print_json, print_times, printable
from drosurv.errors import InputError
from drosurv.presentation import Column, complement, moment, plain_rows, written

if TYPE_CHECKING:
    import pandas as pd

    from drosurv.evaluation import EvaluationResult

# Metrics that fit on a terminal; --json and -o give all of them.
_BY_GROUP = (
    Column.measured("concordance_index", "c-index"),
    Column.measured("integrated_brier_score", "IBS"),
    Column.measured("brier_skill", "Brier skill"),
    Column.measured("calibration_slope", "slope, adjusted"),
)
_OVERALL = {
    "log_partial_likelihood": "log partial likelihood per event",
    "share_of_gain": "share of the reference's likelihood gain",
}
_GAPS = {
    "uno_concordance": "Uno's C",
    "brier_skill": "Brier skill",
}


@command(place=70)
def evaluate(
    run: RunOptions,
    target: TargetOptions,
    file: FileOptions,
    judged: JudgedModel,
    groups: Groups = (),
    reference: Path | None = option(
        "Saved model to compare with; by default the plain Cox that fit saved with MODEL."
    ),
    intersections: bool = option(
        "Also show the intersections of all groups.", None, "--intersections", default=False
    ),
    horizon: Horizon = None,
    threshold: Threshold = None,
    output: Path | None = option("CSV file to write every number to.", None, "--output", "-o"),
) -> None:
    """Evaluate a saved model on a table, overall and by group, with intervals and tests of gaps between groups.

    Example: drosurv evaluate model test.csv --groups "sex,age>65"
    """
    from drosurv.evaluation import evaluate as evaluated
    from drosurv.evaluation.evaluator import with_intersections
    from drosurv.predictions.any_model import training_follow_up
    from drosurv.workflows.saved_model import OpenedModel

    data = judged.table("evaluate")
    check_outputs([output], [*judged.inputs, reference], force=run.force)
    if intersections and not groups:
        raise InputError("--intersections needs groups: pass --groups COLUMNS.")
    opened = judged.open()
    table = opened.table(file.format.read(data), groups=groups, clusters=judged.clusters, **asdict(target))
    table.warn_of_rows(data.name)
    compared_with, cause = opened.plain_cox(), cause_number(judged.cause, table)
    if reference is not None:
        other = OpenedModel.open(reference)
        compared_with = other.estimator.predict(other.features(table.frame))
    result = evaluated(
        opened.estimator,
        opened.features(table.frame),
        table.judged_y,
        y_train=None if table.entry is not None else training_follow_up(opened.estimator),
        **opened.observed(table.frame, judged.strata),
        sensitive_features=with_intersections(table.groups, len(table)) if intersections else table.groups,
        reference=compared_with,
        reference_name="plain Cox" if reference is None else reference.name,
        horizon=horizon,
        threshold=threshold,
        cause=cause,
        time_unit=table.columns.unit,
    )
    opened.warn_of_rows_seen(table, data)
    if output is not None:
        file.format.recognised(data).write(result.to_frame(), output)
    if run.as_json:
        print_json(result.to_dict())
        return
    unit = table.columns.unit
    if result.by_cause is not None:
        _show_causes(result.by_cause, unit)
    title = f"{type(opened.estimator).__name__} on {table.size} of {data}"
    _show(result, title, unit, of_cause=cause is not None)
    if judged.coefficients is not None:
        typer.echo(opened.estimator.known_times)


def _events_and_survival(table: pd.DataFrame, *, of_cause: bool) -> pd.DataFrame:
    """Return the printed table of events, of survival or incidence at the horizon, and of the gain over no model."""
    import pandas as pd

    from drosurv.evaluation.evaluator import whose

    rows, gain = plain_rows(table), Column.measured("gain", "gain")

    def at_horizon(row: dict[str, Any], end: str) -> str:
        survival = row[f"survival_{end}"]
        return written(complement(survival) if of_cause else survival, "share")

    return pd.DataFrame(
        {
            "group": [whose(row["attribute"], row["group"]) for row in rows],
            "events": [written(row["observed"], "count") for row in rows],
            "expected": [written(row["expected"], "time") for row in rows],
            "incidence" if of_cause else "survival": [at_horizon(row, "observed") for row in rows],
            "predicted": [at_horizon(row, "predicted") for row in rows],
            "gain": [gain.cell(row) for row in rows],
        }
    )


def _decisions(table: pd.DataFrame) -> pd.DataFrame:
    """Return the printed table of decisions, one row per group: sensitivity, specificity, net benefit, ..."""
    from drosurv.evaluation.evaluator import whose

    cell = Column.measured("value", "value")
    shown = table.assign(
        group=list(map(whose, table["attribute"], table["group"])),
        text=[row["reason"] or cell.cell(row) for row in plain_rows(table)],
    )
    return shown.pivot_table(
        index="group", columns="metric", values="text", aggfunc="first", sort=False
    ).reset_index()


def _show(result: EvaluationResult, title: str, time_unit: str, *, of_cause: bool) -> None:
    import pandas as pd

    from drosurv.evaluation.evaluator import whose
    from drosurv.evaluation.result_views import times_tables

    gaps = [(label, row) for metric, label in _GAPS.items() for row in result.gaps(metric)]
    overall = [
        {"metric": label, "value": row.text}
        for metric, label in _OVERALL.items()
        for row in result.select(metric=metric, kind="overall")
    ]
    between = [
        {
            "groups": row.whose,
            "metric": label,
            "value": row.text,
            "adjusted p": written(row.p, "p"),
        }
        for label, row in gaps
    ]
    groups = [
        {
            "group": whose(record["attribute"], record["group"])
            + (" (small)" if record["status"] == "small group" else ""),
            "patients": record["patients"],
            "events": record["events"],
            **{column.label: column.cell(record) for column in _BY_GROUP if column.key in record},
        }
        for record in result.group_records()
    ]
    if result.groups["expected"].notna().any():
        typer.echo(printable(f"{result.counts(time_unit)}\n{result.picture_by(time_unit).to_text()}"))
    if len(result.times):
        print_times(times_tables(result, time_unit)[0], "the output of --json")
    for heading, rows in ((title, groups), ("Overall", overall), ("Between groups", between)):
        if rows:
            print_frame(pd.DataFrame(rows), heading)
    at = moment(result.groups["horizon"].iloc[0], time_unit)
    what = "incidence" if of_cause else "survival"
    shown = _events_and_survival(result.groups, of_cause=of_cause)
    print_frame(shown, f"Events, {what} at {at}, and gain over no model")
    if result.decisions is not None:
        print_frame(_decisions(result.decisions), f"Decisions at {at}")
    # The numbers of 100 patients are the first line.
    typer.echo(printable(result.summary().removeprefix(result.counts(time_unit)).lstrip()))


def _show_causes(table: pd.DataFrame, time_unit: str) -> None:
    """Print incidence, calibration and concordance of each cause at the middle one of the horizons."""
    from drosurv.evaluation.data import middle
    from drosurv.evaluation.evaluator import whose

    horizon = middle(sorted(table["horizon"].unique()))
    shown = table[table["horizon"] == horizon].rename(
        columns={"observed_if_others_censored": "others censored", "brier": "Brier", "c_index": "c-index"}
    )
    shown["group"] = list(map(whose, shown["attribute"], shown["group"]))
    numbers = ["predicted", "observed", "others censored", "Brier", "c-index"]
    shown[numbers] = shown[numbers].map(written)
    print_frame(shown[["cause", "group", *numbers, "events"]], f"By cause, at {moment(horizon, time_unit)}")
