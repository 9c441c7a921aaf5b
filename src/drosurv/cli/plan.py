"""``drosurv plan``: how many patients an audit needs, and what a given number can show."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from drosurv.cli.options import Drop, FileOptions, Names, RunOptions, TargetOptions, command, option
from drosurv.cli.outputs import check_outputs, print_frame, print_json, printable, write_plot
from drosurv.errors import InputError

_ASSUMED, _WANTED = "Assumptions", "Precision"


@command(place=20)
def plan(
    run: RunOptions,
    target: TargetOptions,
    file: FileOptions,
    data: Annotated[
        Path | None,
        typer.Argument(metavar="DATA", help="Pilot table, from which rates and groups are taken."),
    ] = None,
    events: float | None = option("Without DATA: share of the patients who have the event in the follow-up."),
    groups: Names = option(
        "Groups with their shares, such as 'women=0.4,over 75=0.15:0.5', where 0.5 is the group's share of events; "
        "with DATA, its columns.",
        default=(),
    ),
    drop: Drop = (),
    model: Path | None = option("Saved model; the spread of its risks in DATA is used."),
    n: int | None = option("Number of patients: also say which errors they can exclude.", None, "--n"),
    ratio: float = option("Factor between observed and expected events to exclude, or to find.", default=1.2),
    power: float = option("Probability with which errors are found.", default=0.8),
    level: float = option("Confidence of the intervals.", default=0.95),
    c_index: float | None = option("The model's c-index, which gives the spread.", _ASSUMED),
    spread: float | None = option("Standard deviation of the log risks at the events.", _ASSUMED),
    columns: int | None = option("Columns that may define subgroups; 10 if not given.", _ASSUMED),
    tests: int | None = option(
        "Number of tests between which the error rate is divided; without it, tests are adjusted as in an "
        "audit of these groups with a search for subgroups.",
        _ASSUMED,
    ),
    slope_width: float = option("Width of the interval of the calibration slope.", _WANTED, default=0.2),
    c_index_width: float = option("Width of the interval of the c-index.", _WANTED, default=0.1),
    subgroup_share: float = option(
        "Smallest subgroup to judge, as a share of the patients.", _WANTED, default=0.05
    ),
    subgroup_ratio: float = option(
        "Factor between observed and expected events of a subgroup to exclude, or to find.",
        _WANTED,
        default=1.5,
    ),
    plot: Path | None = option(
        "Picture of the errors that can be excluded, by number of patients (PNG, SVG, PDF)."
    ),
) -> None:
    """Plan an audit: how many patients it needs to judge a model, its groups and any subgroup.

    Rates come from --events and --groups, or from a pilot table: drosurv plan pilot.csv --time months --event died.

    Example: drosurv plan --events 0.25 --groups "women=0.4,over 75=0.15" --ratio 1.2 --power 0.8
    """
    from drosurv.planning import plan as planned

    check_outputs([], [data, model], force=run.force, plot=plot)
    if (data is None) == (events is None):
        raise InputError(
            "name a pilot table, as in `drosurv plan pilot.csv --time months --event died`, or pass --events, the "
            "share of the patients who have the event."
        )
    given: dict[str, Any]
    if data is None:
        given = {"event_rate": events, "groups": _shares(groups)}
    else:
        frame = file.format.read(data)
        from drosurv.workflows.pilot import pilot_rates
        from drosurv.workflows.saved_model import OpenedModel

        opened = None if model is None else OpenedModel.open(model)
        given = pilot_rates(frame, groups=groups, drop=drop, opened=opened, seed=run.seed, **asdict(target))
    chosen = {"c_index": c_index, "spread": spread, "n_columns": columns}
    if c_index is not None:
        given.pop("spread", None)
    found = planned(
        **{**given, **{name: value for name, value in chosen.items() if value is not None}},
        ratio=ratio,
        slope_width=slope_width,
        c_index_width=c_index_width,
        subgroup_share=subgroup_share,
        subgroup_ratio=subgroup_ratio,
        power=power,
        level=level,
        n=n,
        n_tests=tests,
    )
    write_plot(found.plot, plot)
    if run.as_json:
        print_json(found.to_dict())
        return
    shown = found.to_table()
    labels = {column.key: str(column.label) for column in shown.columns}
    print_frame(shown.to_frame()[list(labels)].rename(columns=labels), shown.caption)
    typer.echo(printable("\n".join(found.notes)))


def _shares(groups: Names) -> dict[str, float | tuple[float, float]]:
    """Return the shares of groups that are written as NAME=SHARE, or with their rates of events as NAME=SHARE:RATE."""
    found: dict[str, float | tuple[float, float]] = {}
    for entry in groups:
        name, _, numbers = entry.rpartition("=")
        share, colon, rate = numbers.partition(":")
        try:
            found[name.strip()] = (float(share), float(rate)) if colon else float(share)
        except ValueError:
            name = ""
        if not name.strip():
            raise InputError(
                f"--groups {entry!r} must be a name and a share of the patients, such as women=0.4, or women=0.4:0.1 "
                "with the share of them who have the event; name columns of a pilot table only with DATA."
            )
    return found
