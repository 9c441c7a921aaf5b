"""Outcomes as people name and code them: understood, asked about, or refused; never taken for something else."""

import warnings

import numpy as np
import pandas as pd
import polars
import pytest
from scipy.stats import mannwhitneyu, norm

from drosurv import Surv
from drosurv.patients.outcome_names import longer_with_event, value_of_event
from drosurv.tables import read_survival_table
from drosurv.tables.guess import UnknownColumns, guess_columns
from drosurv.tables.reading import TableNote
from drosurv.tables.target_columns import TargetColumns
from drosurv.workflows.table_to_check import WantedColumns, prepare_table

RNG = np.random.default_rng(0)
N = 120
DEAD = RNG.permutation(N) < 50


def table(**columns):
    frame = {"age": RNG.integers(30, 90, N), "trt": RNG.integers(0, 2, N), "marker": RNG.normal(size=N)}
    return pd.DataFrame({**frame, **columns})


def days():
    return np.ceil(RNG.exponential(400, N)).astype(int)


def read(frame, **columns):
    """What check reads: the columns that were guessed, and who had the event."""
    found = prepare_table(frame, WantedColumns(**columns), None, "the table")
    return found.found, found.table.event


def test_a_column_named_like_the_event_without_events_stops_the_command():
    for values in (0, "alive", "no", 1):
        with pytest.raises(ValueError, match="column 'status' is named like the event, but it is"):
            guess_columns(table(time=days(), status=values))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("alive", (0, 1)),
        ("Alive at last contact", ("no", "yes")),
        ("survived", (False, True)),
        ("is_living", ("no", "yes")),
        ("lebt", ("nein", "ja")),
        ("vivant", ("non", "oui")),
        ("überlebend", (0, 1)),
        ("eventfree", (0, 1)),
        ("Rezidivfrei", ("nein", "ja")),
        ("CNSR", (0, 1)),
        ("os_cnsr", (0, 1)),
    ],
)
def test_a_flag_of_the_living_is_inverted(name, values):
    frame = table(days=days(), **{name: np.where(DEAD, *values)})
    found, event = read(frame)
    assert found.event == name
    assert (event == DEAD).all()
    with pytest.warns(TableNote, match="was taken as the event"):
        y = TargetColumns("days", name).parse(frame)
    assert (y["event"] == DEAD).all()


@pytest.mark.parametrize("name", ["censored", "censoring_indicator", "Zensiert", "vital_status", "survival"])
def test_a_flag_with_two_meanings_is_asked_about(name):
    frame = table(days=days(), **{name: DEAD.astype(int)})
    with pytest.raises(ValueError, match="pass event_value='0' or event_value='1'"):
        TargetColumns("days", name).parse(frame)
    with pytest.raises(ValueError, match="pass event_value='0' or event_value='1'"):
        read(frame)
    assert (read(frame, event_value="1")[1] == DEAD).all()
    assert (read(frame, event_value="0")[1] == ~DEAD).all()


@pytest.mark.parametrize(
    "name", ["smoking_status", "marital status", "ER.status", "family_death", "prior_event"]
)
def test_other_flags_never_win(name):
    frame = table(fu=days(), alive=(~DEAD).astype(int), **{name: RNG.integers(0, 2, N)})
    found, event = read(frame)
    assert (found.time, found.event) == ("fu", "alive")
    assert (event == DEAD).all()
    with pytest.raises(UnknownColumns):
        guess_columns(frame.drop(columns="alive"))


@pytest.mark.parametrize(
    "name",
    ["time_to_treatment", "days since diagnosis", "waiting_time", "time_in_hospital", "age_days", "year"],
)
def test_other_times_never_win(name):
    frame = table(fu=days(), death=DEAD.astype(int), **{name: RNG.integers(1, 60, N)})
    assert guess_columns(frame).time == "fu"
    with pytest.raises(UnknownColumns):
        guess_columns(frame.drop(columns="fu"))


@pytest.mark.parametrize(
    ("time", "event", "values"),
    [
        ("Überlebenszeit (Tage)", "verstorben", ("nein", "ja")),
        ("Nachbeobachtung_Monate", "Tod", (0, 1)),
        ("Zeit", "Ereignis", ("N", "J")),
        ("Beobachtungszeit", "Status", ("lebt", "verstorben")),
        ("durée de suivi (jours)", "Décédé", ("non", "oui")),
        ("temps", "décès", ("Non", "Oui")),
        ("survie_mois", "statut", ("vivant", "décédé")),
        ("délai", "évènement", (0, 1)),
    ],
)
def test_german_and_french_tables_are_understood(time, event, values):
    found, events = read(table(**{time: days(), event: np.where(DEAD, values[1], values[0])}))
    assert (found.time, found.event) == (time, event)
    assert (events == DEAD).all()


