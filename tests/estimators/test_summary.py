"""The Cox table of fitted models, against lifelines and R, and what robust models say beside it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import drosurv
from drosurv import (
    AcceleratedFailureTime,
    CauseSpecificCox,
    CoxPH,
    CoxPHCV,
    DiscreteTimeHazard,
    DROCox,
    GroupDROCox,
    RegularizedCox,
    Surv,
    datasets,
)
from drosurv.estimators.coefficient_inference import title
from drosurv.patients.target import with_fields
from drosurv.tables import TableEncoder
from experiments import rivals


def simulated(seed=0, n=200):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["age", "dose"]).assign(sex=rng.integers(0, 2, n))
    time = np.ceil(20 * rng.exponential(np.exp(-X @ [0.5, -0.3, 0.4]))) / 2
    return X.assign(
        time=time,
        event=rng.random(n) < 0.7,
        entry=time - rng.integers(1, 20, n) / 4,
        hospital=rng.integers(0, 25, n),
        stratum=rng.integers(0, 2, n),
        weight=rng.uniform(0.5, 2, n),
    )


DATA = simulated()
FEATURES = ["age", "dose", "sex"]
X, Y = DATA[FEATURES].astype(float), Surv.from_dataframe("event", "time", DATA)
COLUMNS = [
    *("coef", "exp(coef)", "se(coef)", "coef lower 95%", "coef upper 95%"),
    *("exp(coef) lower 95%", "exp(coef) upper 95%", "z", "p"),
]


@pytest.mark.peer
@pytest.mark.parametrize("dataset", ["rossi", "lung", "simulated"])
def test_the_table_is_that_of_lifelines(dataset):
    from lifelines import CoxPHFitter
    from lifelines.datasets import load_lung, load_rossi

    table, time, event = {
        "rossi": lambda: (load_rossi(), "week", "arrest"),
        "lung": lambda: (load_lung().dropna(), "time", "status"),
        "simulated": lambda: (DATA[[*FEATURES, "time", "event"]], "time", "event"),
    }[dataset]()
    peer = CoxPHFitter().fit(table.astype(float), time, event, fit_options={"precision": 1e-12})
    features = table.drop(columns=[time, event]).astype(float)
    y = Surv.from_arrays(table[event].astype(bool), table[time].astype(float))
    found = CoxPH(ties="efron").fit(features, y).summary()
    pd.testing.assert_frame_equal(
        pd.DataFrame(found), peer.summary[COLUMNS], rtol=1e-5, atol=1e-5, check_names=False
    )


def test_standard_errors_are_those_of_r(run_r):
    models = {
        "plain": ("Surv(time, event) ~ age + dose + sex, data", {}),
        "weighted": (
            "Surv(time, event) ~ age + dose + sex, data, weights = weight, robust = TRUE",
            {"weight"},
        ),
        "clusters": ("Surv(time, event) ~ age + dose + sex, data, cluster = hospital", {"clusters"}),
        "all": (
            "Surv(entry, time, event) ~ age + dose + sex + strata(stratum), data, cluster = hospital, weights = weight",
            {"weight", "clusters", "entry", "strata"},
        ),
    }
    lines = ["data <- read.csv('data.csv')"]
    for name, (call, _) in models.items():
        for ties in ("breslow", "efron"):
            lines.append(f"""
