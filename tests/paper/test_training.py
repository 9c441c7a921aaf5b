from drosurv.paper import METHODS
from drosurv.paper.training import trained_settings


def test_factors_need_no_training_of_their_own():
    scaled = METHODS["cox-scaled"]
    assert trained_settings(scaled) == trained_settings(METHODS["cox"]) == list(METHODS["cox"].settings())
    assert len(list(scaled.settings())) == len(scaled.factors) * len(trained_settings(scaled))


def test_every_setting_of_a_plain_grid_is_trained_in_its_order():
    method = METHODS["dro-cox"]
    assert trained_settings(method) == list(method.settings())
