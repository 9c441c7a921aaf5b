"""``drosurv evaluate``: accuracy and disparities of a saved model on patients it has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drosurv.cli.messages import printable
from drosurv.cli.options import (
    AsJson,
    DataFile,
    FileOptions,
    Groups,
    ModelFile,
    OtherEvent,
    Strata,
    TargetOptions,
    listed,
    with_options,
)
from drosurv.cli.outputs import check_outputs
from drosurv.cli.rendering import print_frame, print_json
from drosurv.presentation import group_name, unit_in, with_interval, written

if TYPE_CHECKING:
    import pandas as pd

    from drosurv.evaluation import EvaluationResult
    from drosurv.evaluation.rows import Row

# Metrics that fit on a terminal; --json and -o give all of them.
_BY_GROUP = {
    "concordance_index": "c-index",
    "integrated_brier_score": "IBS",
    "brier_skill": "Brier skill",
    "calibration_slope": "slope",
}
_OVERALL = {
    "log_partial_likelihood": "log partial likelihood per event",
    "share_of_gain": "share of the reference's likelihood gain",
    "individual_disparity": "individual disparity F_I, summed over pairs",
    "intersectional_disparity": "intersectional disparity F_cap",
}
_GAPS = {
    "concordance_imparity": "concordance imparity",
    "concordance_index": "c-index",
    "brier_skill": "Brier skill",
    "group_disparity": "group disparity F_G",
}


@with_options
def evaluate(
    model: ModelFile,
    data: DataFile,
    target: TargetOptions,
    file: FileOptions,
    event: OtherEvent = None,
    groups: Groups = None,
    strata: Strata = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="Saved model to hold this one against; plain Cox, as noted by fit, if not given."),
    ] = None,
    intersections: Annotated[
        bool, typer.Option("--intersections", help="Also show the intersections of all groups.")
    ] = False,
    bootstrap: Annotated[int, typer.Option(help="Replicates behind intervals and tests; 0 for none.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the replicates.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file to write every number to.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score a saved model on a table, overall and by group, with intervals and tests of the gaps.

    Example: drosurv evaluate model test.csv --groups "sex,age>65"
    """
    from drosurv.evaluation import evaluate as evaluated
    from drosurv.workflows import OpenedModel

    check_outputs([output], [model, data, reference])
    opened = OpenedModel.open(model)
    opened.warn_if_trained_on(data)
    table = opened.table(file.format.read(data), groups=listed(groups), event=event, **target.arguments())
    table.warn_of_copies()
    frame = table.frame
    features = opened.features(frame)
    held_against = opened.plain_cox()
    if reference is not None:
        other = OpenedModel.open(reference)
        held_against = other.estimator.predict(other.features(frame))
    result = evaluated(
        opened.estimator,
        features,
        table.y,
        y_train=None if table.entry is not None else opened.estimator.follow_up_,
        entry=table.entry,
        **opened.observed(frame, strata),
        sensitive_features=table.groups,
        reference=held_against,
        intersections=intersections,
        n_bootstrap=bootstrap,
        random_state=seed,
    )
    if result.by_cause is not None and not as_json:
        print_frame(_by_cause(result.by_cause), "By cause")
    named = "plain Cox" if reference is None else reference.name
    result = replace(result, settings=replace(result.settings, reference=named))
    if output is not None:
        file.format.write(result.to_frame(), output)
    if as_json:
        print_json(result.to_dict())
    else:
        title = f"{type(opened.estimator).__name__} on {len(table):,} patients of {data}"
        _show(result, title, unit_in(table.columns.time_name))


def _show(result: EvaluationResult, title: str, time_unit: str) -> None:
    import pandas as pd

    print_frame(pd.DataFrame(map(_group, result.group_records())), title)
    overall = [row for row in result.select(kind="overall") if row.metric in _OVERALL]
    gaps = [row for metric in _GAPS for row in result.gaps(metric)]
    if overall:
        print_frame(_numbers(overall, _OVERALL), "Overall")
    if gaps:
        print_frame(_gaps(gaps), "Between groups")
    typer.echo(printable(result.summary(time_unit=time_unit)))


def _by_cause(table: pd.DataFrame) -> pd.DataFrame:
    """Incidence, calibration and ranking of each cause at the middle time."""
    from drosurv.evaluation.patients import middle

    shown = table[table["horizon"] == middle(sorted(table["horizon"].unique()))].copy()
    shown["group"] = [
        "everybody" if row["attribute"] == "everybody" else group_name(row["attribute"], row["group"])
        for _, row in shown.iterrows()
    ]
    names = [
        "cause",
        "group",
        "horizon",
        "predicted",
        "observed",
        "others_censored",
        "brier",
        "c_index",
        "events",
    ]
    return shown[names].round(3)


def _group(own: dict[str, Any]) -> dict[str, Any]:
    """A group's metrics side by side."""
    from drosurv.evaluation.attributes import whose

    small = " (small)" if own["status"] == "small group" else ""
    return {
        "group": whose(own["attribute"], own["group"]) + small,
        "patients": own["patients"],
        "events": own["events"],
        **{
            label: with_interval(own[metric], own[f"{metric}_low"], own[f"{metric}_high"])
            if metric in own
            else ""
            for metric, label in _BY_GROUP.items()
        },
    }


def _numbers(rows: Sequence[Row], names: Mapping[str, str]) -> pd.DataFrame:
    """One row per number, with its interval."""
    import pandas as pd

    return pd.DataFrame({"metric": [names[row.metric] for row in rows], "value": [row.text for row in rows]})


def _gaps(rows: Sequence[Row]) -> pd.DataFrame:
    """Between whom each gap is, and the probability of one as large by chance."""
    shown = _numbers(rows, _GAPS)
    shown.insert(0, "groups", [row.whose for row in rows])
    shown["p alone"] = [written(row.p_value, "p_value") for row in rows]
    # The sentences below say the same of the gaps that they speak of.
    if len({row.attribute for row in rows}) > 1:
        shown["p adjusted"] = [written(row.p_adjusted, "p_value") for row in rows]
    return shown
