import re
from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from drosurv.metrics import concordance_index
from drosurv.patients.target import Surv
from drosurv.tables.leaks import _chance_never_later, find_leaks

RNG = np.random.default_rng(0)
EVENT = RNG.random(400) < 0.3
TIME = RNG.exponential(1000, 400)
Y = Surv.from_arrays(EVENT, TIME)


def test_a_number_with_nearly_as_many_values_as_patients_tells_no_event():
    weight = pd.DataFrame({"weight": 50.0 + np.arange(60) % 50})
    assert (
        find_leaks(
            weight, Surv.from_arrays(np.arange(60) % 2 == 0, np.random.default_rng(5).exponential(size=60))
        )
        == {}
    )


@pytest.mark.parametrize(
    "column",
    [
        EVENT,
        ~EVENT,
        EVENT.astype(int) + 1,
        np.where(EVENT, "dead", "alive"),
        pd.Series(np.where(EVENT, RNG.choice(["cancer", "heart"], 400), None)),
        pd.Series(np.where(EVENT, RNG.integers(1, 9, 400), np.nan)),
        np.where(np.arange(400) == np.flatnonzero(EVENT)[0], ~EVENT, EVENT),
    ],
)
def test_a_column_that_tells_the_event_is_found(column):
    assert find_leaks(pd.DataFrame({"c": column}), Y) == {"c": "it tells the event of 100 % of the patients"}


def test_a_cut_of_a_number_that_tells_the_event_is_found():
    noise = np.random.default_rng(5).normal(0, 0.05, 400)
    lab = np.where(EVENT, 2 + noise, noise)
    lab[[np.flatnonzero(EVENT)[0], np.flatnonzero(~EVENT)[0]]] = 0.0, 2.0
    for sign in (1, -1):
        (reason,) = find_leaks(pd.DataFrame({"c": sign * lab}), Y).values()
        assert re.fullmatch(
            r"whether it is above -?[01]\.\d+ tells the event of 100 % of the patients", reason
        )
    autopsy = {"c": "whether it is known tells the event of 100 % of the patients"}
    assert find_leaks(pd.DataFrame({"c": np.where(EVENT, noise, np.nan)}), Y) == autopsy
    wrong = np.flatnonzero(EVENT)[: int(0.03 * EVENT.sum()) + 1]
    lab[wrong] = 0.0
    assert find_leaks(pd.DataFrame({"c": lab}), Y) == {}
    few = np.r_[np.flatnonzero(EVENT)[-19:], np.flatnonzero(~EVENT)[-60:]]
    assert find_leaks(pd.DataFrame({"c": lab[few]}), Y[few]) == {}
    assert find_leaks(pd.DataFrame({"c": lab[few]}), Surv.from_arrays(lab[few] > 1, TIME[few])) == {}


def test_a_strong_marker_and_the_day_of_entry_are_not():
    rng = np.random.default_rng(6)
    marker = rng.normal(size=1000)
    time = rng.exponential(np.exp(-3 * marker))
    y = Surv.from_arrays(time <= np.median(time), np.minimum(time, np.median(time)))
    assert 0.88 < concordance_index(y, marker) < 0.92
    assert find_leaks(pd.DataFrame({"c": marker}), y) == {}
    # Nearly all have the event within days: only those who came last have none, and many of those who came last have.
    day, time = rng.uniform(0, 1000, 4000), rng.exponential(5, 4000)
    y = Surv.from_arrays(time <= 1000 - day, np.minimum(time, 1000 - day))
    assert find_leaks(pd.DataFrame({"day": day}), y) == {}


def test_a_level_that_only_the_event_leads_to_is_found():
    """As death in hospital is, beside death at any time: its absence says little."""
    here = EVENT & (np.cumsum(EVENT) % 3 == 0)
    reason = {"c": f"all {here.sum()} patients with the value '1' had the event"}
    assert find_leaks(pd.DataFrame({"c": here.astype(int)}), Y) == reason
    assert find_leaks(pd.DataFrame({"c": (here & (np.cumsum(here) < 20)).astype(int)}), Y) == {}
    # Patients who came last have no event yet: no leak.
    assert find_leaks(pd.DataFrame({"year": np.where(EVENT | (RNG.random(400) < 0.5), 2001, 2020)}), Y) == {}


def test_the_time_in_other_units_is_found():
    assert find_leaks(pd.DataFrame({"years": np.round(TIME / 365.25, 3)}), Y) == {
        "years": "it is the time in other units"
    }
    # Also beside a column which is 0 for most.
    relapse = np.where(np.arange(400) % 3 == 0, RNG.random(400) * TIME, 0)
    found = find_leaks(pd.DataFrame({"days": 30.4 * TIME, "relapse": relapse}), Y)
    assert found["days"] == "it is the time in other units"


