import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame
from sklearn.exceptions import UndefinedMetricWarning

from drosurv import Surv
from drosurv.evaluation import Predictions, SmallGroupWarning, SurvivalMetricFrame
from drosurv.metrics import concordance_index, log_partial_likelihood

TWO = {"c": concordance_index, "lpl": log_partial_likelihood}
SMALL = {"min_group": 1, "min_events": 0}

pytestmark = pytest.mark.filterwarnings("ignore:SurvivalMetricFrame will be removed:DeprecationWarning")


@pytest.fixture(scope="module")
def features(held_out):
    rng = np.random.default_rng(5)
    site, sex = (held_out.sensitive_features[name].to_numpy(dtype=object) for name in ("site", "sex"))
    ward = rng.choice(["east", "west"], len(site))
    return pd.DataFrame({"site": site, "sex": sex, "ward": ward})


def both(model, held_out, **options):
    """Ours and fairlearn's of the same metrics."""
    risk = model.predict(held_out.X)
    theirs = {key: value for key, value in options.items() if key not in SMALL}
    return (
        SurvivalMetricFrame(y=held_out.y, risk=risk, **{**SMALL, **options}),
        MetricFrame(y_true=held_out.y, y_pred=risk, **theirs),
    )


def assert_same(ours, theirs):
    if isinstance(theirs, pd.DataFrame):
        pd.testing.assert_frame_equal(
            ours.sort_index(), theirs.astype(float).sort_index(), check_index_type=False, check_dtype=False
        )
    elif isinstance(theirs, pd.Series):
        pd.testing.assert_series_equal(
            ours.sort_index(),
            theirs.astype(float).sort_index(),
            check_index_type=False,
            check_names=False,
            check_dtype=False,
        )
    else:
        assert ours == pytest.approx(theirs)


@pytest.mark.parametrize("metrics", [concordance_index, TWO], ids=["one", "two"])
@pytest.mark.parametrize("sensitive", [["site"], ["site", "sex"]], ids=["one group", "intersections"])
@pytest.mark.parametrize("control", [None, ["ward"], ["ward", "sex"]], ids=["", "control", "controls"])
def test_every_number_is_fairlearns(model, held_out, features, metrics, sensitive, control):
    if control and set(control) & set(sensitive):
        sensitive = ["site"]
    ours, theirs = both(
        model,
        held_out,
        metrics=metrics,
        sensitive_features=features[sensitive],
        control_features=None if control is None else features[control],
    )
    assert ours.sensitive_levels == theirs.sensitive_levels
    assert ours.control_levels == theirs.control_levels
    assert_same(ours.overall, theirs.overall)
    assert_same(ours.by_group, theirs.by_group)
    assert_same(ours.group_min(), theirs.group_min())
    assert_same(ours.group_max(), theirs.group_max())
    for method in ("between_groups", "to_overall"):
        assert_same(ours.difference(method), theirs.difference(method=method))
        if not (control and method == "to_overall"):
            assert_same(ours.ratio(method), theirs.ratio(method=method))


def test_the_ratio_to_overall_is_taken_inside_each_level_of_the_controls(model, held_out, features):
    frame, _ = both(
        model,
        held_out,
        metrics=concordance_index,
        sensitive_features=features[["site"]],
        control_features=features[["ward"]],
    )
    risk = model.predict(held_out.X)
    for ward in ("east", "west"):
        inside = (features["ward"] == ward).to_numpy()
        overall = concordance_index(held_out.y[inside], risk[inside])
        ratios = []
        for site in ("a", "b"):
            rows = inside & (features["site"] == site).to_numpy()
            ratio = concordance_index(held_out.y[rows], risk[rows]) / overall
            ratios.append(min(ratio, 1 / ratio))
        assert frame.ratio("to_overall")[ward] == pytest.approx(min(ratios))


def test_sample_params_are_sliced_with_the_patients(model, held_out, features):
    weight = np.random.default_rng(0).integers(0, 3, len(held_out.y))
    for metrics, params in (
        (concordance_index, {"sample_weight": weight}),
        (TWO, {"c": {"sample_weight": weight}}),
    ):
        ours, theirs = both(
            model, held_out, metrics=metrics, sensitive_features=features["site"], sample_params=params
        )
        assert_same(ours.by_group, theirs.by_group)


def test_counts_say_how_many_stand_behind_each_group(model, held_out, features):
    frame, _ = both(model, held_out, metrics=concordance_index, sensitive_features=features[["site", "sex"]])
    inside = ((features["site"] == "a") & (features["sex"] == "f")).to_numpy()
    row = frame.counts.loc[("a", "f")]
    assert row["n"] == inside.sum()
    assert row["events"] == held_out.y["event"][inside].sum()
    assert row["censoring"] == pytest.approx(1 - held_out.y["event"][inside].mean())


def test_named_metrics_are_those_of_evaluate(model, train, held_out):
    from drosurv.evaluation import evaluate

    times = model.unique_times_
    said = Predictions(
        model.predict(held_out.X), model.predict_survival_function(held_out.X, times=times), times
    )
    names = ["concordance_index", "brier_skill", "likelihood_gain", "dynamic_auc"]
    frame = SurvivalMetricFrame(
        metrics=names,
        y=held_out.y,
        risk=said,
        y_train=train.y,
        sensitive_features=held_out.sensitive_features["site"],
    )
    result = evaluate(
        model,
        held_out.X,
        held_out.y,
        y_train=train.y,
        sensitive_features=held_out.sensitive_features,
        n_bootstrap=0,
    )
    for name in names:
        assert frame.overall[name] == pytest.approx(result.value(name))
        assert frame.difference()[name] == pytest.approx(result.value(name, "site"))
        assert frame.by_group.loc["b", name] == pytest.approx(result.value(name, "site", "b"))


