import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.exceptions import UndefinedMetricWarning

from drosurv import Surv, evaluate
from drosurv.errors import ArgumentError
from drosurv.estimators import CauseSpecificCox, DROCox
from drosurv.evaluation import Predictions, compare
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.metrics.concordance import concordance_estimate
from drosurv.patients.target import with_fields


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
        metrics=list(CATALOGUE),
    )


def cell(table, model, metric, attribute="overall"):
    rows = table[(table["model"] == model) & (table["metric"] == metric) & (table["attribute"] == attribute)]
    assert len(rows) == 1
    return rows.iloc[0]


def test_values_are_those_of_evaluate(table, models, evaluated):
    for name, model in models.items():
        result = evaluated(model, reference=models["Cox"], paper=True)
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


@pytest.mark.parametrize("by", [None, "clusters"])
def test_intervals_of_gain_and_slope_are_those_of_evaluate(models, train, held_out, by):
    how = {"y_train": train.y, "sensitive_features": held_out.sensitive_features}
    y = held_out.y if by is None else with_fields(held_out.y, clusters=np.arange(240) // 3)
    table = compare(models, held_out.X, y, **how)
    ends = ["value", "low", "high", "adjusted"]
    for name, model in models.items():
        assert not cell(table, name, "concordance_index")["adjusted"]
        found = evaluate(model, held_out.X, y, **how).table.set_index(["attribute", "group", "metric"])
        for metric in ("likelihood_gain", "calibration_slope"):
            row = cell(table, name, metric)
            np.testing.assert_allclose(
                row[ends].astype(float), found.loc["overall", "all", metric][ends].astype(float)
            )
        lowest = cell(table, name, "worst_group_likelihood_gain", "site")
        of_group = found.loc["site", lowest["group"], "likelihood_gain"]
        np.testing.assert_allclose(lowest[ends].astype(float), of_group[ends].astype(float))


def test_a_difference_has_the_difference_of_influences(table, models, held_out):
    target = held_out.target
    one, other = (concordance_estimate(target, models[name].predict(held_out.X)) for name in ("DRO", "Cox"))
    influence = one.influence - other.influence
    error = np.sqrt((influence**2).sum() * 240 / 239)
    row, freedom = cell(table, "DRO", "concordance_index"), held_out.y["event"].sum() - 1
    assert row["difference"] == pytest.approx(one.value - other.value)
    assert row["p"] == pytest.approx(2 * student.sf(abs(row["difference"]) / error, freedom))
    reach = student.ppf(0.975, freedom) * error
    assert row["difference_high"] - row["difference"] == pytest.approx(reach)
    assert row["difference"] - row["difference_low"] == pytest.approx(reach)
    worst = cell(table, "DRO", "worst_group_concordance_index", "site")
    assert worst["difference"] == pytest.approx(
        worst["value"] - cell(table, "Cox", "worst_group_concordance_index", "site")["value"]
    )
    assert worst["difference_low"] < worst["difference"] < worst["difference_high"]


def test_differences_of_several_models_are_adjusted_for_each_other(models, train, held_out, table):
    more = {**models, "marker": held_out.X[:, 1]}
    found = compare(more, held_out.X, held_out.y, y_train=train.y, metrics=["concordance_index"])
    alone, among = cell(table, "DRO", "concordance_index"), cell(found, "DRO", "concordance_index")
    assert alone["p"] < among["p"] <= min(2 * alone["p"], 1) * 1.01
    assert among["difference_low"] < alone["difference_low"]
    assert among["difference"] == pytest.approx(alone["difference"])


def test_the_first_model_is_compared_with_nothing(table):
    first = table[table["model"] == "Cox"]
    assert first[["difference", "difference_low", "difference_high", "p"]].isna().all(axis=None)
    numbers = {name for name, metric in CATALOGUE.items() if metric.is_papers or metric.p_value}
    numbers |= {"integrated_calibration_index"}
    others = table[(table["model"] == "DRO") & ~table["metric"].isin(numbers)]
    assert others[["difference", "low", "high", "p"]].notna().all(axis=None)


def test_metrics_of_the_papers_tables_are_left_out_unless_they_are_named(models, train, held_out):
    table = compare(models, held_out.X, held_out.y, y_train=train.y)
    assert not any(CATALOGUE[name].is_papers for name in table["metric"])


def test_a_model_does_not_differ_from_itself(model, train, held_out):
    table = compare(
        {"one": model, "same": Predictions(model.predict(held_out.X))},
        held_out.X,
        held_out.y,
        y_train=train.y,
    )
    same = table[(table["model"] == "same") & table["difference"].notna()]
    assert "calibration_slope" in set(same["metric"])
    np.testing.assert_allclose(same["difference"], 0.0, atol=1e-12)
    # What does not vary has no interval and no test.
    assert same[["difference_low", "difference_high", "p"]].isna().all(axis=None)
    # Without curves the second model has no Brier score to compare.
    assert "integrated_brier_score" not in set(same["metric"])


def test_groups_without_a_value_are_named_with_the_model_and_left_out_of_the_worst(models, train, held_out):
    site = held_out.sensitive_features["site"].to_numpy(dtype=object).copy()
    site[np.flatnonzero(~held_out.y["event"])[:3]] = "lonely"
    with pytest.warns(UndefinedMetricWarning, match="Cox: concordance_index of site lonely.*; DRO: "):
        table = compare(models, held_out.X, held_out.y, y_train=train.y, sensitive_features={"site": site})
    assert cell(table, "Cox", "worst_group_concordance_index", "site")["group"] == "b"


def test_a_handful_of_patients_is_not_named_as_the_worst_served(model, train, held_out):
    """As an evaluation's sentences, a comparison names only groups that are large enough."""
    dead = np.flatnonzero(held_out.y["event"])[:5]
    risk = model.predict(held_out.X)
    # Five patients whom the scores put in nearly the opposite order.
    risk[dead[np.argsort(held_out.y["time"][dead])]] = [0.1, 0.0, 0.2, 0.3, 0.4]
    site = held_out.sensitive_features["site"].to_numpy(dtype=object).copy()
    site[dead] = "tiny"
    given = {"y_train": train.y, "sensitive_features": {"site": site}}
    table = compare({"Cox": risk}, held_out.X, held_out.y, **given)
    assert cell(table, "Cox", "worst_group_concordance_index", "site")["group"] == "b"


def test_survival_curves_alone_are_compared_without_a_reference(model, train, held_out):
    at = np.array([5.0, 10.0, 20.0])
    curves = model.predict_survival_function(held_out.X, times=at)
    models = {"curves": Predictions(survival=curves, times=at), "Cox": model}
    with pytest.warns(UserWarning, match="Whole curves of [Cc]ox are compared"):
        table = compare(models, held_out.X, held_out.y, y_train=train.y)
    known = table[table["model"] == "curves"]["metric"].tolist()
    assert "integrated_brier_score" in known
    ranked = table[table["metric"] == "concordance_index"]["value"]
    assert len(ranked) == 2
    assert ranked.iloc[0] == pytest.approx(ranked.iloc[1])
    assert "share_of_gain" not in table["metric"].tolist()


def at_three_times():
    rng = np.random.default_rng(4)
    hazard = 0.2 * np.exp(0.5 * rng.normal(size=300))
    died, left = rng.exponential(1 / hazard), rng.uniform(2, 9, 300)
    y = Surv.from_arrays(died <= left, np.minimum(died, left))
    return y, np.exp(-np.outer(hazard, [1.0, 3.0, 5.0]))


def test_predictions_at_different_few_times_are_compared_at_their_common_times():
    y, S = at_three_times()
    with pytest.warns(UserWarning, match=r"compared at their common times, 1, 3\."):
        table = compare({"a": ([1, 3, 5], S), "b": ([1, 3], S[:, :2])}, None, y)
    other = table[table["model"] == "b"]
    assert (other["difference"].dropna() == 0).all()
    assert len(other["difference"].dropna()) > 5
    alone = evaluate(([1, 3], S[:, :2]), None, y)
    for metric in ("integrated_brier_score", "likelihood_gain"):
        assert cell(table, "a", metric)["value"] == pytest.approx(alone.value(metric))
    with pytest.raises(ArgumentError, match="no time in common"):
        compare({"a": ([1, 5], S[:, [0, 2]]), "b": ([3], S[:, [1]])}, None, y)


def test_a_reference_at_other_few_times_is_compared_at_the_common_times():
    y, S = at_three_times()
    found = evaluate(([1, 3, 5], S), None, y, reference=([1, 3], S[:, :2]))
    assert found.groups["gain_over_reference"].iloc[0] == 0
    assert any("common times, 1, 3." in note for note in found.notes)
    with pytest.raises(ArgumentError, match="no time in common"):
        evaluate(([1, 5], S[:, [0, 2]]), None, y, reference=([3], S[:, [1]]))


def log_score(F, times, time, event, inverse):
    """Mean log score of probabilities of an event by the times, patient by patient and interval by interval."""
    total, begins = 0.0, [0.0, *times[:-1]]
    for i in range(len(F)):
        before = 0.0
        for k, end in enumerate(times):
            if time[i] > begins[k]:
                p = (F[i, k] - before) / (1 - before)
                had = event[i] and time[i] <= end
                known = had or time[i] > end
                total += known * inverse(min(time[i], end)) * np.log(p if had else 1 - p)
            before = F[i, k]
    return total / len(F)


@pytest.mark.parametrize("censored", [False, True])
def test_curves_are_compared_with_predictions_at_few_times_at_these_times(censored):
    rng, n, times = np.random.default_rng(0), 800, [1.0, 3.0, 5.0]
    hazard = 0.15 * np.exp(0.7 * rng.normal(size=n))
    time, event, close = rng.exponential(1 / hazard), np.ones(n, bool), np.linspace(0.05, 12, 240)
    if censored:
        left = rng.uniform(2, 9, n)
        time, event = np.minimum(time, left), time <= left
    curves, few = (1 - np.exp(-np.outer(h, times)) for h in (hazard, 0.4 * np.sqrt(hazard)))
    models = {"curves": (close, np.exp(-np.outer(hazard, close))), "few": (times, 1 - few)}
    with pytest.warns(UserWarning, match=r"Whole curves of curves are compared at .*, 1, 3 and 5\."):
        table = compare(models, None, Surv.from_arrays(event, time))
    gone = np.sort(time[~event])
    hazards = np.array([1 / (time >= at).sum() for at in gone])

    def inverse(before):
        return np.exp(hazards[gone < before].sum())

    expected = log_score(few, times, time, event, inverse) - log_score(curves, times, time, event, inverse)
    # The weights of compare may depend on the predictions.
    found = cell(table, "few", "likelihood_gain")["difference"]
    assert found == pytest.approx(expected, abs=0.002 if censored else 1e-9)
    assert abs(expected) > 0.02


def test_curves_of_a_cause_are_compared_with_incidences_at_few_times_at_these_times():
    rng, n, times = np.random.default_rng(1), 1200, [1.0, 3.0, 5.0]
    x = rng.normal(size=(n, 1))
    first, second = rng.exponential(1 / (0.2 * np.exp(0.8 * x[:, 0]))), rng.exponential(10, n)
    y = Surv.competing(np.where(first < second, 1, 2), np.minimum(first, second))
    fitted, test = CauseSpecificCox().fit(x[:600], y[:600]), np.arange(600, n)
    event, time = first[test] < second[test], np.minimum(first, second)[test]
    curves = fitted.predict_cumulative_incidence(x[test], cause=1, times=times)
    few = np.tile([0.15, 0.35, 0.5], (len(test), 1)) + 0.02 * x[test]
    few = np.clip(few, 0.01, 0.99)
    models = {"few": Predictions(incidence={1: few}, times=times), "cox": fitted}
    with pytest.warns(UserWarning, match="Whole curves of [Cc]ox are compared"):
        table = compare(models, x[test], y[test], cause=1)
    # After an event of the other cause, patients are free of the first.
    free = np.where(event, time, np.inf)
    scores = [log_score(F, times, free, event, lambda _: 1.0) for F in (curves, few)]
    found = cell(table, "cox", "likelihood_gain")["difference"]
    assert found == pytest.approx(scores[0] - scores[1], abs=1e-9)
    assert found > 0.02


def test_curves_that_end_before_the_few_times_are_refused():
    y, S = at_three_times()
    hazard = -np.log(S[:, 0])
    close = np.linspace(0.01, 0.9, 90)
    with pytest.raises(ArgumentError, match="the curves of a end before the first common time"):
        compare({"a": (close, np.exp(-np.outer(hazard, close))), "b": ([1, 3, 5], S)}, None, y)


def test_rounded_predictions_are_scored_between_the_same_times_as_others():
    """With one decimal, probabilities by 1 and 5 differ visibly, not those by 3: others are not scored there either."""
    y, S = at_three_times()
    how = {"metrics": ["likelihood_gain"]}
    both = compare({"rounded": ([1, 3, 5], S.round(1)), "exact": ([1, 3, 5], S)}, None, y, **how)
    alone = compare({"exact": ([1, 5], S[:, [0, 2]])}, None, y, **how)
    found, expected = (cell(table, "exact", "likelihood_gain")["value"] for table in (both, alone))
    assert found == pytest.approx(expected, abs=1e-9)
