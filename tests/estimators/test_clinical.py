"""Entry times, strata, clusters, offsets and rows of patients, through fit, predictions and saved models."""

import numpy as np
import pandas as pd
import pytest
import scipy.optimize

import drosurv
from drosurv import (
    MLP,
    AcceleratedFailureTime,
    CoxPH,
    DiscreteTimeHazard,
    DROCox,
    DROCoxSplit,
    GroupDROCox,
    RegularizedCox,
    SubgroupRobustCox,
    Surv,
)
from drosurv.estimators import base
from drosurv.patients.target import with_fields

FEATURES = ["a", "b", "c"]


def simulated(seed=0, n=160):
    """Ties, weights, late entry, strata, clusters, an offset."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 2] = rng.integers(0, 2, n)
    time = np.ceil(8 * rng.exponential(np.exp(-X @ [0.5, -0.4, 0.3]))) + 1
    return pd.DataFrame(X, columns=FEATURES).assign(
        time=time,
        event=rng.random(n) < 0.7,
        entry=time - rng.integers(1, 9, n) * rng.choice([0.5, 1.0], n),
        stratum=rng.choice(["x", "y", "z"], n),
        cluster=rng.integers(0, 30, n),
        weight=rng.uniform(0.3, 3, n),
        offset=rng.normal(size=n) / 3,
    )


DATA = simulated()
X, Y = DATA[FEATURES], Surv.from_dataframe("event", "time", DATA)
OBSERVED = with_fields(Y, entry=DATA["entry"], clusters=DATA["cluster"])
PREDICT = {"strata": DATA["stratum"], "offset": DATA["offset"]}


@pytest.fixture(scope="module", params=["breslow", "efron"])
def fitted(request):
    return CoxPH(ties=request.param, tol=1e-12).fit(X, OBSERVED, DATA["weight"], **PREDICT)


def test_coefficients_and_curves_are_those_of_r(run_r):
    lines = ["data <- read.csv('data.csv')", "new <- data[1:4, ]"]
    for ties in ("breslow", "efron"):
        lines.append(f"""
fit <- coxph(Surv(entry, time, event) ~ a + b + c + strata(stratum) + offset(offset), data, weights = weight,
             ties = "{ties}", control = coxph.control(timefix = FALSE, eps = 1e-12, toler.chol = 1e-13))
