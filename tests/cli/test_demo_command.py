"""The demonstration's text, JSON and reports."""

import pytest

from drosurv.datasets import make_hidden_minority
from drosurv.workflows import demo


@pytest.fixture(scope="module")
def result():
    """A demonstration on fewer patients and one dataset."""
    data = make_hidden_minority(300, 5, random_state=0)
    return demo.demo(random_state=3, loaders={demo.SIMULATED: lambda: data})


@pytest.fixture(autouse=True)
def seeds(monkeypatch, result):
    """Seeds that the command asked for; every demonstration is the same one."""
    asked = []

    def run(*, random_state, **_):
        asked.append(random_state)
        return result

    monkeypatch.setattr(demo, "demo", run)
    return asked


def test_the_text_names_the_models_the_numbers_of_patients_and_the_next_command(drosurv):
    output = drosurv.ok("demo").stdout
    for words in (
        "Trained on 200 patients, compared on 100 others",
        "plain Cox",
        "repaired Cox",
        "had the event",
    ):
        assert words in output
    assert "drosurv check patients.csv" in output


def test_json_holds_every_number(drosurv, seeds):
    found = drosurv.json("demo", "--seed", "3")["simulated"]
    assert seeds == [3]
    assert (found["n_train"], found["n_test"]) == (200, 100)
    assert [row["model"] for row in found["table"]] == ["plain Cox", "cross-validated Cox", "repaired Cox"]
    assert all(row["seconds"] >= 0 for row in found["table"])


def test_two_reports_are_written_and_named(drosurv, tmp_path, monkeypatch):
    class Report:
        def to_html(self, path):
            path.write_text("drosurv")

    monkeypatch.setattr(demo, "reports", lambda **_: {"plain Cox": Report(), "repaired Cox": Report()})
    output = drosurv.ok("demo", "--report", tmp_path / "demo.html").stdout
    for kind in ("plain", "repaired"):
        path = tmp_path / f"demo_{kind}.html"
        assert path.exists()
        assert f"The report of {kind} Cox is in {path}." in output
    assert "must end in .html, .md or .json" in drosurv.fails("demo", "--report", tmp_path / "report.txt")
