"""Folds of rows that belong together."""

import numpy as np

from drosurv.folds import draw_folds


def test_rows_of_one_cluster_share_a_fold_and_events_are_spread_evenly():
    rng = np.random.default_rng(0)
    clusters = np.array([f"p{k}" for k in rng.integers(0, 90, 200)])
    event = rng.random(200) < 0.3
    folds = draw_folds(200, 5, np.random.default_rng(1), event, clusters)
    had_event = {name: event[clusters == name].any() for name in np.unique(clusters)}
    counts = np.zeros(5)
    for name, had in had_event.items():
        (own,) = np.unique(folds[clusters == name])
        counts[own] += had
    assert np.ptp(counts) <= 1


def test_rows_that_are_all_alone_are_drawn_as_without_clusters():
    event = np.arange(40) % 3 == 0
    drawn = (
        draw_folds(40, 4, np.random.default_rng(2), event, clusters) for clusters in (None, np.arange(40))
    )
    np.testing.assert_array_equal(*drawn)
