"""Data of which little can be said: values, or NaN with no interval, and no warning of arithmetic."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from drosurv import Surv, audit, certify, compare, evaluate, repair
from drosurv.evaluation import Predictions, SmallGroupWarning

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind.__module__}.{kind.__name__}")
    for kind in (SmallGroupWarning, UndefinedMetricWarning)
]


def cohort(n, *, scores=None, event=None, time=None, label=None, **fields):
    """Right predictions of hazards, with the fields of y."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n) if scores is None else np.asarray(scores, float)
    died, left = rng.exponential(np.exp(-x)), rng.uniform(0.5, 3, n)
    event = died <= left if event is None else np.asarray(event)
    time = np.minimum(died, left) if time is None else np.asarray(time, float)
    grid = np.linspace(0.01, 4, 400)
    given = Predictions(x, np.exp(-np.outer(np.exp(x), grid)), grid, curve_type="smooth")
    group = np.resize(["a", "b"], n) if label is None else np.asarray(label)
    return given, Surv.from_arrays(event, time, **fields), pd.DataFrame({"group": group})


ORDER = np.linspace(-1, 1, 40)
CASES = {
    "one patient": cohort(1, event=[True], time=[1.0], label=["a"]),
    "two patients": cohort(2, event=[True, False], time=[1.0, 2.0]),
    "two patients of one group": cohort(2, event=[True, True], time=[1.0, 2.0], label=["a", "a"]),
    "groups of one and two": cohort(60, label=["a"] + 2 * ["b"] + 57 * ["c"]),
    "no event": cohort(60, event=np.zeros(60, bool)),
    "no event in a group": cohort(60, event=np.arange(60) % 2 == 0),
    "one event": cohort(40, event=np.arange(40) == 3),
    "every pair in order": cohort(40, scores=ORDER, event=np.ones(40, bool), time=np.linspace(3, 0.5, 40)),
    "equal scores": cohort(40, scores=np.zeros(40)),
    "all weight on one row": cohort(40, weight=np.where(np.arange(40) == 0, 50.0, 0.0)),
    "one cluster": cohort(40, clusters=np.zeros(40, int)),
    "equal times": cohort(40, time=np.ones(40)),
}
#: Cases in which nothing varies by chance, as far as these patients tell.
WITHOUT_INTERVALS = ("one patient", "no event", "all weight on one row")


@pytest.mark.parametrize("case", CASES)
def test_there_is_a_value_or_nan_and_no_warning_of_arithmetic(case):
    given, y, groups = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for expected in (SmallGroupWarning, UndefinedMetricWarning):
            warnings.simplefilter("ignore", expected)
        found = evaluate(given, None, y, sensitive_features=groups, threshold=0.5)
        assert found.summary()
    table = found.to_frame()
    value, low, high = (table[name].to_numpy(float) for name in ("value", "low", "high"))
    # A number without a value has no interval, and an interval contains its value.
    assert np.isnan(low[np.isnan(value)]).all()
    known = ~np.isnan(low)
    assert (low[known] <= value[known] + 1e-12).all()
    assert (value[known] <= high[known] + 1e-12).all()
    assert not np.isinf(value).any()
    if case in WITHOUT_INTERVALS:
        whole = (table["metric"] == "concordance_index") & (table["attribute"] == "overall")
        assert table.loc[whole, "low"].isna().all()


def test_a_perfect_order_has_its_value_and_no_interval():
    given, y, groups = CASES["every pair in order"]
    table = evaluate(given, None, y, sensitive_features=groups).to_frame()
    row = table.query("metric == 'concordance_index' and attribute == 'overall'").iloc[0]
    assert row["value"] == 1
    assert np.isnan([row["low"], row["high"]]).all()


def test_equal_scores_rank_at_chance():
    given, y, groups = CASES["equal scores"]
    table = evaluate(given, None, y, sensitive_features=groups).to_frame()
    row = table.query("metric == 'concordance_index' and attribute == 'overall'").iloc[0]
    assert row["value"] == 0.5


