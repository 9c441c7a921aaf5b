"""The command compares methods on a bundled dataset, continues after a stop, and says what went wrong in one line."""

import numpy as np
import pandas as pd
import pytest

from experiments.benchmark import tournament

WHAT = ["--datasets", "flc", "--methods", "null,cox", "--splits", "1", "--jobs", "1"]


@pytest.fixture
def no_parts():
    """Parts of datasets that other tests have split are not kept, nor those of this one for them."""
    tournament._parts.cache_clear()
    yield
    tournament._parts.cache_clear()


def test_a_stopped_run_continues_where_it_was(experiments, tmp_path, monkeypatch, no_parts):
    # Every sixth patient; the groups that a forest finds are not looked at here.
    data = tournament.load("flc")
    monkeypatch.setattr(tournament, "load", lambda name: data.take(np.arange(0, len(data), 6)))
    monkeypatch.setattr("experiments.benchmark.measures.TREES", 3)
    evaluate = tournament.evaluate_match

    def evaluate_one(match):
        if match.method == "cox":
            raise KeyboardInterrupt
        return evaluate(match)

    what = [*WHAT, "-o", str(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr(tournament, "evaluate_match", evaluate_one)
        assert experiments("benchmark", *what).exit_code != 0
    kept = [(path, path.stat().st_mtime_ns) for path in (tmp_path / "units").rglob("split-*.json")]
    assert len(kept) == 1
    # Nothing but the summary is printed.
    told = experiments.json("benchmark", *what)
    assert (told["reused"], told["computed"], told["missing"]) == (1, 1, 0)
    assert told["failures"] == []
    assert all(path.stat().st_mtime_ns == written for path, written in kept)
    results = pd.read_csv(tmp_path / "results.csv", keep_default_na=False)
    assert results["method"].tolist() == ["null", "cox"]
    assert results["c_index"].astype(float).tolist() == pytest.approx([0.5, 0.79], abs=0.03)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--datasets", "flu"], "'flu'"),
        (["--methods", "dor"], "'dor' is not one of null, cox"),
        (["--splits", "0"], "--splits must be a whole number, at least 1, got 0"),
        (["--jobs", "0"], "--jobs must be a whole number, at least 1, got 0"),
    ],
)
def test_bad_input_is_one_line(experiments, options, message, tmp_path):
    assert message in experiments.fails("benchmark", "--datasets", "flc", *options, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_is_no_folder_for_the_results(experiments, tmp_path):
    (tmp_path / "out").write_text("mine")
    assert "is a file: name a folder" in experiments.fails("benchmark", "-o", tmp_path / "out")
