"""A whole benchmark on made-up data: it continues, it adds methods, it writes what it found."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from drosurv.datasets import DataUnavailableError, make_hidden_minority
from experiments.benchmark import run_benchmark, tournament
from experiments.benchmark.contenders import CONTENDERS
from experiments.benchmark.measures import MEASURES
from experiments.command import app

NAMES = ["rossi", "colon"]
METHODS = ["dro", "dro-paper"]


@pytest.fixture(autouse=True)
def made_up(monkeypatch):
    """Small made-up data under the names of real ones, so that nothing is downloaded."""
    data = {name: make_hidden_minority(250, random_state=k) for k, name in enumerate(NAMES)}

    def load(name):
        if name not in data:
            raise DataUnavailableError(f"{name} is not here")
        return data[name]

    tournament._parts.cache_clear()
    monkeypatch.setattr("experiments.benchmark.measures.TREES", 3)
    monkeypatch.setattr(tournament, "load", load)
    yield
    tournament._parts.cache_clear()


@pytest.fixture
def made_up_results(monkeypatch):
    """Results at once, where it does not matter what they are; DRO-COX fails."""
    rng = np.random.default_rng(0)

    def evaluate(match):
        if match.method == "dro-paper":
            return {"error": "ValueError: nothing to learn"}
        return {name: rng.uniform(0.4, 0.6) for name in MEASURES}

    monkeypatch.setattr(tournament, "evaluate_match", evaluate)


def run(folder, **options):
    return run_benchmark(folder, **{"datasets": NAMES, "methods": METHODS, "splits": 2, "jobs": 1, **options})


def test_running_again_computes_nothing_and_a_new_method_only_itself(made_up_results, tmp_path):
    first = run(tmp_path, methods=["dro"], splits=1)
    assert (first.outcome.computed, first.missing) == (2 * 3, 0)
    more = run(tmp_path, splits=1)
    assert (more.outcome.reused, more.outcome.computed) == (6, 2)
    again = run(tmp_path, splits=1)
    assert (again.outcome.reused, again.outcome.computed) == (8, 0)
    pd.testing.assert_frame_equal(more.results, again.results)
    assert run(tmp_path, seed=1, methods=["dro"], splits=1).outcome.computed == 6


def test_time_that_is_up_leaves_the_rest_for_the_next_run(made_up_results, tmp_path):
    first = run(tmp_path, minutes=0, splits=1)
    assert (first.outcome.computed, first.outcome.waiting, first.missing) == (0, 8, 8)
    assert run(tmp_path, splits=1).missing == 0


def test_a_method_that_failed_is_in_the_file_of_results(made_up_results, tmp_path):
    written = pd.read_csv(run(tmp_path).path, keep_default_na=False, na_values=[""])
    assert sorted(set(written["method"])) == ["cox", "dro", "dro-paper", "null"]
    failed = written.loc[written["method"] == "dro-paper"]
    assert failed["gain"].isna().all()
    assert failed["error"].eq("ValueError: nothing to learn").all()


def test_data_that_cannot_be_had_are_left_out_and_named(made_up_results, tmp_path):
    found = run(tmp_path, datasets=["rossi", "uis"], methods=["dro"], splits=1)
    assert found.unavailable == {"uis": "uis is not here"}
    assert found.results["dataset"].unique().tolist() == ["rossi"]


def test_the_seed_is_that_of_a_model_inside_a_method_too():
    train, _ = tournament._parts("rossi", 0)
    assert CONTENDERS["repair-trees"].fit(train, 3).base_.random_state == 3


def test_the_command_tells_what_it_did(made_up_results, tmp_path, monkeypatch):
    monkeypatch.setenv("DROSURV_DATA", "elsewhere")
    arguments = ["benchmark", "--datasets", "rossi,colon", "--methods", "dro", "--splits", "1", "--jobs", "1"]
    arguments += ["--output", str(tmp_path / "out"), "--data", str(tmp_path), "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["computed"], told["missing"]) == (6, 0)
    assert told["files"] == [str(tmp_path / "out" / "results.csv")]