@pytest.mark.parametrize(
    ("values", "name", "expected"),
    [
        (["-1", "1"], "event", None),
        (["1", "2"], "status", "2"),
        (["1", "2"], "died", None),
        (["0", "2"], "status", None),
        (["0=alive", "1=dead"], "status", "1=dead"),
        (["0=dead", "1=alive"], "status", "0=dead"),
        (["1 - verstorben", "2 - lebt"], "Status", "1 - verstorben"),
        (["0. censored", "1. relapse"], "outcome", "1. relapse"),
        (["Dead", "Alive"], "censored", "Dead"),
        (["yes", "no"], "relapse_free", "no"),
        (["f", "m"], "status", None),
        (["Yes", "no", "yes", "Y", "N"], "death", "Yes"),
        (["nein", "J", "ja"], "lebt", "nein"),
        (["TRUE", "0", "1"], "death", None),
        (["1", "0", "T"], "death", None),
    ],
)
def test_values_are_understood_with_the_name_of_their_column(values, name, expected):
    assert value_of_event(values, name).value == expected


@pytest.mark.parametrize(("name", "wanted"), [("death", None), ("death", "y"), ("censored", "No")])
def test_spellings_of_yes_are_one_value(name, wanted):
    said = ["Yes", "yes", "Y", "No", "no"]
    values = [said[k % 3] if dead else said[3 + k % 2] for k, dead in enumerate(DEAD)]
    frame = table(time=days(), event=values).rename(columns={"event": name})
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        found = read_survival_table(frame, time="time", event=name, event_value=wanted)
    died = DEAD if name == "death" else ~DEAD
    assert found.event.tolist() == died.tolist()
    told = [str(one.message) for one in given if "was taken as the event" in str(one.message)]
    assert all(f"({died.sum()} of {len(DEAD)} rows)" in text for text in told)
    assert len(told) == (wanted is None)


def test_spellings_of_alive_compete_with_nothing():
    frame = table(
        time=days(), alive=["n" if dead else "Y" if k % 2 else "yes" for k, dead in enumerate(DEAD)]
    )
    with pytest.warns(TableNote) as given:
        assert read_survival_table(frame, time="time", event="alive").event.tolist() == DEAD.tolist()
    assert not any("taken as censored" in str(one.message) for one in given)


def test_events_coded_minus_one_and_one_are_asked_about():
    frame = table(time=days(), event=np.where(DEAD, -1, 1))
    with pytest.raises(ValueError, match="pass event_value='1' or event_value='-1'"):
        read_survival_table(frame, time="time", event="event")
    assert (read(frame, event_value="-1")[1] == DEAD).all()