def test_combinations_that_hold_nobody_are_nan_and_missing_labels_are_a_group(model, held_out):
    sex = np.array(["f", "m"])[np.arange(len(held_out.y)) % 2].astype(object)
    site = np.where(sex == "f", "north", "south").astype(object)
    site[:20] = None
    frame = SurvivalMetricFrame(
        metrics=concordance_index,
        y=held_out.y,
        risk=model.predict(held_out.X),
        sensitive_features=pd.DataFrame({"sex": sex, "site": site}),
        **SMALL,
    )
    assert np.isnan(frame.by_group["f", "south"])
    assert np.isfinite(frame.by_group["f", "missing"])
    assert frame.counts.loc[("f", "south"), "n"] == 0
    dropped = SurvivalMetricFrame(
        metrics=concordance_index,
        y=held_out.y,
        risk=model.predict(held_out.X),
        sensitive_features=site,
        missing="drop",
        **SMALL,
    )
    assert dropped.overall == pytest.approx(
        concordance_index(held_out.y[20:], model.predict(held_out.X)[20:])
    )


def test_groups_without_pairs_are_named_and_do_not_stop_the_others(model, held_out):
    site = held_out.sensitive_features["site"].to_numpy(dtype=object).copy()
    site[0] = "x"
    with pytest.warns(UndefinedMetricWarning, match="concordance_index of x"):
        frame = SurvivalMetricFrame(
            metrics=concordance_index,
            y=held_out.y,
            risk=model.predict(held_out.X),
            sensitive_features=site,
            **SMALL,
        )
    assert np.isnan(frame.by_group["x"])
    assert np.isfinite(frame.difference())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_a_gap_needs_two_groups_with_a_value(model, held_out):
    site = np.array(["x"] + ["a"] * (len(held_out.y) - 1))
    one = SurvivalMetricFrame(
        metrics=concordance_index,
        y=held_out.y,
        risk=model.predict(held_out.X),
        sensitive_features=site,
        **SMALL,
    )
    assert np.isnan([one.difference(), one.ratio()]).all()
    several = SurvivalMetricFrame(
        metrics=TWO,
        y=held_out.y,
        risk=model.predict(held_out.X),
        sensitive_features=site,
        control_features={"half": np.arange(len(site)) % 2},
        **SMALL,
    )
    assert several.difference()["c"].isna().all()


def test_small_groups_are_warned_of(model, held_out):
    with pytest.warns(SmallGroupWarning, match="sensitive_feature few: 5 patients"):
        SurvivalMetricFrame(
            metrics=concordance_index,
            y=held_out.y,
            risk=model.predict(held_out.X),
            sensitive_features=np.where(np.arange(len(held_out.y)) < 5, "few", "many"),
            min_events=0,
        )
    # Inside the levels of control features, it is told which level is whose.
    row = np.arange(len(held_out.y))
    with pytest.warns(SmallGroupWarning, match="ward A & site few: 3 patients"):
        SurvivalMetricFrame(
            metrics=concordance_index,
            y=held_out.y,
            risk=model.predict(held_out.X),
            sensitive_features={"site": np.where((row < 5) | (row % 2 > 0), "few", "many")},
            control_features={"ward": np.where(row % 2 > 0, "B", "A")},
            min_events=0,
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metrics": 3}, "a metric must be a callable"),
        ({"metrics": {}}, "at least one metric"),
        ({"metrics": "concordance_index"}, "y_train is needed for metrics given by name"),
        ({"sensitive_features": None}, "sensitive_features must be given"),
        ({"sensitive_features": ["a"] * 240}, "at least 2 groups"),
        ({"control_features": {"sensitive_feature": ["u"] * 240}}, "share a name"),
        ({"risk": [1.0]}, "risk has 1 scores"),
        ({"sample_params": {"sample_weight": [1.0]}}, "'sample_weight' has 1 entries for 240 patients"),
        (
            {"metrics": TWO, "sample_params": {"sample_weight": [1.0]}},
            r"names \['sample_weight'\], which are no",
        ),
        ({"metrics": "brier_skill", "sample_params": {"sample_weight": [1.0]}}, "only those take any"),
    ],
)
def test_bad_input_is_named(model, held_out, changes, message):
    options = {
        "metrics": concordance_index,
        "y": held_out.y,
        "risk": model.predict(held_out.X),
        "sensitive_features": held_out.sensitive_features["site"].to_numpy(),
        **SMALL,
    }
    with pytest.raises(ValueError, match=message):
        SurvivalMetricFrame(**{**options, **changes})


def test_names_that_groups_cannot_have_are_refused(model, train, held_out):
    for name in ("log_partial_likelihood", "brier_skill", "nonsense"):
        with pytest.raises(ValueError, match=f"metric '{name}' is not one"):
            SurvivalMetricFrame(
                metrics=name,
                y=held_out.y,
                risk=model.predict(held_out.X),
                y_train=train.y,
                sensitive_features=held_out.sensitive_features["site"],
            )


def test_a_comparison_must_be_known(model, held_out, features):
    frame, _ = both(model, held_out, metrics=concordance_index, sensitive_features=features["site"])
    for compare in (frame.difference, frame.ratio):
        with pytest.raises(ValueError, match="method must be"):
            compare("to_mean")


def test_the_warning_names_the_replacement():
    y = Surv.from_arrays([True] * 4, [1.0, 2.0, 3.0, 4.0])
    with pytest.warns(DeprecationWarning, match=r"use drosurv\.evaluate"):
        SurvivalMetricFrame(
            metrics=concordance_index,
            y=y,
            risk=[4.0, 3.0, 2.0, 1.0],
            sensitive_features=["a", "a", "b", "b"],
            min_group=0,
            min_events=0,
        )
