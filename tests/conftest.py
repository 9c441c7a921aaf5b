"""Shared by all tests: the data folder, the Hypothesis profiles, and how to run R."""

import gc
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import pytest
from _pytest.doctest import DoctestModule
from click.testing import CliRunner
from hypothesis import settings
from typer.main import get_command

from drosurv.files import write_file

# Scripts that made fixtures, with another version or in R.
collect_ignore = ["fixtures"]

# The same examples in every run, so that what passed once passes again; `make search` draws new ones.
# Slow machines need longer than the default deadline of an example.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

_LIFELINES = find_spec("lifelines") is not None


def pytest_collection_modifyitems(items):
    """Mark tests that run R or need lifelines, and put tests in the same order in all workers of pytest-xdist.

    Each begins with as many tests as the others, and takes over half of another's when it has none left. Tests of a
    file, which share what it fits, nearly always stay together.
    """
    for item in items:
        if "run_r" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.r)
        if not _LIFELINES and item.get_closest_marker("peer"):
            item.add_marker(
                pytest.mark.skip(
                    reason="needs lifelines, beside an older pandas: make test-peers installs both"
                )
            )
    items.sort(key=lambda item: item.path)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Every second worker reads folders from their end, so that no two rewrite the assertions of the same files."""
    report = yield
    worker = getattr(collector.config, "workerinput", {}).get("workerid", "gw0")
    if isinstance(collector, pytest.Directory) and int(worker.removeprefix("gw")) % 2:
        report.result.reverse()
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for doctests in the package only, not in tests."""
    found = yield
    return [node for node in found if not isinstance(node, DoctestModule)]


# What is imported and collected stays: without it, looking for garbage takes a tenth less of the time of all tests.
gc.disable()


def pytest_collection_finish():
    """Look for garbage among what tests make only, and less often than by default."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 50, 100)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    """A folder of this test session, the same for all workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session", autouse=True)
def data_directory(shared_folder):
    """Downloads go to a folder of this test session, unless the environment names one."""
    with pytest.MonkeyPatch.context() as patch:
        if "DROSURV_DATA" not in os.environ:
            patch.setenv("DROSURV_DATA", str(shared_folder / "data"))
        yield


@pytest.fixture(scope="session")
def downloads(data_directory, shared_folder):
    """Every dataset is in the data folder: the first worker that needs one downloads all, the others wait."""
    from experiments.datasets.catalog import download_every

    begun, said = shared_folder / "downloading", shared_folder / "downloaded"
    try:
        begun.mkdir()
    except FileExistsError:
        while not said.exists():
            time.sleep(0.05)
    else:
        reason = "the worker that downloads datasets failed"
        try:
            reason = download_every()
        finally:
            write_file(said, reason)
    if reason := said.read_text():
        pytest.skip(reason)


@pytest.fixture(scope="module", autouse=True)
def quick_searches():
    """Where nothing else is asked for, searches of subgroups draw 299 replicates, and remedies grow 10 trees.

    The rules of an audit's repair have one condition, and p-values are adjusted by 1,999 draws.
    """
    from drosurv.judging import certification
    from drosurv.metrics import estimates
    from drosurv.report import evidence
    from drosurv.report.sections.subgroup_sections import TREES

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certification, "REPLICATES", 299)
        draws = estimates._DRAWS
        patch.setattr(estimates, "_DRAWS", 1_999)
        patch.setitem(TREES, "max_iter", 10)
        patch.setattr(evidence, "repair", partial(evidence.repair, max_conditions=1))
        yield draws


@pytest.fixture(scope="module", autouse=True)
def figures_of_this_file():
    """Figures that a file leaves open are closed: matplotlib warns where there are more than 20."""
    yield
    if plt := sys.modules.get("matplotlib.pyplot"):
        plt.close("all")


@pytest.fixture
def all_draws(quick_searches, monkeypatch):
    """P-values are adjusted by as many draws as users get."""
    monkeypatch.setattr("drosurv.metrics.estimates._DRAWS", quick_searches)


_all_sections = []


@contextmanager
def _collect(*keys):
    """Reports collect the sections of these names and no others, or all if none is named."""
    report = import_module("drosurv.report.report")
    every = (_all_sections or [report.all_sections])[0]
    _all_sections[:] = [every]
    read = tuple(section for section in every() if section.key in keys)
    assert len(read) == len(keys)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "all_sections", (lambda: read) if keys else every)
        yield


@pytest.fixture(scope="session")
def only_sections():
    """A context in which reports collect the named sections only."""
    return _collect


@pytest.fixture(scope="module", autouse=True)
def few_sections_of_file(request):
    """Where ``pytestmark`` names the sections that the tests of a file read, so do reports of its fixtures."""
    marker = request.node.get_closest_marker("sections")
    with _collect(*marker.args) if marker else nullcontext():
        yield


@pytest.fixture(autouse=True)
def few_sections(request, few_sections_of_file):
    """Where ``pytest.mark.sections`` names the sections that a test reads, reports collect no others."""
    marker = request.node.get_closest_marker("sections")
    with _collect(*marker.args) if marker else nullcontext():
        yield


