import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sksurv.linear_model import CoxPHSurvivalAnalysis

from drosurv.datasets import make_hidden_minority
from drosurv.estimators import CoxPH
from drosurv.metrics.likelihood_gain import likelihood_gains
from drosurv.repairs.findings import Estimate
from drosurv.repairs.worst_off import worst_off
from drosurv.target import Surv

mpl.use("Agg")


def audit(minority, n):
    train = make_hidden_minority(n, 6, minority=minority, random_state=0)
    test = make_hidden_minority(n, 6, minority=minority, random_state=1)
    model = CoxPHSurvivalAnalysis().fit(train.X, train.y)
    settings = {"y_train": train.y, "n_bootstraps": 4, "n_folds": 5, "max_conditions": 2}
    return worst_off(model, test.X, test.y, **settings), test, model, train


@pytest.fixture(scope="module")
def planted():
    return audit(0.15, 2000)


def test_a_planted_minority_is_found_and_its_harm_measured_on_others(planted):
    result, test, model, train = planted
    (group,) = result.groups
    assert [(c.column, c.comparison) for c in group.rule.conditions] == [("x5", ">")]
    inside = group.rule.holds(test.X)
    minority = (test.sensitive_features["membership"] == "minority").to_numpy()
    assert (inside & minority).sum() / (inside | minority).sum() > 0.8
    assert group.n_patients == inside.sum()
    assert group.n_events == test.y["event"][inside].sum()
    curves = model.predict_survival_function(test.X)
    harm = -likelihood_gains(train.y, test.y, curves)
    assert group.harm_found == pytest.approx(harm[inside].mean())
    assert group.harm.low < harm[minority].mean() < group.harm.high
    assert result.overall.value == pytest.approx(harm.mean())
    assert group.rest.value < 0 < group.harm.low
    assert group.difference.value == pytest.approx(group.harm.value - group.rest.value)


def test_where_nobody_is_harmed_the_status_says_so():
    result, *_ = audit(0.0, 1000)
    assert result.groups == ()
    assert result.status.startswith("No stable group of at least 50 patients")
    assert result.to_markdown().startswith("No stable group")
    assert list(result.to_frame().columns[:3]) == ["rule", "verdict", "patients"]


def test_a_rule_of_pure_chance_is_proposed_and_then_refused():
    rng = np.random.default_rng(0)
    data = make_hidden_minority(n_samples=600, n_features=6, random_state=0)
    options = {"n_bootstraps": 2, "n_folds": 5, "max_conditions": 2}
    reported = 0
    for _ in range(3):
        result = worst_off(None, data.X, data.y, harm=rng.normal(size=600), **options)
        assert result.findings, "noise always offers a rule on the patients it was found on"
        assert result.findings[0].harm_found > 0.1
        reported += len(result.groups)
    assert reported <= 1


def test_rules_use_the_categories_of_the_table():
    data = make_hidden_minority(n_samples=1500, random_state=0)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(30, 90, 1500),
            "sex": pd.Series(rng.choice(["female", "male"], 1500)),
            "stage": pd.Categorical(rng.choice(["I", "II", "III"], 1500)),
        }
    )
    harmed = (table["age"] > 65) & (table["sex"] == "female")
    harm = np.where(harmed, 0.5, -0.3) + rng.normal(size=1500) * 0.5
    result = worst_off(None, data.X, data.y, features=table, harm=harm, n_bootstraps=2, n_folds=5)
    (group,) = result.groups
    age, sex = group.rule.conditions
    assert (age.column, age.comparison) == ("age", ">")
    assert abs(age.value - 65) <= 2
    assert str(sex) == "sex is female"
    assert str(group.rule) in result.to_markdown()


