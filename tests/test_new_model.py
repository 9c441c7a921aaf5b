"""CONTRIBUTING's new model, additive hazards: one file, and everything knows it."""

import inspect
import json
import re
import sys
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from typer.testing import CliRunner

import drosurv
from drosurv import Surv, estimators
from drosurv.cli import app
from drosurv.estimators.all_models import add_models
from drosurv.evaluation import get_scorer

from . import test_documents
from .estimators import test_capabilities, test_every_estimator, test_persistence, test_trees

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.filterwarnings("ignore:.*is the null model:UserWarning")


@pytest.fixture(scope="module")
def cls(tmp_path_factory):
    """The page's model, whose file lies beside those of the package for as long as these tests run."""
    ((path, code),) = re.findall(r"`src/drosurv/([a-z_/]+\.py)`.*?```python\n(.*?)```", PAGE, re.DOTALL)
    folder, file = tmp_path_factory.mktemp("more_models"), Path(path)
    assert (ROOT / "src" / "drosurv" / file.parent).samefile(Path(estimators.__file__).parent)
    (folder / file.name).write_text(code)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimators, "__path__", [*estimators.__path__, str(folder)])
        patch.setattr(estimators, "__all__", list(estimators.__all__))
        # As the package does when it is imported.
        add_models(vars(estimators))
        yield drosurv.AdditiveHazards
    del estimators.AdditiveHazards
    del sys.modules[f"{estimators.__name__}.{file.stem}"]


def functions_of(suite, fixture):
    """Tests that take a fixture, such as the class of a model, and perhaps others of pytest."""
    tests = [value for name, value in vars(suite).items() if name.startswith("test_")]
    return [test for test in tests if fixture in inspect.signature(test).parameters]


@pytest.mark.parametrize("suite", [test_every_estimator, test_capabilities])
def test_the_suites_of_all_models_take_it(cls, suite):
    tests = [test for test in functions_of(suite, "cls") if getattr(test, "is_meant", callable)(cls)]
    assert len(tests) >= 8
    for test in tests:
        test(cls)


@pytest.mark.parametrize("network", ["linear", "mlp", "trees"])
def test_its_file_is_as_that_of_all_models(cls, network, tmp_path):
    suite = test_persistence.TestEveryEstimator()
    tests = [test for name, test in inspect.getmembers(suite, inspect.ismethod) if name.startswith("test_")]
    assert len(tests) == 3
    for test in tests:
        test(cls, network, tmp_path / "model")


def test_it_is_trained_with_trees(cls):
    model = test_trees.fit(cls)
    tests = functions_of(test_trees, "model")
    assert len(tests) >= 2
    for test in tests:
        test(model)


def test_the_documents_need_no_line_about_it(cls):
    test_documents.test_the_reference_has_every_estimator_and_the_readme_those_named_there_by_hand()
    unnamed_models = run_path(str(ROOT / "docs" / "conf.py"))["unnamed_models"]
    reference = (ROOT / "docs" / "api.rst").read_text()
    assert "   ~drosurv.estimators.AdditiveHazards\n" in unnamed_models(reference)


def data(n=300):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, n), rng.uniform(0, 1, n)]).astype(float)
    event_time = rng.exponential(size=n) / (0.3 + X @ [0.5, 1.0])
    end = np.ceil(rng.uniform(0.5, 4.0, size=n) * 10) / 10
    return X, event_time <= end, np.minimum(event_time, end)


def lin_ying(X, event, time):
    """Coefficients, and the cumulative hazard of a patient with features of zero at each time, by the definition."""
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
def fitted(cls):
    X, event, time = data()
    return cls(lr=0.05, max_iter=300, random_state=0).fit(X, drosurv.Surv.from_arrays(event, time))


def test_it_finds_lin_and_yings_solution(fitted):
    np.testing.assert_allclose(fitted.coef_, lin_ying(*data())[0], atol=1e-3)


def test_its_summary_says_that_it_has_no_hazard_ratios(fitted, monkeypatch):
    table = fitted.summary()
    assert not [name for name in table.columns if "exp" in name or "plain" in name]
    assert "AdditiveHazards has no hazard ratios" in " ".join(table.notes)
    np.testing.assert_array_equal(table["coef"], fitted.coef_)
    assert "hazard ratio (" not in str(table)
    monkeypatch.setattr(fitted, "max_iter", 5)
    errors = fitted.summary(method="bootstrap", n_bootstrap=5)["se(coef)"]
    assert (errors > 0).all()


def test_its_curves_are_the_baseline_plus_score_times_time(fitted):
    X, event, time = data()
    beta, times, hazard = lin_ying(X, event, time)
    expected = hazard + X[:5] @ beta[:, None] * times
    expected = np.maximum.accumulate(np.maximum(expected, 0.0), axis=1)
    found = fitted.predict_cumulative_hazard_function(X[:5], times=times)
    np.testing.assert_allclose(found, expected, atol=5e-3)


def test_its_settings_are_found_by_a_grid_search(cls):
    X, event, time = data()
    grid = {"lr": [1e-6, 0.05]}
    scoring = get_scorer("neg_ibs")
    search = GridSearchCV(cls(max_iter=50, random_state=0), grid, scoring=scoring, cv=2)
    search.fit(X, Surv.from_arrays(event, time))
    assert search.best_params_ == {"lr": 0.05}
    assert np.diff(search.cv_results_["mean_test_score"]) > 0


def test_it_is_fitted_and_audited_by_the_command_line(cls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = drosurv.datasets.make_hidden_minority(n_samples=200, random_state=0)
    table = data.X.assign(time=data.y["time"], event=data.y["event"].astype(int), **data.sensitive_features)
    table.to_csv("patients.csv", index=False)
    target = ["patients.csv", "--time", "time", "--event", "event", "--drop", "membership"]

    def run(*words):
        done = CliRunner().invoke(app, [*words])
        assert done.exit_code == 0, done.output
        return done.stdout

    fitted = json.loads(
        run("fit", *target, "--set", "max_iter=20", "--model", "additive-hazards", "-o", "model", "--json")
    )
    assert fitted["estimator"] == "AdditiveHazards", fitted
    audit = ["--groups", "membership", "--no-rules", "-o", "report.json"]
    run("audit", "model", "patients.csv", *audit)
    assert "AdditiveHazards" in Path("report.json").read_text()
