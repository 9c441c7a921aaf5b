"""Models of causes of patients who enter late, in strata and clusters, with offsets and several rows."""

import warnings

import numpy as np
import pandas as pd
import pytest

import drosurv
from drosurv import CauseSpecificCox, CoxPH, Surv
from drosurv.patients.target import with_fields

from .test_cause_specific_cox import simulated

FEATURES, TIMES, ALPHA = ["a", "b"], [0.3, 0.8, 1.5], 0.95


def observed():
    rng = np.random.default_rng(1)
    data = simulated(n=220)
    n = len(data)
    # One stratum lives ten times as long as the other, so that nobody takes them for one.
    stratum = rng.choice(["slow", "quick"], n)
    time = data["time"] * np.where(stratum == "slow", 10.0, 1.0)
    return data.assign(
        time=time,
        stratum=stratum,
        entry=np.where(rng.random(n) < 0.3, 0.4 * time, -1.0),
        offset=rng.normal(size=n) / 8,
        cluster=rng.integers(0, 40, n),
        weight=rng.integers(1, 4, n).astype(float),
    )


DATA = observed()
X, Y = DATA[FEATURES], Surv.competing(DATA["cause"], DATA["time"])
LATE = with_fields(Y, entry=DATA["entry"])
PREDICT = {"strata": DATA["stratum"], "offset": DATA["offset"]}


def in_two_rows():
    """Every patient cut in two rows where a third of the time is over; features stay."""
    start = np.maximum(DATA["entry"], 0.0)
    cut = start + (DATA["time"] - start) / 3
    first, second = DATA.assign(time=cut, cause=0), DATA.assign(entry=cut)
    rows = pd.concat([first, second], ignore_index=True).assign(id=np.r_[: len(DATA), : len(DATA)])
    return rows.sample(frac=1, random_state=0)


ROWS = in_two_rows()


def fit(data, alpha=ALPHA, weight=None, **fields):
    y = Surv.competing(data["cause"], data["time"], entry=data["entry"], **fields)
    given = {"strata": data["stratum"], "offset": data["offset"]}
    return CauseSpecificCox(alpha, n_intervals=3, tol=1e-10).fit(data[FEATURES], y, weight, **given)


@pytest.fixture(scope="module")
def model():
    return fit(DATA)


def test_the_feature_that_defines_the_strata_has_coefficient_zero(model):
    both = CauseSpecificCox(ALPHA, n_intervals=3, tol=1e-10)
    both.fit(X.assign(slow=1.0 * (DATA["stratum"] == "slow")), LATE, **PREDICT)
    assert both.coef_[:, 2].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(both.coef_[:, :2], model.coef_, atol=1e-5)


def defined_worst_case(coef, psi, cuts):
    """The worst case of the patients' regrets, term by term: summed over causes and rows of the patient.

    psi and cuts hold the log hazards and the cut points of each cause and stratum.
    """
    regrets = np.zeros(len(DATA))
    for cause in (1, 2):
        for k, stratum in enumerate(["quick", "slow"]):
            own = ROWS[ROWS["stratum"] == stratum]
            edges = np.concatenate([[0.0], cuts[cause - 1][k], [np.inf]])
            spent = np.minimum(own["time"].to_numpy()[:, None], edges[1:]) - np.maximum(
                own["entry"].to_numpy()[:, None], edges[:-1]
            )
            spent = np.maximum(spent, 0.0)
            died = (own["cause"].to_numpy() == cause)[:, None] & (
                np.searchsorted(edges[1:-1], own["time"])[:, None] == np.arange(len(edges) - 1)
            )
            known = own["offset"].to_numpy()
            null = np.log(died.sum(0) / (np.exp(known) @ spent))
            score = own[FEATURES].to_numpy() @ coef[cause - 1] + known
            hazards = psi[cause - 1][k]
            losses = np.exp(score) * (spent @ np.exp(hazards)) - (died * (score[:, None] + hazards)).sum(1)
            nothing = np.exp(known) * (spent @ np.exp(null)) - (died * (known[:, None] + null)).sum(1)
            np.add.at(regrets, own["id"].to_numpy(), losses - nothing)
    etas = np.linspace(regrets.min() - 3, regrets.max(), 2001)
    excess = np.maximum(regrets - etas[:, None], 0.0)
    return (np.sqrt((excess**2).mean(axis=1) / ALPHA) + etas).min()


def own_hazards(model, cuts):
    """The model's log hazards of each cause and stratum, read off its curves at the cut points."""
    psi = []
    for cause, (baseline, of_cause) in enumerate(zip(model._baselines, cuts, strict=True), start=1):
        psi.append([])
        last = DATA[DATA["cause"] == cause].groupby("stratum")["time"].max()
        for k, own in enumerate(of_cause):
            ends = np.concatenate([[0.0], own, [last.iloc[k]]])
            own_curves = baseline.of_patients([baseline.strata[k]], 1)
            hazard = own_curves.cumulative_hazard(np.zeros(1), ends)[0]
            psi[-1].append(np.log(np.diff(hazard) / np.diff(ends)))
    return psi