give("{ties}.coef", coef(fit))
curves <- lapply(1:4, function(i) summary(survfit(fit, newdata = new[i, ]), times = c(3, 6, 12), extend = TRUE)$surv)
give("{ties}.curves", do.call(rbind, curves))
""")
    r = run_r("\n".join(lines), data=DATA.assign(event=DATA["event"].astype(int)))
    for ties in ("breslow", "efron"):
        model = CoxPH(ties=ties, tol=1e-13).fit(X, OBSERVED, DATA["weight"], **PREDICT)
        np.testing.assert_allclose(model.coef_, r[f"{ties}.coef"][:, 0], rtol=1e-6, atol=1e-7)
        first = {name: values[:4] for name, values in PREDICT.items()}
        curves = model.predict_survival_function(X[:4], times=[3, 6, 12], **first)
        np.testing.assert_allclose(curves, r[f"{ties}.curves"], rtol=1e-6)


def test_saved_models_predict_with_strata_and_offset(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = drosurv.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.predict_survival_function(X, times=[2, 5], **PREDICT),
        fitted.predict_survival_function(X, times=[2, 5], **PREDICT),
    )
    np.testing.assert_array_equal(
        loaded.predict(X, offset=DATA["offset"]), fitted.predict(X, offset=DATA["offset"])
    )


def test_each_stratum_has_a_baseline_of_its_own(fitted):
    baselines = fitted.cum_baseline_hazard_
    assert sorted(baselines) == ["x", "y", "z"]
    at_zero = fitted.predict_cumulative_hazard_function(
        X[:3] * 0, times=[4.0], strata=["x", "y", "z"], offset=np.zeros(3)
    )
    np.testing.assert_allclose(at_zero[:, 0], [baselines[label](4.0) for label in "xyz"])


def test_no_curve_for_a_stratum_without_events():
    strata = np.where(DATA["event"], "seen", DATA["stratum"])
    with pytest.warns(UserWarning, match="no event in stratum x, y, z"):
        model = CoxPH().fit(X, Y, strata=strata)
    with pytest.raises(ValueError, match="no curve can be predicted for stratum 'x'"):
        model.predict_survival_function(X[:1], strata=["x"])


@pytest.mark.parametrize(
    "model",
    [
        *(CoxPH(), DROCox(0.3, recalibrate=False), CoxPH(MLP(max_iter=5)), CoxPH(ties="efron")),
        *(
            DROCoxSplit(0.3, recalibrate=False),
            DROCoxSplit(0.3, "cvar", sides="one", recalibrate=False),
            DROCoxSplit(0.3, network=MLP(max_iter=5), recalibrate=False),
        ),
    ],
)
def test_entry_before_everybody_one_stratum_and_no_offset_change_nothing(model):
    model.set_params(random_state=0)
    nothing = {"strata": ["all"] * len(X), "offset": np.zeros(len(X))}
    plain = model.fit(X, Y).predict(X)
    same = model.fit(X, with_fields(Y, entry=np.full(len(X), -1.0)), **nothing).predict(
        X, offset=np.zeros(len(X))
    )
    np.testing.assert_allclose(same, plain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        *(
            CoxPH(),
            CoxPH(ties="efron"),
            DROCox(0.5, recalibrate=False),
            DROCox(0.5, "cvar", recalibrate=False),
            DROCoxSplit(0.5, shuffle=False, recalibrate=False),
        ),
        SubgroupRobustCox(
            0.5, min_group=20, subgroup_features=["a"], n_trees=2, random_state=0, recalibrate=False
        ),
    ],
)
def test_features_that_say_nothing_have_no_coefficient(model):
    """Those that strata were made of: their derivatives are rounding, which must not be taken for a signal."""
    numbers = DATA["stratum"].map({"x": 0.3, "y": 100.0, "z": -7.1})
    more = X.assign(center=numbers, in_x=(DATA["stratum"] == "x").astype(float))
    alone = model.fit(X, Y, strata=DATA["stratum"]).coef_.copy()
    both = model.fit(more, Y, strata=DATA["stratum"])
    assert both.coef_[3:].tolist() == [0.0, 0.0]
    assert both.status_ == "converged"
    np.testing.assert_allclose(both.coef_[:3], alone, rtol=1e-4, atol=1e-5)


def test_a_feature_that_differs_only_before_the_first_event_has_no_coefficient():
    left = Surv.from_arrays(np.r_[[False] * 3, Y["event"]], np.r_[[0.5] * 3, Y["time"]])
    rows = pd.concat([X[:3], X], ignore_index=True).assign(extra=[1.0, 2.0, 3.0, *np.zeros(len(X))])
    for model in (CoxPH(), CoxPH(ties="efron"), DROCox(0.5, "cvar", recalibrate=False)):
        assert model.fit(rows, left).coef_[3] == 0.0
    np.testing.assert_allclose(CoxPH().fit(rows, left).coef_[:3], CoxPH().fit(X, Y).coef_, atol=1e-6)


def test_so_it_is_where_the_curvature_is_that_of_a_sample():
    rng = np.random.default_rng(0)
    features, stratum = rng.normal(size=(4000, 30)), rng.integers(0, 3, 4000)
    features[:, 7] = stratum
    y = Surv.from_arrays(rng.random(4000) < 0.7, rng.exponential(np.exp(-features[:, 0])))
    model = CoxPH().fit(features, y, strata=stratum)
    assert model.coef_[7] == 0.0
    assert model.coef_[0] == pytest.approx(1.0, abs=0.1)


def test_strata_of_different_scales_do_not_hide_the_effect():
    rng = np.random.default_rng(0)
    x, hospital = rng.normal(size=(4000, 1)), rng.integers(0, 2, 4000)
    time = rng.exponential(np.where(hospital == 1, 100.0, 1.0) * np.exp(-0.7 * (x[:, 0] + 2 * hospital)))
    y = Surv.from_arrays(np.ones(4000, bool), time)
    assert CoxPH().fit(x, y, strata=hospital).coef_[0] == pytest.approx(0.7, abs=0.1)


@pytest.mark.parametrize(
    "model",
    [
        CoxPH(),
        DROCox(0.3, recalibrate=False),
        DROCox(0.4, "cvar", recalibrate=False),
        DROCoxSplit(0.3, shuffle=False, recalibrate=False),
    ],
)
def test_rows_of_patients_whose_features_stay_are_the_patients(model):
    """Cutting a patient's time in two changes neither coefficients nor the worst case."""
    whole = model.fit(X, Y)
    coef, objective = whole.coef_.copy(), whole.objective_
    weights = getattr(whole, "worst_case_weights_", None)
    cut = DATA["time"] / 2 + 0.1
    rows = pd.concat([X, X], ignore_index=True)
    y = Surv.from_arrays(np.r_[np.zeros(len(X), bool), DATA["event"]], np.r_[cut, DATA["time"]])
    again = model.fit(
        rows, with_fields(y, entry=np.r_[np.full(len(X), -1.0), cut], id=np.r_[: len(X), : len(X)])
    )
    np.testing.assert_allclose(again.coef_, coef, rtol=1e-4, atol=1e-5)
    assert again.objective_ == pytest.approx(objective, rel=1e-7)
    assert again.n_patients_ == len(X)
    if weights is not None:
        summed = again.worst_case_weights_.reshape(2, -1).sum(axis=0)
        np.testing.assert_allclose(summed, weights, atol=1e-4)