@pytest.mark.parametrize(
    ("first", "last"), [("start", "stop"), ("tstart", "tstop"), ("time1", "time2"), ("Tstart", "Tstop")]
)
def test_the_two_ends_of_an_interval_are_entry_and_time(first, last):
    stop = days() + 10
    frame = table(**{first: stop // 2, last: stop}, event=DEAD.astype(int), id=np.arange(N) // 2)
    found = guess_columns(frame)
    assert (found.entry, found.time, found.id) == (first, last, "id")


def test_the_difference_of_two_columns_is_the_time():
    entry = RNG.integers(700, 900, N)
    exits = entry + days()
    frame = table(entry=entry, exit=exits, time=exits - entry, death=DEAD.astype(int))
    found = guess_columns(frame)
    assert (found.time, found.entry) == ("time", None)


def test_a_beginning_of_observation_is_the_entry():
    time = days() + 100
    found = guess_columns(table(entry=time // 3, futime=time, death=DEAD.astype(int)))
    assert (found.time, found.entry) == ("futime", "entry")


def test_a_table_of_polars_is_guessed_and_read_as_that_of_pandas():
    frame = table(days=days(), alive=~DEAD, sex=RNG.choice(["f", "m"], N))
    other = polars.from_dict({name: frame[name].tolist() for name in frame})
    assert guess_columns(other) == guess_columns(frame)
    assert (read(other)[1] == DEAD).all()
    with pytest.warns(TableNote, match="'False' of event column 'alive'"):
        assert (read_survival_table(other, time="days", event="alive").event == DEAD).all()


@pytest.mark.parametrize("given", [{}, {"event_value": "dead"}, {"cause": "dead"}])
def test_unknown_outcomes_need_no_second_option_where_rows_without_an_event_are_left_out(given):
    frame = table(days=days(), status=np.where(DEAD, "dead", "alive"))
    frame.loc[:9, "status"] = "unknown"
    message = r"'unknown' in 10 rows, which is no outcome: pass missing=\['status=unknown'\] to leave"
    with pytest.raises(ValueError, match=message):
        read(frame, **given)


def outcomes(n=600, seed=0):
    """Times and deaths of patients who enter over years; the deaths are 0 and 1."""
    rng = np.random.default_rng(seed)
    death, end = rng.exponential(30, n), rng.uniform(10, 80, n)
    return pd.DataFrame({"months": np.minimum(death, end), "age": rng.normal(60, 9, n)}), death <= end


@pytest.mark.filterwarnings("ignore:.* was taken as the event:drosurv.tables.reading.TableNote")
@pytest.mark.parametrize(
    ("name", "dead"),
    [
        ("Status (0=alive, 1=dead)", "1"),
        ("Status (0=dead, 1=alive)", "0"),
        ("death (0=alive, 1=dead)", "1"),
        ("died (0=survived,1=died)", "1"),
        ("status: dead=1 alive=0", "1"),
        ("status..0.alive..1.dead.", "1"),
        ("death (0=no, 1=yes)", "1"),
        ("alive (0=no; 1=yes)", "0"),
        ("event [1: event, 0: censored]", "1"),
        ("death (yes/no)", "1"),
    ],
)
def test_a_coding_in_a_name_is_read_as_it_is_written(name, dead):
    frame, died = outcomes()
    frame[name] = np.where(died, int(dead), 1 - int(dead))
    table = TargetColumns("months", name).resolved(frame)
    assert table.event_value == dead
    assert (table.parse(frame)["event"] == died).all()


@pytest.mark.parametrize(
    ("time", "event"),
    [
        ("Überlebenszeit", "Rezidiv"),
        ("rezidivfreie_zeit", "Tod"),
        ("survie_globale", "rechute"),
        ("overall_survival", "pfs_event"),
        ("survtime", "relapse"),
        ("rezidiv_zeit", "verstorben"),
        ("pfs_monate", "gestorben"),
        ("recurrence_days", "exitus"),
        ("delai_rechute", "decede"),
        ("survie_sans_rechute_mois", "décédé"),
        ("os_days", "rückfall"),
        ("rfs_months", "expired"),
        ("os_time", "rec"),
        ("rtime", "death"),
        ("dtime", "recur"),
        ("ptime", "death"),
        ("rectime", "censdead"),
        ("reltime", "death"),
        ("dfs_time", "vital_status"),
        ("pfs_months", "alive"),
        ("event_free_survival", "death"),
        ("disease_free_months", "died"),
        ("time_to_arrest", "death"),
    ],
)
def test_a_time_and_an_event_of_two_endpoints_are_asked_about(time, event):
    frame = table(**{time: days(), event: DEAD.astype(int)})
    with pytest.raises(
        ValueError, match=rf"time column '{time}' is named after .*: name the time and the event of one"
    ):
        TargetColumns(time, event).parse(frame)
    with pytest.raises(UnknownColumns):
        guess_columns(frame)


def test_a_name_that_is_only_a_coding_is_that_of_an_event():
    frame = table(months=days(), **{"dead=1/alive=0": DEAD.astype(int)})
    assert guess_columns(frame).event == "dead=1/alive=0"


ASKED = [
    *("dead_alive", "no_event", "not_dead", "event_not_observed", "lost", "ltfu", "vivo", "en_vie", "cens"),
    *("censored", "non_event", "Status (0=vivo, 1=muerto)", "status (1=alive)", "died (0=dead, 1=not dead)"),
    *("vital_status", "survival_status", "relapse_free_survival", "nicht_tot", "x", "status"),
]


@pytest.mark.parametrize("name", ASKED)
def test_a_name_that_can_be_read_in_two_ways_is_asked_about(name):
    """A 1 stands for those who live: in no case it is taken as the event."""
    frame, died = outcomes()
    frame[name] = (~died).astype(int)
    question = "which value of event column .* means the event"
    with pytest.raises(ValueError, match=question):
        read_survival_table(frame, time="months", event=name)
    with pytest.raises(ValueError, match=question):
        read(frame, event=name)
    with pytest.raises(ValueError, match=question):
        Surv.from_dataframe(name, "months", frame)
    named = read_survival_table(frame, time="months", event=name, event_value="0")
    assert (named.event == died).all()


LATER = [
    *(
        "withdrawn",
        "dropout",
        "lfu",
        "ausgeschieden",
        "nonevent",
        "nodeath",
        "didnotdie",
        "tumorfrei",
        "cured",
    ),
    *(
        "vivo",
        "生存",
        "c",
        "survivalflag",
        "completed_study",
        "vivo (0=no, 1=yes)",
        "sin_evento",
        "remission_status",
    ),
]


@pytest.mark.parametrize(
    ("name", "read"), [*((name, None) for name in LATER), ("CNSR", "0"), ("pfs_cnsr", "0")]
)
def test_times_alone_do_not_tell_the_event_which_may_come_after_most_censorings(name, read):
    """A 1 stands for those without the event, who have the shorter times."""
    rng = np.random.default_rng(0)
    death, end = 30 * rng.weibull(4, 600), rng.uniform(0, 35, 600)
    died = death <= end
    frame = pd.DataFrame({"months": np.minimum(death, end) + 0.01, name: (~died).astype(int)})
    if read is None:
        with pytest.raises(ValueError, match=r"which value of event column .* means the event"):
            TargetColumns("months", name).resolved(frame)
    else:
        with pytest.warns(TableNote, match="as CDISC defines CNSR"):
            assert (TargetColumns("months", name).parse(frame)["event"] == died).all()
        # In another table too, where times would speak against any other name.
        assert TargetColumns("months", name, read).with_noted_event(frame).event_value == read


def test_a_name_that_says_nothing_is_asked_about():
    frame, died = outcomes()
    frame["prstat"] = died.astype(int)
    with pytest.raises(ValueError, match="means the event\\? Its name does not say it"):
        read_survival_table(frame, time="months", event="prstat")
    assert (Surv.from_dataframe("prstat", "months", frame)["prstat"] == died).all()


def test_a_name_that_is_known_in_part_is_read_if_the_times_agree_and_it_is_said():
    frame, died = outcomes()
    frame["graft_failure"] = died.astype(int)
    with pytest.warns(
        TableNote, match="'1' of event column 'graft_failure' .* rows with it have shorter times"
    ):
        assert (read_survival_table(frame, time="months", event="graft_failure").event == died).all()
    # Times without a relation to the event say nothing.
    frame["months"] = np.random.default_rng(1).permutation(frame["months"])
    with pytest.raises(
        ValueError, match="Its name is known in part, and the times of neither are clearly shorter"
    ):
        read_survival_table(frame, time="months", event="graft_failure")


@pytest.mark.parametrize("name", ["chd", "withdrawn", "dropout"])
def test_a_word_that_may_be_that_of_a_feature_does_not_compete_with_a_death(name):
    frame = table(months=days(), death=DEAD.astype(int), **{name: RNG.integers(0, 2, N)})
    assert guess_columns(frame).event == "death"
    frame = table(months=np.where(DEAD, 5, 9), chd=DEAD.astype(int))
    assert (read_survival_table(frame, time="months", event="chd").event == DEAD).all()


@pytest.mark.parametrize("digits", [0, 6])
def test_the_share_of_longer_times_is_that_of_the_test_of_mann_and_whitney(digits):
    rng = np.random.default_rng(digits)
    for _ in range(5):
        time, event = rng.exponential(3, 80).round(digits), rng.random(80) < 0.4
        found = mannwhitneyu(time[event], time[~event], method="asymptotic", use_continuity=False)
        share, deviations = longer_with_event(time, event)
        assert share == pytest.approx(found.statistic / (event.sum() * (~event).sum()))
        assert 2 * norm.sf(abs(deviations)) == pytest.approx(found.pvalue)


@pytest.mark.parametrize(
    ("time", "event"),
    [
        ("time_to_relapse", "death"),
        ("days_to_death", "relapse"),
        ("os_months", "pfs_event"),
        ("rfstime", "died"),
    ],
)
def test_the_time_of_one_endpoint_with_the_event_of_another_is_asked_about(time, event):
    frame, died = outcomes()
    frame = frame.rename(columns={"months": time}).assign(**{event: died.astype(int)})
    with pytest.raises(ValueError, match="name the time and the event of one outcome"):
        read_survival_table(frame, time=time, event=event)
    for given in ({}, {"time": time}, {"event": event}, {"time": time, "event": event}):
        with pytest.raises(ValueError, match=r"which columns? holds?|one outcome"):
            read(frame, **given)


@pytest.mark.parametrize(
    ("time", "event"),
    [
        ("os_months", "death"),
        ("rfstime", "rfsstat"),
        ("ttr", "relapse"),
        ("survival_days", "exitus"),
        ("rtime", "recur"),
        ("dtime", "death"),
        ("ptime", "pstat"),
        ("dfs_time", "status"),
        ("efs_months", "event"),
        ("pfs_monate", "progression"),
        ("rezidivfreie_zeit", "rückfall"),
        ("délai", "décédé"),
    ],
)
def test_names_of_one_endpoint_belong_together(time, event):
    frame, died = outcomes()
    frame = frame.rename(columns={"months": time}).assign(**{event: died.astype(int)})
    assert (read(frame)[1] == died).all()