def test_robust_models_minimise_the_worst_case_over_causes_and_rows():
    model = fit(ROWS, id=ROWS["id"])
    assert model._baselines[0].strata == ("quick", "slow")
    cuts = []
    for cause in (1, 2):
        of_cause = DATA[DATA["cause"] == cause].groupby("stratum")["time"]
        cuts.append([np.quantile(time, [1 / 3, 2 / 3], method="inverted_cdf") for _, time in of_cause])
    psi = own_hazards(model, cuts)
    at = defined_worst_case(model.coef_, psi, cuts)
    assert at == pytest.approx(model.objective_, abs=1e-4)
    rng = np.random.default_rng(0)
    for _ in range(8):
        moved = [[own + 0.05 * rng.normal(size=3) for own in of_cause] for of_cause in psi]
        coef = model.coef_ + 0.05 * rng.normal(size=(2, 2))
        assert defined_worst_case(coef, moved, cuts) > at - 1e-6


@pytest.mark.parametrize("alpha", [1.0, ALPHA])
def test_rows_with_constant_features_equal_one_row_per_patient(alpha):
    rows, whole = fit(ROWS, alpha, id=ROWS["id"]), fit(DATA, alpha)
    assert rows.n_patients_ == len(DATA)
    np.testing.assert_allclose(rows.coef_, whole.coef_, atol=1e-5)
    np.testing.assert_allclose(
        rows.predict_cumulative_incidence(X, TIMES, cause=2, **PREDICT),
        whole.predict_cumulative_incidence(X, TIMES, cause=2, **PREDICT),
        atol=1e-5,
    )
    at = np.array([0.5, 2.0])
    np.testing.assert_allclose(rows.follow_up_.survival_at(at), whole.follow_up_.survival_at(at))
    if alpha < 1:
        of_rows = pd.Series(rows.worst_case_weights_).groupby(ROWS["id"].to_numpy()).sum()
        np.testing.assert_allclose(of_rows, whole.worst_case_weights_, atol=1e-6)
        np.testing.assert_allclose(
            rows.summary(1)["plain coef"], fit(DATA, 1.0).coef_[0], rtol=1e-4, atol=1e-6
        )


@pytest.mark.parametrize("alpha", [1.0, ALPHA])
def test_weight_two_equals_two_copies(alpha):
    copies = DATA.loc[DATA.index.repeat(DATA["weight"].astype(int))]
    weighted, copied = fit(DATA, alpha, DATA["weight"]), fit(copies, alpha)
    np.testing.assert_allclose(weighted.coef_, copied.coef_, atol=1e-5)
    assert weighted.n_patients_ == len(copies)
    np.testing.assert_allclose(
        weighted.predict_survival_function(X, TIMES, **PREDICT),
        copied.predict_survival_function(X, TIMES, **PREDICT),
        atol=1e-5,
    )


def test_the_unit_of_time_of_a_stratum_does_not_matter(model):
    longer = np.where(DATA["stratum"] == "slow", 365.0, 1.0)
    other = fit(DATA.assign(time=DATA["time"] * longer, entry=DATA["entry"] * longer))
    np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-5)


def test_a_constant_offset_and_a_single_stratum_change_nothing():
    plain = CauseSpecificCox(ALPHA, tol=1e-10).fit(X, Y)
    given = {"strata": ["all"] * len(X), "offset": np.full(len(X), 0.7)}
    model = CauseSpecificCox(ALPHA, tol=1e-10).fit(X, with_fields(Y, entry=np.full(len(X), -1.0)), **given)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)
    np.testing.assert_allclose(
        model.predict_cumulative_incidence(X, TIMES, strata=given["strata"], offset=given["offset"]),
        plain.predict_cumulative_incidence(X, TIMES),
        atol=1e-6,
    )


def test_clusters_change_no_coefficient_and_are_drawn_together(model):
    clustered = fit(DATA, clusters=DATA["cluster"])
    np.testing.assert_array_equal(clustered.coef_, model.coef_)
    drawn = []
    refit = clustered._trained
    clustered._trained = lambda training, target: (
        drawn.append((training.rows.cluster, training.weight)),
        refit(training, target),
    )[1]
    assert clustered.summary(1, method="bootstrap", n_bootstrap=4, n_jobs=1)["se(coef)"].gt(0).all()
    assert len(drawn) == 4
    for clusters, weight in drawn:
        assert pd.Series(weight).groupby(clusters).nunique().eq(1).all()


