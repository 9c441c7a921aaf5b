"""Every metric of a handful of awkward patients against its definition, written as loops over patients and pairs."""

from math import nan

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from scipy.stats import chi2

from drosurv import paper
from drosurv.evaluation import Predictions, evaluate
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.metrics import FollowUp
from drosurv.metrics.follow_up import auc_times, brier_times
from drosurv.patients.target import Surv, parse_target


def kaplan_meier(time, event):
    """Share free of the event after each time."""
    curve, share = {}, 1.0
    for t in sorted(set(time)):
        share *= 1 - event[time == t].sum() / (time >= t).sum()
        curve[t] = share
    return curve


def uncensored(time, event):
    """Share under observation after each time; at equal times events come first."""
    curve, share = {}, 1.0
    for t in sorted(set(time)):
        left = ((time == t) & ~event).sum()
        if left:
            share *= 1 - left / ((time >= t).sum() - event[time == t].sum())
        curve[t] = share
    return curve


def after(curve, t):
    return curve[max(known)] if (known := [u for u in curve if u <= t]) else 1.0


def before(curve, t):
    return curve[max(known)] if (known := [u for u in curve if u < t]) else 1.0


class Training:
    """What is known of censoring, and of patients without a model."""

    def __init__(self, time, event):
        self.survival, self.observed = kaplan_meier(time, event), uncensored(time, event)
        self.last = max(time)
        self.end = min([t for t, share in self.observed.items() if share == 0] or [self.last])

    def weight(self, t, event):
        # The share under observation just before the event; nothing is known after the end.
        known = event and before(self.observed, t) > 0 and t <= self.last
        return 1 / before(self.observed, t) if known else 0.0


def points(a, b):
    return 0.5 if abs(a - b) <= 1e-8 else float(a > b)


def concordance(time, event, risk, weight=None):
    right = pairs = 0.0
    for i in np.flatnonzero(event):
        for j in np.flatnonzero((time > time[i]) | ((time == time[i]) & ~event)):
            own = 1.0 if weight is None else weight[i]
            right, pairs = right + own * points(risk[i], risk[j]), pairs + own
    return right / pairs if pairs > 0 else nan


def uno(training, time, event, risk, until):
    # No event where all who are left are censored has a weight.
    weight = [
        training.weight(t, e and t <= until and after(training.observed, t) > 0) ** 2
        for t, e in zip(time, event, strict=True)
    ]
    return concordance(time, event, risk, weight)


def dynamic_auc(training, time, event, risk, grid):
    def free_of_event(t):
        """A patient who is censored at t has had no event by t."""
        return (time > t) | ((time == t) & ~event)

    inside = [t for t in grid if event.any() and time[event].min() <= t and free_of_event(t).any()]
    event, time = event & (time <= training.end), np.minimum(time, training.end)
    survival = kaplan_meier(time, event)
    areas, steps, free = [], [], 1.0
    for t in inside:
        cases, controls = np.flatnonzero(event & (time <= t)), np.flatnonzero(free_of_event(t))
        weight = [training.weight(time[i], True) for i in cases]
        right = sum(
            w * points(risk[i], risk[j]) for w, i in zip(weight, cases, strict=True) for j in controls
        )
        below = sum(weight) * len(controls)
        areas.append(right / below if below else nan)
        steps.append(free - after(survival, t))
        free = after(survival, t)
    if len(areas) == 1:
        return areas[0]
    return sum(a * s for a, s in zip(areas, steps, strict=True) if s > 0) / sum(steps) if sum(steps) else nan


def brier(training, t, event, curve, grid):
    """One patient's squared error, averaged over time by the trapezoidal rule."""
    event, t = event and t <= training.end, min(t, training.end)
    errors = [
        training.weight(t, event) * curve(u) ** 2
        if t < u or (event and t == u)
        else (1 - curve(u)) ** 2 / before(training.observed, u)
        for u in grid
    ]
    return trapezoid(errors, grid) / (grid[-1] - grid[0])


def log_partial_likelihood(time, event, risk):
    total = 0.0
    for i in np.flatnonzero(event):
        total += risk[i] - np.logaddexp.reduce(risk[time >= time[i]])
    return total / event.sum()


def d_calibration(time, event, curves):
    bins = np.zeros(10)
    for t, happened, curve in zip(time, event, curves, strict=True):
        s = curve(t)
        if happened or s == 0:
            bins[min(int(10 * s), 9)] += 1
        else:
            bins += [max(0.0, min((k + 1) / 10, s) - k / 10) / s for k in range(10)]
    expected = len(time) / 10
    return chi2.sf(((bins - expected) ** 2 / expected).sum(), 9)


