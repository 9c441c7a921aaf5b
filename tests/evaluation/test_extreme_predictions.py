"""Predictions of any size are judged, compared and corrected without an arithmetic warning, which would fail a test."""

import numpy as np
import pandas as pd
import pytest

from drosurv import CoxPH, Surv, audit, certify, compare, evaluate, monitor, repair
from drosurv.evaluation import Predictions
from drosurv.predictions.given import read_predictions

RNG = np.random.default_rng(0)
N = 120
X = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["a", "b"])
RISK = 0.7 * X["a"].to_numpy()
DEATH, END = RNG.exponential(np.exp(-RISK)), RNG.uniform(0.3, 3, N)
Y = Surv.from_arrays(DEATH <= END, np.minimum(DEATH, END) + 0.01)
HALF = (X["b"] > 0).to_numpy()
MANY, FEW = np.arange(1, 61) / 20, np.array([0.5, 1.0, 2.0])

HAZARDS = {
    "none": np.zeros(N),
    "tiny": np.full(N, 1e-300),
    "huge": np.full(N, 1e300),
    "equal": np.ones(N),
    "two sizes": np.where(HALF, 1e300, 1e-300),
    "some certain": np.where(HALF, 1e20, np.exp(RISK)),
    "some never": np.where(HALF, 0.0, np.exp(RISK)),
    "one certain": np.where(np.arange(N) == 0, 1e300, np.exp(RISK)),
}
SCORES = {
    "of two signs": 1e20 * np.sign(RISK),
    "equal": np.full(N, -1e20),
    "one huge": np.where(np.arange(N) == 0, 1e20, RISK),
    "huge": 1e300 * RISK,
    "tiny": 1e-300 * RISK,
    "hundreds": 700 * RISK,
}


def survival(hazard, times):
    with np.errstate(over="ignore"):
        return times, np.exp(-np.outer(hazard, times))


def cox(coef):
    """Return a fitted model with another coefficient of the first feature."""
    model = CoxPH().fit(X[::-1], Y)
    model.coef_ = np.array([coef, 0.0])
    return model


PREDICTIONS = {
    **{f"hazards {name}, many times": survival(hazard, MANY) for name, hazard in HAZARDS.items()},
    **{f"hazards {name}, few times": survival(hazard, FEW) for name, hazard in HAZARDS.items()},
    **{f"scores {name}": score for name, score in SCORES.items()},
    **{
        f"scores {name}, with curves": Predictions(score, survival(np.exp(RISK), MANY)[1], MANY)
        for name, score in SCORES.items()
    },
    "survival falls to 0": (MANY, np.tile(np.where(MANY > 1, 0.0, 1.0), (N, 1))),
    **{f"coefficient {coef}": cox(coef) for coef in (0.0, 1e-300, 40.0, 300.0, 1e20)},
}
ALONE = [name for name in PREDICTIONS if name.startswith("scores") and not name.endswith("curves")]
WITH_CURVES = [name for name in PREDICTIONS if name not in ALONE]


@pytest.mark.parametrize("fields", ["plain", "clusters", "entry"])
@pytest.mark.parametrize("name", PREDICTIONS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_extreme_predictions_are_measured(name, fields):
    if fields == "entry" and name in ALONE:
        pytest.skip("scores alone are not judged from entry on")
    given = {"clusters": np.arange(N) // 4, "entry": Y["time"] * (np.arange(N) % 2) / 2}
    y = Surv.from_arrays(Y["event"], Y["time"], **{key: given[key] for key in given if key == fields})
    predicted = PREDICTIONS[name]
    found = evaluate(predicted, X, y, horizon=1.0, threshold=0.3)
    assert found.value("concordance_index") >= 0
    table = compare({"first": predicted, "second": predicted}, X, y)
    difference = table["difference"].to_numpy(float)
    assert (difference[~np.isnan(difference)] == 0).all()


@pytest.mark.parametrize("name", WITH_CURVES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_extreme_predictions_are_bounded_and_corrected(name):
    predicted = PREDICTIONS[name]
    expects_nothing = name.startswith(("hazards none", "hazards tiny"))
    if expects_nothing:
        with pytest.raises(ValueError, match="expects no"):
            certify(predicted, X, Y, alpha=0.4, n_bootstrap=19)
    else:
        bounds = certify(predicted, X, Y, alpha=0.4, n_bootstrap=19).bounds["bound"].astype(float)
        assert bounds.notna().all()
    how = {"frozen": True} if hasattr(predicted, "fit") else {}
    assert repair(predicted, X, Y, max_conditions=1, folds=3, random_state=0, **how).status_
    if not name.endswith("few times"):
        assert len(monitor(predicted, X, Y, start=np.linspace(0, 4, N), every=1.0).path)


@pytest.mark.parametrize(
    "name", ["hazards two sizes, few times", "scores huge", "scores tiny", "coefficient 300.0"]
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_extreme_predictions_are_audited(name):
    assert audit(PREDICTIONS[name], X, Y).to_json()


def test_huge_scores_beside_probabilities_are_read():
    probabilities = 1 - survival(np.exp(RISK), FEW)[1]
    assert read_predictions(probabilities, Y, times=FEW, risk=1e300 * RISK).predictions is not None
