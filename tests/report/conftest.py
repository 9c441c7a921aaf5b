import pytest

from drosurv.presentation import Column, Statement, Table
from drosurv.report import AuditReport
from drosurv.report.evidence import Part

HOSTILE = "</script><script>document.title='owned'</script>\"'<img src=x onerror=alert(1)>{{7*7}}"
ENDS = ("low", "high")


def group_row(attribute, group, c_index, *, finding="", note=""):
    return {
        "attribute": attribute,
        "group": group,
        "patients": 1200,
        "events": 300,
        "ratio": 1.5 * c_index,
        "ratio_low": c_index,
        "ratio_high": 2 * c_index,
        "gain": 0.2,
        "gain_low": 0.1,
        "gain_high": 0.3,
        "finding": finding,
        "note": note,
    }


def tables_of(c_index, name, label):
    """The tables of the model, by section."""
    metric = (Column("metric", "Measure"), Column("estimate", "Estimate", "value", ENDS))
    place = (Column("group", "Group"), Column("attribute", "Attribute"))
    shares = (Column("predicted", "Predicted", "share"), Column("observed", "Observed", "share", ENDS))
    curve = [
        {
            "attribute": name,
            "group": label,
            "time": 100.0 * k,
            "predicted": 1 - 0.05 * k,
            "observed": 1 - 0.06 * k,
        }
        | {"low": 1 - 0.07 * k, "high": 1 - 0.05 * k}
        | {"difference": 0.01 * k, "difference_low": 0.0, "difference_high": 0.02 * k}
        for k in range(10)
    ]
    strips = (
        Column("patients", "Patients", "count"),
        Column("events", "Events", "count"),
        Column("ratio", "Observed / expected", "value", ("ratio_low", "ratio_high")),
        Column("gain", "Gain over no model", "value", ("gain_low", "gain_high")),
    )
    groups = (
        group_row("", "all patients", c_index),
        group_row(name, label, c_index - 0.1, finding="predictions are wrong"),
        group_row(name, "others", c_index - 0.02, note="few events"),
    )
    risks = tuple(
        {**row, "kind": "spline", "low": row["observed"] - 0.05, "high": row["observed"] + 0.05}
        for row in curve
    )
    numbers = group_row(name, label, c_index) | dict.fromkeys(("ici", "ici_low", "ici_high"))
    numbers |= {"slope": 1.1, "slope_low": 0.9, "slope_high": 1.3}
    over = (*place, Column("time", "Time", "time"), *shares)
    accuracy = ({"metric": "c-index", "estimate": c_index, "low": 0.6, "high": 0.9},)
    fairness = ({"metric": "imparity", "estimate": 0.1, "low": 0.0, "high": 0.2},)
    return {
        "groups": (
            Table("by_group", "Groups.", (*place, *strips), groups),
            Table("accuracy", "Accuracy.", metric, accuracy),
            Table("fairness", "Fairness.", metric, fairness),
        ),
        "calibration": (
            Table("calibration_curves", "Points.", (*place, *shares), risks),
            Table("calibration_numbers", "Numbers.", place, (numbers,)),
            Table("survival", "Curves.", over, tuple(curve)),
        ),
    }


def make_report(name="age", label=">65", rule="age > 71", title="Audit of a test"):
    own = tables_of(0.75, name, label)
    said = Statement("worst_group", f"DROCox serves {name} {label} worst.", concern=True)
    two = (Column("name", "Fact"), Column("value", "Value"))
    verdict = (Column("who", "Group"), Column("patients", "Patients", "count"), Column("finding", "Finding"))
    found = (Column("group", "Subgroup"), Column("patients", "Patients", "count"), Column("p", "p", "p"))
    parts = {
        "verdict": Part(
            statements=(
                Statement("blocking_warning", f"Column {name} may give the outcome away.", True),
                Statement("note_warning", f"3 rows of {label} are copies."),
                Statement("verdict", f"Not fit for {name} {label}.", True),
                Statement("excluded", "No subgroup has more than 2 times the predicted events."),
                Statement("next_step", f"Find out why {name} {label} is predicted wrongly."),
            ),
            tables=(
                Table(
                    "groups",
                    "For whom.",
                    verdict,
                    ({"who": label, "patients": 40, "finding": "wrong", "heading": name, "label": label},),
                ),
            ),
            facts={"status": "harm", "note": "Gain: of the log likelihood."},
        ),
        "groups": Part(statements=(said,), tables=own["groups"], facts={"n_tests": 9}),
        "calibration": Part(
            tables=own["calibration"],
            facts={
                "time_unit": "days",
                "at": "2 days",
                "at_few_times": False,
                "shown": ["curves", "intervals", "slope"],
                "judged": "over the whole follow-up",
                "event": "the event",
                "method": " (Kaplan-Meier)",
                "histograms": [
                    {"attribute": name, "group": label, "edges": [0.0, 0.5, 1.0], "heights": [1.0, 0.4]}
                ],
            },
        ),
        "missed": Part(
            statements=(Statement("subgroups", f"Different: {rule}."),),
            tables=(
                Table("significant", "Subgroups.", found, ({"group": rule, "patients": 60, "p": 0.01},)),
            ),
        ),
        "method": Part(
            tables=(Table("data", "Data.", two, ({"name": name, "value": label},)),),
            facts={"missing": [], "limits": ["Groups are as recorded."]},
        ),
    }
    return AuditReport(
        title=title,
        subtitle=f"1,200 patients, groups by {name}.",
        created="2025-01-31",
        version="1.2.3",
        level="95 %",
        time_unit="days",
        model="DROCox",
        parts=parts,
    )


@pytest.fixture(scope="session")
def report():
    return make_report()


@pytest.fixture
def report_with():
    """Builds a report with given names in it."""
    return make_report


@pytest.fixture
def hostile():
    """Text that would run, end a script, close an attribute or be computed if it were not escaped."""
    return HOSTILE
