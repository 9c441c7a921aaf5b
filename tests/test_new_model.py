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
def house(tmp_path_factory):
    """A copy of the package with the page's files and lines added."""
    copy = tmp_path_factory.mktemp("house") / "drosurv"
    # With what numba compiled, which would take a minute to do again.
    shutil.copytree(ROOT / "src" / "drosurv", copy)
    files = re.findall(r"`src/drosurv/([a-z_/]+\.py)`.*?```python\n(.*?)```", PAGE, re.DOTALL)
    assert [Path(path).parent.name for path, _ in files] == list(CLASSES)
    for path, code in files:
        (copy / path).write_text(code)
        room = Path(path).parent.name
        contents = copy / room / "__init__.py"
        line = f"from drosurv.{path.removesuffix('.py').replace('/', '.')} import {CLASSES[room]}\n"
        assert f"`{line.strip()}`" in PAGE
        text = contents.read_text().replace("\n__all__ = [", f"\n{line}\n__all__ = [\n    {CLASSES[room]!r},")
        contents.write_text(text)
    return copy.parent


def run(house, *arguments, folder=ROOT):
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env={"PYTHONPATH": str(house), "PATH": "", "OMP_NUM_THREADS": "1"},
        capture_output=True,
    )
    assert done.returncode == 0, done.stdout.decode()[-3000:] + done.stderr.decode()[-3000:]
    return done.stdout.decode()


def test_the_contract_suites_find_the_model_and_it_trains_its_own_loss_to_the_maximum(house):
    suites = ["tests/estimators/test_every_estimator.py", "tests/persistence/test_saved_model.py"]
    suites += ["tests/estimators/test_trees.py", "tests/test_documents.py"]
    own = house / "test_weibull.py"
    own.write_text(MAXIMUM)
    wanted = "WeibullCox or has_every_estimator"
    said = run(house, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", wanted, *suites, str(own))
    # Fifteen properties, three of the file with each network, three with trees, the documents, and the maximum.
    assert len(re.findall(r"^\.+", said, re.MULTILINE)[0]) >= 26


# The maximum by another program: scipy on the log density of each event and log survival of each censored.
MAXIMUM = """
import numpy as np
from scipy.optimize import minimize
import drosurv


def test_WeibullCox_trains_its_own_loss_to_the_likelihoods_maximum():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    event_time = (rng.exponential(size=400) / np.exp(X @ [0.8, -0.4] - 1.0)) ** (1 / 1.7)
    end = rng.uniform(0.5, 4.0, size=400)
    event, time = event_time <= end, np.minimum(event_time, end)
    model = drosurv.WeibullCox(lr=0.02, max_iter=3000, random_state=0).fit(X, drosurv.Surv.from_arrays(event, time))

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
"""


def test_the_command_line_fits_tunes_and_audits_it(house, tmp_path):
    code = """
import json
from pathlib import Path
from typer.testing import CliRunner
from drosurv import datasets
from drosurv.cli.app import app

data = datasets.make_hidden_minority(n_samples=300, random_state=0)
table = data.X.assign(time=data.y["time"], event=data.y["event"].astype(int), **data.sensitive_features)
table.to_csv("patients.csv", index=False)
TARGET = ["patients.csv", "--time", "time", "--event", "event", "--drop", "membership", "--set", "max_iter=60"]

def drosurv(*words):
    done = CliRunner().invoke(app, [*words])
    assert done.exit_code == 0, done.output
    return done.stdout

fitted = json.loads(drosurv("fit", *TARGET, "--model", "weibull-cox", "-o", "model", "--json"))
assert fitted["estimator"] == "WeibullCox", fitted
grid = ["--grid", "lr=0.02,0.05", "--folds", "2"]
drosurv("tune", *TARGET, "--model", "WeibullCox", *grid, "-o", "tuned", "--table", "settings.csv")
settings = Path("settings.csv").read_text()
assert "0.02" in settings and "0.05" in settings, settings
audit = ["--groups", "membership", "--bootstrap", "0", "--no-rules", "-o", "report.json"]
drosurv("audit", "model", "patients.csv", *audit)
assert "WeibullCox" in Path("report.json").read_text()
"""
    run(house, "-W", "ignore", "-c", code, folder=tmp_path)


def test_the_docs_reference_has_it_without_a_line_of_its_own(house):
    code = """
import runpy
from pathlib import Path
unnamed_models = runpy.run_path("docs/conf.py")["unnamed_models"]
reference = Path("docs/api.rst").read_text()
print(unnamed_models(reference))
"""
    assert "   ~drosurv.estimators.WeibullCox\n" in run(house, "-c", code)