def test_patients_of_several_rows_are_counted_by_weight_as_their_events_are():
    weight, twice = DATA["weight"].to_numpy(), np.r_[: len(X), : len(X)]
    whole, cut = CoxPH().fit(X, Y, weight), DATA["time"] / 2 + 0.1
    y = Surv.from_arrays(np.r_[np.zeros(len(X), bool), DATA["event"]], np.r_[cut, DATA["time"]])
    entry = np.r_[np.full(len(X), -1.0), cut]
    again = CoxPH().fit(X.iloc[twice], with_fields(y, entry=entry, id=twice), weight[twice])
    assert again.n_patients_ == pytest.approx(weight.sum())
    assert again.n_events_ == pytest.approx(weight @ DATA["event"])
    for name in ("times", "survival", "censoring", "event_percentiles"):
        np.testing.assert_allclose(getattr(again.follow_up_, name), getattr(whole.follow_up_, name))


def test_a_split_model_takes_late_entry_strata_and_offsets():
    model = DROCoxSplit(1.0, shuffle=False, tol=1e-12, recalibrate=False)
    model.fit(X, with_fields(Y, entry=DATA["entry"]), **PREDICT)
    time, event, entry = (DATA[name].to_numpy() for name in ("time", "event", "entry"))
    features, known, half = X.to_numpy(), DATA["offset"].to_numpy(), np.arange(len(X)) < len(X) // 2
    same = DATA["stratum"].to_numpy()[:, None] == DATA["stratum"].to_numpy()
    at_risk = same & (entry < time[:, None]) & (time >= time[:, None])
    against = (at_risk & (half[:, None] != half)) | np.eye(len(X), dtype=bool)

    def objective(theta):
        scores = features @ theta + known
        losses = event * (np.log(against @ np.exp(scores)) - scores)
        return losses[half].mean() + losses[~half].mean()

    wanted = scipy.optimize.minimize(objective, np.zeros(3), tol=1e-10)
    assert model.objective_ == pytest.approx(wanted.fun, rel=1e-9)
    np.testing.assert_allclose(model.coef_, wanted.x, atol=1e-5)
    # The curves are Breslow's, of all patients, within the stratum.
    risk = np.exp(features @ model.coef_ + known)
    rises = same[0] & event & (time <= 6)
    hazard = risk[0] * (1 / (at_risk[rises] @ risk)).sum()
    first = {name: DATA[column][:1] for name, column in (("strata", "stratum"), ("offset", "offset"))}
    curve = model.predict_survival_function(X[:1], times=[6.0], **first)
    assert curve.item() == pytest.approx(np.exp(-hazard), rel=1e-9)


