"""The whole reproduction: plan, work through what is missing, and write what is finished."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import joblib
import pandas as pd

from drosurv.solvers.device import check_device, resolve_device
from experiments.datasets.catalog import load_each
from experiments.fingerprint import data_fingerprint
from experiments.paper.comparison import agreement
from experiments.paper.document import write_document
from experiments.paper.known_reasons import IMPUTED_FROM_TRAINING, SEER_FROM_WHEEL
from experiments.paper.plan import REPEATS, Experiment, find_experiments, plan_units
from experiments.paper.run import evaluate_unit, load_dataset, train_units
from experiments.paper.selection import parse_select_on
from experiments.paper.tables import characteristics, characteristics_table
from experiments.paper.tabulation import Tabulation, tabulate, write_outputs, write_table
from experiments.paper.unit import Protocol, gather
from experiments.runs import Outcome, Progress, command_line, run_units

# What --quick runs: the three tables with published numbers, linear methods, three repeats. The protocol is
# the full one, so a full run later reuses every unit.
QUICK_EXPERIMENTS = ("flc-age", "support-gender", "seer-race")
QUICK_METHODS = ("cox", "dro-cox", "dro-cox-split", "cox-scaled")
QUICK_REPEATS = 3
# Processes that keep up with an accelerator.
SCORING_JOBS = 8


@dataclass(frozen=True, eq=False)
class Reproduction:
    """What a run did, found and wrote; `unavailable` tells why a dataset could not be loaded and was left out."""

    outcome: Outcome
    tabulation: Tabulation
    files: tuple[Path, ...]
    unavailable: dict[str, str]
    wall_seconds: float

    @property
    def agreement(self) -> pd.DataFrame | None:
        """How many published cells agree, by experiment; None where nothing published was rebuilt."""
        comparison = self.tabulation.comparison
        return None if comparison.empty else agreement(comparison, by="experiment")

    @property
    def complete(self) -> bool:
        """Whether everything asked for is there."""
        return not self.outcome.failures and not self.unavailable


def reproduce(
    output: str | Path,
    *,
    only: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    repeats: int | None = None,
    quick: bool = False,
    select_on: str = "validation",
    device: str = "auto",
    jobs: int | None = None,
    seer_file: str | Path | None = None,
    protocol: Protocol | None = None,
    document: str | Path | None = None,
    report: Callable[[Progress], None] | None = None,
) -> Reproduction:
    """Rebuild the paper's tables and figure, or the part asked for.

    Finished units are kept under ``output/units``; a run that was stopped continues where it was, and a changed
    setting looks for other files. Tables, figure and the log of runs are written into the same folder, and everything
    as one Markdown document to the file `document`.

    `only` names experiments or datasets, and `methods` methods; Cox, and DeepSurv where an MLP is, are always added.
    There are ten `repeats` by default.
    `quick` means the three tables with published numbers, linear methods and three repeats, unless something else is
    asked for; its units are those of a full run, which reuses them. Settings are chosen on the part `select_on`;
    "test" is a diagnostic. `seer_file` is a copy of SEER to read instead of the downloaded one. `report` is called with
    the progress.

    Units are trained on the `device` "cpu" or "cuda", or with "auto" on CUDA where there is one. On an accelerator all
    repeats of a method are one batch, and processes score meanwhile. There are `jobs` processes, by default one per
    processor core, and beside an accelerator no more than eight: scoring does not take longer than training then, and
    more would only take memory.
    """
    if quick:
        only = QUICK_EXPERIMENTS if only is None else only
        methods = QUICK_METHODS if methods is None else methods
    if repeats is None:
        repeats = QUICK_REPEATS if quick else REPEATS
    protocol, part = protocol or Protocol(), parse_select_on(select_on)
    check_device(device)
    device = resolve_device(device, worthwhile=True)
    if jobs is None:
        cores = joblib.effective_n_jobs(-1)
        jobs = cores if device == "cpu" else min(cores, SCORING_JOBS)
    seer_file = None if seer_file is None else str(Path(seer_file).resolve())
    experiments = find_experiments(only)
    datasets, unavailable = load_each(
        (name for experiment in experiments for name in experiment.datasets),
        partial(load_dataset, as_published=protocol.as_published, seer_file=seer_file),
    )
    experiments = _shown(experiments, datasets)
    fingerprints = {name: data_fingerprint(dataset) for name, dataset in datasets.items()}
    units = plan_units(experiments, fingerprints, methods=methods, repeats=repeats, protocol=protocol)
    asked = {"only": only, "methods": methods, "repeats": repeats, "seer_file": seer_file and Path(seer_file)}
    command = command_line("paper", **asked)
    run = run_units(
        output,
        units,
        partial(evaluate_unit, seer_file=seer_file),
        command=command,
        jobs=jobs,
        train=None if device == "cpu" else partial(train_units, seer_file=seer_file, device=device),
        device=device,
        report=report,
    )
    circumstances = [] if seer_file else [SEER_FROM_WHEEL]
    circumstances += [] if protocol.as_published else [IMPUTED_FROM_TRAINING]
    tables = partial(tabulate, gather(run.finished), experiments, circumstances=circumstances)
    tabulation = tables(select_on=part)
    files = list(write_outputs(tabulation, output))
    frame = characteristics(datasets.values())
    data_table = characteristics_table(frame)
    files += write_table(data_table, frame, output, "characteristics")
    if document is not None:
        tables = partial(tables, nearest=tabulation.nearest)
        files += write_document(
            document,
            tabulation=tabulation if part == "validation" else tables(),
            diagnostic=tabulation if part == "test" else tables(select_on="test"),
            characteristics=data_table,
            figure=next((path for path in files if path.suffix == ".svg"), None),
            runs=run.records,
            results=[result for _, result in run.finished],
            protocol=protocol,
            command=command,
        )
    return Reproduction(run.outcome, tabulation, tuple(files), unavailable, run.wall_seconds)


def _shown(experiments: Sequence[Experiment], datasets: Collection[str]) -> tuple[Experiment, ...]:
    """The experiments with the cohorts whose data are there."""
    shown = (
        replace(experiment, cohorts=tuple(cohort for cohort in experiment.cohorts if cohort[0] in datasets))
        for experiment in experiments
    )
    return tuple(experiment for experiment in shown if experiment.cohorts)