def test_saved_models_predict_with_strata_and_offset(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = drosurv.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.predict_cumulative_incidence(X, TIMES, **PREDICT),
        model.predict_cumulative_incidence(X, TIMES, **PREDICT),
    )
    risk = loaded.predict(X, 2, offset=DATA["offset"])
    np.testing.assert_allclose(risk, X.to_numpy() @ model.coef_[1] + DATA["offset"])
    assert loaded.score(X, Y, 2, offset=DATA["offset"]) == model.score(X, Y, 2, offset=DATA["offset"])


def test_each_cause_equals_a_cox_model_with_entry_strata_and_offset():
    model = CauseSpecificCox().fit(X, LATE, **PREDICT)
    second = Surv.from_arrays(DATA["cause"] == 2, DATA["time"], entry=DATA["entry"])
    alone = CoxPH().fit(X, second, **PREDICT)
    np.testing.assert_array_equal(model.coef_[1], alone.coef_)


def test_plain_models_are_those_of_r(run_r):
    columns = [*FEATURES, "time", "cause", "entry", "stratum", "offset", "cluster", "id"]
    r = run_r(
        """
data <- read.csv("data.csv")
for (k in 1:2) {
  fit <- coxph(Surv(entry, time, cause == k) ~ a + b + strata(stratum) + offset(offset) + cluster(cluster), data,
               ties = "breslow", control = coxph.control(timefix = FALSE, eps = 1e-12, toler.chol = 1e-13))
  give(paste0("coef", k), coef(fit))
  give(paste0("se", k), sqrt(diag(vcov(fit))))
}
""",
        data=ROWS[columns],
    )
    model = fit(ROWS, 1.0, clusters=ROWS["cluster"], id=ROWS["id"])
    for cause in (1, 2):
        np.testing.assert_allclose(model.coef_[cause - 1], r[f"coef{cause}"][:, 0], rtol=1e-6)
        np.testing.assert_allclose(model.summary(cause)["se(coef)"], r[f"se{cause}"][:, 0], rtol=1e-6)


def test_no_curve_for_a_stratum_without_any_event():
    stratum = np.where(DATA["cause"] == 2, "slow", DATA["stratum"])
    with pytest.warns(UserWarning, match="no event in stratum never"):
        model = fit(DATA.assign(stratum=np.where(DATA["cause"] == 0, "never", stratum)))
    with pytest.raises(ValueError, match="no curve can be predicted for stratum 'never'"):
        model.predict_cumulative_incidence(X[:1], TIMES, strata=["never"], offset=[0.0])
    # No event of cause 2 in this stratum.
    given = {"strata": ["quick"], "offset": [0.0]}
    assert (model.predict_cumulative_incidence(X[:1], TIMES, cause=2, **given) == 0).all()
    assert (model.predict_cumulative_incidence(X[:1], TIMES, cause=1, **given)[:, -1] > 0).all()


def test_a_robust_reference_is_given_the_strata_it_was_fitted_with(model):
    found = drosurv.evaluation.evaluate(model, X, LATE, reference=model, **PREDICT)
    # The score of any cause is no log hazard, so gains are compared by curves.
    assert "share_of_gain" not in found.overall
    assert found.groups["gain_over_reference"].tolist() == pytest.approx([0.0])


@pytest.mark.parametrize("alpha", [1.0, 0.6])
def test_a_stratum_without_events_of_a_cause_has_incidence_zero_of_it(alpha):
    rng = np.random.default_rng(0)
    n = 240
    X, time, strata = rng.normal(size=(n, 2)), rng.exponential(size=n), np.repeat(["a", "b", "none"], n // 3)
    cause = rng.integers(0, 3, n)
    cause[strata == "b"] = rng.integers(0, 2, n // 3)
    cause[strata == "none"] = 0
    with warnings.catch_warnings(action="ignore"):
        model = CauseSpecificCox(alpha, n_intervals=4).fit(X, Surv.competing(cause, time), strata=strata)
    new, times = rng.normal(size=(8, 2)), np.array([0.3, 1.0, 2.0])
    in_b = ["b"] * 8
    first, second = (model.predict_cumulative_incidence(new, times, cause=k, strata=in_b) for k in (1, 2))
    assert (second == 0).all()
    # With no other cause, the incidence is one less the survival of the cause's hazard alone.
    baseline = (model.models_[0]._baseline if alpha == 1.0 else model._baselines[0]).of_patients(in_b, 8)
    hazard = baseline.cumulative_hazard(model.predict(new, cause=1), times)
    np.testing.assert_allclose(first, -np.expm1(-hazard), rtol=1e-10)
    np.testing.assert_allclose(
        first, 1 - model.predict_survival_function(new, times, strata=in_b), rtol=1e-10
    )
    # Strata with both causes are not affected, and one without any event has no curve.
    both = [model.predict_cumulative_incidence(new, times, cause=k, strata=["a"] * 8) for k in (1, 2)]
    assert (both[1][:, -1] > 0).all()
    with pytest.raises(ValueError, match="no curve can be predicted for stratum 'none'"):
        model.predict_cumulative_incidence(new, times, strata=["none"] * 8)
