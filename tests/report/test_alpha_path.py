import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sksurv.linear_model import CoxPHSurvivalAnalysis

from drosurv import MLP
from drosurv.datasets import make_hidden_minority
from drosurv.estimators import AcceleratedFailureTime, CoxPH, DROCox, DROCoxSplit, SubgroupRobustCox
from drosurv.report.alpha_path import find_stops, train_alpha_path
from drosurv.tables import TableEncoder


@pytest.fixture(scope="module")
def data():
    return make_hidden_minority(300, random_state=0)


def test_every_model_of_the_path_is_the_one_fitted_alone(data):
    model = DROCox(alpha=0.4, l2=0.01).fit(data.X, data.y)
    path = train_alpha_path(model, data.X, data.y, alphas=(0.3, 1.0))
    assert list(path) == [1.0, 0.3]
    for alpha, fitted in path.items():
        expected = DROCox(alpha=alpha, l2=0.01).fit(data.X, data.y)
        np.testing.assert_allclose(fitted.coef_, expected.coef_, atol=1e-4)


def test_the_path_keeps_the_family_or_falls_back_to_dro_cox(data):
    split = DROCoxSplit(alpha=0.4, random_state=3).fit(data.X, data.y)
    assert isinstance(train_alpha_path(split, data.X, data.y, alphas=(0.5,))[0.5], DROCoxSplit)
    times = AcceleratedFailureTime(alpha=0.4, l2=0.1).fit(data.X, data.y)
    fitted = train_alpha_path(times, data.X, data.y, alphas=(0.5,))[0.5]
    assert isinstance(fitted, AcceleratedFailureTime)
    assert (fitted.alpha, fitted.l2) == (0.5, 0.1)
    stops, _ = find_stops(times, data.X, None, None, {1.0: fitted})
    assert [stop.name for stop in stops] == [
        "AcceleratedFailureTime",
        "AcceleratedFailureTime, alpha 0.4",
    ]
    for model in (CoxPH(l2=0.2), CoxPHSurvivalAnalysis()):
        fitted = train_alpha_path(model.fit(data.X, data.y), data.X, data.y, alphas=(0.5,))[0.5]
        assert isinstance(fitted, DROCox)
        assert fitted.l2 == getattr(model, "l2", 0.0)


def test_a_pipelines_preparation_is_used_as_fitted(data):
    model = make_pipeline(TableEncoder(), DROCox(alpha=0.4)).fit(data.X, data.y)
    path = train_alpha_path(model, data.X, data.y, alphas=(0.4,))
    assert path[0.4][0] is model[0]
    np.testing.assert_allclose(path[0.4].predict(data.X), model.predict(data.X), atol=1e-4)


def test_the_audited_model_takes_its_own_place_on_the_slider(data):
    model = DROCox(alpha=0.4).fit(data.X, data.y)
    stops, skipped = find_stops(model, data.X, data.X, data.y, (1.0, 0.4, 0.2))
    assert skipped == ()
    assert [(stop.alpha, stop.audited) for stop in stops] == [(1.0, False), (0.4, True), (0.2, False)]
    assert stops[1].model is model
    assert stops[0].name == "DROCox, alpha 1 (plain Cox)"


@pytest.mark.parametrize("settings", [{"l2": 0.1}, {"network": MLP((2,), max_iter=2)}])
def test_only_plain_cox_is_called_so(data, settings):
    model = DROCox(alpha=1.0, **settings).fit(data.X, data.y)
    assert find_stops(model, data.X, None, None, None)[0][0].name == "DROCox, alpha 1"


def test_a_model_without_alpha_comes_first(data):
    stops, _ = find_stops(CoxPH().fit(data.X, data.y), data.X, data.X, data.y, (0.5,))
    assert [(stop.name, stop.alpha) for stop in stops] == [("CoxPH", None), ("DROCox, alpha 0.5", 0.5)]


def test_models_given_are_not_trained_again(data):
    other = DROCox(alpha=0.2).fit(data.X, data.y)
    stops, _ = find_stops(DROCox(alpha=0.5).fit(data.X, data.y), data.X, None, None, {0.2: other})
    assert stops[1].model is other


def test_without_training_patients_there_is_one_stop_and_asking_for_more_is_an_error(data):
    model = DROCox(alpha=0.4).fit(data.X, data.y)
    assert len(find_stops(model, data.X, None, None, None)[0]) == 1
    assert len(find_stops(model, data.X, data.X, data.y, ())[0]) == 1
    with pytest.raises(ValueError, match="pass X_train and y_train"):
        find_stops(model, data.X, None, None, (0.5,))


def test_shares_that_a_family_cannot_be_trained_at_are_skipped_and_named(data):
    model = SubgroupRobustCox(alpha=0.5, min_group=60, n_trees=2, recalibrate=False).fit(data.X, data.y)
    stops, skipped = find_stops(model, data.X, data.X, data.y, (0.5, 0.1))
    assert [stop.alpha for stop in stops] == [0.5]
    assert skipped == (
        "The slider has no alpha 0.1: the model cannot be trained at that share of these patients.",
    )


def test_an_error_of_every_share_is_an_error(data):
    model = DROCox(alpha=0.5).fit(data.X, data.y)
    with pytest.raises(ValueError, match="alpha"):
        train_alpha_path(model, data.X, data.y, alphas=(2.0, 3.0))
