import numpy as np
import pytest

from drosurv import demo
from drosurv.datasets import make_hidden_minority


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """The same comparison on fewer patients."""
    data = make_hidden_minority(n_samples=500, random_state=0)
    whole = demo.compare
    seen = []

    def compare(**options):
        seen.append(options)
        options["attribute"] = "membership" if options["attribute"] == "age" else options["attribute"]
        return whole(data, **options, replicates=20)

    monkeypatch.setattr(demo, "compare", compare)
    return seen


def test_the_table_compares_cox_with_robust_models(drosurv, small):
    output = drosurv.ok("demo", "--alpha", "0.3", "--seed", "3").stdout
    for word in (
        "Cox",
        "DRO-COX published",
        "c-index",
        "IBS",
        "worst group",
        "gain kept",
        "slope",
        "alpha = 0.3",
    ):
        assert word in output
    assert small[0]["alpha"] == 0.3
    assert small[0]["random_state"] == 3


def test_json_holds_every_number(drosurv):
    found = drosurv.json("demo")
    assert found["n_test"] == 100
    assert found["alpha"] == 0.2
    first = found["table"][0]
    assert first["model"] == "Cox"
    assert first["share_of_gain"] == 1
    assert np.isfinite([value for key, value in first.items() if key not in ("model", "worst_group")]).all()


def test_bad_input_is_one_line(drosurv):
    assert "alpha" in drosurv.fails("demo", "--alpha", "0")
    assert "attribute 'race' is not one of" in drosurv.fails("demo", "--attribute", "race")


def test_a_report_is_written_and_named(drosurv, tmp_path, monkeypatch):
    from drosurv import audit

    whole = audit.audit_flc
    monkeypatch.setattr(
        audit,
        "audit_flc",
        lambda alpha, **options: whole(alpha, alpha_path=[], search_rules=False, n_bootstrap=2, **options),
    )
    report = tmp_path / "report.md"
    assert f"The report is in {report}." in drosurv.ok("demo", "--report", report).stdout
    assert report.read_text().startswith("# DROCox")
    assert "must end in .html, .md or .json" in drosurv.fails("demo", "--report", tmp_path / "report.txt")