def spread(values):
    """Largest difference between groups that have a value."""
    known = [value for value in values if not np.isnan(value)]
    return max(known) - min(known) if len(known) > 1 else nan


# Written down elsewhere: the gain in tests of harm, the index in tests of calibration, the difference in tests of the
# observed risk.
ELSEWHERE = {"calibration_slope", "likelihood_gain", "integrated_calibration_index", "calibration_difference"}
AWKWARD = [
    "ties",
    "float32",
    "few times",
    "group of one",
    "time zero",
    "short training",
    "all events",
    "bold",
]


class Awkward:
    """A few patients with everything that goes wrong in real ones, one thing at a time."""

    def __init__(self, kind):
        rng = np.random.default_rng(AWKWARD.index(kind))
        n = 24
        self.X = rng.normal(size=(n, 2))
        self.time, self.event = np.ceil(6 * rng.exponential(size=n)), rng.random(n) < 0.6
        self.train_time, self.train_event = np.ceil(6 * rng.exponential(size=40)), rng.random(40) < 0.6
        self.groups = pd.DataFrame({"g": rng.choice(["a", "b", "c"], n), "h": rng.choice(["x", "y"], n)})
        self.times = np.array([3.0, 7.0]) if kind == "few times" else np.arange(1.0, 12.0)
        self.risk = np.round(self.X[:, 0])
        if kind == "float32":
            self.X, self.risk = self.X.astype(np.float32), self.X[:, 0].astype(np.float32)
        if kind == "bold":
            self.risk = 1e3 * self.X[:, 0]
        if kind == "group of one":
            self.groups["g"] = np.where(np.arange(n) == 5, "alone", "b")
        if kind == "time zero":
            self.time[:3], self.event[0] = 0.0, True
        if kind == "short training":
            self.train_time = np.minimum(self.train_time, 4.0)
        if kind == "all events":
            self.event[:] = True
        level = np.exp(np.clip(self.risk, -2, 2) / 2)
        self.survival = np.exp(-level[:, None] * self.times / 8)

    def curve(self, i):
        """Survival of a patient at a time: a step function from 1."""
        return lambda t: self.survival[i][self.times <= t][-1] if t >= self.times[0] else 1.0


@pytest.fixture(scope="module", params=AWKWARD)
def judged(request):
    some = Awkward(request.param)
    y, y_train = (
        Surv.from_arrays(event, time)
        for event, time in ((some.event, some.time), (some.train_event, some.train_time))
    )
    options = {"y_train": y_train, "sensitive_features": some.groups, "reference": some.X[:, 0] / 2}
    # The slope of step curves is that of the scores, whatever the ties.
    model = Predictions(some.risk, some.survival, some.times, curve_type="step")
    with pytest.warns():
        result = evaluate(model, some.X, y, paper=True, **options)
    target, some.y = parse_target(y), y
    own = FollowUp.of(target)
    # Brier scores end where a tenth of the patients is at risk.
    last = np.sort(some.time)[::-1][2]
    some.grids = auc_times(own, target), brier_times(own, target, until=last)
    some.risk, some.X = some.risk.astype(float), some.X.astype(float)
    return some, Training(some.train_time, some.train_event), result


def brier_errors(some, training, rows):
    """Squared errors of the model (n,) and of no model (n,) of patients who were followed until the last time."""
    censoring, grid = Training(some.time[rows], some.event[rows]), some.grids[1]
    if not all(before(censoring.observed, u) > 0 for u in grid):
        return np.full((2, len(rows)), nan)
    told = list(zip(some.time[rows], some.event[rows], strict=True))
    own = [brier(censoring, *outcome, some.curve(i), grid) for i, outcome in zip(rows, told, strict=True)]
    null = [brier(censoring, *outcome, lambda u: after(training.survival, u), grid) for outcome in told]
    return np.array(own), np.array(null)


def of_patients(some, training, rows, until, auc_until=np.inf):
    """Metrics of one set of patients, whose censoring is their own; Uno's index and AUC only until a time."""
    time, event, risk = some.time[rows], some.event[rows], some.risk[rows]
    curves, censoring = [some.curve(i) for i in rows], Training(time, event)
    own, null = brier_errors(some, training, rows)
    return {
        "concordance_index": concordance(time, event, risk),
        "uno_concordance": uno(censoring, time, event, risk, until),
        "dynamic_auc": dynamic_auc(
            censoring, time, event, risk, [t for t in some.grids[0] if t <= auc_until]
        ),
        "integrated_brier_score": np.mean(own),
        "brier_skill": 1 - sum(own) / sum(null) if sum(null) else nan,
        "d_calibration_p": d_calibration(time, event, curves),
    }


