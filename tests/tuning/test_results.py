"""Folds are averaged setting by setting, and settings without a finite score are left out."""

import numpy as np
import pandas as pd
import pytest

from drosurv.tuning.results import average_folds, candidates, in_words


def by_fold(scores):
    """Rows in fold-major order, so that settings are not contiguous."""
    scores = np.asarray(scores, dtype=float)
    return pd.DataFrame(
        [
            {"candidate": setting, "fold": fold, "alpha": 0.1 * setting, "score": scores[setting, fold]}
            for fold in range(scores.shape[1])
            for setting in range(scores.shape[0])
        ]
    )


def test_the_mean_and_its_standard_error_are_those_of_the_folds():
    scores = [[0.7, 0.8, 0.9], [0.5, 0.5, 0.8]]
    averaged = average_folds(by_fold(scores), ["score"])
    assert averaged.index.tolist() == [0, 1]
    np.testing.assert_allclose(averaged["score"], np.mean(scores, axis=1))
    np.testing.assert_allclose(averaged["score_se"], np.std(scores, axis=1, ddof=1) / np.sqrt(3))
    np.testing.assert_allclose(averaged["alpha"], [0.0, 0.1])
    assert "fold" not in averaged


def test_a_setting_that_fails_in_one_fold_is_not_judged_by_the_others():
    table = by_fold([[0.9, np.nan], [0.6, 0.6], [np.inf, 0.7]])
    assert candidates(table, ["score"]).index.tolist() == [1]


def test_folds_without_a_candidate_column_are_an_error_that_names_it():
    with pytest.raises(ValueError, match="'candidate'"):
        candidates(pd.DataFrame({"fold": [0, 1], "score": [0.1, 0.2]}), ["score"])


def test_an_unknown_metric_is_an_error_that_lists_the_columns():
    with pytest.raises(ValueError, match=r"no column 'auc'.*\['score'\]"):
        candidates(pd.DataFrame({"score": [0.1]}), ["auc"])


def test_a_table_in_which_everything_diverged_is_an_error():
    with pytest.raises(ValueError, match="none of the 2 settings has a finite score: training"):
        candidates(pd.DataFrame({"score": [np.nan, np.inf]}), ["score"])


def test_repeated_index_labels_are_an_error():
    with pytest.raises(ValueError, match="repeated index labels"):
        candidates(pd.DataFrame({"score": [0.1, 0.2]}, index=[3, 3]), ["score"])


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("concordance_index", "c-index"),
        ("dynamic_auc", "dynamic AUC"),
        ("integrated_brier_score", "integrated Brier score"),
        ("group_disparity", "group disparity"),
    ],
)
def test_scores_are_called_as_readers_write_them(column, words):
    assert in_words(column) == words
    with pytest.raises(ValueError, match=f"has a finite {words}: training"):
        candidates(pd.DataFrame({column: [np.nan]}), [column])
