import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from drosurv import Surv, evaluate
from drosurv.errors import ArgumentError
from drosurv.estimators import DROCox
from drosurv.evaluation import Predictions, compare
from drosurv.metrics import concordance_imparity, concordance_index, paired_comparison


@pytest.fixture(scope="module")
def models(model, train):
    return {"Cox": model, "DRO": DROCox(alpha=0.3, recalibrate=False).fit(train.X, train.y)}


@pytest.fixture(scope="module")
def table(models, train, held_out):
    return compare(
        models,
        held_out.X,
        held_out.y,
        y_train=train.y,
        sensitive_features=held_out.sensitive_features,
        n_bootstrap=10,
    )


def cell(table, model, metric, attribute="overall"):
    rows = table[(table["model"] == model) & (table["metric"] == metric) & (table["attribute"] == attribute)]
    assert len(rows) == 1
    return rows.iloc[0]


def test_values_are_those_of_evaluate(table, models, evaluated):
    for name, model in models.items():
        result = evaluated(model, reference=models["Cox"], n_bootstrap=0)
        for metric in (
            "concordance_index",
            "integrated_brier_score",
            "share_of_gain",
            "individual_disparity",
        ):
            assert cell(table, name, metric)["value"] == pytest.approx(result.value(metric))
        for metric in ("concordance_imparity", "group_disparity", "average_disparity"):
            assert cell(table, name, metric, "sex")["value"] == pytest.approx(result.value(metric, "sex"))
        worst = cell(table, name, "worst_group_concordance_index", "site")
        assert worst["value"] == pytest.approx(
            min(result.value("concordance_index", "site", site) for site in ("a", "b"))
        )
        assert worst["group"] == "b"
        of_all = cell(table, name, "worst_group_concordance_index")
        lowest = min(
            (result.value("concordance_index", of, label), f"{of} {label}")
            for of, labels in (("site", "ab"), ("sex", "fm"))
            for label in labels
        )
        assert (of_all["value"], of_all["group"]) == (pytest.approx(lowest[0]), lowest[1])


def test_differences_are_paired_on_the_same_replicates(table, models, held_out):
    risks = {name: model.predict(held_out.X) for name, model in models.items()}
    sex = held_out.sensitive_features["sex"]
    for metric, attribute, statistic in (
        ("concordance_index", "overall", lambda w, f: concordance_index(held_out.y, f, w)),
        (
            "concordance_imparity",
            "sex",
            lambda w, f: concordance_imparity(held_out.y, f, sex, sample_weight=w),
        ),
    ):
        expected = paired_comparison(
            lambda w, metric=statistic: metric(w, risks["DRO"]),
            lambda w, metric=statistic: metric(w, risks["Cox"]),
            len(held_out.y),
            replicates=10,
            random_state=0,
        )
        row = cell(table, "DRO", metric, attribute)
        assert row["difference"] == pytest.approx(expected.difference.estimate)
        assert (row["difference_low"], row["difference_high"]) == pytest.approx(
            (expected.difference.low, expected.difference.high)
        )
        assert row["p"] == pytest.approx(expected.p)


def test_the_first_model_is_compared_with_nothing(table):
    first = table[table["model"] == "Cox"]
    assert first[["difference", "difference_low", "difference_high", "p"]].isna().all(axis=None)
    others = table[(table["model"] == "DRO") & (table["metric"] != "d_calibration_p")]
    assert others[["difference", "low", "high", "p"]].notna().all(axis=None)


@pytest.mark.parametrize(
    "random_state", [0, None, np.random.default_rng(0)], ids=["int", "none", "generator"]
)
def test_a_model_does_not_differ_from_itself(model, train, held_out, random_state):
    table = compare(
        {"one": model, "same": Predictions(model.predict(held_out.X))},
        held_out.X,
        held_out.y,
        y_train=train.y,
        n_bootstrap=4,
        random_state=random_state,
    )
    same = table[(table["model"] == "same") & table["difference"].notna()]
    # That of a model with curves is the slope of the curves.
    same = same[same["metric"] != "calibration_slope"]
    ends = same[["difference", "difference_low", "difference_high"]]
    np.testing.assert_allclose(ends, 0.0, atol=1e-12)
    assert (same["p"] == 1.0).all()
    # Without curves the second model has no Brier score to compare.
    assert "integrated_brier_score" not in set(same["metric"])


def test_values_alone_without_bootstrap(models, train, held_out):
    table = compare(models, held_out.X, held_out.y, y_train=train.y, n_bootstrap=0)
    assert table[["low", "high", "difference_low", "p"]].isna().all(axis=None)
    assert table.loc[table["model"] == "DRO", "difference"].notna().all()


