"""``drosurv tune``: choose a model's settings on a user's table, under an accuracy budget or another rule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drosurv.cli.options import (
    Force,
    Groups,
    HoldOut,
    HoldOutShare,
    Json,
    Network,
    RowHashesOption,
    Seed,
    Settings,
    TrainingTable,
    about,
    check_parameters,
    command,
    make_estimator,
    read_grid,
    read_settings,
)
from drosurv.cli.outputs import (
    check_outputs,
    check_picture,
    print_comparison,
    print_frame,
    print_json,
    print_recalibration,
)
from drosurv.errors import ArgumentError, as_records, recording_warnings, require
from drosurv.presentation import counted, write_figure

if TYPE_CHECKING:
    from drosurv.tuning import GridSearch, SelectionRule


@command
def tune(
    source: TrainingTable,
    model: Annotated[
        str, about("Whose settings to try, beside plain Cox: dro-cox or another estimator.")
    ] = "dro-cox",
    network: Network = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            help="Values to try, such as alpha=0.1,0.2,0.5; repeat for several parameters. The paper's "
            "by default.",
            metavar="NAME=VALUES",
        ),
    ] = None,
    set_: Settings = None,
    groups: Groups = (),
    rule: Annotated[
        str,
        about(
            "careful (the plain model, unless a setting is fairer beyond chance at nearly its "
            "c-index and likelihood), budget (the published rule: least disparity at nearly the "
            "plain model's c-index), best (c-index), one-se or pareto; careful if there are "
            "groups, best otherwise.",
            "Choice",
        ),
    ] = "",
    tolerance: Annotated[float, about("Share of the plain model's c-index to give up.", "Choice")] = 0.05,
    minimise: Annotated[
        str | None,
        about(
            "Disparity to make small: concordance_imparity, the default, group_disparity, "
            "average_disparity, ...",
            "Choice",
        ),
    ] = None,
    folds: Annotated[int, about("Folds that every setting is scored on.", "Scoring")] = 5,
    validation: Annotated[
        float | None, about("Instead of folds: share of patients in one validation part.", "Scoring")
    ] = None,
    hold_out: HoldOut = None,
    hold_out_share: HoldOutShare = None,
    output: Annotated[
        Path | None, about("File to write the chosen model to, trained on everybody.", None, "--output", "-o")
    ] = None,
    table: Annotated[Path | None, about("CSV file to write every setting's scores to.", "Output")] = None,
    plot: Annotated[
        Path | None,
        about(
            "Picture to write: c-index against disparity of all settings, and the shrinkage control.",
            "Output",
        ),
    ] = None,
    jobs: Annotated[int, about("Processes.", "Scoring")] = 1,
    force: Force = False,
    row_hashes: RowHashesOption = True,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train a grid of settings, score each on held-out patients, choose one by a rule, and say why.

    Groups with fewer than 50 patients or 10 events are left out of the disparities.

    Example: drosurv tune patients.csv --time months --event died --groups sex --grid alpha=0.1,0.2,0.5 -o model
    """
    check_outputs([output, table, plot, hold_out], [source.data], force=True)
    check_outputs([output, table, plot], [], force=force)
    check_picture(plot)
    if plot is not None and not groups:
        raise ValueError("--plot shows a disparity between groups: pass --groups COLUMNS.")
    if minimise is not None and not groups:
        raise ValueError("--minimise names a disparity between groups: pass --groups COLUMNS.")
    if rule in ("careful", "budget", "one-se", "pareto") and not groups:
        raise ValueError(f"--rule {rule} compares groups: pass --groups COLUMNS, or --rule best.")
    if folds < 2:
        raise ValueError(
            f"--folds must be at least 2, got {folds}; for a single part pass --validation SHARE."
        )
    if validation is not None:
        require(0 < validation < 1, "validation", "be a share of the patients, in (0, 1)", validation)
    require(jobs != 0, "jobs", "be at least 1, or -1 for one per processor core", jobs)
    minimise = minimise or "concordance_imparity"
    with recording_warnings() as noted:
        frame = source.read()
    from drosurv.workflows import tune as tuned

    estimator = make_estimator(model, {"network": network}, read_settings(set_), seed)
    values = _grid_for(estimator, grid)
    rule = rule or ("careful" if groups else "best")
    with recording_warnings() as warned:
        chosen_by = make_rule(rule, tolerance, minimise)
        read, held = source.hold_out(source.parse(frame, groups), hold_out, hold_out_share, seed, force=force)
        try:
            search, trained = tuned(
                read,
                estimator,
                values,
                chosen_by,
                metrics=[minimise] if groups else None,
                categorical=source.categorical,
                keep_columns=source.keep_columns,
                cv=folds if validation is None else validation,
                n_jobs=jobs,
                random_state=seed,
                verbose=False if as_json else None,
            )
        except ArgumentError as error:
            if grid and error.argument in values:
                raise ValueError(f"--grid {error}") from error
            raise
    source.write_held_out(held, hold_out, force=force)
    if output is not None:
        trained.save(output, source.data, row_hashes=row_hashes, warnings=as_records(noted + warned))
    if table is not None:
        source.format.recognised(source.data).write(search.results_.reset_index(), table)
    # The settings were chosen on these patients, which favours them: where plain Cox is still better, it is better.
    against = print_comparison(*trained.against_plain(seed=seed))
    factor = getattr(trained.estimator, "recalibration_", None)
    if as_json:
        print_json({**_summary(search, output), "recalibration": factor, "against_plain_cox": against})
    else:
        _show(search, list(values), [minimise] if groups else [])
        print_recalibration(
            factor, "for every robust setting likewise; --set recalibrate=false leaves them as they are"
        )
        if output is not None:
            typer.echo(f"Saved to {output}.")
    # Last, so that an error in drawing loses no results.
    if plot is not None:
        _draw(search, plot, minimise)