def test_the_time_of_something_that_most_never_had_is_found():
    """As that of a relapse is, which is the time itself where there was none, in days or in years."""
    relapse = np.where(np.arange(400) % 5 == 0, RNG.random(400) * TIME, TIME)
    for unit in (1, 365.25):
        reason = "it equals the time, in some unit, for 80 % of the patients"
        assert find_leaks(pd.DataFrame({"relapse": relapse / unit}), Y) == {"relapse": reason}
    elsewhere = np.where(np.arange(400) % 5 == 0, TIME, 3 * RNG.random(400) * TIME)
    assert find_leaks(pd.DataFrame({"c": elsewhere}), Y) == {}


def test_the_day_of_something_during_follow_up_is_found():
    """As that of a transplant is, missing for whoever had none: who has a late one has lived until then."""
    transplant = np.where(np.arange(400) % 3 == 0, np.random.default_rng(1).random(400) * TIME, np.nan)
    found = find_leaks(pd.DataFrame({"transplant": transplant}), Y)
    assert found == {
        "transplant": "it is never above the time, as the time of something that happened during follow-up"
    }
    shuffled = np.random.default_rng(2).permutation(transplant)
    assert find_leaks(pd.DataFrame({"c": shuffled}), Y) == {}
    # Below everybody's time, whoever has it: no leak.
    late = Surv.from_arrays(EVENT, TIME + 1)
    assert find_leaks(pd.DataFrame({"c": np.random.default_rng(3).random(400)}), late) == {}


@pytest.mark.parametrize(
    "kind", ["plain", "some on the last day", "some missing", "two kinds", "day of those who had it"]
)
def test_the_status_of_something_during_follow_up_is_found_beside_its_day(kind):
    """As platelet recovery of transplanted patients: it is 1 for those who lived until then."""
    rng = np.random.default_rng(0)
    death, recovery = rng.exponential(900, (2, 600))
    end = np.minimum(death, rng.uniform(300, 2000, 600))
    status = np.where(recovery < end, "yes", "no").astype(object)
    by_chance = rng.random(600) < 0.1
    if kind == "some on the last day":
        recovery = np.where(by_chance & (recovery < end), end, recovery)
    elif kind == "some missing":
        status[by_chance] = None
    elif kind == "two kinds":
        status[by_chance & (status == "yes")] = "partly"
    day, told = np.minimum(recovery, end), "it tells for whom 'prtime' equals the time"
    if kind == "day of those who had it":
        day, told = np.where(recovery < end, recovery, np.nan), "it tells for whom 'prtime' is known"
    frame = pd.DataFrame({"prtime": day, "prstat": status, "sex": rng.choice(["f", "m"], 600)})
    found = find_leaks(frame, Surv.from_arrays(death <= end, end))
    assert list(found) == ["prtime", "prstat"]
    assert found["prstat"] == told


@pytest.mark.parametrize("else_missing", [False, True])
def test_an_arm_in_which_alone_some_were_treated_later_is_no_leak(else_missing):
    rng = np.random.default_rng(1)
    end, arm = rng.uniform(300, 2000, 600), rng.choice(["usual", "transplant"], 600)
    day = np.where((arm == "transplant") & (rng.random(600) < 0.65), end * rng.random(600), np.nan)
    frame = pd.DataFrame({"day": day if else_missing else np.where(np.isnan(day), end, day), "arm": arm})
    assert list(find_leaks(frame, Surv.from_arrays(rng.random(600) < 0.5, end))) == ["day"]


def test_the_day_of_something_early_is_found_by_the_short_times_of_those_who_never_had_it():
    """As that of a complete response is: it comes within weeks, unless the patient dies before."""
    rng = np.random.default_rng(4)
    time = np.where(np.arange(400) % 7 == 0, rng.uniform(1, 25, 400), 100 + TIME)
    response = np.where((time > 100) & (rng.random(400) < 0.8), rng.uniform(30, 90, 400), np.nan)
    y = Surv.from_arrays(EVENT, time)
    (reason,) = find_leaks(pd.DataFrame({"response": response}), y).values()
    assert reason == "it is never above the time, as the time of something that happened during follow-up"
    assert find_leaks(pd.DataFrame({"c": rng.permutation(response)}), y) == {}


@pytest.mark.parametrize("share_with_event", [0.3, 0.9])
def test_the_number_of_the_day_of_the_last_contact_is_found(share_with_event):
    """It is the time of patients without the event, and comes later for those whom a relapse did not end."""
    event, later = RNG.random(400) < share_with_event, RNG.exponential(300, 400)
    last = np.where(event, TIME + later, TIME)
    for days in (last, np.round(last), TIME + later):
        (reason,) = find_leaks(pd.DataFrame({"c": days}), Surv.from_arrays(event, np.floor(TIME))).values()
        assert (
            reason == "it is never below the time, as the time of the last contact"
            or "equals the time" in reason
        )
    assert find_leaks(pd.DataFrame({"c": RNG.permutation(last)}), Surv.from_arrays(event, TIME)) == {}
    # Numbers that no time reaches tell nothing.
    assert find_leaks(pd.DataFrame({"c": TIME.max() + RNG.random(400)}), Y) == {}


