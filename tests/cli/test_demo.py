import pytest

from drosurv.datasets import make_hidden_minority
from drosurv.workflows import demo


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """The same story on fewer patients."""
    data = make_hidden_minority(n_samples=700, minority=0.5, random_state=0)
    whole, seen = demo.tell, []

    def tell(**options):
        seen.append(options)
        options["attribute"] = "membership" if options["attribute"] == "age" else options["attribute"]
        return whole(**options, n_hidden=1500, real=data)

    monkeypatch.setattr(demo, "tell", tell)
    return seen


def test_the_story_names_the_group_its_number_the_remedies_and_one_advice(drosurv, small):
    output = drosurv.ok("demo", "--alpha", "0.3", "--seed", "3").stdout
    for word in (
        "A hidden group",
        "Plain Cox fails them",
        "of no model at all",
        "Who they are",
        "what it costs everybody",
        "plain Cox",
        "DRO-COX",
        "subgroup robust Cox",
        "repaired Cox",
        "Real patients",
        "On your own data",
    ):
        assert word in output
    assert small[0]["alpha"] == 0.3
    assert small[0]["random_state"] == 3


def test_json_holds_every_number(drosurv):
    found = drosurv.json("demo")
    assert found["alpha"] == 0.2
    assert found["hidden"]["n_test"] == 500
    assert found["hidden"]["table"][0]["model"] == "plain Cox"
    assert found["real"]["n_test"] == 140


def test_bad_input_is_one_line(drosurv):
    assert "--alpha must lie in (0, 1]" in drosurv.fails("demo", "--alpha", "0")
    assert "--attribute must be one of" in drosurv.fails("demo", "--attribute", "race")


def test_a_report_is_written_and_named(drosurv, tmp_path, monkeypatch):
    whole = demo.story_report
    monkeypatch.setattr(demo, "story_report", lambda **options: whole(**options, n_hidden=600, n_bootstrap=2))
    report = tmp_path / "report.md"
    assert f"The report is in {report}." in drosurv.ok("demo", "--report", report).stdout
    assert report.read_text().startswith("# ")
    assert "must end in .html, .md or .json" in drosurv.fails("demo", "--report", tmp_path / "report.txt")
