"""Table 1: audited patients by group beside the training patients, as far as the model keeps what they were."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.nonparametric import kaplan_meier_estimator
from typer.testing import CliRunner

from drosurv import CoxPH, Surv, repair
from drosurv.cli import app
from drosurv.metrics import log_rank_test
from drosurv.patients.target import with_fields
from drosurv.presentation import Column, Table, literal
from drosurv.report import Page, audit
from drosurv.report.evidence import Part
from drosurv.report.sections.patients import ALL, ColumnSummary, _of_column, draw
from drosurv.tables import TableEncoder

pytestmark = pytest.mark.sections("patients")

QUICK = {"search_rules": False}


def cohort(seed, n=300):
    """Patients with a number, a text column, codes, zeros and ones, and missing values in all but the codes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(60, 9, n).round(1)),
            "stage": rng.choice(["I", "II", "III", None], n, p=[0.5, 0.25, 0.2, 0.05]),
            "site": rng.choice([1, 2, 3], n),
        }
    )
    treated = np.random.default_rng(seed + 100).choice([0.0, 1.0, np.nan], n, p=[0.6, 0.3, 0.1])
    X.insert(3, "treated", treated)
    time, censored = rng.exponential(np.exp(-(X["age"].fillna(60) - 60) / 20)), rng.uniform(0, 3, n)
    return X, Surv.from_arrays(time <= censored, np.minimum(time, censored))


@pytest.fixture(scope="module")
def train():
    return cohort(0)


@pytest.fixture(scope="module")
def held_out():
    return cohort(1)


@pytest.fixture(scope="module")
def model(train):
    return make_pipeline(TableEncoder(categorical=["site"]), CoxPH(l2=0.01)).fit(*train)


def groups_of(X):
    return {"old": np.where(X["age"] > 60, "yes", "no")}


def table_1(report):
    """Cells of the column of training patients by row; empty without one."""
    (table,) = (table for key, table in report.tables.items() if key.startswith("patients"))
    if "Training" not in table.header:
        return {}
    return {row["name"]: row["training"] for row in table.rows}


def note(report):
    return report.parts["patients"].facts["note"]


def share(count, n):
    return f"{count} ({100 * count / n:.1f} %)"


def expected(X, y):
    """The column of training patients, counted from the training table itself."""
    n, age = len(X), X["age"].dropna()
    at, censoring = kaplan_meier_estimator(~y["event"], y["time"])
    cells = {
        "Patients": str(n),
        "Events": share(y["event"].sum(), n),
        "Median follow-up": f"{at[np.flatnonzero(censoring <= 0.5)[0]]:.3g} years",
        "age, mean (SD)": f"{age.mean():.2f} ({age.std():.2f})",
        "age, missing": share(X["age"].isna().sum(), n),
        "stage, missing": share(X["stage"].isna().sum(), n),
        "treated = 1": share((X["treated"] == 1).sum(), n),
        "treated, missing": share(X["treated"].isna().sum(), n),
    }
    for column, levels in {"stage": ("I", "II", "III"), "site": (1, 2, 3)}.items():
        cells |= {f"{column} = {level}": share((X[column] == level).sum(), n) for level in levels}
    return cells


@pytest.mark.parametrize("kind", ["pipeline", "repaired"])
@pytest.mark.filterwarnings("ignore")
def test_a_model_with_an_encoder_fills_the_column_of_training_patients(model, train, held_out, kind):
    if kind == "repaired":
        model = make_pipeline(TableEncoder(categorical=["site"]), CoxPH(l2=0.01))
        model = repair(model, *train, max_conditions=1, random_state=0)
    X, y = held_out
    report = audit(model, X, y, sensitive_features=groups_of(X), page=Page(time_unit="years"), **QUICK)
    assert table_1(report) == expected(*train)
    assert not note(report)
    # The audited patients are counted by group.
    rows = {row["name"]: row for row in report.tables["patients old"].rows}
    old = (X["age"] > 60).to_numpy()
    for heading, members in (("All audited", np.ones(len(X), bool)), ("yes", old), ("no", ~old)):
        wanted = expected(X[members], y[members])
        assert {name: row[f"group {heading}"] for name, row in rows.items()} == wanted


