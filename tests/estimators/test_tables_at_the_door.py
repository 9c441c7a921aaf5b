"""DataFrames as users have them, given to an estimator itself."""

import numpy as np
import polars
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sksurv.datasets import load_gbsg2

from drosurv import MLP, CoxPH, DeepHit, DROCox, RepairedCox, SubgroupRobustCox, evaluate
from drosurv.estimators.persistence import load, save
from drosurv.tables import TableEncoder


@pytest.fixture(scope="module")
def messy():
    """GBSG2 with text, a category and gaps, under names of the patients."""
    X, y = load_gbsg2()
    frame = X.assign(horTh=X["horTh"].astype(str), age=X["age"].where(np.arange(len(X)) % 9 > 0))
    return frame.set_axis([f"p{k}" for k in range(len(X))]), y


@pytest.mark.parametrize(
    "model",
    [
        CoxPH(),
        DROCox(alpha=0.5, recalibrate=False),
        SubgroupRobustCox(n_trees=2, tol=1e-2, recalibrate=False, random_state=0),
        DeepHit(random_state=0, device="cpu", network=MLP(max_iter=2)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_it_is_what_the_encoder_in_a_pipeline_gives(messy, model):
    X, y = messy
    expected = make_pipeline(TableEncoder(standardize=False), clone(model)).fit(X, y)
    model.fit(X, y)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-10)
    assert isinstance(model.predict(X), np.ndarray)
    assert model.feature_names_in_.tolist() == expected[0].get_feature_names_out().tolist()
    assert "horTh=yes" in model.feature_names_in_


def test_a_table_of_polars_is_read_as_that_of_pandas(messy):
    X, y = messy
    table = in_polars(X)
    model, other = CoxPH().fit(X, y), CoxPH().fit(table, y)
    assert other.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    np.testing.assert_array_equal(other.predict(table), model.predict(X))
    few = X[:200]
    repaired, expected = (
        RepairedCox(CoxPH(), max_conditions=1, random_state=0).fit(rows, y[:200])
        for rows in (in_polars(few), few)
    )
    assert repaired.in_words() == expected.in_words()
    measured, known = (evaluate(model, rows, y) for rows in (table, X))
    assert measured.to_frame().equals(known.to_frame())


def in_polars(frame):
    values = frame.astype(object).where(frame.notna(), None)
    return polars.DataFrame({name: values[name].tolist() for name in frame}, strict=False)


def test_new_patients_may_come_in_other_columns_and_with_other_gaps(messy):
    X, y = messy
    model = CoxPH().fit(X, y)
    new = X.iloc[:5, ::-1].assign(extra=1.0, tsize=np.nan)
    filled = X.iloc[:5].assign(tsize=X["tsize"].median())
    np.testing.assert_allclose(model.predict(new), model.predict(filled))


def test_a_saved_model_keeps_its_encoder(messy, tmp_path):
    X, y = messy
    model = CoxPH().fit(X, y)
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(X), model.predict(X))


def test_values_missing_in_prediction_alone_are_filled_with_the_medians(messy, tmp_path):
    X, y = messy
    numbers = X[["tsize", "pnodes"]]
    gaps = numbers.mask((np.arange(len(X)) == 3)[:, None] & [True, False])
    expected = {"tsize": numbers["tsize"].median()}
    for model in (CoxPH(), RepairedCox(CoxPH(), max_conditions=1, random_state=0)):
        model.fit(numbers, y)
        np.testing.assert_array_equal(model.predict(gaps), model.predict(gaps.fillna(expected)))
        save(model, tmp_path / "m")
        np.testing.assert_array_equal(load(tmp_path / "m").predict(gaps), model.predict(gaps))
    # In four of five parts the training patients have no missing value.
    assert np.isfinite(cross_val_score(CoxPH(), gaps, y)).all()
    with pytest.raises(ValueError, match="X contains NaN"):
        CoxPH().fit(numbers.to_numpy(), y).predict(gaps.to_numpy())


def test_a_later_fit_on_numbers_forgets_the_encoder(messy):
    X, y = messy
    numbers = X[["pnodes", "tsize"]]
    model = CoxPH().fit(X, y).fit(numbers, y)
    assert not hasattr(model, "encoder_")
    np.testing.assert_allclose(
        model.predict(numbers), CoxPH().fit(numbers.to_numpy(), y).predict(numbers.to_numpy())
    )


def test_a_table_keeps_the_names_of_the_patients(messy):
    X, _ = messy
    assert TableEncoder().fit(X).transform(X).index.equals(X.index)


def test_a_column_that_gives_the_outcome_away_is_warned_about(messy):
    X, y = messy
    with pytest.warns(UserWarning, match="column 'note' may give the outcome away"):
        CoxPH(l2=0.1).fit(X.assign(note=np.where(y["cens"], "relapse", "none")), y)
