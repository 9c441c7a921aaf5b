"""The tables show every number with what it must not be read without."""

import numpy as np
import pytest

from experiments.paper.comparison import agreement, compare
from experiments.paper.plan import EXPERIMENTS
from experiments.paper.selection import choose_settings, summarise
from experiments.paper.tables import agreement_table, comparison_table, result_table

NAMES = ["cox", "dro-cox", "dro-cox-cvar", "deepsurv", "deep-dro-cox"]


@pytest.fixture(scope="module")
def summary(random_grid):
    return summarise(choose_settings(random_grid(NAMES), EXPERIMENTS["flc-age"]))


def column(table, name):
    number = table.header.index(name)
    return [row[number] for row in table.cells()]


def cell(summary, method, metric):
    return summary.set_index(["method", "metric"]).loc[(method, metric)]


def test_rows_are_linear_methods_first_then_mlps(summary):
    table = result_table(summary)
    assert column(table, "method") == ["Cox", "DRO-COX", "DRO-COX (CVaR)", "DeepSurv", "Deep DRO-COX"]
    assert column(table, "network") == ["linear"] * 3 + ["MLP"] * 2


def test_columns_are_the_nine_metrics_and_the_shrinkage_control(summary):
    assert result_table(summary).header == [
        *("method", "network", "c-index ↑", "AUC ↑", "LPL ↑", "IBS ↓"),
        *("F_I ↓", "F_G ↓", "F_∩ ↓", "F_A ↓", "CI(%) ↓", "LPL gain / Cox's", "slope"),
    ]


def test_a_cell_is_mean_and_sd_to_four_decimals(summary):
    auc = cell(summary, "dro-cox", "dynamic_auc")
    assert column(result_table(summary), "AUC ↑")[1] == f"{auc['mean']:.4f} ({auc['sd']:.4f})"
    share = cell(summary, "dro-cox", "gain_share")
    assert column(result_table(summary), "LPL gain / Cox's")[1] == f"{share['mean']:.2f}"


def test_a_huge_number_is_a_power_of_ten(summary):
    huge = summary.assign(mean=4.231494421309273e71, sd=float("nan"))
    assert "| 4.23e+71 (–) |" in result_table(huge).to_markdown()


def test_imparity_always_comes_with_its_interval(summary):
    for table in (result_table(summary), comparison_table(compare_flc(summary))):
        shown = [text for text in column(table, "CI(%) ↓") if not text.startswith("–")]
        assert shown
        assert all("[0.10, 4.00]" in text for text in shown)


def test_an_unknown_interval_is_shown_as_unknown(summary):
    assert "[–, –]" in column(result_table(summary.assign(low=np.nan, high=np.nan)), "CI(%) ↓")[0]


def test_one_repeat_shows_no_sd(random_grid):
    one = summarise(choose_settings(random_grid(["cox"], repeats=1), EXPERIMENTS["flc-age"]))
    assert column(result_table(one), "AUC ↑")[0].endswith("(–)")
    assert "over 1 repeat" in result_table(one).notes[0]


def test_a_method_that_fell_back_is_marked_and_the_mark_explained(random_grid):
    grid = random_grid(["cox", "dro-cox"])
    grid.loc[(grid["method"] == "dro-cox") & (grid["repeat"] < 2), "concordance_index"] = 0.1
    table = result_table(summarise(choose_settings(grid, EXPERIMENTS["flc-age"])))
    assert column(table, "method") == ["Cox", "DRO-COX ‡2"]
    assert any("no setting was inside the accuracy budget" in note for note in table.notes)
    assert r"\textsc{DRO-COX}\textsuperscript{\ddag{}2}" in table.to_latex()


def compare_flc(summary):
    comparison = compare(summary)
    return comparison[comparison["experiment"] == "flc-age"]


def test_a_comparison_shows_ours_published_and_the_difference(summary):
    auc = cell(summary, "cox", "dynamic_auc")
    z = (auc["mean"] - 0.8176) / 0.0005
    shown = column(comparison_table(compare_flc(summary)), "AUC ↑")
    assert abs(z) > 2
    assert shown[0] == f"**{auc['mean']:.4f} / 0.8176 ({z:+.1f})**"


def test_a_cell_we_have_no_number_for_is_not_in_bold(summary):
    table = comparison_table(compare_flc(summary))
    row = column(table, "method").index("Cox_G (R&P)")
    assert column(table, "AUC ↑")[row] == "– / 0.8172 (–)"


def test_reasons_are_lettered_and_told_below(summary):
    table = comparison_table(compare_flc(summary))
    brier = column(table, "IBS ↓")[0]
    letter = brier.split()[-1]
    assert not brier.startswith("**")
    assert any(note.startswith(f"{letter}: ") and "IBS" in note for note in table.notes)


def test_a_cell_with_two_reasons_has_both_letters_and_each_is_told_once(summary):
    cells = compare_flc(summary)
    shown = cells["metric"] == "integrated_brier_score"
    cells = cells.assign(codes=cells["codes"].where(~shown, "ibs-unscaled; ibs-order"))
    table = comparison_table(cells)
    assert column(table, "IBS ↓")[0].endswith(" a,b")
    assert [note[0] for note in table.notes if note[1] == ":"].count("b") == 1


def test_agreement_is_shown_by_group(summary):
    table = agreement_table(agreement(compare(summary)))
    assert column(table, "dataset") == ["flc", "support", "seer"]
    # Cox, DRO-COX, DeepSurv and Deep DRO-COX, eight metrics each.
    assert column(table, "cells") == ["32", "0", "0"]
    assert column(table, "fraction")[1:] == ["–", "–"]