def test_several_events_of_a_patient_are_for_plain_cox():
    x, entry, id = np.array([[0.0], [1.0], [0.5], [2.0]]), [0.0, 1.0, 0.0, 0.0], [1, 1, 2, 3]
    y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0], entry=entry, id=id)
    assert CoxPH().fit(x, y).n_patients_ == 3
    with pytest.raises(ValueError, match="DROCox weights patients by their loss, and one id has 2 events"):
        DROCox(0.5).fit(x, y)


def test_full_likelihoods_take_entry_times_and_offsets():
    # Late entry of an increasing hazard: who ignores it sees too few early deaths among the late, and is wrong.
    rng = np.random.default_rng(0)
    n = 6000
    x, known, groups = rng.normal(size=(n, 1)), rng.normal(size=n) / 2, rng.integers(0, 2, n)
    time = (rng.exponential(size=n) * np.exp(-0.7 * x[:, 0] - known)) ** 0.5
    entry = rng.uniform(0, 1.0, n) * (0.5 + 0.5 * np.tanh(2 * x[:, 0]))
    seen = time > entry
    y = Surv.from_arrays(np.ones(seen.sum(), bool), time[seen])
    late = with_fields(y, entry=entry[seen])
    model = GroupDROCox(regret=False, recalibrate=False).fit(
        x[seen], late, sensitive_features=groups[seen], offset=known[seen]
    )
    assert model.coef_[0] == pytest.approx(0.7, abs=0.06)
    ignored = GroupDROCox(regret=False, recalibrate=False).fit(x[seen], y, sensitive_features=groups[seen])
    assert abs(ignored.coef_[0] - 0.7) > 0.1
    curve = model.predict_survival_function([[0.0]], times=[0.5, 1.0], offset=[0.0])[0]
    np.testing.assert_allclose(curve, np.exp([-0.25, -1.0]), atol=0.04)


@pytest.mark.parametrize(
    "model",
    [
        GroupDROCox(alpha=1.0, tol=1e-9, recalibrate=False),
        RegularizedCox("keya_group", max_iter=5, random_state=0),
    ],
)
def test_models_of_groups_expect_as_many_events_in_a_stratum_as_they_see_after_entry(model):
    # Curves are steps at the times of events, so patients enter at such a time, or at 0.
    steps, strata = np.append(0.0, np.unique(Y["time"][Y["event"]])), DATA["stratum"]
    entry = steps[np.searchsorted(steps, DATA["entry"].clip(lower=0), side="right") - 1]
    model.fit(X, with_fields(Y, entry=entry), sensitive_features=DATA["cluster"] % 2, strata=strata)
    until, before = (
        model.predict_cumulative_hazard_function(X, times=times, strata=strata).diagonal()
        for times in (DATA["time"], entry)
    )
    expected = pd.Series(until - before).groupby(strata).sum()
    np.testing.assert_allclose(expected, DATA.groupby("stratum")["event"].sum(), rtol=0.05)


def test_survival_after_a_time_is_the_ratio_of_the_curves():
    model = CoxPH().fit(X, Y)
    later = model.predict_survival_function(X, times=[2.0, 6.0, 9.0], conditional_after=5.0)
    plain = model.predict_survival_function(X, times=[5.0, 6.0, 9.0])
    np.testing.assert_allclose(later[:, 0], 1.0)
    np.testing.assert_allclose(later[:, 1:], plain[:, 1:] / plain[:, :1], rtol=1e-10)
    own = model.predict_survival_function(X[:2], times=[6.0], conditional_after=[0.0, 5.0])
    np.testing.assert_allclose(own[:, 0], [plain[0, 1], later[1, 1]], rtol=1e-10)


def test_curves_after_a_time_are_numbers_however_high_the_scores():
    model = CoxPH().fit(X, Y)
    far = X.iloc[[0]] * 0 + model.coef_ / (model.coef_ @ model.coef_) * 2000
    assert model.predict(far)[0] == pytest.approx(2000)
    times = model.unique_times_
    found = model.predict_survival_function(far, times=[*times[:6], 6.5], conditional_after=times[5])[0]
    np.testing.assert_array_equal(found[:6], 1.0)
    assert found[6] == float(times[6] > 6.5)
    assert times[5] <= model.predict_median(far, conditional_after=times[5])[0] <= times[6]


