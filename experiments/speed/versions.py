"""Another version of the library, timed in the same run: ``python -m experiments.speed --against REVISION``.

The code of a git revision is unpacked and put first on the path of a child process. Each task runs in a process of each
version, one after the other, so that a busy moment meets both. The tasks use only arguments that both versions have.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.speed.rows import Row

PART = "versions"
ROOT = Path(__file__).parents[2]
# A task is repeated until so many CPU seconds are spent, but at most so often.
_ENOUGH, _MOST = 10.0, 5
# After so many seconds a task is not repeated at all.
_LONG = 60.0


def patients(n, d=5):
    """Features and target of patients of eight groups."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    lives = rng.exponential(np.exp(-0.5 * X[:, 0] + 0.3 * X[:, 1]))
    censored = rng.exponential(1.5, n)
    y = np.empty(n, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = lives <= censored, np.minimum(lives, censored)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(d)]), y


def groups(n):
    """Labels of eight groups."""
    return pd.DataFrame({"group": np.arange(n) % 8})


def judged(function, n):
    """Judge a Cox model on other patients than it was trained on."""
    from drosurv import CoxPH

    X, y = patients(n + 2000)
    model = CoxPH().fit(X[n:], y[n:])
    return lambda: function(model, X[:n], y[:n], sensitive_features=groups(n))


def evaluated(n):
    """Every metric with intervals, by group."""
    from drosurv import evaluate

    return judged(lambda *given, **more: evaluate(*given, **more).to_frame(), n)


def audited(n):
    """An audit with its search and page."""
    from drosurv import audit

    return judged(lambda *given, **more: audit(*given, **more)._repr_html_(), n)


def checked():
    """Train and judge models of a table."""
    from drosurv.workflows.check import check

    table = pd.read_csv(ROOT / "tests" / "fixtures" / "colon.csv.gz")
    return lambda: check(table, time="time", event="status")


def fitted(name, n, d, **parameters):
    """Fit a model."""
    import drosurv

    X, y = patients(n, d)
    values = X.to_numpy()
    return lambda: getattr(drosurv, name)(**parameters).fit(values, y)


TASKS = {
    "evaluate, 1,000 patients, 8 groups": lambda: evaluated(1000),
    "evaluate, 20,000 patients, 8 groups": lambda: evaluated(20_000),
    "audit, 1,000 patients": lambda: audited(1000),
    "audit, 20,000 patients": lambda: audited(20_000),
    "check, colon": checked,
    "CoxPH, 2,000 x 10": lambda: fitted("CoxPH", 2000, 10),
    "CoxPH, 100,000 x 20": lambda: fitted("CoxPH", 100_000, 20),
    "DROCox, 20,000 x 20, not recalibrated": lambda: fitted("DROCox", 20_000, 20, recalibrate=False),
    "DROCox, 20,000 x 20": lambda: fitted("DROCox", 20_000, 20),
    "DROCox, 100,000 x 20": lambda: fitted("DROCox", 100_000, 20),
    "CoxPHCV, 100,000 x 20": lambda: fitted("CoxPHCV", 100_000, 20),
    "RepairedCox, 100,000 x 20": lambda: fitted("RepairedCox", 100_000, 20),
}


def seconds(name):
    """Least CPU time of a task in this process; the first call, which compiles, counts only if it takes a minute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = TASKS[name]()
        took = []
        while len(took) <= _MOST and (len(took) < 2 or sum(took[1:]) < _ENOUGH) and sum(took) < _LONG:
            began = time.process_time()
            run()
            took.append(time.process_time() - began)
    return min(took)


def unpacked(revision, folder):
    """Unpack the library of a git revision; return the folder that holds the package."""
    archive = subprocess.run(
        ["git", "archive", revision, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return Path(folder) / "src"


def seconds_in(source, name):
    """CPU time of a task with the library in a folder; raise with its message if the task fails there."""
    path = os.pathsep.join([str(source), str(ROOT)])
    code = f"from experiments.speed.versions import seconds; print(seconds({name!r}))"
    given = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return float(done.stdout.split()[-1])


def rows(revision, tasks=tuple(TASKS)):
    """The time of each task, with the ratio of this version to the other."""
    with tempfile.TemporaryDirectory() as folder:
        other = unpacked(revision, folder)
        for name in tasks:
            try:
                new, old = (seconds_in(source, name) for source in (ROOT / "src", other))
            except RuntimeError as error:
                yield Row(PART, name, "", "", None, str(error))
                continue
            numbers = {"new": new, "old": old, "ratio": new / old}
            measured = f"{new:.3g} s, {revision}: {old:.3g} s, ratio {new / old:.2g}"
            yield Row(PART, name, "", measured, None, numbers=numbers)
