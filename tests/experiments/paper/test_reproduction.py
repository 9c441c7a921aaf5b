"""One call rebuilds what is asked for; a second call reuses it; other settings never do."""

from dataclasses import replace
from itertools import count

import numpy as np
import pandas as pd
import pytest

from drosurv.datasets import DataUnavailableError
from experiments.paper import Protocol, reproduce, reproduction, tabulation
from experiments.runs import RunLog

FAST = Protocol(max_iter=2, bootstrap=2)


@pytest.fixture
def run(tmp_path):
    def call(only=("flc-age",), methods=("cox",), repeats=1, protocol=FAST, **options):
        return reproduce(
            tmp_path / "out",
            only=only,
            methods=methods,
            repeats=repeats,
            protocol=protocol,
            jobs=1,
            device="cpu",
            **options,
        )

    return call


@pytest.fixture
def flc_alone(monkeypatch):
    """A machine on which no other data can be had."""
    load = reproduction.load_dataset

    def offline(name, **options):
        if name != "flc":
            raise DataUnavailableError("no network")
        return load(name, **options)

    monkeypatch.setattr(reproduction, "load_dataset", offline)


@pytest.fixture
def made_up(monkeypatch, result):
    """Results at once, where it does not matter what they are."""
    monkeypatch.setattr(reproduction, "evaluate_unit", lambda unit, seer_file: result(unit))


@pytest.fixture
def no_tables(monkeypatch):
    """Nothing is written, where only what was computed matters."""
    nothing = tabulation.Tabulation({}, *(pd.DataFrame() for _ in range(4)))
    monkeypatch.setattr(reproduction, "tabulate", lambda *_, **__: nothing)


def test_a_second_run_computes_only_what_is_new(run, made_up, no_tables, tmp_path):
    first = run()
    assert (first.outcome.computed, first.outcome.reused, first.complete) == (1, 0, True)
    again = run(repeats=2)
    assert (again.outcome.computed, again.outcome.reused) == (1, 1)
    assert [(record.computed, record.reused) for record in RunLog(tmp_path / "out").read()] == [
        (1, 0),
        (1, 1),
    ]


def test_a_changed_setting_never_reuses_a_stale_result(run, made_up, no_tables):
    before = run()
    for change in ({"max_iter": 3}, {"bootstrap": 3}, {"initial_seed": 2}, {"convention": "paper"}):
        changed = run(protocol=replace(FAST, **change))
        assert (changed.outcome.computed, changed.outcome.reused) == (1, 0), change
    assert run().outcome.reused == before.outcome.computed


def test_tables_comparison_and_the_document_are_written_where_asked(run, made_up, tmp_path):
    found = run(document=tmp_path / "docs" / "made.md")
    names = {path.name for path in found.files}
    assert {"flc-age-ci.md", "flc-age-comparison.csv", "agreement.tex", "characteristics.md"} <= names
    assert all(path.is_file() for path in found.files)
    counts = found.agreement.set_index("experiment").loc["flc-age"]
    # One method of sixteen, eight of its nine metrics counted.
    assert counts["cells"] == 8
    assert counts["missing"] == 15 * 8
    pages = ("made.md", "made_tables.csv")
    text = "".join((tmp_path / "docs" / page).read_text(encoding="utf-8") for page in pages)
    for name, (table, _) in found.tabulation.tables.items():
        assert not table.rows or table.caption in text, name
    assert "DIAGNOSTIC" in text
    assert "python -m experiments.paper --only flc-age --methods cox --repeats 1" in text
    assert str(tmp_path) not in text


def test_what_depends_on_no_choice_is_computed_once(run, flc_alone, made_up, tmp_path, monkeypatch):
    calls = []

    def counted(name, compute):
        monkeypatch.setattr(tabulation, name, lambda *given: calls.append(name) or compute(*given))

    for name in ("nearest_settings", "alpha_figure"):
        counted(name, getattr(tabulation, name))
    numbers = count()
    monkeypatch.setattr(tabulation, "write_figure", lambda figure, path: path.write_text(f"{next(numbers)}"))
    found = run(only=("flc-age", "alpha"), methods=("dro-cox",), document=tmp_path / "made.md")
    assert sorted(calls) == ["alpha_figure", "nearest_settings"]
    figures = [path for path in found.files if path.suffix == ".svg"]
    assert [path.name for path in figures] == ["alpha.svg", "made-alpha.svg"]
    assert figures[0].read_bytes() == figures[1].read_bytes()


def test_data_that_cannot_be_loaded_are_named_and_the_rest_goes_on(run, flc_alone, made_up, no_tables):
    found = run(only=("flc-age", "support-gender"))
    assert found.unavailable == {"support": "no network"}
    assert not found.complete
    assert found.outcome.computed == 1


def test_quick_is_a_part_of_the_full_run(monkeypatch, tmp_path):
    planned = {}

    def plan(experiments, fingerprints, **options):
        planned.update(options, experiments=[experiment.name for experiment in experiments])
        return ()

    monkeypatch.setattr(reproduction, "load_dataset", lambda name, **_: pytest.fail("not needed"))
    monkeypatch.setattr(reproduction, "load_each", lambda *_: ({}, {}))
    monkeypatch.setattr(reproduction, "_shown", lambda experiments, _: experiments)
    monkeypatch.setattr(reproduction, "plan_units", plan)
    reproduce(tmp_path, quick=True, repeats=5, jobs=1, device="cpu")
    assert planned["repeats"] == 5
    reproduce(tmp_path, quick=True, jobs=1, device="cpu")
    assert planned["experiments"] == ["flc-age", "support-gender", "seer-race"]
    assert planned["repeats"] == 3
    assert "dro-cox" in planned["methods"]
    assert planned["protocol"] == Protocol()


def test_results_out_of_the_store_give_the_numbers_of_the_run_that_computed_them(run, result, monkeypatch):
    rng = np.random.default_rng(0)

    def random(unit, seer_file):
        return result(unit, lambda *_: {"concordance_index": rng.uniform(0.6, 0.8)})

    monkeypatch.setattr(reproduction, "evaluate_unit", random)
    whole, again = (run(methods=("cox", "cox-scaled")) for _ in range(2))
    assert (whole.outcome.computed, again.outcome.computed) == (2, 0)
    pd.testing.assert_frame_equal(again.tabulation.summary, whole.tabulation.summary)
