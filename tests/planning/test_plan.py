"""Sample sizes against exact Poisson distributions, simulated cohorts, and the search itself."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from drosurv import Surv, plan
from drosurv.judging.excluded_errors import SubgroupSearch
from drosurv.judging.rules import CodedTable
from drosurv.judging.simultaneous_tests import MOST_LEVELS, N_CUTS
from drosurv.judging.subgroup_sums import Subgroups
from drosurv.metrics import concordance_index
from drosurv.planning import excluded_errors
from drosurv.planning.audit_plan import NormalLogRisks


def row(found, words):
    table = found.table
    return table[table["question"].str.contains(words, regex=False)].iloc[0]


def test_the_numbers_of_the_usual_formulas():
    found = plan(event_rate=0.25, spread=1.0, groups={"women": 0.4, "over 75": (0.15, 0.5)}, n_tests=1)
    assert list(found.table.columns[:3]) == ["question", "patients", "events"]
    assert row(found, "1.2, everybody")["events"] == 116
    assert row(found, "1.2, everybody")["patients"] == np.ceil(115.56 / 0.25)
    assert row(found, "1.2, women")["patients"] == np.ceil(115.56 / 0.1)
    assert row(found, "1.2, over 75")["patients"] == np.ceil(115.56 / 0.075)
    assert row(found, "slope")["events"] == 384


@pytest.mark.parametrize("ratio", [1.2, 1.5, 2.0])
def test_widths_and_power_are_those_of_exact_poisson_counts(ratio):
    found = plan(event_rate=0.01, ratio=ratio, n_tests=1)
    events = row(found, "within")["events"]
    low, high = stats.chi2.ppf(0.025, 2 * events) / 2, stats.chi2.ppf(0.975, 2 * events + 2) / 2
    assert np.log(high / low) / 2 == pytest.approx(np.log(ratio), rel=0.1)
    expected = row(found, "times the expected events found, everybody")["events"]
    counts = np.arange(2000)
    rejected = stats.poisson.sf(counts - 1, expected) <= 0.025
    assert stats.poisson.pmf(counts, ratio * expected)[rejected].sum() == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize(("deviation", "rate"), [(0.5, 0.1), (1.0, 0.6)])
def test_spread_concordance_and_its_error_are_those_of_a_simulated_cohort(deviation, rate):
    risks, rng, n = NormalLogRisks(deviation, rate), np.random.default_rng(1), 40_000
    log_risk = deviation * rng.standard_normal(n)
    hazard = np.exp(log_risk) * risks.hazard[len(risks.hazard) // 2]
    reached = rng.exponential(size=n)
    event = reached <= hazard
    assert event.mean() == pytest.approx(rate, abs=0.01)
    expected = np.minimum(reached, hazard)
    variance = np.cov(log_risk, aweights=expected)
    assert risks.variance_at_events == pytest.approx(variance, rel=0.05)
    y = Surv.from_arrays(event, np.minimum(reached, hazard) / hazard)
    assert risks.c_index == pytest.approx(concordance_index(y, log_risk), abs=0.01)
    parts = np.split(np.arange(n), 80)
    spread = np.std([concordance_index(y[part], log_risk[part]) for part in parts])
    assert risks.c_index_error / np.sqrt(rate * 500) == pytest.approx(spread, rel=0.2)
    lowest = np.argsort(log_risk)[: n // 10]
    assert risks.lowest(0.1) == pytest.approx(-np.expm1(-hazard[lowest]).mean() / event.mean(), rel=0.05)


def test_the_plan_of_a_c_index_is_that_of_its_spread():
    risks = NormalLogRisks(0.8, 0.3)
    by_index = plan(event_rate=0.3, c_index=risks.c_index)
    by_spread = plan(event_rate=0.3, spread=np.sqrt(risks.variance_at_events))
    pd.testing.assert_frame_equal(by_index.table, by_spread.table)


def test_the_critical_value_is_that_of_the_search():
    rng, n, rate = np.random.default_rng(3), 2000, 0.4
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    subgroups = Subgroups(CodedTable.from_table(X, N_CUTS, MOST_LEVELS))
    subgroups.keep(subgroups.sums(np.ones((n, 1)))[:, 0] >= 0.1 * n)
    reached, end = rng.exponential(size=(n, 400)), -np.log(1 - rate)
    observed, expected = np.hsplit(subgroups.sums(np.hstack([reached <= end, np.minimum(reached, end)])), 2)
    # Twice the square root of a Poisson count has variance 1.
    largest = (2 * (np.sqrt(observed) - np.sqrt(expected))).max(axis=0)
    found = [SubgroupSearch(4, 0.1, level).critical_value for level in (0.8, 0.95)]
    assert found == pytest.approx(np.quantile(largest, [0.9, 0.975]).tolist(), abs=0.25)


def test_a_critical_value_grows_with_columns_and_level_and_falls_with_the_share():
    values = [
        SubgroupSearch(*setting).critical_value
        for setting in ((5, 0.2, 0.9), (5, 0.1, 0.9), (10, 0.1, 0.9), (10, 0.1, 0.99))
    ]
    assert values == sorted(values)


def test_as_many_patients_as_asked_for_attain_what_is_wanted():
    options = {"event_rate": 0.2, "groups": {"men": 0.3}, "ratio": 1.3, "power": 0.9, "n_tests": 4}
    for question, needed in plan(**options).table.set_index("question")["patients"].items():
        again = plan(**options, n=int(needed))
        attained = again.table.set_index("question").loc[question]
        assert attained["attained"] == pytest.approx(attained["wanted"], rel=0.01)
    assert (
        row(plan(**options), "1.3, men")["events"] > row(plan(**{**options, "n_tests": 1}), "men")["events"]
    )


def test_a_plan_is_read_printed_and_drawn():
    found = plan(event_rate=0.25, groups={"wom$en": 0.4}, n=30, n_tests=1)
    assert "463 patients, 116 events; 30 patients give a factor of" in found.summary()
    assert "too few events" in found.summary()
    assert "wom$en" in repr(found)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["n"] == 30
    ax = found.plot()
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["everybody", "wom$en", "a subgroup of 5 %", "all subgroups of 5 %", "30 patients"]
    ax.figure.canvas.draw()


def test_the_share_of_events_has_the_name_of_the_command_too_and_expected_events_are_called_so():
    found = plan(events=0.4, n_tests=1)
    assert found.to_dict() == plan(event_rate=0.4, n_tests=1).to_dict()
    assert (
        "1.2 times the expected events found, everybody: 565 patients, 215 expected events" in found.summary()
    )
    assert "everybody: 289 patients, 116 events." in found.summary()
    assert "215 expected" in repr(found)


def test_one_sentence_says_what_can_be_excluded_for_whom():
    said = excluded_errors(2000, 400, groups={"women": 100, "men": 300}, n_columns=5, n_tests=5)
    z = stats.norm.ppf(1 - 0.05 / 5 / 2)
    for words in (
        f"{np.exp(-z / 20):.2f} to {np.exp(z / 20):.2f} times the predicted events cannot be excluded for everybody",
        f"{np.exp(-z / 10):.2f} to {np.exp(z / 10):.2f} times for women (the judged group with the fewest events)",
        "times for a subgroup of 5 % with as many events as predicted.",
        "patients would exclude 1.5 times for such a subgroup.",
    ):
        assert words in said
    low, high = map(float, re.search(r"([\d.]+) to ([\d.]+) times for a subgroup of 5 %", said).groups())
    # Square roots of counts have one standard error.
    assert np.sqrt(high) - 1 == pytest.approx(1 - np.sqrt(low), abs=0.01)


def test_the_sentence_takes_the_intervals_of_an_audit():
    shown = {"everybody": (0.9, 1.52), "women": (0, 1.01)}
    said = excluded_errors(2000, 400, groups={"women": 100, "men": 300}, intervals=shown, n_columns=0)
    ratios = (
        "0.90 to 1.52 times the predicted events (adjusted) cannot be excluded for everybody and 0.00 to 1.01"
    )
    assert f"{ratios} times for women (the judged group with the fewest events)." in said
    assert said.endswith("So 1.5 times is excluded for women.")
    # The formula would need fewer patients than there are.
    assert excluded_errors(2000, 400, intervals=shown, n_columns=0).endswith("for everybody.")


def test_the_sentence_says_where_there_are_too_few_events():
    said = excluded_errors(100, 30, groups={"women": 0, "men": 30})
    assert (
        "No wrong number of events can be excluded for women (the judged group with the fewest events). A subgroup of"
        in said
    )
    assert said.endswith(
        "fewer than 10 events and is not judged. About 5,990 patients would exclude 1.5 times for a subgroup of 5 %."
    )
    assert excluded_errors(100, 0) == "Without events, no error of the model can be excluded."
    unknown = excluded_errors(100, 30, intervals={"everybody": (0.4, None)}, n_columns=0)
    assert "no wrong number of events can be excluded for everybody." in unknown
    assert "subgroup" not in excluded_errors(100, 30, n_columns=0)
    assert excluded_errors(100, 30, groups={"women": 0, "men": 30}, n_columns=0).endswith(
        "(the judged group with the fewest events)."
    )
    assert "So 1.5 times is excluded" in excluded_errors(100_000, 30_000)


@pytest.mark.parametrize("options", [{}, {"groups": {"women": 100, "men": 300}}, {"n_columns": 5}])
def test_as_many_patients_as_the_sentence_names_exclude_what_it_names(options):
    options = {"n_columns": 0, **options, "exclude": 1.08}
    said = excluded_errors(2000, 400, **options)
    needed = int(re.search(r"About ([\d,]+) patients would exclude 1.08", said)[1].replace(",", ""))
    for factor, expected in ((0.98, "About"), (1.02, "So 1.08 times is excluded for")):
        n = factor * needed / 2000
        groups = {name: n * count for name, count in options.get("groups", {}).items()}
        assert expected in excluded_errors(round(2000 * n), 400 * n, **{**options, "groups": groups})


def test_names_of_many_groups_stand_beside_the_lines():
    ax = plan(event_rate=0.25, groups={f"hospital {k}": 0.05 for k in range(12)}).plot()
    ax.figure.canvas.draw()
    names, lines = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert lines.x1 - 1 <= names.x0
    assert names.x1 <= ax.figure.bbox.x1 + 1
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.get_lines()}) == 15
