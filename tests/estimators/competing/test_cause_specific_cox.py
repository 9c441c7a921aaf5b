"""Models of competing causes, against R cause by cause and multi-state, and by their definitions."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import drosurv
from drosurv import CauseSpecificCox, CoxPH, Surv
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.losses.summed_likelihood import CompetingRisks
from drosurv.metrics import concordance_by_cause
from drosurv.patients.target import CompetingTarget, Target, with_fields


def simulated(seed=0, n=250):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    first, second = rng.exponential(np.exp(-0.7 * X[:, 0])), rng.exponential(2 * np.exp(0.5 * X[:, 1]))
    censored = rng.exponential(2.5, n)
    time = np.minimum(np.minimum(first, second), censored)
    cause = np.where(time == first, 1, np.where(time == second, 2, 0))
    return pd.DataFrame(X, columns=["a", "b"]).assign(time=np.ceil(20 * time) / 20, cause=cause)


DATA = simulated()
X, Y = DATA[["a", "b"]], Surv.competing(DATA["cause"], DATA["time"])
TIMES = [0.3, 0.8, 1.5]


def test_coefficients_and_incidences_are_those_of_r(run_r):
    # Multi-state for Breslow's ties, cause by cause for Efron's.
    r = run_r(
        """
data <- read.csv("data.csv")
data$id <- seq_len(nrow(data))
data$state <- factor(data$cause, 0:2, c("censored", "first", "second"))
exact <- coxph.control(timefix = FALSE, eps = 1e-12, toler.chol = 1e-13)
fit <- coxph(Surv(time, state) ~ a + b, data, id = id, ties = "breslow", control = exact)
give("breslow", matrix(coef(fit), 2, byrow = TRUE))
curves <- survfit(fit, newdata = data[1:3, ])
for (i in 1:3) give(paste0("p", i), summary(curves[i, ], times = c(.3, .8, 1.5))$pstate)
efron <- sapply(1:2, function(k) coef(coxph(Surv(time, cause == k) ~ a + b, data, ties = "efron", control = exact)))
give("efron", t(efron))
""",
        data=DATA,
    )
    for ties in ("breslow", "efron"):
        model = CauseSpecificCox(ties=ties, tol=1e-13).fit(X, Y)
        np.testing.assert_allclose(model.coef_, r[ties], rtol=1e-6, atol=1e-7)
    model = CauseSpecificCox(tol=1e-13).fit(X, Y)
    for i in range(3):
        state = r[f"p{i + 1}"]
        row = X.iloc[i : i + 1]
        np.testing.assert_allclose(
            model.predict_survival_function(row, times=TIMES)[0], state[:, 0], rtol=1e-5
        )
        for cause in (1, 2):
            found = model.predict_cumulative_incidence(row, times=TIMES, cause=cause)[0]
            np.testing.assert_allclose(found, state[:, cause], rtol=1e-5)


def test_each_cause_is_a_cox_model_with_the_others_censored():
    model = CauseSpecificCox().fit(X, Y)
    for cause in (1, 2):
        alone = CoxPH().fit(X, Surv.from_arrays(DATA["cause"] == cause, DATA["time"]))
        np.testing.assert_allclose(model.coef_[cause - 1], alone.coef_)
        pd.testing.assert_frame_equal(pd.DataFrame(model.summary(cause)), pd.DataFrame(alone.summary()))
        np.testing.assert_allclose(model.predict(X, cause), alone.predict(X))
    assert str(model.summary(2)).startswith("Cause 2, CauseSpecificCox: 250 patients")
    assert model.n_events_.tolist() == np.bincount(DATA["cause"])[1:].tolist()


@pytest.mark.parametrize("alpha", [1.0, 0.9])
def test_the_table_shows_all_causes_unless_one_is_named(alpha):
    model = CauseSpecificCox(alpha).fit(X, Y)
    for table in (model.summary(), drosurv.summary(model)):
        for cause, rows in table.groupby("cause"):
            pd.testing.assert_frame_equal(rows.drop(columns="cause"), pd.DataFrame(model.summary(cause)))
        counts = np.bincount(DATA["cause"])
        assert f"250 patients, {counts[1]} events of cause 1 and {counts[2]} events of cause 2" in str(table)
        labels = [label.get_text() for label in table.forest_plot().get_yticklabels()]
        assert labels == [f"{name}, cause {k}" for k in (1, 2) for name in X.columns]
    # Notes say of which cause they are, unless they are about both.
    assert len(set(table.notes)) == len(table.notes)
    assert any(note.startswith("Cause 2: ") for note in table.notes)


def test_names_of_causes_stay_with_selected_patients_and_with_the_saved_model(tmp_path):
    y = Surv.competing(DATA["cause"], DATA["time"], names=["cancer", "other death"])
    model = CauseSpecificCox().fit(X[10:], y[10:])
    model.save(tmp_path / "model")
    table = drosurv.load(tmp_path / "model").summary()
    assert table["cause"].tolist() == ["cancer", "cancer", "other death", "other death"]
    assert "events of 'cancer' and" in str(table)
    labels = [label.get_text() for label in table.forest_plot().get_yticklabels()]
    assert labels[:2] == ["a, cancer", "b, cancer"]
    found = drosurv.evaluate(model, X, y, cause=2)
    assert found.by_cause["cause"].unique().tolist() == ["cancer", "other death"]
    assert "events are those of 'other death'" in found.notes[0]
    plain = drosurv.evaluate(CauseSpecificCox().fit(X[10:], Y[10:]), X, Y, cause=2)
    assert plain.by_cause["predicted"].equals(found.by_cause["predicted"])
    for names in (["cancer"], "cancer"):
        with pytest.raises(ValueError, match="names must be a text for each of 2 causes"):
            Surv.competing(DATA["cause"], DATA["time"], names=names)


@pytest.mark.parametrize("alpha", [1.0, 0.8])
def test_saved_models_predict_the_same(alpha, tmp_path):
    model = CauseSpecificCox(alpha).fit(X, Y)
    model.save(tmp_path / "model")
    loaded = drosurv.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.predict_cumulative_incidence(X, TIMES, cause=2),
        model.predict_cumulative_incidence(X, TIMES, cause=2),
    )
    assert (
        loaded.score(X, Y)
        == model.score(X, Y)
        == concordance_by_cause(Y["cause"], Y["time"], model.predict(X))
    )


def test_robust_models_minimise_the_worst_case_of_the_summed_regrets():
    model = CauseSpecificCox(0.8).fit(X, Y)
    loss = CompetingRisks(CompetingTarget(DATA["cause"].to_numpy(), DATA["time"].to_numpy()))
    null = loss.null_losses()

    def worst(coef, psi):
        regrets = loss((X.to_numpy() @ coef.T)[None], psi[None])[0] - null
        etas = np.linspace(regrets.min() - 3, regrets.max(), 4001)
        excess = np.maximum(regrets - etas[:, None], 0.0)
        return (np.sqrt((excess**2).mean(axis=1) / 0.8) + etas).min()

    # Its own baselines, read at the cut points, give its log hazards.
    psi = []
    for part, baseline in zip(loss.parts, model._baselines, strict=True):
        ends = np.concatenate([[0.0], part.loss.intervals.cut_points, [baseline.times[-1]]])
        psi.append(np.log(np.diff(baseline.cumulative_hazard(np.zeros(1), ends)[0]) / np.diff(ends)))
    at = worst(model.coef_, np.concatenate(psi))
    assert at == pytest.approx(model.objective_, abs=2e-3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        moved = worst(
            model.coef_ + 0.05 * rng.normal(size=(2, 2)),
            np.concatenate(psi) + 0.05 * rng.normal(size=loss.n_extra),
        )
        assert moved > at - 1e-6
    assert model.worst_case_weights_.sum() == pytest.approx(1.0)


def test_the_unit_of_time_does_not_matter():
    days = Surv.competing(DATA["cause"], DATA["time"] * 365)
    for alpha in (1.0, 0.8):
        np.testing.assert_allclose(
            CauseSpecificCox(alpha).fit(X, days).coef_,
            CauseSpecificCox(alpha).fit(X, Y).coef_,
            rtol=1e-4,
            atol=1e-5,
        )


def test_the_loss_is_the_sum_over_causes_with_its_derivatives():
    target = CompetingTarget(DATA["cause"].to_numpy(), DATA["time"].to_numpy())
    loss, rng = CompetingRisks(target, 4), np.random.default_rng(0)
    theta, psi = rng.normal(size=(2, 2)) / 3, loss.start + rng.normal(size=loss.n_extra) / 5
    features, q = X.to_numpy(), rng.random((1, 250))

    def losses(z):
        return loss((features @ z[:4].reshape(2, 2).T)[None], z[None, 4:])[0]

    z = np.concatenate([theta.ravel(), psi])
    parts = [PiecewiseExponential(Target(target.cause == k, target.time), 4) for k in (1, 2)]
    own_psi = np.split(psi, [parts[0].n_extra])
    wanted = sum(part((features @ theta[k])[None], own_psi[k][None])[0] for k, part in enumerate(parts))
    np.testing.assert_allclose(losses(z), wanted, rtol=1e-12)
    moves = 1e-5 * np.eye(len(z))

    def gradient(point):
        losses(point)
        by_score, by_extra = loss.pullback(q)
        return np.concatenate([(by_score[0].T @ features).ravel(), by_extra[0]])

    jacobian = np.stack([(losses(z + m) - losses(z - m)) / 2e-5 for m in moves], axis=1)
    hessian = np.stack([(gradient(z + m) - gradient(z - m)) / 2e-5 for m in moves])
    np.testing.assert_allclose(gradient(z), q[0] @ jacobian, rtol=1e-6, atol=1e-7)
    losses(z)
    np.testing.assert_allclose(loss.jacobian(features, np.arange(250)), jacobian, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(loss.hessian(q, features), hessian, rtol=1e-5, atol=1e-6)
    some = np.arange(0, 250, 3)
    np.testing.assert_allclose(
        loss.take(some)((features[some] @ theta.T)[None], psi[None])[0], losses(z)[some]
    )


def test_the_table_of_a_robust_model_shows_plain_cox_and_bootstrap_errors(tmp_path):
    model = CauseSpecificCox(0.8).fit(X, Y)
    table = model.summary(2)
    np.testing.assert_allclose(table["coef"], model.coef_[1])
    np.testing.assert_allclose(table["plain coef"], CauseSpecificCox().fit(X, Y).coef_[1], rtol=1e-5)
    assert table["se(coef)"].isna().all()
    errors = model.summary(1, method="bootstrap", n_bootstrap=10)["se(coef)"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = [np.random.default_rng(k).integers(0, len(X), len(X)) for k in range(10)]
        refits = [CauseSpecificCox(0.8, tol=1e-4).fit(X.iloc[rows], Y[rows]).coef_[0] for rows in drawn]
    ratio = errors / np.std(refits, axis=0)
    assert ((ratio > 0.5) & (ratio < 2)).all()
    # One bootstrap serves all causes, also when saved.
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(drosurv.load(tmp_path / "model").summary(2), model.summary(2))
    assert "10 refits" in str(model.summary(2))
    assert "CompetingTarget" not in repr(model.__getstate__())


def test_a_null_model_is_warned_about():
    noise = np.random.default_rng(0).normal(size=(len(X), 2))
    with pytest.warns(UserWarning, match="is the null model"):
        CauseSpecificCox(0.2).fit(noise, Y)


def test_a_fit_that_fails_leaves_no_model_behind():
    model, y = CauseSpecificCox().fit(X, Y), with_fields(Y, entry=np.zeros(len(X)))
    y["entry"] = y["time"]
    with pytest.raises(ValueError, match="entry must be before"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_models_of_causes_are_listed_beside_those_of_one_event():
    # They take another target, so that a loop over all models of one event must not meet them.
    assert "CauseSpecificCox" not in dict(drosurv.all_estimators())
    assert dict(drosurv.all_estimators(causes=True))["CauseSpecificCox"] is CauseSpecificCox


def test_a_table_with_text_and_gaps_is_taken_as_by_other_models(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(60, 9, 200), "sex": rng.choice(["f", "f", "m"], 200)})
    y = Surv.competing(rng.integers(0, 3, 200), rng.exponential(np.exp(-(table["age"] - 60) / 9)))
    by_hand = table.assign(**{"sex=m": (table["sex"] == "m").astype(float)}).drop(columns="sex")
    for alpha in (1.0, 0.95):
        model = CauseSpecificCox(alpha, tol=1e-9).fit(table, y)
        assert model.summary(2).index.tolist() == ["age", "sex=m"]
        np.testing.assert_allclose(
            model.coef_, CauseSpecificCox(alpha, tol=1e-9).fit(by_hand, y).coef_, atol=1e-5
        )
        model.save(tmp_path / "model")
        loaded = drosurv.load(tmp_path / "model")
        np.testing.assert_array_equal(loaded.predict(table, 2), model.predict(table, 2))
        np.testing.assert_array_equal(
            loaded.predict_cumulative_incidence(table, [0.5]),
            model.predict_cumulative_incidence(table, [0.5]),
        )
    gaps = table.assign(age=table["age"].mask(table.index < 9))
    assert "9" in str(CauseSpecificCox().fit(gaps, y).summary(1).notes[-1])


def test_robust_models_take_late_entry():
    rng = np.random.default_rng(0)
    n = 6000
    x = rng.normal(size=(n, 1))
    time, cause = rng.exponential(np.exp(-0.7 * x[:, 0])) ** 0.5, rng.integers(1, 3, n)
    # Ill patients enter late, if they live until then; ignoring entry makes illness look less deadly than it is.
    entry = rng.uniform(0, 1, n) * (0.5 + 0.5 * np.tanh(2 * x[:, 0]))
    seen = time > entry
    y = Surv.competing(cause[seen], time[seen])
    # A share of nearly everybody: the plain full likelihood, but for a little shrinking.
    late = CauseSpecificCox(0.9999, tol=1e-6).fit(x[seen], with_fields(y, entry=entry[seen]))
    np.testing.assert_allclose(late.coef_[:, 0], 0.7, atol=0.1)
    ignored = CauseSpecificCox(0.9999, tol=1e-6).fit(x[seen], y)
    assert ignored.coef_.mean() < late.coef_.mean() - 0.05
    incidence = late.predict_cumulative_incidence([[0.0]], times=[1.0], cause=1)
    assert incidence.item() == pytest.approx((1 - np.exp(-1)) / 2, abs=0.03)
    nothing = CauseSpecificCox(0.9, tol=1e-9).fit(X, with_fields(Y, entry=np.zeros(len(X)) - 1))
    np.testing.assert_allclose(nothing.coef_, CauseSpecificCox(0.9, tol=1e-9).fit(X, Y).coef_, atol=1e-6)
    assert np.isfinite(nothing.summary(1, method="bootstrap", n_bootstrap=5)["se(coef)"]).all()


def test_rows_of_patients_are_counted_as_patients():
    cut = DATA["time"] / 2
    rows = pd.concat([X, X], ignore_index=True)
    y = Surv.competing(
        np.r_[np.zeros(len(X), int), DATA["cause"]],
        np.r_[cut, DATA["time"]],
        entry=np.r_[np.full(len(X), -1.0), cut],
        id=np.r_[: len(X), : len(X)],
    )
    model, whole = CauseSpecificCox().fit(rows, y), CauseSpecificCox().fit(X, Y)
    assert model.n_patients_ == len(X)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-6)
    at = np.array([0.2, 0.5])
    np.testing.assert_allclose(model.follow_up_.survival_at(at), whole.follow_up_.survival_at(at))


def test_weight_zero_equals_leaving_a_patient_out_of_all_causes():
    weight = np.arange(len(X)) % 5 > 0
    model = CauseSpecificCox(alpha=0.9).fit(X, Y, weight.astype(float))
    alone = CauseSpecificCox(alpha=0.9).fit(X[weight], Y[weight])
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-9)
    np.testing.assert_array_equal(model.unique_times_, alone.unique_times_)
    np.testing.assert_allclose(model.worst_case_weights_[weight], alone.worst_case_weights_, atol=1e-9)
    assert model.worst_case_weights_[~weight].tolist() == [0.0] * (~weight).sum()
    assert str(model.summary()) == str(alone.summary())
    with pytest.raises(ValueError, match="a cause has no event among patients of positive weight"):
        CauseSpecificCox(alpha=0.9).fit(X, Y, (DATA["cause"] != 2).astype(float))
