"""CONTRIBUTING's new model: two files and a line for each, and everything knows it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CLASSES = {"losses": "WeibullHazard", "estimators": "WeibullCox"}


@pytest.fixture(scope="module")
def package_copy(tmp_path_factory):
    """A copy of the package with the page's files and lines added."""
    copy = tmp_path_factory.mktemp("package_copy") / "drosurv"
    # With what numba compiled, which would take a minute to do again.
    shutil.copytree(ROOT / "src" / "drosurv", copy)
    files = re.findall(r"`src/drosurv/([a-z_/]+\.py)`.*?```python\n(.*?)```", PAGE, re.DOTALL)
    assert [Path(path).parent.name for path, _ in files] == list(CLASSES)
    for path, code in files:
        (copy / path).write_text(code)
        subpackage = Path(path).parent.name
        contents = copy / subpackage / "__init__.py"
        line = f"from drosurv.{path.removesuffix('.py').replace('/', '.')} import {CLASSES[subpackage]}\n"
        assert f"`{line.strip()}`" in PAGE
        text = contents.read_text().replace(
            "\n__all__ = [", f"\n{line}\n__all__ = [\n    {CLASSES[subpackage]!r},"
        )
        contents.write_text(text)
    return copy.parent


@pytest.fixture(scope="module")
def said(package_copy, tmp_path_factory):
    """What pytest says of the copy: its contract suites, and tests of this model alone. One process imports once."""
    suites = ["tests/estimators/test_every_estimator.py", "tests/estimators/test_persistence.py"]
    suites += ["tests/estimators/test_trees.py", "tests/test_documents.py"]
    own = package_copy / "test_weibull.py"
    own.write_text(OWN)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-vv", "-k", "WeibullCox or has_every_estimator", *suites, str(own)],
        cwd=ROOT,
        env={"PYTHONPATH": str(package_copy), "PATH": "", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def passed(said):
    """Tests that passed, by what their names begin with."""
    return re.findall(r"::(test_\w+).* PASSED", said)


def test_the_contract_suites_find_the_model(said):
    # Fifteen properties, three of the file with each network, three with trees, and the documents.
    assert len([name for name in passed(said) if "WeibullCox" not in name]) >= 25, said[-3000:]
    assert "failed" not in said.splitlines()[-1], said[-3000:]


@pytest.mark.parametrize("name", ["maximum", "command_line", "reference"])
def test_the_library_knows_it(said, name):
    assert [found for found in passed(said) if found.startswith("test_WeibullCox") and name in found], said[
        -3000:
    ]


# The maximum by another program: scipy on the log density of each event and log survival of each censored.
OWN = r"""
import json
import runpy
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from typer.testing import CliRunner

import drosurv
from drosurv.cli.app import app
from drosurv.workflows import training


def test_WeibullCox_trains_its_own_loss_to_the_likelihoods_maximum():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    event_time = (rng.exponential(size=400) / np.exp(X @ [0.8, -0.4] - 1.0)) ** (1 / 1.7)
    end = rng.uniform(0.5, 4.0, size=400)
    event, time = event_time <= end, np.minimum(event_time, end)
    model = drosurv.WeibullCox(lr=0.1, max_iter=300, random_state=0).fit(X, drosurv.Surv.from_arrays(event, time))

    def loss(p):
        k, log_scale = np.exp(p[3]), X @ p[:2] + p[2]
        hazard = np.exp(log_scale) * time**k
        return (hazard - event * (np.log(k) + (k - 1) * np.log(time) + log_scale)).mean()

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8}).x
    curves = model._baseline
    found = [*model.coef_, curves.level, np.log(curves.shape)]
    np.testing.assert_allclose(found, best, atol=2e-3)
    expected = np.exp(-np.exp(X @ best[:2] + best[2])[:, None] * np.array([0.5, 1.0]) ** np.exp(best[3]))
    np.testing.assert_allclose(model.predict_survival_function(X, times=[0.5, 1.0]), expected, atol=2e-3)
    assert drosurv.WeibullCox in dict(drosurv.all_estimators()).values()


def test_WeibullCox_is_fitted_tuned_and_audited_by_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(training, "beside", partial(training.beside, n_bootstrap=20))
    data = drosurv.datasets.make_hidden_minority(n_samples=200, random_state=0)
    table = data.X.assign(time=data.y["time"], event=data.y["event"].astype(int), **data.sensitive_features)
    table.to_csv("patients.csv", index=False)
    target = ["patients.csv", "--time", "time", "--event", "event", "--drop", "membership", "--set", "max_iter=20"]

    def run(*words):
        done = CliRunner().invoke(app, [*words])
        assert done.exit_code == 0, done.output
        return done.stdout

    fitted = json.loads(run("fit", *target, "--model", "weibull-cox", "-o", "model", "--json"))
    assert fitted["estimator"] == "WeibullCox", fitted
    grid = ["--grid", "lr=0.02,0.05", "--folds", "2"]
    run("tune", *target, "--model", "WeibullCox", *grid, "-o", "tuned", "--table", "settings.csv")
    settings = Path("settings.csv").read_text()
    assert "0.02" in settings and "0.05" in settings, settings
    audit = ["--groups", "membership", "--bootstrap", "0", "--no-rules", "-o", "report.json"]
    run("audit", "model", "patients.csv", *audit)
    assert "WeibullCox" in Path("report.json").read_text()


def test_WeibullCox_is_in_the_docs_reference_without_a_line_of_its_own():
    unnamed_models = runpy.run_path("docs/conf.py")["unnamed_models"]
    assert "   ~drosurv.estimators.WeibullCox\n" in unnamed_models(Path("docs/api.rst").read_text())
"""