def test_a_patient_who_meets_several_rules_counts_under_the_first():
    data = make_hidden_minority(n_samples=1200, n_features=5, random_state=0)
    noise = np.random.default_rng(0).normal(size=1200)
    harm = np.where(data.X["x5"].abs() > 1, 0.6, -0.3) + 0.5 * noise
    result = worst_off(None, data.X, data.y, harm=harm, n_bootstraps=4, n_folds=5, max_conditions=1)
    assert len(result.groups) == 2
    assert sum(finding.n_patients for finding in result.findings) <= 1200
    counted = np.zeros(1200, dtype=bool)
    for finding in result.findings:
        inside = finding.rule.holds(data.X) & ~counted
        assert finding.n_patients == inside.sum()
        counted |= inside


def test_table_and_figure_show_every_rule_tried(planted):
    result, *_ = planted
    frame = result.to_frame()
    assert len(frame) == len(result.findings)
    assert (frame["harm_low"] < frame["harm"]).all()
    ax = result.plot()
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[-1] == "all patients"
    assert set(labels[:-1]) == set(frame["rule"])
    mpl.pyplot.close("all")


def test_intervals_are_student_and_welch():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=30), rng.normal(1, 2, size=50)
    mean = Estimate.mean(first, 0.9)
    expected = stats.ttest_1samp(first, 0).confidence_interval(0.9)
    assert (mean.low, mean.high) == pytest.approx((expected.low, expected.high))
    difference = Estimate.difference(first, second, 0.9)
    assert difference.value == pytest.approx(first.mean() - second.mean())
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.9)
    assert (difference.low, difference.high) == pytest.approx((expected.low, expected.high))
    assert np.isnan(Estimate.mean(first[:1], 0.9).value)
    assert np.isnan(Estimate.difference(first[:1], second, 0.9).value)


@pytest.mark.parametrize("scale", [1.0, 1e-100])
def test_patients_with_the_same_harm_have_an_interval_of_no_width(scale):
    first, second = np.full(30, 0.4 * scale), np.full(40, -0.5 * scale)
    found = Estimate.difference(first, second, 0.9)
    assert (found.low, found.value, found.high) == pytest.approx((0.9 * scale,) * 3)
    spread = Estimate.difference(first, second * np.linspace(0, 2, 40), 0.9)
    assert spread.low < spread.value < spread.high


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.5}, "confidence must lie"),
        ({"confidence": 0.4}, "confidence must lie"),
        ({"min_group": "x"}, "min_group must be a whole number, at least 1, got 'x'"),
        ({"min_stability": "x"}, r"min_stability must be a share in \[0, 1\], got 'x'"),
        ({"min_group": 500}, "cannot hold two groups of min_group=500"),
        ({"n_folds": 1}, "n_folds >= 2"),
        ({"harm": np.zeros(3)}, r"harm must have one value per row, shape \(400,\)"),
        ({"features": pd.DataFrame({"a": [1.0]})}, "1 rows, but y has 400"),
        ({"features": pd.DataFrame(np.zeros((400, 2)), columns=["a", "a"])}, "occur more than once"),
        ({"harm": None}, "fitted survival model"),
    ],
)
def test_bad_questions_are_refused(options, message):
    data = make_hidden_minority(n_samples=400, random_state=0)
    with pytest.raises(ValueError, match=message):
        worst_off(None, data.X, data.y, **({"harm": np.zeros(400)} | options))


def test_each_end_of_an_interval_holds_with_the_confidence_shared_over_the_rules():
    data = make_hidden_minority(n_samples=800, random_state=0)
    table = pd.DataFrame({"p": np.arange(800) % 4 == 0, "q": np.arange(800) % 4 == 1})
    harm = np.select([table["p"], table["q"]], [0.9, 0.5], -0.4) + 0.3 * np.random.default_rng(0).normal(
        size=800
    )
    for rules, level in ((1, 0.9), (2, 0.95)):
        result = worst_off(None, data.X, data.y, features=table, harm=harm, max_rules=rules, n_bootstraps=0)
        assert len(result.findings) == rules
        for finding in result.findings:
            (condition,) = finding.rule.conditions
            expected = stats.ttest_1samp(harm[table[condition.column]], 0).confidence_interval(level)
            assert (finding.harm.low, finding.harm.high) == pytest.approx((expected.low, expected.high))


