import numpy as np
import pytest

from drosurv import CoxPH
from drosurv.datasets import make_hidden_minority
from drosurv.metrics import concordance_index
from drosurv.workflows.demo import tell


@pytest.fixture(scope="module")
def story():
    return tell(
        attribute="membership", n_hidden=3000, real=make_hidden_minority(700, minority=0.5, random_state=5)
    )


def test_numbers_are_those_of_the_metrics_on_patients_kept_away(story):
    train, test = make_hidden_minority(2000, random_state=0), make_hidden_minority(1000, random_state=1)
    risk = CoxPH().fit(train.X, train.y).predict(test.X)
    inside = (test.sensitive_features["membership"] == "minority").to_numpy()
    part = story.hidden
    assert (part.n_train, part.n_test, part.n_group) == (2000, 1000, inside.sum())
    assert part.number("plain Cox", "c_index") == pytest.approx(concordance_index(test.y, risk))
    assert part.number("plain Cox", "group_c_index") == pytest.approx(
        concordance_index(test.y[inside], risk[inside])
    )


def test_plain_cox_fails_the_hidden_group_and_the_repair_helps_without_a_cost(story):
    part = story.hidden
    assert part.number("plain Cox", "group_skill") < 0
    assert part.number("repaired Cox", "group_c_index") > part.number("plain Cox", "group_c_index") + 0.1
    assert part.number("repaired Cox", "skill") > part.number("plain Cox", "skill")
    assert any(rule.startswith("x5 > ") for rule in part.rules)


def test_every_number_is_there_and_the_advice_is_one_sentence(story):
    assert story.real.group in ("minority", "majority")
    assert np.isfinite(story.real.table.drop(columns="model").to_numpy(dtype=float)).all()
    assert story.advice.count(".") == 1


def test_an_attribute_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="attribute must be one of membership of"):
        tell(attribute="race", real=make_hidden_minority(100, random_state=0))
