"""Where long work stands, for somebody who waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from drosurv.cli.messages import say
from drosurv.errors import Argument, ArgumentError

if TYPE_CHECKING:
    from drosurv.runs import Outcome, Progress

_SECONDS_BETWEEN_LINES = 30.0
_INTERRUPTED = 130


@contextmanager
def stoppable(output: Path) -> Iterator[None]:
    """Ctrl-C ends the run at once: finished units are stored whole, and workers end with this process."""
    import os
    import shlex
    import signal
    import sys

    if output.exists() and not output.is_dir():
        raise ArgumentError(
            Argument("output", str(output)), " is a file: name a folder, which is made if it is not there."
        )

    def stop(*_: Any) -> None:
        from rich.console import Console

        Console(stderr=True).show_cursor()
        again = shlex.join(["drosurv", *sys.argv[1:]])
        say("Stopped", f"what is finished is kept in {output}. To go on, run the same again: {again}")
        sys.stderr.flush()
        os._exit(_INTERRUPTED)

    before, warned = signal.signal(signal.SIGINT, stop), os.environ.get("PYTHONWARNINGS")
    # The process that cleans up after joblib's workers would tell of every thing that it finds.
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [warned, "ignore:resource_tracker:UserWarning"]))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        os.environ.pop("PYTHONWARNINGS")
        os.environ.update({} if warned is None else {"PYTHONWARNINGS": warned})


@contextmanager
def progress(doing: str) -> Iterator[Callable[[Progress], None]]:
    """A bar in a terminal; in a log a line now and then."""
    import sys
    import time

    from drosurv.presentation.progress import bar

    shown, last = sys.stderr.isatty(), 0.0
    with bar(doing, shown=shown) as told:

        def show(step: Progress) -> None:
            nonlocal last
            told(step.done, f"{doing}, {_left(step)}", step.total)
            due = time.monotonic() - last > _SECONDS_BETWEEN_LINES or step.done == step.total
            if due and not shown:
                last = time.monotonic()
                typer.echo(f"{step.done} of {step.total} units; {_left(step)}", err=True)

        yield show


def tell_of_trouble(outcome: Outcome, unavailable: Mapping[str, str]) -> None:
    """Print which datasets could not be had, and which units failed."""
    for dataset, reason in unavailable.items():
        say("Error", f"{dataset} is left out: {reason}")
    for failure in outcome.failures:
        say("Error", f"{failure.unit} failed: {failure.error}")


def run_summary(outcome: Outcome, unavailable: Mapping[str, str], files: Iterable[Path]) -> dict[str, Any]:
    """What every run tells programs."""
    return {
        "computed": outcome.computed,
        "reused": outcome.reused,
        "failures": [{"unit": str(failure.unit), "error": failure.error} for failure in outcome.failures],
        "unavailable": dict(unavailable),
        "files": [str(path) for path in files],
    }


def _left(step: Progress) -> str:
    if step.done == step.total:
        return "done"
    return "time left not known yet" if step.seconds_left is None else f"{duration(step.seconds_left)} left"


def duration(seconds: float) -> str:
    """Seconds in words."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
