import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import drosurv

HEAVY = ("torch", "sksurv", "pandas", "sklearn", "matplotlib", "numba", "scipy", "numpy")


def modules_after(code):
    """Names of the top-level modules a fresh interpreter has loaded after running the code."""
    script = f"import sys\n{code}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(found.stdout.split())


def test_importing_the_package_is_quick_because_nothing_heavy_comes_with_it():
    assert modules_after("import drosurv").isdisjoint(HEAVY)


def test_every_public_name_can_be_reached():
    assert [name for name in drosurv.__all__ if getattr(drosurv, name) is None] == []
    assert {*drosurv.__all__, "metrics", "datasets"} <= set(dir(drosurv))


def test_the_top_level_lists_few_names_and_has_every_model():
    assert len(drosurv.__all__) <= 16
    for name, cls in drosurv.all_estimators(causes=True):
        assert getattr(drosurv, name) is cls


def test_estimators_are_reached_from_the_top():
    assert drosurv.CoxPH.__module__ == "drosurv.estimators.cox"
    assert drosurv.Surv is drosurv.patients.target.Surv


def test_disparities_of_the_paper_are_metrics_too():
    names = [name for name in drosurv.paper.__all__ if name.endswith(("disparity", "imparity", "fractions"))]
    assert len(names) == 8
    for name in names:
        assert getattr(drosurv, name) is getattr(drosurv.metrics, name) is getattr(drosurv.paper, name)


@pytest.mark.parametrize("module", [drosurv, drosurv.metrics], ids=lambda module: module.__name__)
def test_unknown_names_are_refused(module):
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'CoxPHH'"):
        module.CoxPHH  # noqa: B018 - the access is the test


ROOT = Path(__file__).parents[1]
SCRIPTS = [path for folder in ("experiments", "docs") for path in (ROOT / folder).rglob("*.py")]


def test_scripts_import_what_is_there_also_inside_of_functions():
    """They take minutes or hours to run, and would fail only then."""
    names = {
        (node.module, alias.name)
        for path in SCRIPTS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "drosurv"
        for alias in node.names
    }
    assert {("drosurv", "evaluate"), ("drosurv.patients.target", "Target")} <= names
    assert [
        (module, name) for module, name in sorted(names) if not hasattr(import_module(module), name)
    ] == []