def make_rule(name: str, tolerance: float, minimise: str) -> SelectionRule:
    """Return a rule by its name on the command line."""
    from drosurv.tuning import AccuracyBudget, BestScore, CarefulBudget, OneStandardError, ParetoPoint

    require(0 <= tolerance < 1, "tolerance", "be a share in [0, 1)", tolerance)
    rules: dict[str, SelectionRule] = {
        "careful": CarefulBudget(tolerance=tolerance, minimise=minimise),
        "budget": AccuracyBudget(tolerance=tolerance, minimise=minimise),
        "best": BestScore(),
        "one-se": OneStandardError(minimise=minimise),
        "pareto": ParetoPoint(minimise=minimise),
    }
    require(name in rules, "rule", f"be one of {', '.join(rules)}", name)
    return rules[name]


def _grid_for(estimator: Any, entries: list[str] | None) -> dict[str, list[Any]]:
    """Return the grid that was given, or else the paper's for this estimator."""
    from drosurv.tuning import default_grid

    if not hasattr(estimator, "solver"):
        raise ValueError(
            f"model {type(estimator).__name__} uses no features and has nothing to tune: choose another."
        )
    values = read_grid(entries)
    if values is not None:
        check_parameters(estimator, values, "--grid")
        return values
    try:
        return default_grid(estimator)
    except ValueError as error:
        raise ValueError(
            f"{type(estimator).__name__} has no parameter that is tuned by default: pass --grid NAME=VALUES, for "
            "example --grid l2=0,0.01,0.1."
        ) from error


def _summary(search: GridSearch, output: Path | None) -> dict[str, Any]:
    return {
        "model": None if output is None else str(output),
        "chosen": search.best_params_,
        "reason": search.choice_.reason,
        "fallback": search.choice_.fallback,
        "unregularised": search.reference_.to_dict(),
        "settings": search.results_.reset_index().to_dict("records"),
        "control": search.control_.to_dict("records"),
    }


def _show(search: GridSearch, parameters: list[str], disparities: list[str]) -> None:
    from drosurv.tuning.results import in_words

    columns = [*parameters, "concordance_index", *disparities, "gain_share", "calibration_slope"]
    shown = search.results_[list(dict.fromkeys(columns))].copy()
    shown.insert(0, "", ["*" if number == search.best_index_ else "" for number in shown.index])
    if "plain" in search.results_:
        plain = search.results_["plain"].astype(bool)
        shown[parameters] = shown[parameters].astype(object).mask(plain, "plain")
    names = {"gain_share": "gain kept", "calibration_slope": "slope"}
    for metric in ("concordance_index", *disparities):
        names[metric] = in_words(metric)
        if f"{metric}_se" in search.results_:
            names[metric] += " ± se"
            pairs = zip(search.results_[metric], search.results_[f"{metric}_se"], strict=True)
            shown[metric] = [f"{value:.4f} ± {error:.4f}" for value, error in pairs]
    print_frame(shown.rename(columns=names), f"{counted(len(shown), 'setting')}; * is chosen")
    settings = ", ".join(f"{name}={value}" for name, value in search.best_params_.items())
    typer.echo(f"Chosen: {settings}{': ' if settings else ''}{search.choice_.reason}.")
    typer.echo(
        "gain kept: likelihood gain over no model, as a share of the plain model's. Near 0, disparities are low only "
        "because predictions hardly differ; the calibration slope is then far above 1."
    )
    if search.choice_.fallback:
        typer.echo("Warning: no setting met the rule; the one above was chosen instead.", err=True)


def _draw(search: GridSearch, path: Path, minimise: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    front, shrinkage = figure.subplots(1, 2)
    search.plot_front(front, minimise=minimise)
    search.plot_shrinkage(shrinkage)
    write_figure(figure, path)
