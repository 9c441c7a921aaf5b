"""Times that differ by rounding errors only, such as 0.1 + 0.2 and 0.3, are ties where models are fitted and judged."""

import warnings

import numpy as np
import pandas as pd
import pytest

from drosurv import (
    MLP,
    AcceleratedFailureTime,
    CauseSpecificCox,
    CoxPH,
    CoxPHCV,
    DeepHit,
    DiscreteTimeHazard,
    DROCox,
    DROCoxSplit,
    GroupDROCox,
    RepairedCox,
    SubgroupRobustCox,
    Surv,
    certify,
    evaluate,
)
from drosurv.estimators import NullModel
from drosurv.metrics import calibration_slope, concordance_index, integrated_brier_score, uno_concordance

MODELS = {
    "Breslow": CoxPH(),
    "Efron": CoxPH(ties="efron"),
    "network": CoxPH(MLP((3,), max_iter=5), random_state=0),
    "cross-validated": CoxPHCV(splines=False, l2s=[0.1, 1.0], cv=3),
    "robust": DROCox(),
    "split": DROCoxSplit(random_state=0, recalibrate=False),
    "groups": GroupDROCox(max_iter=5),
    "trees": SubgroupRobustCox(n_trees=3, random_state=0, recalibrate=False),
    "repaired": RepairedCox(CoxPH(), folds=3, max_conditions=1, random_state=0),
    "parametric": AcceleratedFailureTime(),
    "discrete": DiscreteTimeHazard(max_iter=5, random_state=0),
    "mass of events": DeepHit(network=MLP((3,), max_iter=5), random_state=0),
    "null": NullModel(),
}


def patients(n=250):
    """Return features, events, times k / 10, the same ones of which some are summed up, and entry times of 0.3."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    k = np.minimum(np.ceil(10 * rng.exponential(np.exp(-X @ [0.5, -0.5]))).astype(int) + 3, 60)
    event = (rng.random(n) < 0.7) & (k < 60)
    divided, summed = k / 10, np.cumsum(np.full(60, 0.1))[k - 1]
    # Of tied times the smallest is taken: let it be k / 10.
    first = np.isin(np.arange(n), np.unique(k, return_index=True)[1])
    time = np.where(first | (summed < divided), divided, summed)
    assert (time > divided).sum() > 30
    return X, event, divided, time, np.where(time > divided, 0.3, 0.1 + 0.2)


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_to_times_with_rounding_errors_is_that_to_equal_times(name):
    X, event, exact, rounded, _ = patients()
    found = []
    for time in (exact, rounded):
        y = Surv.from_arrays(event, time)
        given = {"sensitive_features": X[:, 0] > 0} if name == "groups" else {}
        with warnings.catch_warnings(action="ignore"):
            model = MODELS[name].fit(X, y, **given)
        found.append(model.predict_survival_function(X[:20], times=exact[:9]))
    np.testing.assert_array_equal(*found)


def test_models_of_causes_and_late_entry_see_the_same_ties():
    X, event, exact, rounded, entry = patients()
    cause = np.where(event, 1 + (X[:, 0] > 0.3), 0)
    late = exact > 0.5
    for model in (CauseSpecificCox(), CauseSpecificCox(alpha=0.7)):
        coef = [np.array(model.fit(X, Surv.competing(cause, time)).coef_) for time in (exact, rounded)]
        np.testing.assert_array_equal(*coef)
    # Who enters at an event time is not at risk then, whatever the rounding errors.
    ys = [
        Surv.from_arrays(event, exact, entry=np.where(late, 0.3, 0.0)),
        Surv.from_arrays(event, rounded, entry=np.where(late, entry, 0.0)),
    ]
    for ties in ("breslow", "efron"):
        np.testing.assert_array_equal(*[np.array(CoxPH(ties=ties).fit(X, y).coef_) for y in ys])
    np.testing.assert_array_equal(*[concordance_index(y, X[:, 0]) for y in ys])


def test_coefficients_are_those_of_r(run_r):
    X, event, _, time, entry = patients()
    entry = np.where(time > 0.5, entry, 0.0)
    exact = pd.DataFrame({"time": time, "entry": entry}).map(repr)
    table = exact.assign(event=event.astype(int), a=X[:, 0], b=X[:, 1])
    r = run_r(
        """
        d <- read.csv("d.csv")
        for (ties in c("breslow", "efron")) {
          give(ties, coef(coxph(Surv(time, event) ~ a + b, d, ties = ties)))
          give(paste0(ties, "_entry"), coef(coxph(Surv(entry, time, event) ~ a + b, d, ties = ties)))
        }
        give("c", concordance(Surv(time, event) ~ a, d, reverse = TRUE)$concordance)
        """,
        d=table,
    )
    y, late = Surv.from_arrays(event, time), Surv.from_arrays(event, time, entry=entry)
    for ties in ("breslow", "efron"):
        model = CoxPH(ties=ties)
        np.testing.assert_allclose(model.fit(X, y).coef_, r[ties].ravel(), rtol=1e-6)
        np.testing.assert_allclose(model.fit(X, late).coef_, r[f"{ties}_entry"].ravel(), rtol=1e-6)
    assert concordance_index(y, X[:, 0]) == pytest.approx(r["c"].item(), rel=1e-9)


def test_metrics_see_the_same_ties():
    X, event, exact, rounded, _ = patients()
    risk, times = X @ [0.5, -0.5], np.array([0.55, 1.05, 1.55])
    survival = np.exp(-np.outer(np.exp(risk), times / 2))
    first, second = (Surv.from_arrays(event, time) for time in (exact, rounded))
    for metric in (concordance_index, calibration_slope):
        assert metric(first, risk) == metric(second, risk)
    assert uno_concordance(first, first, risk) == uno_concordance(second, second, risk)
    assert integrated_brier_score(first, first, survival, times) == integrated_brier_score(
        second, second, survival, times
    )


@pytest.mark.parametrize("trained_on", [0, 1])
def test_patients_are_judged_at_the_steps_of_the_model_and_at_the_horizon(trained_on):
    X, event, exact, rounded, _ = patients()
    model = CoxPH().fit(X, Surv.from_arrays(event, (exact, rounded)[trained_on]))
    # Now the test patients' times are the smaller ones, or the larger ones.
    summed = np.cumsum(np.full(60, 0.1))[np.rint(10 * exact).astype(int) - 1]
    found, bounds = [], []
    for time in (exact, summed):
        y = Surv.from_arrays(event, time)
        result = evaluate(model, X, y, horizon=0.8)
        found.append(np.concatenate([result.findings["value"], result.table["value"]]).astype(float))
        bounds.append(certify(model, X, y, alpha=0.3, n_bootstrap=59).bounds["bound"].astype(float))
    np.testing.assert_allclose(*found, rtol=1e-9)
    np.testing.assert_allclose(*bounds, rtol=1e-9)
