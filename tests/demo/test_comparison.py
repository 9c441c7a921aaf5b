import numpy as np
import pytest
import torch
from sksurv.metrics import concordance_index_censored, integrated_brier_score

from drosurv.datasets import make_hidden_minority, split
from drosurv.demo import compare, contenders
from drosurv.estimators import CoxPH
from drosurv.losses import cox_partial
from drosurv.metrics import concordance_imparity
from drosurv.objectives import chi_square

# Of this seed nobody in the test part is observed longer than anybody trained on, so that scikit-survival agrees to
# score it.
DATA = make_hidden_minority(n_samples=600, random_state=3)


@pytest.fixture(scope="module")
def found():
    return compare(DATA, alpha=0.3, replicates=50, random_state=1)


def test_each_row_holds_the_metrics_of_its_model_on_the_test_patients(found):
    train, _, test = split(DATA, 1)
    mean, deviation = train.X.mean(), train.X.std(ddof=0)
    model = CoxPH().fit((train.X - mean) / deviation, train.y)
    X = (test.X - mean) / deviation
    risk = model.predict(X)
    row = found.table.set_index("model").loc["Cox"]
    expected = concordance_index_censored(test.y["event"], test.y["time"], risk)[0]
    assert row["c_index"] == pytest.approx(expected, abs=1e-12)
    groups = test.sensitive_features["membership"]
    assert row["imparity"] == pytest.approx(concordance_imparity(test.y, risk, groups))
    assert row["imparity_low"] <= row["imparity"] <= row["imparity_high"] + 1e-12
    by_group = {
        f"membership {name}": concordance_index_censored(
            test.y["event"][members], test.y["time"][members], risk[members]
        )[0]
        for name in ("minority", "majority")
        for members in [(groups == name).to_numpy()]
    }
    assert row["worst_group"] == min(by_group, key=by_group.get)
    assert row["worst_group_c_index"] == pytest.approx(min(by_group.values()))
    losses = cox_partial(
        torch.tensor(risk), torch.tensor(test.y["event"]), torch.tensor(test.y["time"].copy())
    )
    assert row["worst_case_loss"] == pytest.approx(float(chi_square(losses, 0.3)))
    assert row["objective"] == pytest.approx(model.objective_)
    assert row["share_of_gain"] == 1


def test_brier_scores_equal_scikit_survivals_on_the_tables_grid(found):
    train, _, test = split(DATA, 1)
    encoder_free = (train.X - train.X.mean()) / train.X.std(ddof=0)
    model = CoxPH().fit(encoder_free, train.y)
    X = (test.X - train.X.mean()) / train.X.std(ddof=0)
    start = max(train.y["time"].min(), test.y["time"].min())
    times = np.linspace(start, test.y["time"].max(), 50, endpoint=False)
    survival = model.predict_survival_function(X, times=times)
    expected = integrated_brier_score(train.y, test.y, survival, times)
    assert found.table["ibs"].iloc[0] == pytest.approx(expected, abs=1e-9)


def test_the_published_constant_shrinks_most_and_the_table_shows_it(found):
    table = found.table.set_index("model")
    assert table.loc["DRO-COX published", "share_of_gain"] < table.loc["DRO-COX", "share_of_gain"]
    assert table.loc["DRO-COX published", "calibration_slope"] > table.loc["Cox", "calibration_slope"]


def test_facts_and_progress_are_told():
    seen = []
    models = {"a": CoxPH(), "b": CoxPH(l2=1.0)}
    found = compare(DATA, models, alpha=0.5, replicates=10, on_model=seen.append)
    assert seen == ["a", "b"] == found.table["model"].tolist()
    assert (found.n_train, found.n_test) == (384, 120)
    assert (found.alpha, found.attribute, found.data) == (0.5, "membership", "hidden minority")


def test_plain_cox_comes_first_and_alpha_reaches_the_others():
    models = contenders(0.4)
    assert type(next(iter(models.values()))) is CoxPH
    assert all(model.alpha == 0.4 for model in list(models.values())[1:])


def test_an_unknown_attribute_is_refused():
    with pytest.raises(ValueError, match="attribute 'race' is not one of membership"):
        compare(DATA, attribute="race")