def test_the_verdict_is_what_the_interval_says():
    data = make_hidden_minority(n_samples=1200, n_features=6, random_state=0)
    rng = np.random.default_rng(4)
    options = {"n_bootstraps": 2, "n_folds": 5, "max_conditions": 1}
    verdicts = set()
    for effect in (0.0, 0.25, 0.8):
        harm = np.where(data.X["x5"] > 0.8, effect, -0.2) + rng.normal(size=1200)
        for finding in worst_off(None, data.X, data.y, harm=harm, **options).findings:
            if finding.n_checked >= 20:
                assert finding.harmed == (finding.harm.low > 0)
                verdicts.add(finding.harmed)
    assert verdicts == {True, False}


def test_a_model_of_this_library_brings_the_null_model_of_its_training_patients():
    train, test = make_hidden_minority(600, random_state=0), make_hidden_minority(600, random_state=1)
    model = CoxPH().fit(train.X, train.y)
    options = {"n_bootstraps": 2, "n_folds": 2, "max_conditions": 1, "max_rules": 1}
    by_default = worst_off(model, test.X, test.y, **options)
    assert by_default.overall == worst_off(model, test.X, test.y, y_train=train.y, **options).overall
    assert by_default.overall != worst_off(model, test.X, test.y, y_train=test.y, **options).overall


def test_hostile_names_keep_the_table_and_the_figure_whole(tmp_path):
    data = make_hidden_minority(n_samples=800, random_state=0)
    name = r"a|b <script> $\frac$ *x*"
    table = pd.DataFrame({name: data.X["x5"]})
    harm = np.where(data.X["x5"] > 0, 0.5, -0.5) + 0.1 * np.random.default_rng(0).normal(size=800)
    result = worst_off(None, data.X, data.y, features=table, harm=harm, n_bootstraps=2)
    assert result.groups
    (row,) = [line for line in result.to_markdown().splitlines() if line.startswith(r"| a\|b \<script>")]
    assert row.replace(r"\|", "").count("|") == 9
    result.plot().figure.savefig(tmp_path / "rules.png")
    mpl.pyplot.close("all")


def test_a_right_model_with_coarse_times_has_no_significant_subgroup():
    """Events between the few times of a file once cost the floor, wherever they were."""
    rng = np.random.default_rng(0)
    n = 600
    x = rng.normal(size=(2, n, 2))
    time = rng.exponential(size=(2, n)) / np.exp(x[..., 0])
    end = rng.uniform(0.5, 3, (2, n))
    train, test = (Surv.from_arrays(time[k] <= end[k], np.minimum(time[k], end[k])) for k in range(2))
    grid = np.linspace(0.25, 3, 12)
    survival = np.exp(-grid * np.exp(x[1, :, :1]))
    found = worst_off((grid, survival), x[1], test, y_train=train, n_bootstraps=5)
    assert found.overall.value < 0
    assert not found.groups


