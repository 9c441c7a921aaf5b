"""The document tells everything, and everything once."""

import pandas as pd
import pytest

from drosurv.presentation import text
from experiments.cells import table_of_cells
from experiments.paper.document import write_document
from experiments.paper.plan import find_experiments
from experiments.paper.tabulation import tabulate

METHODS = ["cox", "dro-cox", "deepsurv", "deep-dro-cox"]


@pytest.fixture(scope="module")
def tabulations(random_grid):
    flc = random_grid(METHODS, repeats=1)
    seer = random_grid(METHODS, repeats=1, seed=1, attributes=("age", "race"), dataset="seer")
    grid = pd.concat([flc, seer], ignore_index=True)
    experiments = find_experiments(["flc-age", "seer-race"])
    chosen = tabulate(grid, experiments)
    return chosen, tabulate(grid, experiments, select_on="test", nearest=chosen.nearest)


@pytest.fixture(scope="module")
def document(tabulations, tmp_path_factory):
    chosen, diagnostic = tabulations
    table_1 = table_of_cells("Basic dataset characteristics", (text("dataset"),), ((text("FLC"),),))
    path = tmp_path_factory.mktemp("document") / "made.md"
    written = write_document(path, tabulation=chosen, characteristics=table_1, diagnostic=diagnostic)
    assert [file.name for file in written] == ["made.md", "made_tables.csv"]
    return "\n".join(file.read_text(encoding="utf-8") for file in written)


def section(document, heading):
    return document.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_every_table_stands_in_it_and_no_note_stands_twice_in_a_section(document, tabulations):
    chosen, diagnostic = tabulations
    shown = [*chosen.tables, *(name for name in diagnostic.tables if "comparison" in name)]
    for name in shown:
        table, _ = (chosen.tables | diagnostic.tables)[name]
        found_with_the_answers = name in (*diagnostic.tables, "nearest", "published-gradient")
        assert ("DIAGNOSTIC" in table.caption) == found_with_the_answers
        assert not table.rows or table.caption in document
    for part in document.split("\n## "):
        notes = [line for line in part.splitlines() if line.startswith("- ")]
        assert len(notes) == len(set(notes)), part.splitlines()[0]


def test_a_reason_is_told_once_and_means_the_same_under_both_choices(document):
    assert document.count("The published IBS pairs predictions") == 1
    assert "- b: The published IBS" in section(document, "How to read the tables")


def test_the_page_begins_with_whether_the_paper_reproduces(document, tabulations):
    comparison = tabulations[0].comparison
    counted = comparison.loc[comparison["counted"] & comparison["agrees"].notna()]
    # Four methods in each of two tables, eight metrics each.
    assert len(counted) == 64
    first = document.split("\n\n")[1]
    assert first.startswith(f"{int(counted['agrees'].sum())} of 64 published numbers (IBS aside) agree")
    assert "concordance imparity: lower in" in first
    assert "integrated Brier score: higher (worse) in" in first


def test_the_page_tells_which_cells_agree(document, tabulations):
    comparison = tabulations[0].comparison
    cox = comparison.loc[(comparison["method"] == "cox") & (comparison["experiment"] == "flc-age")]
    counted = cox.loc[cox["counted"]].set_index("metric")["agrees"].astype(bool)
    said = section(document, "What agrees and what does not").split("\n| Cox | ")[1].split(" | ")[0]
    assert said.startswith(str(counted.sum()))
    assert ("AUC" in said) == (not counted["dynamic_auc"])
    assert ("F_∩" in said) == (not counted["intersectional_disparity"])


def test_cells_that_change_sides_with_the_choice_are_counted(document, tabulations):
    before, after = (
        frame.loc[frame["counted"]]
        .set_index(["experiment", "method", "metric"])["agrees"]
        .dropna()
        .astype(bool)
        for frame in (tabulations[0].comparison, tabulations[1].comparison)
    )
    gained, lost = int((~before & after).sum()), int((before & ~after).sum())
    assert (
        f"Of the {int((~before).sum())} cells that differ above, {gained} agree here; of the {int(before.sum())} that "
        f"agree above, {lost} differ here." in document
    )


def test_a_document_of_no_finished_unit_tells_no_claim(random_grid, tmp_path):
    nothing = tabulate(random_grid(["cox"], repeats=1).iloc[:0], find_experiments(["flc-age"]))
    table_1 = table_of_cells("Basic dataset characteristics", (text("dataset"),), ())
    write_document(tmp_path / "made.md", tabulation=nothing, characteristics=table_1, diagnostic=nothing)
    made = (tmp_path / "made.md").read_text(encoding="utf-8")
    assert "nothing is compared" in made
    assert "claims" not in made