def test_the_time_is_found_in_small_tables_and_in_few_different_numbers():
    few = np.r_[np.flatnonzero(EVENT)[:8], np.flatnonzero(~EVENT)[:22]]
    for column in (TIME[few], np.where(np.arange(30) % 4 == 0, TIME[few] + 9, TIME[few])):
        assert [*find_leaks(pd.DataFrame({"c": column}), Y[few])] == ["c"]
    assert find_leaks(pd.DataFrame({"c": RNG.permutation(TIME[few]), "event": EVENT[few]}), Y[few]) == {}
    third, weeks = np.arange(400) % 3 == 0, np.ceil(TIME / TIME.max() * 80)
    y = Surv.from_arrays(EVENT, weeks)
    last = pd.DataFrame({"c": np.where(third, weeks + 2, weeks)})
    assert find_leaks(last, y) == {"c": "it equals the time, in some unit, for 66 % of the patients"}
    waited = pd.DataFrame({"c": np.where(third, np.floor(weeks * RNG.random(400)), np.nan)})
    reason = "it is never above the time, as the time of something that happened during follow-up"
    assert find_leaks(waited, y) == {"c": reason}
    assert find_leaks(waited.sample(frac=1, random_state=0), y) == {}
    # Times of 0 are no reason.
    first = np.arange(400) < 8
    score = pd.DataFrame({"c": np.where(first, np.nan, 2 + np.arange(400) * 7 % 20 / 10)})
    assert find_leaks(score, Surv.from_arrays(EVENT, np.where(first, 0, 20 + TIME))) == {}


@pytest.mark.parametrize("more", [[], [0.7, 5.0]])
def test_chance_is_that_of_every_order_of_the_times(more):
    values, time = np.array([1.0, 2.0, 3.0, 1.5, 0.5]), np.array([1.2, 2.5, 3.0, 4.0, 2.0])
    times = np.append(time, more)
    share = np.mean([(values <= np.array(order)).all() for order in permutations(times, 5)])
    assert _chance_never_later(values, time, times) == pytest.approx(share)


@pytest.mark.parametrize(
    "column",
    [
        np.where(RNG.random(400) < 0.9, EVENT, ~EVENT),
        RNG.normal(size=400),
        pd.Series([f"name {i}" for i in range(400)]),
        pd.Series(np.where(RNG.random(400) < 0.5, "a", None)),
        np.full(400, "same"),
        np.full(400, np.nan),
    ],
)
def test_markers_noise_and_names_are_not(column):
    assert find_leaks(pd.DataFrame({"c": column}), Y) == {}


def test_a_rare_event_does_not_make_every_column_suspicious():
    rare = Surv.from_arrays(np.arange(400) < 3, TIME)
    assert find_leaks(pd.DataFrame({"c": RNG.choice(["a", "b"], 400)}), rare) == {}


def test_few_patients_say_nothing():
    assert find_leaks(pd.DataFrame({"c": EVENT[:20]}), Y[:20]) == {}


@pytest.mark.parametrize(
    "column",
    [
        np.log(TIME),
        TIME // 300,
        -np.sqrt(TIME),
        np.digitize(TIME, [200, 500]),
        np.where(TIME > 100, 1.0, 0.0),
    ],
)
def test_a_function_of_the_time_is_found(column):
    (reason,) = find_leaks(pd.DataFrame({"c": column}), Y).values()
    assert reason == "it rises or falls with the time in all patients, as a function of the time does"
    shuffled = np.random.default_rng(2).permutation(column)
    assert find_leaks(pd.DataFrame({"c": shuffled}), Y) == {}


def test_the_end_whose_difference_to_a_start_is_the_time_is_found():
    entry = np.random.default_rng(1).uniform(60, 90, 400)
    frame = pd.DataFrame({"entry": entry, "exit": entry + TIME / 365.25, "age": np.round(entry)})
    assert find_leaks(frame, Y) == {
        "exit": "'exit' minus 'entry' equals the time, in some unit, for 100 % of the patients"
    }
    assert find_leaks(frame.drop(columns="exit"), Y) == {}
    # With entry times, the time since entry is one too.
    late = Surv.from_arrays(EVENT, frame["exit"])
    frame = pd.DataFrame({"days": TIME, "age": np.round(entry)})
    since = "it equals the time since entry, in some unit, for 100 % of the patients"
    assert find_leaks(frame, late, entry) == {"days": since}
    assert find_leaks(frame, late) == {}
    # Age at entry is known, although it is never above the age at the end.
    assert find_leaks(pd.DataFrame({"since": entry - 1}), late, entry) == {}
    many = np.tile(np.arange(400), 30)
    assert find_leaks(frame.iloc[many], late[many], entry[many]) == {"days": since}