def shifted(level, n=1500, seed=0):
    """Patients of whom a model of x1 is right, but that those with x2 > 0.8 have exp(level) times the hazard."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["x1", "x2", "x3", "x4"])
    risk = X["x1"]
    time = rng.exponential(size=n) / np.exp(risk + level * (X["x2"] > 0.8))
    end = 1.5 * rng.exponential(size=n)
    times = np.linspace(0.05, 6, 120)
    survival = np.exp(-np.outer(np.exp(risk), times))
    return (times, survival), X, Surv.from_arrays(time <= end, np.minimum(time, end))


@pytest.mark.parametrize("kind", ["level", "effects"])
def test_a_group_with_more_events_than_expected_is_found_though_no_model_would_be_worse(kind):
    model, X, y = shifted(0.6, n=2000)
    options = {"n_folds": 5, "n_bootstraps": 2, "max_conditions": 1}
    result = worst_off(model, X, y, kind=kind, **options)
    group = result.groups[0]
    assert group.rule.conditions[0].column == "x2"
    inside = group.rule.holds(X)
    ratio = group.observed_expected
    assert ratio.low < np.exp(0.6) < ratio.high
    assert group.n_checked == pytest.approx(inside.sum(), rel=0.1)
    # What correcting a level by rho gains: E (rho log rho - rho + 1), less what learning it costs.
    expected = y["event"][inside].sum() / ratio.value
    most = expected * (ratio.value * np.log(ratio.value) - ratio.value + 1) / inside.sum()
    assert 0.6 * most < group.harm.value < 1.3 * most
    assert group.rest.value == 0
    assert "times as many events as expected" in result.status
    assert {"observed_expected", "observed_expected_high"} <= set(result.to_frame().columns)
    if kind == "level":
        assert worst_off(model, X, y, kind="harm", **options).groups == ()


def test_effects_that_differ_are_seen_where_the_level_is_right():
    data = make_hidden_minority(n_samples=1200, n_features=6, minority=0.25, random_state=0)
    train = make_hidden_minority(n_samples=1200, n_features=6, minority=0.25, random_state=1)
    model = CoxPH().fit(train.X, train.y)
    found = worst_off(model, data.X, data.y, kind="effects", n_folds=5, n_bootstraps=2, max_conditions=1)
    assert str(found.groups[0].rule).startswith("x5 > 0.")
    assert found.groups[0].harm.low > 0.05


@pytest.mark.parametrize("kind", ["level", "effects"])
def test_a_right_model_has_no_wrong_group(kind):
    found = [
        worst_off(*shifted(0.0, n=600, seed=seed), kind=kind, n_folds=5, n_bootstraps=2, max_conditions=2)
        for seed in range(2)
    ]
    assert [result.groups for result in found] == [()] * 2
    assert found[0].status.startswith("No stable group of at least 50 patients has")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_rules": 0}, "max_rules must be a whole number, at least 1"),
        ({"max_conditions": 1.5}, "max_conditions must be a whole number, at least 1"),
        ({"n_folds": 3.5}, "n_folds must be a whole number"),
        ({"n_bootstraps": -1}, "n_bootstraps must be a whole number, at least 0"),
        ({"features": pd.DataFrame(index=range(400))}, "features must have columns that rules can use"),
    ],
)
def test_questions_without_an_answer_are_refused(options, message):
    _, X, y = shifted(0.0, n=400)
    with pytest.raises(ValueError, match=message):
        worst_off(None, X, y, harm=np.ones(400), **options)


def test_kinds_that_do_not_exist_or_need_a_model_are_refused():
    model, X, y = shifted(0.0, n=400)
    with pytest.raises(ValueError, match="kind must be one of"):
        worst_off(model, X, y, kind="worst")
    with pytest.raises(ValueError, match="harm must be left out"):
        worst_off(model, X, y, kind="level", harm=np.zeros(400))
    with pytest.raises(ValueError, match="NoneType has neither predict_survival_function nor"):
        worst_off(None, X, y, kind="level")


def test_groups_with_few_expected_events_are_not_judged():
    """60 patients with short follow-up and no event look badly served, but 10 events were not to be expected."""
    rng = np.random.default_rng(0)
    n = 600
    X = pd.DataFrame({"few": np.arange(n) < 60, "x": rng.normal(size=n)}).astype(float)
    time = np.where(X["few"] == 1, 0.05, rng.exponential(size=n))
    y = Surv.from_arrays((rng.random(n) < 0.7) & (X["few"] == 0), time)
    harm = np.where(X["few"] == 1, 1.0, -0.1) + 0.1 * rng.normal(size=n)
    found = worst_off(None, X, y, harm=harm, n_bootstraps=2, n_folds=3, min_group=20, max_conditions=1)
    assert all("few" not in str(finding.rule) for finding in found.findings)
    later = Surv.from_arrays(y["event"], np.where(X["few"] == 1, 2.0, time))
    found = worst_off(None, X, later, harm=harm, n_bootstraps=2, n_folds=3, min_group=20, max_conditions=1)
    assert str(found.groups[0].rule) == "few is 1"