def test_bad_input_is_named(models, train, held_out):
    with pytest.raises(ValueError, match="models is empty"):
        compare({}, held_out.X, held_out.y, y_train=train.y)
    with pytest.raises(ValueError, match=r"models\['short'\] has 1 scores for the 240 patients"):
        compare({**models, "short": [1.0]}, held_out.X, held_out.y, y_train=train.y, n_bootstrap=0)


def test_groups_without_a_value_are_named_with_the_model_and_left_out_of_the_worst(models, train, held_out):
    site = held_out.sensitive_features["site"].to_numpy(dtype=object).copy()
    site[np.flatnonzero(~held_out.y["event"])[:3]] = "lonely"
    with pytest.warns(UndefinedMetricWarning, match="Cox: concordance_index of site lonely.*; DRO: "):
        table = compare(
            models,
            held_out.X,
            held_out.y,
            y_train=train.y,
            sensitive_features={"site": site},
            n_bootstrap=0,
        )
    assert cell(table, "Cox", "worst_group_concordance_index", "site")["group"] == "b"


def test_a_handful_of_patients_is_not_named_as_the_worst_served(model, train, held_out):
    """As an evaluation's sentences, a comparison names only groups that are large enough."""
    dead = np.flatnonzero(held_out.y["event"])[:5]
    risk = model.predict(held_out.X)
    # Five patients whom the scores put in nearly the opposite order.
    risk[dead[np.argsort(held_out.y["time"][dead])]] = [0.1, 0.0, 0.2, 0.3, 0.4]
    site = held_out.sensitive_features["site"].to_numpy(dtype=object).copy()
    site[dead] = "tiny"
    given = {"y_train": train.y, "sensitive_features": {"site": site}, "n_bootstrap": 0}
    table = compare({"Cox": risk}, held_out.X, held_out.y, **given)
    assert cell(table, "Cox", "worst_group_concordance_index", "site")["group"] == "b"


def test_survival_curves_alone_are_compared_without_a_reference(model, train, held_out):
    at = np.array([5.0, 10.0, 20.0])
    curves = model.predict_survival_function(held_out.X, times=at)
    models = {"curves": Predictions(survival=curves, times=at), "Cox": model}
    table = compare(models, held_out.X, held_out.y, y_train=train.y, n_bootstrap=0)
    known = table[table["model"] == "curves"]["metric"].tolist()
    assert "integrated_brier_score" in known
    ranked = table[table["metric"] == "concordance_index"]["value"]
    assert len(ranked) == 2
    assert ranked.iloc[0] == pytest.approx(ranked.iloc[1])
    assert "share_of_gain" not in table["metric"].tolist()


def test_a_wrong_level_is_refused_before_any_work(held_out):
    class Untouched:
        def predict(self, X):
            raise AssertionError

    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 95"):
        compare({"a": Untouched()}, held_out.X, held_out.y, y_train=held_out.y, level=95)


def at_three_times():
    rng = np.random.default_rng(4)
    hazard = 0.2 * np.exp(0.5 * rng.normal(size=300))
    died, left = rng.exponential(1 / hazard), rng.uniform(2, 9, 300)
    y = Surv.from_arrays(died <= left, np.minimum(died, left))
    return y, np.exp(-np.outer(hazard, [1.0, 3.0, 5.0]))


def test_predictions_at_different_few_times_are_compared_at_their_common_times():
    y, S = at_three_times()
    with pytest.warns(UserWarning, match=r"compared at their common times, 1, 3\."):
        table = compare({"a": ([1, 3, 5], S), "b": ([1, 3], S[:, :2])}, None, y, n_bootstrap=20)
    other = table[table["model"] == "b"]
    assert (other["difference"].dropna() == 0).all()
    assert len(other["difference"].dropna()) > 5
    alone = evaluate(([1, 3], S[:, :2]), None, y, n_bootstrap=0)
    for metric in ("integrated_brier_score", "likelihood_gain"):
        assert cell(table, "a", metric)["value"] == pytest.approx(alone.value(metric))
    with pytest.raises(ArgumentError, match="no time in common"):
        compare({"a": ([1, 5], S[:, [0, 2]]), "b": ([3], S[:, [1]])}, None, y, n_bootstrap=0)


def test_a_reference_at_other_few_times_is_compared_at_the_common_times():
    y, S = at_three_times()
    found = evaluate(([1, 3, 5], S), None, y, reference=([1, 3], S[:, :2]), n_bootstrap=0)
    assert found.groups["gain_over_reference"].iloc[0] == 0
    assert any("common times, 1, 3." in note for note in found.notes)
    with pytest.raises(ArgumentError, match="no time in common"):
        evaluate(([1, 5], S[:, [0, 2]]), None, y, reference=([3], S[:, [1]]), n_bootstrap=0)
