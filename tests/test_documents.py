"""Every Python block of the README and of the documents runs as printed, page by page, top to bottom."""

import json
import re
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from runpy import run_path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import drosurv

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if BLOCK.search(page.read_text()) and "_build" not in page.parts
]


def blocks(page):
    return BLOCK.findall(page.read_text())


def some_patients(load, most):
    """A function that gives at most so many of the patients that `load` gives."""

    def load_some(*arguments, **options):
        data = load(*arguments, **options)
        return data.take(np.arange(0, len(data), -(-len(data) // most)))

    return load_some


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_runs(page, capsys, monkeypatch, quick_base):
    import matplotlib as mpl

    mpl.use("agg")
    # Fewer replicates than by default, and fewer patients; nothing else is changed.
    for name, most in {"load_flc": 900, "load_nwtco": 2100, "make_hidden_minority": 400}.items():
        monkeypatch.setattr(drosurv.datasets, name, some_patients(getattr(drosurv.datasets, name), most))
    monkeypatch.setattr(drosurv, "evaluate", partial(drosurv.evaluate))
    monkeypatch.setattr("drosurv.judging.certification.REPLICATES", 39)
    monkeypatch.setenv("COLUMNS", "80")
    names = {}
    with pd.option_context("display.max_columns", 0):
        for block in blocks(page):
            exec(compile(block.replace("n_bootstrap=50", "n_bootstrap=5"), str(page), "exec"), names)
    assert names, "a page with code defines something"
    assert not re.search(r"^ .* \.\.\. .*$", capsys.readouterr().out, re.MULTILINE), "pandas hides columns"


def test_the_readme_shows_code():
    assert ROOT / "README.md" in PAGES


@pytest.fixture(scope="module")
def evidence():
    """The module that copies numbers from pages of evidence."""
    spec = spec_from_file_location("evidence_table", ROOT / "docs" / "evidence_table.py")
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_benchmark_has_the_tables_of_its_numbers(evidence):
    rows = [line.strip("|\n").split("|") for line in evidence.table().splitlines()[2:]]
    assert [row[0].strip() for row in rows] == list(evidence.METHODS.values())
    assert all(re.search(r"\d \(", cell) and "of 30" in cell for row in rows for cell in row[1:4])
    assert evidence.table() in evidence.BENCHMARK.read_text()
    assert evidence.BENCHMARK.read_text() == evidence.refreshed(), (
        "numbers have changed: run python docs/evidence_table.py and read what the page says of them"
    )


# What the page of evidence says, and the method, measure and reference behind it in docs/benchmark.csv.
CLAIMS = {
    r"`CoxPHCV` gains ([-.\d]+) \(([-.\d]+) to ([-.\d]+)\)": ("cox-cv", "gain"),
    r"better on (\d+) of 30, and": ("cox-cv", "gain", "better"),
    r"and ([-.\d]+) \(([-.\d]+) to ([-.\d]+)\) for the worst named group": ("cox-cv", "worst_named_gain"),
    r"better on (\d+) of 30: ": ("cox-cv", "worst_named_gain", "better"),
    r"`RepairedCox\(\)` gains ([-.\d]+) \(([-.\d]+) to ([-.\d]+)\)": ("repair-cv", "gain"),
    r"repaired plain Cox differs from Cox by ([-.\d]+) \(([-.\d]+) to ([-.\d]+)\)": ("repair", "gain"),
    r"at alpha 0.5 gains ([-.\d]+) \(([-.\d]+) to ([-.\d]+)\)": ("dro-half", "gain"),
    r"to 0.0068\), and ([-.\d]+) for the worst named group": ("dro-half", "worst_named_gain"),
    r"plain Cox gains ([-.\d]+) and [-.\d]+ by recalibration alone": ("cox-recalibrated", "gain"),
    r"plain Cox gains [-.\d]+ and ([-.\d]+) by recalibration alone": ("cox-recalibrated", "worst_named_gain"),
}


def words(page):
    """A page with every run of white space as one space: lines may break anywhere."""
    return " ".join((ROOT / page).read_text().split())


@pytest.mark.parametrize("pattern", CLAIMS)
def test_the_page_of_evidence_has_the_numbers_of_the_benchmark(pattern):
    method, measure, *count = CLAIMS[pattern]
    means = pd.read_csv(ROOT / "docs" / "benchmark.csv").pivot_table(
        index="dataset", columns="method", values=measure
    )
    difference = (means[method] - means["cox"]).dropna()
    assert len(difference) == 30
    half = stats.t.ppf(0.975, 29) * difference.std(ddof=1) / np.sqrt(30)
    mean = difference.mean()
    found = [(difference > 0).sum()] if count else [mean, mean - half, mean + half]
    said = [float(number) for number in re.search(pattern, words("docs/evidence.md")).groups()]
    assert said == [round(float(value), 4) + 0.0 for value in found[: len(said)]]


def test_the_documents_have_the_numbers_of_the_study_of_shifts():
    from experiments.studies.shift import NEW, difference

    rows = pd.read_csv(ROOT / "docs" / "shift.csv")
    found = difference(rows, "c_index", "dro-half", NEW)
    half = stats.t.ppf(0.975, 19) * found.std(ddof=1) / np.sqrt(20)
    mean = found.mean()
    said = f"{mean:.4f} ({mean - half:.4f} to {mean + half:.4f})"
    assert f"differs from plain Cox's by {said}" in words("docs/evidence.md")
    lower, worst, best = (f"{abs(value):.4f}" for value in (mean, mean - half, mean + half))
    assert f"is {lower} lower than plain Cox's ({worst} lower to {best} higher)" in words(
        "docs/guide/what_to_use.md"
    )
    assert f"higher in {(found > 0).sum()} of 20 tasks" in words("docs/shift.md")


def test_the_documents_have_the_rates_of_false_alarms():
    table = pd.read_csv(ROOT / "docs" / "tables" / "false_alarms.csv").set_index("setting")
    rates, runs = table["any problem"], table["runs"]
    page, evidence = words("docs/false_alarms.md"), words("docs/evidence.md")
    assert (runs == runs.iloc[0]).all()
    assert f"In {runs.iloc[0]} runs of each of {len(rates)} kinds of right models" in page
    assert f"named in {rates.mean():.1f} % on average" in page
    others, above = rates[rates <= 7], rates[rates > 7]
    assert f"at most {others.max()} % in {len(others)} of them" in page
    # The page says why.
    assert list(above.index) == ["censoring: crossing hazards, by arm, three times, n = 8,000"]
    assert all(f"{rate} %" in page for rate in above)
    # certify: the first column of numbers in the table of subgroups.
    certified = [
        float(cell) for cell in re.findall(r"\| ([.\d]+) \| [.\d]+ \|", page.partition("## Subgroups")[2])
    ]
    of_certify = f"{np.mean(certified):.1f} % on average"
    assert f"Any subgroup: {of_certify}, at most {max(certified)} %" in page
    assert (
        f"In {rates.mean():.1f} % of runs on average and at most {others.max()} % in {len(others)} kinds"
        in evidence
    )
    assert (
        f"by `certify` in {of_certify} and at most {max(certified)} % in {len(certified)} kinds" in evidence
    )
    assert max(certified) <= 7
    assert f"called wrong in {rates.mean():.1f} % of {runs.sum():,} simulated runs" in words("README.md")


def test_what_is_written_by_hand_stays_when_the_evidence_of_repairs_is_rendered(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    made = import_module("experiments.studies.repair_document")
    before = (ROOT / "docs" / "repair.md").read_text()
    (tmp_path / "repair.md").write_text(before)
    unit = {"part": "n", "setting": "small n", "variant": "", "seed": 0, "method": "repair"}
    (tmp_path / "rows.jsonl").write_text(json.dumps({**unit, "repairs": 0, "largest_e": 1.5}))
    monkeypatch.setattr(made, "DOCS", tmp_path)
    made.write(tmp_path)
    after = (tmp_path / "repair.md").read_text()
    assert "| small n | 1 | 0 | 0.0% | 1.5 |" in after
    assert "\n\n## Tried\n" + before.partition("\n## Tried\n")[2] == after[after.index("\n\n## Tried") :]


def documented():
    """The public modules and names that the reference lists."""
    found, module = {}, None
    for line in (ROOT / "docs" / "api.rst").read_text().splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   [A-Za-z]\w*", line):
            found.setdefault(module, []).append(line.strip())
    return found


def test_public_is_what_the_reference_lists():
    """Names of the reference are in the ``__all__`` of their module, and names of an ``__all__`` in the reference."""
    listed = documented()
    assert [name for names in listed.values() for name in names if names.count(name) > 1] == []
    modules = ["drosurv", *(f"drosurv.{name}" for name in drosurv._SUBPACKAGES)]
    assert set(listed) <= set(modules)
    objects = [getattr(import_module(module), name) for module, names in listed.items() for name in names]
    # Models, also new ones, are added to the reference by docs/conf.py.
    objects += dict(drosurv.all_estimators(causes=True)).values()
    for module in modules:
        exported = set(import_module(module).__all__)
        assert set(listed.get(module, ())) <= exported, (
            f"docs/api.rst lists what {module}.__all__ does not have"
        )
        for name in exported:
            known = any(getattr(import_module(module), name) is one for one in objects)
            assert known, (
                f"{module}.{name} is public: add it to docs/api.rst, or remove it from {module}.__all__"
            )


def test_the_reference_has_every_estimator_and_the_readme_those_named_there_by_hand():
    reference, readme = ((ROOT / name).read_text() for name in ("docs/api.rst", "README.md"))
    assert ".. include:: more_models.rst\n" in reference
    found = run_path(str(ROOT / "docs" / "conf.py"))["unnamed_models"](reference)
    in_both = 0
    for name, cls in drosurv.all_estimators():
        by_hand = f"\n   {name}\n" in reference
        assert by_hand or f"   ~{'.'.join(cls.__module__.split('.')[:2])}.{name}\n" in found, name
        assert by_hand == (f"`{name}`" in readme), f"name {name} in docs/api.rst and README.md, or in neither"
        in_both += by_hand
    # A model that is new needs no line; the others keep theirs.
    assert in_both >= 12