fit <- coxph({call}, ties = "{ties}", control = coxph.control(timefix = FALSE, eps = 1e-12, toler.chol = 1e-13))
give("{name}.{ties}", cbind(coef(fit), sqrt(diag(vcov(fit)))))
give("{name}.{ties}.loglik", fit$loglik)
""")
    r = run_r("\n".join(lines), data=DATA.assign(event=DATA["event"].astype(int)))
    for name, (_, given) in models.items():
        for ties in ("breslow", "efron"):
            model = CoxPH(ties=ties).fit(
                X,
                with_fields(
                    Y,
                    clusters=DATA["hospital"] if "clusters" in given else None,
                    entry=DATA["entry"] if "entry" in given else None,
                ),
                DATA["weight"] if "weight" in given else None,
                strata=DATA["stratum"] if "strata" in given else None,
            )
            np.testing.assert_allclose(
                model.summary()[["coef", "se(coef)"]], r[f"{name}.{ties}"], rtol=1e-5, atol=1e-6
            )
            assert model._findings.log_likelihoods == pytest.approx(
                r[f"{name}.{ties}.loglik"][:, 0], rel=1e-7
            )


def test_the_table_says_where_its_errors_come_from():
    plain = CoxPH().fit(X, Y)
    assert list(plain.summary().columns) == COLUMNS
    assert "observed information" in str(plain.summary())
    robust = str(plain.summary(method="sandwich"))
    assert "sandwich" in robust
    assert "This test assumes independent rows" in robust
    assert "independent" not in str(plain.summary())
    assert "sandwich" in str(CoxPH().fit(X, with_fields(Y, clusters=DATA["hospital"])).summary())
    # As in R, ids alone do not: a patient cut into rows is still one, unless he has several events.
    rows = with_fields(Y, entry=Y["time"] - 0.5, id=np.arange(len(Y)))
    assert "observed information" in str(CoxPH().fit(X, rows).summary())
    again = np.flatnonzero(Y["event"])[[0, -1]]
    again = again[np.argsort(Y["time"][again])]
    rows["id"][again] = again[0]
    rows["entry"][again[1]] = Y["time"][again].mean()
    several = str(CoxPH().fit(X, rows).summary())
    assert "sandwich" in several
    assert "CoxPH: 200 rows of 199 patients" in several
    assert "CoxPH: 200 patients" in str(plain.summary())
    assert "likelihood ratio test" in str(plain.summary())


def test_clusters_of_one_row_change_nothing_and_larger_ones_are_counted():
    plain, alone = (
        CoxPH().fit(X, Y).summary(),
        CoxPH().fit(X, with_fields(Y, clusters=np.arange(len(Y)))).summary(),
    )
    pd.testing.assert_frame_equal(pd.DataFrame(alone), pd.DataFrame(plain))
    assert alone.caption == plain.caption
    assert alone.notes[0].startswith(f"{plain.notes[0]} No two rows share an id or a cluster. ")
    assert 'as R\'s with clusters: method="sandwich"' in alone.notes[0]
    clustered = CoxPH().fit(X, with_fields(Y, clusters=DATA["hospital"])).summary()
    assert f"CoxPH: 200 rows in {DATA['hospital'].nunique()} clusters" in clustered.caption


def test_the_level_is_that_of_the_intervals():
    model = CoxPH().fit(X, Y)
    wide, narrow = model.summary(0.99), model.summary(level=0.5)
    assert (wide["coef upper 99%"] > narrow["coef upper 50%"]).all()


def test_scaled_features_have_the_table_of_their_natural_units():
    plain = CoxPH(tol=1e-12).fit(X, Y).summary()
    scaled = drosurv.summary(make_pipeline(StandardScaler(), CoxPH(tol=1e-12)).fit(X, Y))
    pd.testing.assert_frame_equal(pd.DataFrame(scaled), pd.DataFrame(plain), rtol=1e-6, atol=1e-9)
    # Indicators too, which the encoder standardises.
    table = X.assign(sex=np.where(X["sex"] == 1, "m", "f"))
    encoded = drosurv.summary(make_pipeline(TableEncoder(), CoxPH(tol=1e-12)).fit(table, Y))
    sex = next(name for name in encoded.index if name.startswith("sex="))
    sign = 1 if sex == "sex=m" else -1
    assert encoded.loc[sex, "coef"] == pytest.approx(sign * plain.loc["sex", "coef"], rel=1e-6)
    assert encoded.loc[sex, "se(coef)"] == pytest.approx(plain.loc["sex", "se(coef)"], rel=1e-6)
    assert drosurv.summary(CoxPH().fit(X, Y)).index.tolist() == FEATURES


@pytest.mark.parametrize(
    "scalers",
    [
        [MinMaxScaler()],
        [make_pipeline(MaxAbsScaler(), RobustScaler()), SimpleImputer()],
        [StandardScaler(), "passthrough", SimpleImputer(), None, MinMaxScaler((-1, 3))],
    ],
)
def test_every_scaler_is_undone_whichever_way_it_scales(scalers):
    plain = CoxPH(tol=1e-12).fit(X, Y).summary()
    scaled = drosurv.summary(make_pipeline(*scalers, CoxPH(tol=1e-12)).fit(X, Y))
    pd.testing.assert_frame_equal(pd.DataFrame(scaled), pd.DataFrame(plain), rtol=1e-6, atol=1e-9)


def test_the_scalers_of_a_column_transformer_are_undone():
    first, second, *others = FEATURES
    parts = [
        ("scaled", make_pipeline(SimpleImputer(), StandardScaler()), [second]),
        ("left", "drop", others[:1]),
        ("ranged", MinMaxScaler((-1, 3)), [first]),
    ]
    chosen = make_pipeline(ColumnTransformer(parts, remainder="passthrough"), CoxPH(tol=1e-12)).fit(X, Y)
    plain = CoxPH(tol=1e-12).fit(X[[second, first, *others[1:]]], Y).summary()
    found = drosurv.summary(chosen)
    assert found.index[:2].tolist() == [f"scaled__{second}", f"ranged__{first}"]
    np.testing.assert_allclose(found[["coef", "se(coef)"]], plain[["coef", "se(coef)"]], rtol=1e-6)


def test_features_that_others_were_made_of_lend_them_neither_name_nor_unit():
    model = make_pipeline(StandardScaler(), PCA(), CoxPH()).fit(X, Y)
    table = drosurv.summary(model)
    assert table.index.tolist() == [f"pca{k}" for k in range(len(FEATURES))]
    np.testing.assert_allclose(table["coef"], model[-1].coef_)
    lasting = drosurv.summary(make_pipeline(StandardScaler(), AcceleratedFailureTime()).fit(X, Y))
    assert lasting.index.tolist() == [*FEATURES, "(Intercept)", "Log(scale)"]
    assert "intercept is that of a patient whose scaled features are zero" in lasting.notes[0]
    # Some are left out, the others keep their units.
    chosen = make_pipeline(MaxAbsScaler(), VarianceThreshold(0.2), StandardScaler(), CoxPH(tol=1e-12))
    kept = drosurv.summary(chosen.fit(X, Y))
    plain = CoxPH(tol=1e-12).fit(X[["sex"]], Y).summary()
    pd.testing.assert_frame_equal(pd.DataFrame(kept), pd.DataFrame(plain), rtol=1e-6, atol=1e-9)


def test_notes_call_the_features_of_a_pipeline_by_their_names():
    twice = X.assign(again=2 * X[FEATURES[0]])
    dependent = drosurv.summary(make_pipeline(StandardScaler(), CoxPH()).fit(twice, Y))
    assert any(note.startswith(f"{FEATURES[0]}, again: no standard error") for note in dependent.notes)
    robust = drosurv.summary(make_pipeline(StandardScaler(), DROCox(0.5, recalibrate=False)).fit(X, Y))
    changed = next(note for note in robust.notes if note.startswith("Changed most"))
    assert sum(f"{name} (hazard ratio" in changed for name in FEATURES) >= min(3, len(FEATURES))
    causes = Surv.competing(np.where(Y["event"], 1 + np.arange(len(Y)) % 2, 0), Y["time"])
    for alpha in (0.9, 1.0):
        model = make_pipeline(StandardScaler(), CauseSpecificCox(alpha)).fit(twice, causes)
        assert drosurv.summary(model, cause=2).index.tolist() == [*FEATURES, "again"]


def test_a_robust_model_stands_beside_plain_cox_without_a_bootstrap():
    data = datasets.make_hidden_minority(n_samples=500, random_state=0)
    model = DROCox(0.2, recalibrate=False).fit(data.X, data.y)
    table = model.summary()
    np.testing.assert_allclose(table["coef"], model.coef_)
    np.testing.assert_allclose(table["plain coef"], CoxPH().fit(data.X, data.y).coef_, rtol=1e-6, atol=1e-8)
    assert table["se(coef)"].isna().all()
    shown = str(table)
    assert 'need a bootstrap: summary(method="bootstrap")' in shown
    assert "minimise the loss of the patients for whom DROCox (alpha = 0.2) is worst" in shown
    assert "Changed most against plain Cox" in shown
    assert "largest worst-case weights have about average features" in shown
    assert repr(model) == "DROCox(alpha=0.2, recalibrate=False)"


OWN = [
    RegularizedCox(max_iter=10),
    DROCox(1.0, recalibrate=False),
    CoxPH(recalibrate=True),
    *(getattr(rivals, name)() for name in rivals.__all__),
]


@pytest.mark.parametrize("model", OWN, ids=lambda model: type(model).__name__)
def test_a_model_without_a_worst_case_is_not_said_to_have_one(model):
    data = datasets.make_hidden_minority(n_samples=200, random_state=0)
    needs = (
        {}
        if model._compares_groups is None
        else {"sensitive_features": data.sensitive_features["membership"]}
    )
    shown = str(model.fit(data.X, data.y, **needs).summary())
    assert f"Standard errors of {title(model)} need a bootstrap" in shown
    assert f"{title(model)} minimises another criterion" in shown
    assert "worst" not in shown


@pytest.mark.parametrize(("link", "ratio"), [("logit", "odds ratio"), ("cloglog", "hazard ratio")])
def test_the_table_says_what_ratio_it_shows(link, ratio):
    table = DiscreteTimeHazard(5, link=link).fit(X, Y).summary()
    assert table.ratio == ratio
    assert f"exp(coef) is the {ratio} that this model predicts with" in str(table)
    # An odds ratio differs from plain Cox's hazard ratio even where both models are right.
    assert ("Changed most against plain Cox" in str(table)) == (ratio == "hazard ratio")


def test_the_change_is_for_those_whom_the_worst_case_weights():
    data = datasets.make_hidden_minority(n_samples=500, random_state=0)
    model = DROCox(0.2, recalibrate=False).fit(data.X, data.y)
    model.summary()
    np.testing.assert_allclose(
        model._findings.plain.worst_mean, model.worst_case_weights_ @ data.X.to_numpy()
    )


def test_the_bootstrap_of_plain_cox_agrees_with_its_information():
    model = CoxPH().fit(X, Y)
    drawn = model.summary(method="bootstrap", n_bootstrap=120, n_jobs=2)
    known = model.summary(method="sandwich")
    np.testing.assert_allclose(drawn["se(coef)"], known["se(coef)"], rtol=0.2)
    assert "120 refits" in str(drawn)


def test_a_bootstrap_once_run_stays_with_the_robust_model(tmp_path):
    model = DROCox(0.3, recalibrate=False).fit(X, with_fields(Y, clusters=DATA["hospital"]))
    first = model.summary(method="bootstrap", n_bootstrap=8)
    assert first["se(coef)"].gt(0).all()
    pd.testing.assert_frame_equal(pd.DataFrame(model.summary()), pd.DataFrame(first))
    again = (
        DROCox(0.3, recalibrate=False)
        .fit(X, with_fields(Y, clusters=DATA["hospital"]))
        .summary(method="bootstrap", n_bootstrap=8, n_jobs=1)
    )
    pd.testing.assert_frame_equal(pd.DataFrame(again), pd.DataFrame(first))
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(
        pd.DataFrame(drosurv.load(tmp_path / "model").summary()), pd.DataFrame(first)
    )


def test_saved_models_keep_their_table_and_no_patient(tmp_path):
    model = CoxPH().fit(X, Y, DATA["weight"])
    model.save(tmp_path / "model")
    loaded = drosurv.load(tmp_path / "model")
    assert loaded._kept_training is None
    pd.testing.assert_frame_equal(pd.DataFrame(loaded.summary()), pd.DataFrame(model.summary()))
    assert "sandwich" in str(loaded.summary())
    for asked in (
        lambda: loaded.summary(method="bootstrap"),
        lambda: loaded.residuals(),
        lambda: loaded.check_proportional_hazards(),
    ):
        with pytest.raises(ValueError, match="needs the training data, which a saved model does not contain"):
            asked()


def test_residuals_and_the_proportional_hazards_test_are_at_hand():
    model = CoxPH(ties="efron").fit(X, with_fields(Y, entry=DATA["entry"]))
    assert model.residuals().sum() == pytest.approx(0.0, abs=1e-8)
    assert model.residuals("dfbeta").shape == (200, 3)
    assert model.residuals("scaled_schoenfeld").shape == (int(DATA["event"].sum()), 3)
    test = model.check_proportional_hazards("rank")
    assert test.to_frame().index.tolist() == [*FEATURES, "all together"]
    with pytest.raises(ValueError, match=r"kind must be one of \['martingale'.*got 'pearson'"):
        model.residuals("pearson")


def test_models_of_groups_have_tables_too():
    model = GroupDROCox(tol=1e-3, recalibrate=False).fit(X, Y, sensitive_features=DATA["stratum"])
    table = model.summary(method="bootstrap", n_bootstrap=4)
    assert table["se(coef)"].gt(0).all()


def test_filled_values_are_told_of_where_others_leave_patients_out():
    holes = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["age", "bili"])
    y = Surv.from_arrays(np.arange(60) % 3 > 0, np.random.default_rng(1).exponential(size=60))
    assert not any("filled in" in note for note in CoxPH().fit(holes, y).summary().notes)
    holes.loc[[3, 7], "bili"] = np.nan
    alone = CoxPH().fit(holes, y).summary()
    after = drosurv.summary(make_pipeline(TableEncoder(), CoxPH()).fit(holes, y))
    for table in (alone, after):
        assert any("Missing values were filled in: bili (2)." in note for note in table.notes)


@pytest.mark.parametrize("method", ["information", "sandwich"])
def test_a_coefficient_without_end_is_named_and_a_large_one_is_not(method):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    # The first effect is huge and real; nobody in the category has the event.
    time = rng.exponential(size=400) / np.exp(4 * x[:, 0])
    rare = np.arange(400) < 7
    event = (rng.random(400) < 0.7) & ~rare
    table = pd.DataFrame({"huge": x[:, 0], "none": x[:, 1], "rare": rare.astype(float)})
    notes = " ".join(CoxPH().fit(table, Surv.from_arrays(event, time)).summary(method=method).notes)
    assert "rare: the coefficient may be infinite" in notes
    assert "huge" not in notes
    ridge = CoxPH(l2=0.01).fit(table, Surv.from_arrays(event, time))
    assert "infinite" not in " ".join(ridge.summary(method=method).notes)


@pytest.mark.parametrize("method", ["information", "sandwich"])
def test_a_feature_that_strata_were_made_of_takes_nothing_from_the_others(method):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    center = rng.integers(0, 3, 300)
    event, time = rng.random(300) < 0.7, np.ceil(9 * rng.exponential(np.exp(-frame["a"])))
    y = Surv.from_arrays(event, time, clusters=np.arange(300) // 2)
    without = CoxPH(ties="efron").fit(frame, y, strata=center)
    beside = CoxPH(ties="efron").fit(frame.assign(center=center, same=7.1), y, strata=center)
    found, wanted = beside.summary(method=method), without.summary(method=method)
    pd.testing.assert_frame_equal(pd.DataFrame(found)[:2], pd.DataFrame(wanted), rtol=1e-6)
    assert found["coef"][2:].tolist() == [0.0, 0.0]
    assert found["se(coef)"][2:].isna().all()
    # As R, which gives such a coefficient as NA.
    assert "on 2 degrees of freedom" in str(found)
    tests, alone = beside.check_proportional_hazards(), without.check_proportional_hazards()
    kept = ["a", "b", "all together"]
    pd.testing.assert_frame_equal(tests.to_frame().loc[kept], alone.to_frame(), rtol=1e-6)
    assert tests.to_frame()["p"].isna().sum() == 2
    np.testing.assert_allclose(tests.residuals[:, :2], alone.residuals, rtol=1e-6)


def test_under_a_ridge_there_is_no_likelihood_ratio_test():
    table = str(CoxPH(l2=0.1).fit(DATA[FEATURES], Surv.from_dataframe("event", "time", DATA)).summary())
    assert "Log partial likelihood" in table
    assert "no likelihood ratio test" in table
    assert "degrees of freedom" not in table


def test_features_that_depend_on_each_other_count_once_as_in_r(run_r):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    frame = frame.assign(c=frame["a"] - frame["b"], center=rng.integers(0, 2, 200))
    time, event = np.ceil(9 * rng.exponential(size=200)), rng.random(200) < 0.7
    r = run_r(
        """