@pytest.mark.parametrize(
    ("case", "field"),
    [
        *product(
            ["one patient", "every pair in order", "no event"], ["", "entry", "clusters", "causes", "weight"]
        ),
        ("one group", ""),
        ("two patients", ""),
        ("two patients", "clusters"),
    ],
)
def test_tables_and_curves_of_few_patients_hold_numbers_or_nan(case, field):
    """With entry, clusters, causes, or all weight on one row, too."""
    given, y, groups = CASES["equal times" if case == "one group" else case]
    n, event = len(y), y["event"]
    groups = groups.assign(group="a") if case == "one group" else groups
    fields = {
        "entry": {"entry": y["time"] / 2},
        "clusters": {"clusters": np.arange(n) // 2},
        "weight": {"weight": np.where(np.arange(n) == int(event.argmax()), 7.0, 0.0)},
    }.get(field, {})
    y, how = Surv.from_arrays(event, y["time"], **fields), {}
    if field == "causes":
        y, how = Surv.competing(np.where(event, 1 + np.arange(n) % 2, 0), y["time"]), {"cause": 1}
        hazard, times = np.exp(given.risk)[:, None], given.times
        any_event = -np.expm1(-(hazard + 0.5) * times)
        shares = {1: hazard / (hazard + 0.5), 2: 0.5 / (hazard + 0.5)}
        given = Predictions(
            incidence={cause: share * any_event for cause, share in shares.items()}, times=times
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for expected in (SmallGroupWarning, UndefinedMetricWarning):
            warnings.simplefilter("ignore", expected)
        found = evaluate(given, None, y, sensitive_features=groups, threshold=0.4, **how)
        tables = {
            "numbers": found.to_frame(),
            "decisions": found.decisions,
            "decision curves": found.decision_curves,
            "times": found.times.rename(columns={"observed": "value"}),
        }
        assert found.calibration_curves is not None
    for name, table in tables.items():
        number = "net_benefit" if name == "decision curves" else "value"
        value, low, high = (table[column].to_numpy(float) for column in (number, "low", "high"))
        assert not np.isinf([value, low, high]).any(), name
        assert np.isnan(low[np.isnan(value)]).all(), name
        known = ~np.isnan(low)
        assert (low[known] <= value[known] + 1e-12).all(), name
        assert (value[known] <= high[known] + 1e-12).all(), name


@pytest.mark.parametrize("case", ["one patient", "one event", "all weight on one row", "one cluster"])
def test_audits_and_comparisons_need_no_more_than_one_patient(case):
    """A column that does not vary between the patients who count has no subgroups."""
    given, y, groups = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for expected in (SmallGroupWarning, UndefinedMetricWarning):
            warnings.simplefilter("ignore", expected)
        report = audit(given, np.arange(len(y), dtype=float)[:, None], y, sensitive_features=groups)
        assert report.to_html()
        found = compare({"a": given, "b": given}, None, y, sensitive_features=groups)
    # Of a model and itself, no difference is above 0.
    values = found["difference"].to_numpy(float)
    assert (values[np.isfinite(values)] == 0).all()


RANKED, FEW = "scores alone", "few times"
FIELDS = {
    "entry": lambda n: {"entry": np.full(n, 0.005)},
    "clusters": lambda n: {"clusters": np.arange(n) // 4},
    "id": lambda n: {"id": np.arange(n) // 2},
}


def nobody(kind, n=120):
    """Return predictions, y and arguments of patients of whom nobody had an event."""
    given, y, groups = cohort(n, event=np.zeros(n, bool))
    how = {"sensitive_features": groups}
    if kind == RANKED:
        given = given.risk
    elif kind == FEW:
        given = ([0.4, 0.8], given.survival[:, [39, 79]])
    elif kind in FIELDS:
        y = Surv.from_arrays(y["event"], y["time"], **FIELDS[kind](n))
    elif kind == "weight":
        # The only event is of a patient who does not count.
        first = np.arange(n) == 0
        y = Surv.from_arrays(first, y["time"], weight=np.where(first, 0, 1))
    elif kind in ("causes", "another cause"):
        other = np.arange(n) % 3 == 0 if kind == "another cause" else np.zeros(n, bool)
        y = Surv.competing(2 * other, y["time"])
        own = 1 - given.survival
        given = Predictions(incidence={1: own / 2, 2: own / 2}, times=given.times)
        how["cause"] = 1
    return given, y, how


@pytest.mark.parametrize(
    "kind", ["", RANKED, FEW, "entry", "clusters", "id", "weight", "causes", "another cause"]
)
def test_without_an_event_there_are_values_and_no_intervals(kind):
    """Nothing is judged, and one note says why; an audit asks for the right coding."""
    given, y, how = nobody(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for expected in (SmallGroupWarning, UndefinedMetricWarning):
            warnings.simplefilter("ignore", expected)
        found = evaluate(given, None, y, **how)
        compared = compare({"a": given, "b": given}, None, y, **how)
        assert str(found)
        assert found.to_markdown()
        times = found.times
    table = found.to_frame()
    assert (table["events"] == 0).all()
    assert table[["low", "high", "p"]].isna().all(axis=None)
    assert table.query("metric == 'concordance_index'")["value"].isna().all()
    assert compared[["low", "high", "difference_low", "difference_high", "p"]].isna().all(axis=None)
    assert sum("no patient had an event" in note for note in found.notes) == 1
    assert set(found.findings["status"]) == {"too_few"}
    assert found.verdict.status in ("too_few", "unclear")
    assert "no patient had an event" in found.verdict.text
    assert "Check the coding" in found.verdict.steps[0]
    if kind != RANKED:
        with pytest.raises(ValueError, match="nothing to draw: no patient had an event"):
            found.plot()
        known = times[times["patients"] > 0]
        assert len(known)
        assert (known["observed"] == 0).all()
        assert (known["predicted"] > 0).all()
        assert known[["low", "high"]].isna().all(axis=None)
    with pytest.raises(ValueError, match=r"no event|no patient had an event"):
        audit(given, None, y, **how)


def test_the_brier_score_without_an_event_is_the_mean_squared_risk():
    """One patient is censored at the first time, and counts until then."""
    n = 60
    risk = np.linspace(0.1, 0.6, n)[:, None] * [0.5, 1.0]
    y = Surv.from_arrays(np.zeros(n, bool), np.where(np.arange(n) == 0, 1.0, 3.0))
    table = evaluate(([1.0, 2.0], 1 - risk), None, y).to_frame()
    value = table.query("metric == 'integrated_brier_score'")["value"].item()
    assert value == pytest.approx((np.mean(risk[:, 0] ** 2) + np.mean(risk[1:, 1] ** 2)) / 2)


@pytest.mark.parametrize("survival", ["zero", "zero or one", "one of two times"])
def test_certain_events_are_judged_and_repaired_without_a_warning_of_arithmetic(survival):
    n, rng = 120, np.random.default_rng(0)
    time, event = rng.weibull(1.3, n), rng.random(n) < 0.7
    times = np.linspace(0.06, 6, 100) if survival != "one of two times" else np.array([0.2, 0.5])
    certain = np.zeros(n) if survival == "zero" else (rng.random(n) < 0.5).astype(float)
    predicted = times, np.repeat(certain[:, None], len(times), axis=1)
    X, y = pd.DataFrame(rng.normal(size=(n, 2)), columns=["x", "z"]), Surv.from_arrays(event, time)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", SmallGroupWarning)
        assert audit(predicted, X, y).to_html()
        assert repair(predicted, X, y, frozen=True, max_conditions=1, folds=3).repairs_ is not None
        if survival != "zero or one":
            assert certify(predicted, X, y, n_bootstrap=59).summary()
