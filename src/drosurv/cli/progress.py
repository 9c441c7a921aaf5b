"""Long work in units: where it stands, for somebody who waits for it, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from drosurv.cli.messages import say

if TYPE_CHECKING:
    from drosurv.benchmark import Benchmark
    from drosurv.paper import Reproduction
    from drosurv.runs import Progress

_SECONDS_BETWEEN_LINES = 30.0
_INTERRUPTED = 130


@contextmanager
def units(doing: str, output: Path) -> Iterator[Callable[[Progress], None]]:
    """Work in units kept in a folder; yields what tells where it stands, in a log by a line now and then.

    Ctrl-C ends the run at once: finished units are stored whole, and workers end with this process.
    """
    import os
    import signal
    import sys
    import time

    from drosurv.presentation.progress import bar

    if output.exists() and not output.is_dir():
        raise ValueError(
            f"--output {str(output)!r} is a file: name a folder, which is made if it is not there."
        )
    shown, last = sys.stderr.isatty(), 0.0
    before, warned = signal.signal(signal.SIGINT, lambda *_: _stop(output)), os.environ.get("PYTHONWARNINGS")
    # The process that cleans up after joblib's workers would tell of every thing that it finds.
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [warned, "ignore:resource_tracker:UserWarning"]))
    try:
        with bar(doing, shown=shown) as told:

            def show(step: Progress) -> None:
                nonlocal last
                told(step.done, f"{doing}, {_left(step)}", step.total)
                due = time.monotonic() - last > _SECONDS_BETWEEN_LINES or step.done == step.total
                if due and not shown:
                    last = time.monotonic()
                    typer.echo(f"{step.done} of {step.total} units; {_left(step)}", err=True)

            yield show
    finally:
        signal.signal(signal.SIGINT, before)
        os.environ.pop("PYTHONWARNINGS")
        os.environ.update({} if warned is None else {"PYTHONWARNINGS": warned})


def _stop(output: Path) -> None:
    import os
    import shlex
    import sys

    from rich.console import Console

    Console(stderr=True).show_cursor()
    again = shlex.join(["drosurv", *sys.argv[1:]])
    say("Stopped", f"what is finished is kept in {output}. To go on, run the same again: {again}")
    sys.stderr.flush()
    os._exit(_INTERRUPTED)


def tell_of_trouble(found: Benchmark | Reproduction) -> None:
    """Print which datasets could not be had, and which units failed."""
    for dataset, reason in found.unavailable.items():
        say("Error", f"{dataset} is left out: {reason}")
    for failure in found.outcome.failures:
        say("Error", f"{failure.unit} failed: {failure.error}")


def computed(found: Benchmark | Reproduction) -> str:
    """How much was done, in words."""
    outcome = found.outcome
    return f"{outcome.computed} units computed and {outcome.reused} reused in {_duration(found.wall_seconds)}"


def run_summary(found: Benchmark | Reproduction) -> dict[str, Any]:
    """What every run tells programs."""
    return {
        "computed": found.outcome.computed,
        "reused": found.outcome.reused,
        "failures": [{"unit": str(failed.unit), "error": failed.error} for failed in found.outcome.failures],
        "unavailable": found.unavailable,
        "files": [str(path) for path in found.files],
    }


def _left(step: Progress) -> str:
    if step.done == step.total:
        return "done"
    return "time left not known yet" if step.seconds_left is None else f"{_duration(step.seconds_left)} left"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