def rows_of(some):
    everybody = {("overall", "all"): np.arange(len(some.time))}
    return everybody | {
        (name, label): np.flatnonzero(some.groups[name] == label)
        for name in some.groups
        for label in sorted(set(some.groups[name]))
    }


def assert_same(found, wanted):
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12, nan_ok=True)


def test_numbers_of_everybody_and_of_every_group(judged):
    some, training, result = judged
    for (attribute, label), rows in rows_of(some).items():
        group = None if attribute == "overall" else label
        # No group has 50 patients, so a tenth of all patients decides for how long ranking is compared.
        last = np.sort(some.time)[::-1][2]
        untils = last, np.inf if group is None else last
        for metric, wanted in of_patients(some, training, rows, *untils).items():
            assert_same(result.value(metric, attribute, group), wanted)


def test_gaps_are_the_spread_over_groups(judged):
    some, _, result = judged
    for attribute in some.groups:
        labels = sorted(set(some.groups[attribute]))
        for metric in {row.metric for row in result.select(attribute=attribute, kind="group")}:
            if not CATALOGUE[metric].is_papers and not CATALOGUE[metric].p_value:
                values = [result.value(metric, attribute, label) for label in labels]
                assert_same(result.value(metric, attribute), spread(values))


def test_likelihood_and_slope(judged):
    some, _, result = judged
    told = some.time, some.event
    silent = log_partial_likelihood(*told, np.zeros(len(some.time)))
    own = log_partial_likelihood(*told, some.risk)
    reference = log_partial_likelihood(*told, some.X[:, 0] / 2) - silent
    assert_same(result.value("log_partial_likelihood"), own)
    assert_same(result.value("gain_over_null"), own - silent)
    assert_same(result.value("share_of_gain"), (own - silent) / reference if reference > 0 else nan)


# The paper's metrics have their definitions in tests/paper.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_concordance_fractions_and_imparity(judged):
    some, _, result = judged
    for attribute in some.groups:
        fractions = paper.concordance_fractions(some.y, some.risk, some.groups[attribute])
        for label, fraction in fractions.items():
            assert_same(result.value("concordance_fraction", attribute, label), fraction)
        assert_same(result.value("concordance_imparity", attribute), spread(fractions.values()))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_disparities_of_hazards(judged):
    some, _, result = judged
    if np.abs(some.risk).max() > 700:
        assert not {row.metric for row in result.rows if "hazards" in CATALOGUE[row.metric].needs}
        assert any("disparities of hazards are left out" in note for note in result.notes)
        return
    for name, disparity in {
        "individual_disparity": paper.individual_disparity(some.risk, some.X),
        "intersectional_disparity": paper.intersectional_disparity(some.risk, some.groups),
        "censored_individual_disparity": paper.censored_individual_disparity(some.y, some.risk, some.X),
    }.items():
        assert_same(result.value(name), disparity)
    for attribute, labels in some.groups.items():
        for label in set(labels):
            assert_same(
                result.value("mean_hazard", attribute, label), np.exp(some.risk)[labels == label].mean()
            )
        for name, disparity in {
            "group_disparity": paper.group_disparity(some.risk, labels),
            "average_disparity": paper.average_disparity(some.risk, some.X, labels, some.groups),
            "censored_group_disparity": paper.censored_group_disparity(some.y, some.risk, some.X, labels),
        }.items():
            assert_same(result.value(name, attribute), disparity)


def test_every_metric_has_a_definition_here_or_elsewhere():
    some = Awkward("ties")
    some.grids = [2.0, 4.0], [1.0, 2.0, 3.0]
    rows, training = np.arange(len(some.time)), Training(some.train_time, some.train_event)
    here = {*of_patients(some, training, rows, np.inf)}
    here |= {"log_partial_likelihood", "gain_over_null", "share_of_gain"}
    here |= {"concordance_fraction", "concordance_imparity", "mean_hazard"}
    here |= {name for name in CATALOGUE if name.endswith("_disparity")}
    missing = set(CATALOGUE) - here - ELSEWHERE
    assert not missing, (
        "write its definition in `of_patients`, or name it in ELSEWHERE with a test of its own"
    )
    assert here | ELSEWHERE <= set(CATALOGUE)