data <- read.csv("data.csv")
fit <- coxph(Surv(time, event) ~ a + b + c + center + strata(center), data)
give("test", c(2 * diff(fit$loglik), sum(!is.na(coef(fit)))))
give("zph", cox.zph(fit)$table["GLOBAL", ])
""",
        data=frame.assign(time=time, event=event.astype(int)),
    )
    model = CoxPH(ties="efron", tol=1e-12).fit(frame, Surv.from_arrays(event, time), strata=frame["center"])
    model.summary()
    null, fitted = model._findings.log_likelihoods
    np.testing.assert_allclose([2 * (fitted - null), model._findings.degrees], r["test"][:, 0], rtol=1e-6)
    np.testing.assert_allclose(
        model.check_proportional_hazards().to_frame().loc["all together"], r["zph"][:, 0], rtol=1e-5
    )


def test_weights_with_fractions_are_summed_beside_the_numbers_of_patients(tmp_path):
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(120, 2)), rng.exponential(size=120)
    y = Surv.from_arrays(time < 1.0, np.minimum(time, 1.0))
    weight = rng.uniform(0.3, 1.9, 120).round(2)
    events = int((time < 1.0).sum())
    for estimator in (CoxPH(), CoxPHCV(cv=3, random_state=0)):
        model = estimator.fit(X, y, sample_weight=weight)
        model.save(tmp_path / "model")
        for shown in (str(model.summary()), str(drosurv.load(tmp_path / "model").summary())):
            assert f"120 patients{',' if type(model) is CoxPH else ' and'} {events} events" in shown
            sums = weight.sum(), weight[time < 1.0].sum()
            assert (
                f"The weights of the patients sum to {sums[0]:.1f}, those of events to {sums[1]:.1f}."
                in shown
            )
    copies = CoxPH().fit(X, y, sample_weight=np.ceil(weight)).summary()
    assert f"{np.ceil(weight).sum():.0f} patients in 120 weighted rows, " in copies.caption
    assert "(sandwich), because of the weights. R takes whole-number weights for copies" in copies.notes[0]
    assert "R takes" not in str(CoxPH().fit(X, y, sample_weight=weight).summary())
    assert "rows" not in CoxPH().fit(X, y, sample_weight=np.ones(120)).summary().caption
