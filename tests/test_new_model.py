"""CONTRIBUTING's new model, additive hazards: one file, and everything knows it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def package_copy(tmp_path_factory):
    """A copy of the package with the page's file added."""
    copy = tmp_path_factory.mktemp("package_copy") / "drosurv"
    # With what numba compiled, which would take a minute to do again.
    shutil.copytree(ROOT / "src" / "drosurv", copy)
    ((path, code),) = re.findall(r"`src/drosurv/([a-z_/]+\.py)`.*?```python\n(.*?)```", PAGE, re.DOTALL)
    (copy / path).write_text(code)
    return copy.parent


@pytest.fixture(scope="module")
def said(package_copy, tmp_path_factory):
    """What pytest says of the copy: its contract suites, and tests of this model alone. One process imports once."""
    suites = ["tests/estimators/test_every_estimator.py", "tests/estimators/test_persistence.py"]
    suites += [
        "tests/estimators/test_trees.py",
        "tests/test_documents.py",
        "tests/estimators/test_capabilities.py",
    ]
    own = package_copy / "test_additive.py"
    own.write_text(OWN)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-vv",
            "-k",
            "AdditiveHazards or has_every_estimator",
            *suites,
            str(own),
        ],
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
    assert len([name for name in passed(said) if "AdditiveHazards" not in name]) >= 25, said[-3000:]
    assert "failed" not in said.splitlines()[-1], said[-3000:]


@pytest.mark.parametrize("name", ["solution", "summary", "curves", "command_line", "reference"])
def test_the_library_knows_it(said, name):
    assert [found for found in passed(said) if found.startswith("test_AdditiveHazards") and name in found], (
        said[-3000:]
    )


# Lin and Ying's closed form, written from its definition: loops over times, patients and features.
OWN = r"""
import json
import runpy
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import drosurv
from drosurv.cli.app import app
from drosurv.workflows import comparison, tuning


def data(n=300):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, n), rng.uniform(0, 1, n)]).astype(float)
    event_time = rng.exponential(size=n) / (0.3 + X @ [0.5, 1.0])
    end = np.ceil(rng.uniform(0.5, 4.0, size=n) * 10) / 10
    return X, event_time <= end, np.minimum(event_time, end)


def lin_ying(X, event, time):
    # Coefficients, and the cumulative hazard of a patient with features of zero at each time.
    A, b, times = np.zeros((2, 2)), np.zeros(2), np.unique(time)
    for k, t in enumerate(times):
        at_risk = X[time >= t]
        centred = at_risk - at_risk.mean(axis=0)
        A += (t - (times[k - 1] if k else 0.0)) * centred.T @ centred
        for x in X[event & (time == t)]:
            b += x - at_risk.mean(axis=0)
    beta, hazard, found = np.linalg.solve(A, b), 0.0, []
    for k, t in enumerate(times):
        at_risk = X[time >= t]
        hazard += (event & (time == t)).sum() / len(at_risk)
        hazard -= at_risk.mean(axis=0) @ beta * (t - (times[k - 1] if k else 0.0))
        found.append(hazard)
    return beta, times, np.array(found)


@pytest.fixture(scope="module")
def fitted():
    X, event, time = data()
    y = drosurv.Surv.from_arrays(event, time)
    return drosurv.AdditiveHazards(lr=0.05, max_iter=300, random_state=0).fit(X, y)


def test_AdditiveHazards_finds_lin_and_yings_solution(fitted):
    np.testing.assert_allclose(fitted.coef_, lin_ying(*data())[0], atol=1e-3)


def test_AdditiveHazards_summary_says_that_it_has_no_hazard_ratios(fitted, monkeypatch):
    table = fitted.summary()
    assert not [name for name in table.columns if "exp" in name or "plain" in name]
    assert "AdditiveHazards has no hazard ratios" in " ".join(table.notes)
    np.testing.assert_array_equal(table["coef"], fitted.coef_)
    assert "hazard ratio (" not in str(table)
    monkeypatch.setattr(fitted, "max_iter", 5)
    errors = fitted.summary(method="bootstrap", n_bootstrap=5)["se(coef)"]
    assert (errors > 0).all()


def test_AdditiveHazards_curves_are_the_baseline_plus_score_times_time(fitted):
    X, event, time = data()
    beta, times, hazard = lin_ying(X, event, time)
    expected = hazard + X[:5] @ beta[:, None] * times
    expected = np.maximum.accumulate(np.maximum(expected, 0.0), axis=1)
    found = fitted.predict_cumulative_hazard_function(X[:5], times=times)
    np.testing.assert_allclose(found, expected, atol=5e-3)


def test_AdditiveHazards_is_fitted_tuned_and_audited_by_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(comparison, "_REPLICATES", 20)
    monkeypatch.setattr(tuning, "_REPLICATES", 20)
    data = drosurv.datasets.make_hidden_minority(n_samples=200, random_state=0)
    table = data.X.assign(time=data.y["time"], event=data.y["event"].astype(int), **data.sensitive_features)
    table.to_csv("patients.csv", index=False)
    target = ["patients.csv", "--time", "time", "--event", "event", "--drop", "membership", "--set", "max_iter=20"]

    def run(*words):
        done = CliRunner().invoke(app, [*words])
        assert done.exit_code == 0, done.output
        return done.stdout

    fitted = json.loads(run("fit", *target, "--model", "additive-hazards", "-o", "model", "--json"))
    assert fitted["estimator"] == "AdditiveHazards", fitted
    grid = ["--grid", "lr=0.02,0.05", "--folds", "2"]
    run("tune", *target, "--model", "AdditiveHazards", *grid, "-o", "tuned", "--table", "settings.csv")
    settings = Path("settings.csv").read_text()
    assert "0.02" in settings and "0.05" in settings, settings
    audit = ["--groups", "membership", "--bootstrap", "0", "--no-rules", "-o", "report.json"]
    run("audit", "model", "patients.csv", *audit)
    assert "AdditiveHazards" in Path("report.json").read_text()


def test_AdditiveHazards_is_in_the_docs_reference_without_a_line_of_its_own():
    unnamed_models = runpy.run_path("docs/conf.py")["unnamed_models"]
    assert "   ~drosurv.estimators.AdditiveHazards\n" in unnamed_models(Path("docs/api.rst").read_text())
"""