def test_only_zeros_and_ones_are_counted_as_ones():
    for values, ones in (([0, 1, 1, np.nan], 2), ([0, 0], 0), ([1], 1), ([0, 1, 2], None), ([np.nan], None)):
        assert ColumnSummary.of(pd.Series(values, dtype=float), by_level=False).of_two() == ones


@pytest.mark.parametrize("n_levels", [8, 12, 13])
def test_rare_levels_are_counted_together_and_no_patient_is_left_out(n_levels):
    """Level k has 5 + k patients."""
    column = pd.Series([f"level {k}" for k in range(n_levels) for _ in range(5 + k)], name="site")
    everybody = {f"group {ALL}": np.ones(len(column), dtype=bool)}
    rows = {row["name"]: row[f"group {ALL}"] for row in _of_column(column, everybody, None)}
    assert sum(int(cell.split()[0]) for cell in rows.values()) == len(column)
    assert ("site, 2 other levels" in rows) == (n_levels > 12)


def test_the_smallest_groups_are_not_drawn_but_named_and_numbers_are_below_their_ticks():
    names = [f"ward {k}" for k in range(10)]
    rows = [
        {"group": name, "time": time, "survival": 1 - time / 400, "at_risk": 90 + k - time // 10}
        for k, name in enumerate(names)
        for time in (0, 100, 200)
    ]
    curves = Table("kaplan_meier", "By ward", (Column("group", "Group"),), tuple(rows))
    ((_, chart, at_risk, _),) = draw(
        Part(tables=(curves, curves), facts={"time_unit": "days", "since": "start"})
    )
    assert [line.name for line in chart.lines] == names[2:]
    assert at_risk.notes == ("Not drawn, because they are the smallest groups: ward 0 and ward 1.",)
    assert len({line.role for line in chart.lines}) == 8
    ticks = [tick.label for tick in chart.frame.x.ticks]
    assert [column.label for column in at_risk.columns[1:]] == ticks
    assert at_risk.rows[0] == {"group": "ward 2", "0": 92, "50": 82, "100": 82, "150": 72, "200": 72}


def test_small_counts_are_not_written_out_events_included():
    assert ColumnSummary(20, 0).count_text(4) == "under 5"
    X, y = cohort(1, n=60)
    y["event"] = np.arange(60) < 3
    report = audit(X["site"].to_numpy(), None, y, sensitive_features=None, **QUICK)
    (events,) = (row for row in report.tables["patients"].rows if row["name"] == "Events")
    assert events[f"group {ALL}"] == "under 5"


def test_the_training_table_takes_the_place_of_the_encoder(model, train, held_out):
    X, y = held_out
    given = {"X_train": train[0], "y_train": train[1]}
    report = audit(model, X, y, sensitive_features=None, page=Page(time_unit="years"), **given, **QUICK)
    assert table_1(report) == expected(*train)


def rows_of(column, trained=None, grouping=()):
    """Cells of all audited patients, or those and the ones of the training patients."""
    rows = _of_column(column, {f"group {ALL}": np.ones(len(column), dtype=bool)}, trained, grouping)
    kept = [f"group {ALL}", *(["training"] if trained else [])]
    return {row["name"]: " | ".join(row[key] for key in kept) for row in rows}


def test_whole_codes_are_counted_by_value_and_amounts_are_averaged():
    sex = pd.Series([1] * 30 + [2] * 70, name="sex", dtype=float)
    assert rows_of(sex) == {"sex = 1": "30 (30.0 %)", "sex = 2": "70 (70.0 %)"}
    # A model that keeps only mean and deviation tells how many have each of two codes.
    trained = ColumnSummary.of(pd.Series([1.0] * 10 + [2.0] * 40), by_level=False)
    assert rows_of(sex, trained) == {
        "sex = 1": "30 (30.0 %) | 10 (20.0 %)",
        "sex = 2": "70 (70.0 %) | 40 (80.0 %)",
    }
    nurse = pd.Series(np.repeat(np.arange(11, 21), 10), name="nurse")
    assert list(rows_of(nurse)) == ["nurse, mean (SD)"]
    assert list(rows_of(nurse, grouping={"nurse"})) == [f"nurse = {k}" for k in range(11, 21)]
    assert list(rows_of(nurse.rename("centre"))) == [f"centre = {k}" for k in range(11, 21)]
    # Of more than two codes, mean and deviation do not tell.
    trained = ColumnSummary.of(nurse, by_level=False)
    assert list(rows_of(nurse, trained, {"nurse"})) == ["nurse, mean (SD)"]


def test_years_have_no_separator_of_thousands():
    years = pd.Series(np.arange(1980, 1990), name="dxyr")
    assert rows_of(years) == {"dxyr, mean (SD)": f"1984.50 ({years.std():.2f})"}
    assert rows_of(100 * years.rename("cost"))["cost, mean (SD)"].startswith("198,450 ")


@pytest.mark.filterwarnings("ignore")
def test_a_frozen_model_that_was_repaired_on_others_shows_no_column_of_either(model, held_out):
    X, y = held_out
    repaired = repair(model, *cohort(2), frozen=True, random_state=0)
    report = audit(repaired, X, y, sensitive_features=None, **QUICK)
    assert table_1(report) == {}
    assert "trained on 300 patients" in note(report)


@pytest.mark.filterwarnings("ignore")
def test_one_sentence_says_why_there_is_no_column(model, train, held_out):
    X, y = held_out
    numbers, more = X[["site"]].astype(float), {"sensitive_features": None, **QUICK}
    events = train[1]["event"].sum()
    plain = audit(CoxPH().fit(train[0][["site"]].astype(float), train[1]), numbers, y, **more)
    assert f"trained on 300 patients with {events} events (median follow-up time " in note(plain)
    assert "give the training table" in note(plain)
    cox = CoxPHSurvivalAnalysis().fit(train[0][["site"]].astype(float), train[1])
    assert note(audit(cox, numbers, y, y_train=train[1], **more)) == note(plain)
    survival = model.predict_survival_function(X)
    times = np.quantile(y["time"], [0.2, 0.5, 0.8])
    foreign = audit((times, [[s(t) for t in times] for s in survival]), X, y, **more)
    assert note(foreign) == "The training patients have no column: nothing is known about them."
    folds = audit(CoxPH(), numbers, y, folds=3, **more)
    assert note(folds).endswith("they are the audited ones, in other folds.")
    for report in (plain, foreign, folds):
        assert table_1(report) == {}
        assert note(report) in report.to_html()
        assert literal(note(report)) in report.to_markdown()


@pytest.mark.sections("verdict", "patients")
def test_a_saved_model_tells_its_training_patients(tmp_path, train, held_out):
    for name, (X, y) in {"train": train, "test": held_out}.items():
        X.assign(years=y["time"], died=y["event"].astype(int)).to_csv(tmp_path / f"{name}.csv", index=False)
    out, report = tmp_path / "model", tmp_path / "report.md"
    target = ["--time", "years", "--event", "died", "--categorical", "site"]
    for arguments in (
        ["fit", tmp_path / "train.csv", *target, "--model", "cox", "-o", out],
        ["audit", out, tmp_path / "test.csv", "--no-rules", "-o", report],
    ):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
    section = report.read_text().split("## Patients\n")[1].split("\n## ")[0]
    lines = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")]
    shown = {cells[0].removeprefix("| "): cells[-1].removesuffix(" |") for cells in lines}
    for name, cell in expected(*train).items():
        assert shown[name] == cell


def test_the_log_rank_test_stands_beside_the_curves(model, held_out, tmp_path):
    X, y = held_out
    groups = groups_of(X)
    report = audit(model, X, y, sensitive_features=groups, **QUICK)
    wanted = log_rank_test(y, groups["old"])
    (curves,) = (table for key, table in report.tables.items() if key.startswith("kaplan_meier"))
    (said,) = curves.notes
    assert said.startswith("Log-rank test that all groups have the same survival: p ")
    assert f"(chi-square {wanted.chi_square:.2f}, 1 degree of freedom)" in said
    report.to_html(tmp_path / "r.html")
    assert said in (tmp_path / "r.html").read_text()
    # It is not valid for several rows of a patient, and there is nothing to compare without groups.
    repeated = audit(model, X, with_fields(y, id=np.arange(len(y)) // 2), sensitive_features=groups, **QUICK)
    alone = audit(model, X, y, **QUICK)
    for other in (repeated, alone):
        assert all(not t.notes for key, t in other.tables.items() if key.startswith("kaplan_meier"))