def test_medians_quantiles_and_means_are_read_off_the_curves():
    model = CoxPH().fit(X, Y)
    curves = model.predict_survival_function(X)
    grid = np.linspace(0, model.unique_times_[-1], 20_001)
    for i, curve in enumerate(curves[:10]):
        below = model.unique_times_[curve.y <= 0.5]
        assert model.predict_median(X)[i] == (below[0] if len(below) else np.inf)
        by_tenth = model.unique_times_[curve.y <= 0.9]
        assert model.predict_quantile(X, 0.1)[i] == by_tenth[0]
        area = curve(grid[:-1]).sum() * (grid[1] - grid[0])
        assert model.predict_expectation(X)[i] == pytest.approx(area, rel=1e-3)
        short = grid[grid < 4.0]
        area = curve(short).sum() * (grid[1] - grid[0])
        assert model.predict_expectation(X, until=4.0)[i] == pytest.approx(area, rel=1e-3)


@pytest.mark.parametrize("model", [CoxPH(), AcceleratedFailureTime(), DiscreteTimeHazard(random_state=0)])
def test_medians_and_means_of_those_who_survived_a_time_are_those_of_their_curves(model, monkeypatch):
    model.fit(X, Y)
    after = np.linspace(0.0, 5.0, len(X))
    median = model.predict_median(X, conditional_after=after)
    known = np.flatnonzero(np.isfinite(median))
    assert len(known) > len(X) / 4
    for i in known[:: len(known) // 20]:
        sides = model.predict_survival_function(
            X.iloc[[i]], times=median[i] * np.array([1 - 1e-6, 1 + 1e-6]), conditional_after=after[i]
        )[0]
        assert sides[0] >= 0.5 - 1e-5
        assert sides[1] <= 0.5 + 1e-5
    some, end, points = X.iloc[::50], model.unique_times_[-1], 20_000
    grid = (np.arange(points) + 0.5) * end / points
    curves = model.predict_survival_function(some, times=grid, conditional_after=after[::50])
    found = model.predict_expectation(some, conditional_after=after[::50])
    np.testing.assert_allclose(found, curves.mean(axis=1) * end, rtol=3e-3)
    # Of all patients, a few at a time, as of these.
    monkeypatch.setattr(base, "_TOGETHER", 30)
    everybody = model.predict_expectation(X, conditional_after=after)
    np.testing.assert_allclose(everybody[::50], found, rtol=1e-6)


@pytest.mark.parametrize(
    ("model", "risk"),
    [
        (CoxPH(), 10.0),
        (AcceleratedFailureTime(), 10.0),
        (AcceleratedFailureTime("lognormal"), 60.0),
        (AcceleratedFailureTime("loglogistic"), 2000.0),
        (DiscreteTimeHazard(link="cloglog", random_state=0), 10.0),
    ],
)
def test_medians_of_those_who_survived_what_hardly_anybody_would(model, risk):
    model.fit(X, Y)
    step = risk * getattr(model, "scale_", -1.0)
    far = pd.DataFrame([-step * model.coef_ / (model.coef_ @ model.coef_)], columns=X.columns)
    after = 2.5
    median = model.predict_median(far, conditional_after=after)[0]
    at = [after, np.nextafter(median, 0.0), median]
    spent, before, then = model.predict_cumulative_hazard_function(far, times=at)[0]
    assert spent > 1000.0
    assert before - spent < np.log(2) + 1e-6
    assert then - spent > np.log(2) - 1e-6


def test_everybody_may_have_survived_a_time_of_their_own(monkeypatch):
    model = CoxPH().fit(X, Y)
    after = np.linspace(0.0, 5.0, len(X))
    at_once = model.predict_median(X, conditional_after=after)
    # Of few patients at a time: never a number for each two of them.
    monkeypatch.setattr(base, "_BLOCK", 900)
    np.testing.assert_array_equal(model.predict_median(X, conditional_after=after), at_once)


def test_models_with_strata_have_medians(fitted):
    assert fitted.predict_median(X, **PREDICT).shape == (len(X),)
