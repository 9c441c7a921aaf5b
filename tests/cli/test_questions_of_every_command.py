"""Every command that reads outcomes asks the same about them, and takes the same answer."""

import re

import numpy as np
import pandas as pd
import pytest

from drosurv.errors import InputError
from drosurv.tables import SurvivalTable
from drosurv.tables.problems import repeated_outcomes

pytestmark = pytest.mark.sections("verdict")

N = 200


def table():
    """Patients with months until death, which age hastens, and the day on which each was admitted."""
    rng = np.random.default_rng(0)
    age = rng.normal(60, 10, N).round()
    time, end = rng.exponential(40 * np.exp(-0.05 * (age - 60))), rng.uniform(10, 80, N)
    admitted = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D")
    months, died = np.minimum(time, end).round(2) + 0.01, (time <= end).astype(int)
    return pd.DataFrame(
        {
            "months": months,
            "died": died,
            "age": age,
            "sex": rng.choice(["f", "m"], N),
            "admitted": admitted.strftime("%Y-%m-%d"),
            "nodes": rng.poisson(4, N),
        }
    )


@pytest.fixture(scope="module")
def model(drosurv, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    table().drop(columns="admitted").to_csv(folder / "patients.csv", index=False)
    drosurv.ok(
        "fit",
        folder / "patients.csv",
        "--time",
        "months",
        "--event",
        "died",
        "--numeric",
        "nodes",
        "--model",
        "cox",
        "-o",
        folder / "model",
    )
    return folder / "model"


# Of one table all commands are run, of others those that read a table each in their own way.
READERS = ("check", "fit", "evaluate", "audit of predictions")


def commands(model, data, folder, names=None):
    """The arguments of each command, or of those with these names, but for those that name columns."""
    given = {
        "check": [data, "-o", folder / "check.html"],
        "fit": [data, "--model", "cox", "-o", folder / "fitted"],
        "audit": [model, data, "--no-rules", "-o", folder / "audit.html"],
        "evaluate": [model, data],
        "certify": [model, data, "--alpha", 0.3, "--replicates", 19],
        "repair": [data, "--max-conditions", 1, "-o", folder / "repaired"],
        "monitor": [model, data, "-o", folder / "monitor.html"],
        "plan": [data],
        "audit of predictions": ["--predictions", data, "--risk", "nodes", "-o", folder / "predictions.html"],
    }
    return {name: given[name] for name in names or given}


def named(frame, time, event, died=None):
    """The table with other names of time and event."""
    died = frame["died"] if died is None else died
    return frame.drop(columns=["months", "died"]).assign(**{time: frame["months"], event: died})


def visits(frame):
    """Three visits of each patient, each with the whole follow-up."""
    rows = frame.loc[np.repeat(np.arange(N), 3)].reset_index(drop=True)
    return rows.assign(pid=np.repeat(np.arange(N), 3) + 1000, nodes=np.arange(3 * N) % 7)


def day_first(frame):
    """Admission and end of follow-up as numbers DDMMYYYY."""
    start = pd.to_datetime(frame["admitted"])
    end = start + pd.to_timedelta((30 * frame["months"]).round() + 1, "D")
    dates = {name: at.dt.strftime("%d%m%Y").astype(int) for name, at in (("first", start), ("last", end))}
    return frame.drop(columns=["months", "admitted"]).assign(**dates)


TIMES = ("--time", "months")
# What is asked about, the table, the options that name its columns, and a part of the question.
QUESTIONS = {
    "denial in a name": (
        lambda frame: named(frame, "months", "not_dead", 1 - frame["died"]),
        (*TIMES, "--event", "not_dead"),
        "which value of event column 'not_dead' means the event?",
    ),
    "coding that contradicts itself": (
        lambda frame: named(frame, "months", "status (1=alive, 1=dead)"),
        (*TIMES, "--event", "status (1=alive, 1=dead)"),
        "means the event?",
    ),
    "longer times of those called dead": (
        lambda frame: named(frame, "months", "death", 1 - frame["died"]),
        (*TIMES, "--event", "death"),
        "Rows with '1' have longer times than the others",
    ),
    "999 among values": (
        lambda frame: frame.assign(age=frame["age"].mask(frame.index % 20 == 0, 999)),
        (*TIMES, "--event", "died"),
        "column 'age' holds 999 in 10 rows, outside the rest",
    ),
    "999 among times": (
        lambda frame: frame.assign(months=frame["months"].mask(frame.index % 20 == 0, 999)),
        (*TIMES, "--event", "died"),
        "column 'months' holds 999 in 10 rows, outside the rest",
    ),
    "time and event of different endpoints": (
        lambda frame: named(frame, "os_months", "pfs_event"),
        ("--time", "os_months", "--event", "pfs_event"),
        "is named after death, and --event column 'pfs_event' after progression",
    ),
    "visits with the outcome of the patient": (
        visits,
        (*TIMES, "--event", "died", "--id", "pid"),
        "column 'pid' names 200 patients in 600 rows, and rows of a patient have the same time and event",
    ),
}
# A remedy that plan and monitor do not have.
CLUSTERS = " If each row is a unit of its own, as each eye is, pass --clusters 'pid' and no --id."


def options_of(command, options):
    """The options, and for monitoring the day of admission."""
    return (*options, "--start", "admitted") if command == "monitor" and "--start" not in options else options


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_command_asks_the_same(drosurv, model, question, tmp_path):
    change, options, part = QUESTIONS[question]
    change(table()).to_csv(tmp_path / "patients.csv", index=False)
    asked, names = {}, None if question.startswith("visits") else READERS
    for command, given in commands(model, tmp_path / "patients.csv", tmp_path, names).items():
        said = drosurv.fails(command.split()[0], *given, *options_of(command, options))
        # Messages name options that the command has.
        assert not re.search(r"\w=['\"\[]", said.replace("'age=999'", ""))
        asked[command] = said.replace(CLUSTERS, "")
    assert part in asked["check"]
    assert len(set(asked.values())) == 1, asked


@pytest.mark.parametrize(
    ("value", "part", "answers"),
    [
        (999, "column 'age' holds 999 in 10 rows", (("--missing", "age=999"), ("--numeric", "age"))),
        ("unknown", "column 'age' holds 'unknown' in 10 rows", (("--missing", "age=unknown"),)),
    ],
)
def test_predict_asks_as_evaluate_does_and_takes_the_same_answers(
    drosurv, model, tmp_path, value, part, answers
):
    frame = table().astype({"age": object})
    path = tmp_path / "new.csv"
    frame.assign(age=frame["age"].mask(frame.index % 20 == 0, value)).to_csv(path, index=False)
    said = [drosurv.fails(command, model, path) for command in ("predict", "evaluate")]
    assert part in said[0]
    # A model's columns are no longer declared when it predicts.
    assert said[0] == said[1].split("; if the column is a category")[0] + ("." if value == "unknown" else "")
    for answer in answers:
        assert drosurv.ok("predict", model, path, *answer).stdout.count("\n") == N + 1


def test_every_command_asks_about_numbers_of_patients_that_no_name_tells(drosurv, model, tmp_path):
    """Check takes them as numbers of patients, and asks about these."""
    visits(table()).rename(columns={"pid": "k"}).to_csv(tmp_path / "patients.csv", index=False)
    for command, given in commands(model, tmp_path / "patients.csv", tmp_path).items():
        said = drosurv.fails(command.split()[0], *given, *options_of(command, (*TIMES, "--event", "died")))
        part = "names 200 patients in 600 rows" if command == "check" else "'k' has 200 values in 600 rows"
        assert part in said, command


def test_every_command_says_that_rows_repeat_patients(drosurv, model, tmp_path, monkeypatch):
    """Each is stopped with the warning, which saves the time of what follows it."""

    def stop(*given):
        raise InputError(*map(str, repeated_outcomes(*given)))

    monkeypatch.setattr("drosurv.tables.problems.repeated_outcomes", stop)
    visits(table()).drop(columns="pid").to_csv(tmp_path / "patients.csv", index=False)
    for command, given in commands(model, tmp_path / "patients.csv", tmp_path).items():
        said = drosurv.fails(command.split()[0], *given, *options_of(command, (*TIMES, "--event", "died")))
        assert "rows seem to repeat patients" in said, command


@pytest.fixture
def reading(drosurv, monkeypatch):
    """Runs a command until it has read the table; returns event and time of the rows."""
    parse = SurvivalTable.parse
    found = []

    def stop(*given, **options):
        found.append(parse(*given, **options).y)
        raise InputError("the table is read")

    monkeypatch.setattr(SurvivalTable, "parse", staticmethod(stop))

    def read(*arguments):
        found.clear()
        result = drosurv(*arguments)
        assert "the table is read" in result.stderr, (arguments, result.stderr)
        (y,) = found
        return y

    return read


# The table, and the options that name its columns: with the answer to a question, or where none is needed.
READ = {
    "denial, answered": (QUESTIONS["denial in a name"], ("--event-value", "0")),
    "coding that contradicts itself, answered": (
        QUESTIONS["coding that contradicts itself"],
        ("--event-value", "1"),
    ),
    "999 as missing": (QUESTIONS["999 among values"], ("--missing", "age=999")),
    "999 as an amount": (QUESTIONS["999 among values"], ("--numeric", "age")),
    "endpoints, confirmed": (QUESTIONS["time and event of different endpoints"], ("--event-value", "1")),
    "coding in a name": (
        (
            lambda frame: named(frame, "months", "status (0=alive, 1=dead)"),
            (*TIMES, "--event", "status (0=alive, 1=dead)"),
        ),
        (),
    ),
    "coding the other way around": (
        (
            lambda frame: named(frame, "months", "vital 1: alive 0: dead", 1 - frame["died"]),
            (*TIMES, "--event", "vital 1: alive 0: dead"),
        ),
        (),
    ),
    "days first in numbers": ((day_first, ("--start", "first", "--end", "last", "--event", "died")), ()),
}


@pytest.mark.parametrize("case", READ)
def test_every_command_reads_the_same(reading, model, case, tmp_path):
    (change, options, *_), answer = READ[case]
    frame = table()
    change(frame).to_csv(tmp_path / "patients.csv", index=False)
    days = (30 * frame["months"]).round() + 1
    time = days if "--end" in options else frame["months"]
    names = None if case == "days first in numbers" else READERS
    for command, given in commands(model, tmp_path / "patients.csv", tmp_path, names).items():
        y = reading(command.split()[0], *given, *options_of(command, options), *answer)
        np.testing.assert_array_equal(y["event"], frame["died"] == 1, err_msg=command)
        np.testing.assert_allclose(y["time"], time, err_msg=command)


@pytest.mark.parametrize(
    ("died", "asked"),
    [
        (lambda died: 1 - died, "Rows with '1' have longer times than the others"),
        (lambda died: died + 1, "In training it was '1'. It holds '2'"),
        (lambda died: np.where(died == 1, "dead", "alive"), ""),
        (lambda died: died == 1, ""),
        (lambda died: np.where(died == 1, "yes", "no"), ""),
    ],
    ids=["inverted", "1 and 2", "words", "booleans", "yes and no"],
)
def test_events_of_another_table_are_coded_as_it_says(drosurv, reading, model, tmp_path, died, asked):
    """The model was trained where 1 is the event; a wrong event would be judged without a word."""
    frame = table()
    frame.assign(died=died(frame["died"])).to_csv(tmp_path / "other.csv", index=False)
    given = ("evaluate", model, tmp_path / "other.csv")
    if asked:
        assert asked in drosurv.fails(*given)
        assert (reading(*given, "--event-value", "1")["event"]).any()
    else:
        assert (reading(*given)["event"] == (frame["died"] == 1)).all()


def test_a_table_in_another_unit_is_warned_of(drosurv, model, tmp_path):
    """All of a column: no value is as far away as a single wrong one."""
    frame = table()
    frame.assign(age=frame["age"] / 12).to_csv(tmp_path / "other.csv", index=False)
    said = drosurv.ok("predict", model, tmp_path / "other.csv", "-o", tmp_path / "p.csv").stderr
    assert "200 rows more than 4 standard deviations away" in said
