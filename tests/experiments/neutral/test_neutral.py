"""The published comparison: its scores by their definitions, its factors, and the document."""

import numpy as np
import pandas as pd
import pytest

from drosurv.patients.target import Surv, parse_target
from experiments.neutral.__main__ import PUBLISHED
from experiments.neutral.differences import SCORES, against, mean_ranks, nemenyi, own_less_cox
from experiments.neutral.document import read_fits, write_document
from experiments.neutral.fits import METHODS, Fit, evaluate
from experiments.neutral.repository import dataset_names, load_fold, published_scores
from experiments.neutral.scores import harrell_c, integrated_brier, score_times


@pytest.fixture
def target():
    rng = np.random.default_rng(0)
    return parse_target(Surv.from_arrays(rng.random(60) < 0.6, rng.integers(1, 15, 60)))


def test_harrells_c_counts_pairs_with_different_times_only(target):
    risk = np.random.default_rng(1).integers(0, 8, 60).astype(float)
    concordant = pairs = 0.0
    for i in range(60):
        for j in range(60):
            if target.event[i] and target.time[i] < target.time[j]:
                pairs += 1
                concordant += (risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j])
    assert harrell_c(target, risk) == pytest.approx(concordant / pairs, abs=1e-12)


def test_integrated_brier_score_is_that_of_its_definition(target):
    test = target.take(np.arange(25))
    train = target.take(np.arange(25, 60))
    survival = np.sort(np.random.default_rng(2).random((25, 40)), axis=1)[:, ::-1]

    def uncensored(t):
        """Probability to be uncensored after t, a product over the training times."""
        factors = [
            1 - np.sum((train.time == u) & ~train.event) / np.sum(train.time >= u)
            for u in np.unique(train.time)
            if u <= t
        ]
        return float(np.prod(factors)) or 1e-3

    times = score_times(test)
    scores = []
    for t in times:
        total = 0.0
        for i in range(25):
            if test.time[i] > t:
                total += (1 - survival[i, int(t)]) ** 2 / uncensored(t)
            elif test.event[i]:
                total += survival[i, int(t)] ** 2 / uncensored(test.time[i])
        scores.append(total / 25)
    area = sum(
        (b - a) * (x + y) / 2 for a, b, x, y in zip(times, times[1:], scores, scores[1:], strict=False)
    )
    found = integrated_brier(train, test, lambda rows, at: survival[rows][:, at.astype(int)])
    assert found == pytest.approx(area / (times[-1] - times[0]), abs=1e-12)


def test_the_brier_score_ends_where_more_than_four_fifths_are_gone():
    test = parse_target(Surv.from_arrays(np.ones(10, bool), np.arange(1.0, 11.0)))
    assert score_times(test).tolist() == list(range(1, 11))
    test = parse_target(Surv.from_arrays(np.ones(20, bool), np.arange(1.0, 21.0)))
    assert score_times(test)[-1] == 18


@pytest.fixture
def repository(tmp_path):
    """A folder as the publication's: a dataset with a factor of rare levels, and three folds."""
    rng = np.random.default_rng(3)
    n = 120
    center = np.array(["a"] * 50 + ["b"] * 30 + ["c"] * 16 + ["d"] * 10 + ["e"] * 8 + ["f"] * 4 + ["g"] * 2)
    rng.shuffle(center)
    frame = pd.DataFrame({"time": rng.exponential(size=n).round(3) + 0.01, "status": rng.integers(0, 2, n)})
    frame = frame.assign(Center=center, Chemo=rng.integers(0, 2, n), x=rng.normal(size=n))
    folds = pd.DataFrame({"set": "test", "iteration": np.arange(n) % 3 + 1, "row_id": np.arange(n) + 1})
    for folder, name, table in (
        ("datasets", "bladder0", frame),
        ("resamplings/repeated_cv", "bladder0", folds),
    ):
        (tmp_path / folder).mkdir(parents=True)
        table.to_csv(tmp_path / folder / f"{name}.csv.gz", index=False)
    return tmp_path


def test_rare_levels_join_the_rarest_of_the_five_most_frequent(repository):
    assert dataset_names(repository) == ["bladder0"]
    fold = load_fold(repository, "bladder0", 2)
    assert len(fold.X_test) == 40
    assert set(fold.X_train["Center"]) == set("abcde")
    assert [part["Center"].dtype for part in (fold.X_train, fold.X_test)] == ["category", "category"]
    assert "status" not in fold.X_train


def test_every_method_is_scored_and_the_document_has_all_learners(repository, tmp_path):
    rows = []
    for method in METHODS:
        result = evaluate(Fit(repository, "bladder0", method, 1))
        for iteration in (1, 2):
            rows.append(
                {"dataset": "bladder0", "method": method, "iteration": iteration, "error": "", **result}
            )
    rows = pd.DataFrame(rows)
    assert (rows["error"] == "").all()
    assert rows["c"].between(0, 1).all()
    rules = ["age > 1 and age <= 5", "age > 2", "sex = f and age > 1"]
    rows["rules"] = [rules if method == "repaired" else [] for method in rows["method"]]
    published = published_scores(PUBLISHED)
    written, fits, datasets, pairs = write_document(tmp_path / "page.md", rows, published)
    page = written.read_text()
    assert "oblique forest" in page
    assert "Not complete" in page
    assert "| bladder0 | 2 of 2 | age (2); sex and age (2) |" in page
    assert read_fits(fits)["rules"].tolist() == rows["rules"].tolist()
    assert pd.read_csv(datasets)["dataset"].tolist() == ["bladder0"]
    assert set(pd.read_csv(pairs)["score"]) == {score.label for score in SCORES}


def test_ranks_and_differences_are_from_the_same_datasets():
    means = pd.DataFrame(
        {"dataset": ["u", "u", "v", "v"], "method": ["cox", "repaired"] * 2, "c": [0.6, 0.7, 0.8, 0.75]}
    )
    own = own_less_cox(means, SCORES[0])["repaired"]
    assert own.to_dict() == pytest.approx({"u": 0.1, "v": -0.05})
    others = pd.DataFrame({"CPH": [0.0, 0.0], "GAM": [0.2, -0.1]}, index=["u", "v"])
    assert mean_ranks(own, others, 1).to_dict() == {"CPH": 2.0, "GAM": 2.0, "own": 2.0}
    found = against(own, others["GAM"], pd.Series({"u": 1, "v": 0}), 1)
    assert (found["datasets"], found["mean"], found["better"]) == (1, pytest.approx(0.05), 1)


def test_the_critical_difference_of_ranks_is_demsars():
    # Demsar (2006), table 5: q_0.05 is 2.569 for four methods; his example has 14 datasets and CD 1.25.
    assert nemenyi(4, 14) == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 14)), rel=1e-3)
    assert round(nemenyi(4, 14), 2) == 1.25