_checked = {}


@pytest.fixture(scope="module")
def quick_check():
    """Checks try two penalties, few folds and rules; each table is checked once. `certify` draws 39 replicates."""
    checking = import_module("drosurv.workflows.check")
    check = checking.check_prepared

    def once(prepared, *, on_step, **options):
        asked = prepared.name, prepared.table.frame.to_csv(), repr((prepared.wanted, options))
        if asked not in _checked:
            _checked[asked] = check(prepared, on_step=on_step, **options)
        return _checked[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checking, "check_prepared", once)
        patch.setattr(checking, "CoxPHCV", partial(checking.CoxPHCV, splines=False, l2s=[0.01, 0.1], cv=3))
        patch.setattr(checking, "RepairedCox", partial(checking.RepairedCox, max_conditions=1, folds=3))
        patch.setattr(checking, "_FOLDS", 3)
        patch.setattr("drosurv.judging.certification.REPLICATES", 39)
        yield


@pytest.fixture
def quick_base(monkeypatch):
    """The default base of repairs with one penalty and no splines."""
    from drosurv import CoxPHCV, RepairedCox

    base, quick = RepairedCox._base, CoxPHCV(splines=False, l2s=[0.1], cv=3)
    monkeypatch.setattr(RepairedCox, "_base", lambda self: quick if self.base is None else base(self))


_R = """
library(survival)
give <- function(name, value) {
  if (is.null(dim(value))) value <- matrix(value, ncol = 1)
  write.table(unclass(value), paste0(name, ".out"), row.names = FALSE, col.names = FALSE, sep = ",")
}
keep <- function(name, data) write.csv(data, paste0(name, ".csv"), row.names = FALSE)
"""


class RAnswers:
    """What an R script gave back by ``give(name, numbers)`` and ``keep(name, data frame)``."""

    def __init__(self, folder):
        self.folder = folder

    def __getitem__(self, name):
        import numpy as np

        # R's NA is NaN.
        return np.genfromtxt(self.folder / f"{name}.out", delimiter=",", missing_values="NA", ndmin=2)

    def table(self, name):
        import pandas as pd

        return pd.read_csv(self.folder / f"{name}.csv")


@pytest.fixture(scope="session")
def run_r(tmp_path_factory):
    """A function that runs an R script on tables, which it finds as ``<name>.csv``."""
    if shutil.which("Rscript") is None:
        pytest.skip("Rscript is not installed; tests with recorded numbers of R take its place")

    def run(script, **tables):
        folder = tmp_path_factory.mktemp("r")
        for name, table in tables.items():
            table.to_csv(folder / f"{name}.csv", index=False)
        (folder / "run.R").write_text(_R + script)
        done = subprocess.run(["Rscript", "run.R"], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return RAnswers(folder)

    return run


@pytest.fixture(scope="session")
def torch_adam():
    """A function that gives a function which takes one step of torch's Adam.

    The class torch.optim.Adam does the same, but imports torch's compiler first, which takes longer than most tests.
    """
    import torch
    from torch.optim.adam import adam

    def start(parameters, lr, weight_decay=0.0):
        parameters = list(parameters)
        means, squares = ([torch.zeros_like(p, requires_grad=False) for p in parameters] for _ in range(2))
        steps = [torch.zeros(()) for _ in parameters]
        settings = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "lr": lr, "weight_decay": weight_decay}

        def step():
            gradients = [p.grad for p in parameters]
            with torch.no_grad():
                adam(parameters, gradients, means, squares, [], steps, foreach=False, amsgrad=False,
                     maximize=False, **settings)  # fmt: skip
            for p in parameters:
                p.grad = None

        return step

    return start


class CommandLine:
    """Runs commands; `ok` checks the exit code, `json` parses what was printed, `fails` returns the error's line."""

    def __init__(self, app):
        # Typer reads the signatures of all commands each time that it makes this.
        self.group = get_command(app)

    def __call__(self, *arguments):
        return CliRunner().invoke(self.group, [str(argument) for argument in arguments])

    def ok(self, *arguments):
        result = self(*arguments)
        assert result.exit_code == 0, (result.stderr, result.exception)
        return result

    def json(self, *arguments):
        return json.loads(self.ok(*arguments, "--json").stdout)

    def fails(self, *arguments):
        result = self(*arguments)
        assert result.exit_code == 2, (result.output, result.exception)
        assert result.stdout == ""
        (line,) = result.stderr.splitlines()
        assert line.startswith("Error: ")
        return line


@pytest.fixture(scope="session")
def command_line():
    """A class that runs the commands of an app."""
    return CommandLine


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    directory = tmp_path / "cache"
    monkeypatch.setenv("DROSURV_DATA", str(directory))
    return directory


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """The only folder in which pip finds wheels: nothing else can be downloaded."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def put_wheel(shelf):
    def put(package, version, member, content):
        stem = f"{package.replace('-', '_')}-{version}"
        path = shelf / f"{stem}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr(member, content)
            wheel.writestr(
                f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
            )
            wheel.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr(f"{stem}.dist-info/RECORD", "")
        return path

    return put
