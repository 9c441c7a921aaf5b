"""Plain Cox, trained and evaluated as behind the published tables, gives their Cox rows."""

from functools import cache

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from drosurv.datasets import load_flc, load_seer, load_support, split
from drosurv.estimators import CoxPH
from experiments.paper import load_published
from experiments.paper.scoring import HeldOut

LOADERS = {"flc": load_flc, "support": load_support, "seer": load_seer}
ATTRIBUTE = {"flc": "age", "support": "gender", "seer": "race"}
REPEATS = {"flc": (1, 2), "support": (1,), "seer": (1,)}
METRICS = (
    "concordance_index",
    "dynamic_auc",
    "log_partial_likelihood",
    "individual_disparity",
    "group_disparity",
    "intersectional_disparity",
)
# Where two published standard deviations do not hold, and why.
TOLERANCE = {
    # The published likelihood was computed with a running sum over a time sort, wrong under ties.
    ("support", "log_partial_likelihood"): 0.006,
    # The public file lists patients in another order, so the test set is another one.
    ("seer", "concordance_index"): 0.02,
    ("seer", "dynamic_auc"): 0.02,
    ("seer", "log_partial_likelihood"): 0.2,
    ("seer", "individual_disparity"): 0.15,
}
# Mean hazards of other patients, so few (six are neither white nor 65 or younger), are other numbers.
NOT_COMPARABLE = {("seer", "group_disparity"), ("seer", "intersectional_disparity")}
CASES = [(name, metric) for name in LOADERS for metric in METRICS if (name, metric) not in NOT_COMPARABLE]


@cache
def means(name):
    """Mean over repeats of each metric of the model that validation chooses among learning rates."""
    data, found = LOADERS[name](as_published=True), []
    for repeat in REPEATS[name]:
        train, validation, test = split(data, repeat)
        scaler = StandardScaler().fit(train.X)
        X_train, X_validation, X = (scaler.transform(part.X) for part in (train, validation, test))
        models = [CoxPH(solver="adam", lr=lr, random_state=1).fit(X_train, train.y) for lr in (0.01, 0.001)]
        chosen = max(models, key=lambda model: model.score(X_validation, validation.y))
        held_out = HeldOut(train.y, X, test.y, test.sensitive_features, convention="table")
        numbers = held_out.measure(chosen.predict(X))
        found.append(
            [
                numbers[ATTRIBUTE[name] if metric == "group_disparity" else "overall", metric]
                for metric in METRICS
            ]
        )
    return dict(zip(METRICS, np.mean(found, axis=0).tolist(), strict=True))


@pytest.mark.parametrize(("name", "metric"), CASES)
def test_the_row_is_the_published_one(name, metric, request):
    if name != "flc":
        request.getfixturevalue("downloads")
    cells = load_published()
    cell = cells[(cells["dataset"] == name) & (cells["method"] == "cox") & (cells["metric"] == metric)]
    cell = cell[cell["attribute"] == ATTRIBUTE[name]].iloc[0]
    tolerance = TOLERANCE.get((name, metric), 2 * cell["sd"])
    assert means(name)[metric] == pytest.approx(cell["mean"], abs=tolerance)
