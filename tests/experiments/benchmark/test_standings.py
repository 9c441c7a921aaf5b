"""Differences, ranks and their tests, against textbook numbers and other libraries."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import friedmanchisquare

from experiments.benchmark.measures import MEASURES
from experiments.benchmark.standings import (
    Ranks,
    alike,
    critical_difference,
    differences,
    over_datasets,
    rank,
    rank_diagram,
)

GAIN, C_INDEX, IBS = MEASURES[:3]


def results(values, measure=GAIN):
    """Rows from an array (datasets, methods, splits); the first method is Cox."""
    values = np.asarray(values, dtype=float)
    names = ["cox", *(f"m{k}" for k in range(1, values.shape[1]))]
    return pd.DataFrame(
        [
            {"dataset": f"d{i}", "method": names[j], "split": k, measure.name: values[i, j, k], "error": ""}
            for i, j, k in np.ndindex(values.shape)
        ]
    )


def test_a_difference_is_paired_and_its_interval_knows_that_splits_overlap():
    rng = np.random.default_rng(0)
    cox = rng.normal(size=(1, 1, 10))
    other = cox + 0.3 + 0.1 * rng.normal(size=cox.shape)
    (row,) = differences(results(np.concatenate([cox, other], axis=1)), GAIN).to_dict("records")
    d = (other - cox).ravel()
    # Nadeau and Bengio (2003): variance of the mean times k (1/k + test/train); the 97.5 % point of t with 9 degrees.
    half = 2.262157 * d.std(ddof=1) * np.sqrt(1 / 10 + 40 / 60)
    assert row["difference"] == pytest.approx(d.mean())
    assert row["high"] - row["difference"] == pytest.approx(half, rel=1e-6)
    assert row["verdict"] == "better"


@pytest.mark.parametrize(("measure", "verdict"), [(GAIN, "worse"), (IBS, "better")])
def test_what_is_better_depends_on_the_measure(measure, verdict):
    values = np.stack([np.full(5, 1.0), np.linspace(0.499, 0.501, 5)])[None]
    (row,) = differences(results(values, measure), measure).to_dict("records")
    assert row["verdict"] == verdict


def test_one_split_alone_gives_no_verdict():
    found = differences(results([[[1.0], [0.5]], [[1.0], [1.5]]]), GAIN)
    assert found["verdict"].tolist() == ["", ""]
    assert found[["low", "high"]].isna().all(axis=None)
    (row,) = over_datasets(found).to_dict("records")
    assert (row["better"], row["same"], row["worse"], row["mean"]) == (0, 0, 0, 0.0)


def test_over_datasets_the_dataset_is_the_sample():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(6, 2, 4))
    (row,) = over_datasets(differences(results(values), GAIN)).to_dict("records")
    d = (values[:, 1] - values[:, 0]).mean(axis=1)
    assert row["mean"] == pytest.approx(d.mean())
    # The 97.5 % point of t with 5 degrees of freedom.
    assert row["high"] - row["mean"] == pytest.approx(2.570582 * d.std(ddof=1) / np.sqrt(6), rel=1e-6)
    assert row["better"] + row["same"] + row["worse"] == row["datasets"] == 6


def test_friedman_agrees_with_scipy_also_with_ties():
    rng = np.random.default_rng(2)
    values = np.round(rng.normal(size=(12, 4, 1)), 0)
    found = rank(results(values), GAIN)
    assert found.p == pytest.approx(friedmanchisquare(*values[:, :, 0].T).pvalue)
    assert found.mean.sum() == pytest.approx(1 + 2 + 3 + 4)
    assert found.datasets == 12


def test_the_critical_difference_is_demsars():
    # Demsar (2006), table 5: q_0.05 is 2.569 for four methods; his example has 14 datasets and CD 1.25.
    assert critical_difference(4, 14) == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 14)), rel=1e-3)
    assert round(critical_difference(4, 14), 2) == 1.25


def test_a_failed_method_is_last_and_an_untried_dataset_does_not_count():
    values = np.array([[[1.0], [2.0], [np.nan]], [[1.0], [2.0], [3.0]], [[1.0], [2.0], [3.0]]])
    table = results(values)
    found = rank(table, GAIN)
    assert found.mean["m2"] == pytest.approx((3 + 1 + 1) / 3)
    untried = table.loc[~((table["dataset"] == "d2") & (table["method"] == "m1"))]
    assert rank(untried, GAIN).datasets == 2


def test_a_method_that_failed_on_one_split_is_last_on_its_dataset():
    table = results(np.array([[[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]] * 2))
    failed = (table["dataset"] == "d0") & (table["method"] == "m2") & (table["split"] == 1)
    table.loc[failed, [GAIN.name, "error"]] = [np.nan, "ValueError"]
    assert rank(table, GAIN).mean.to_dict() == {"cox": 2.5, "m1": 1.5, "m2": 2.0}


def test_splits_that_are_not_complete_are_not_ranked():
    table = results(np.array([[[1.0, 1.0], [2.0, 2.0], [3.0, -9.0]]] * 2))
    unfinished = table.loc[~((table["method"] == "m1") & (table["split"] == 1))]
    assert rank(unfinished, GAIN).mean["m2"] == 1


def test_too_little_to_rank_is_none():
    assert rank(results(np.ones((1, 3, 2))), GAIN) is None
    assert rank(results(np.ones((3, 2, 2))), GAIN) is None


def test_bars_join_the_longest_runs_that_cannot_be_told_apart():
    assert alike([1.0, 1.5, 2.5, 4.0], 1.0) == [(0, 1), (1, 2)]
    assert alike([1.0, 3.0], 1.0) == []
    assert alike([1.0, 1.2, 1.4], 1.0) == [(0, 2)]


def test_a_diagram_names_every_method():
    found = rank(results(np.random.default_rng(3).normal(size=(5, 4, 2))), GAIN)
    labels = {"cox": "Cox", "m1": "first", "m2": "second", "m3": "third"}
    shown = [text.get_text() for text in rank_diagram(found, labels, "Ranks").axes[0].texts]
    for method, label in labels.items():
        assert f"{label} ({found.mean[method]:.1f})" in shown


def test_no_text_of_a_diagram_lies_on_another_or_on_a_line():
    mean = pd.Series({f"m{k}": 4 + 0.3 * k for k in range(20)})
    labels = {name: f"a method with a long name, number {k}" for k, name in enumerate(mean.index)}
    figure = rank_diagram(Ranks(mean, 30, 0.01, 2.0), labels, "Mean rank by something, 30 datasets")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    boxes = [text.get_window_extent() for text in (*axes.texts, axes.title)]
    lines = [line.get_path().transformed(axes.transData) for line in axes.lines]
    for k, box in enumerate(boxes):
        assert figure.bbox.containsx(box.x0)
        assert figure.bbox.containsx(box.x1)
        assert figure.bbox.containsy(box.y0)
        assert figure.bbox.containsy(box.y1)
        assert not any(box.overlaps(other) for other in boxes[k + 1 :])
        assert not any(line.intersects_bbox(box, filled=False) for line in lines)
