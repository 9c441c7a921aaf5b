from drosurv.paper import METHODS


def test_factors_need_no_training_of_their_own():
    scaled = METHODS["cox-scaled"]
    assert scaled.points() == METHODS["cox"].points() == METHODS["cox"].settings()
    assert len(scaled.settings()) == len(scaled.factors) * len(scaled.points())


def test_every_setting_of_a_plain_grid_is_trained_in_its_order():
    method = METHODS["dro-cox"]
    assert method.points() == method.settings()
