import pytest

from drosurv.presentation import Column, Statement, Table
from drosurv.report import AuditReport
from drosurv.report.report import ModelAudit
from drosurv.report.section import Part

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
    """The tables of one model, by section."""
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
    shrinkage = ({"metric": "slope", "estimate": 1.1, "low": None, "high": None},)
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
        "trade-off": (Table("shrinkage", "Shrinkage.", metric, shrinkage),),
    }


def make_report(name="age", label=">65", rule="age > 71", alphas=(1.0, 0.5, 0.2), title="Audit of a test"):
    names = [f"DROCox, alpha {alpha:g}" for alpha in alphas]
    own = [tables_of(0.8 - 0.1 * (1 - alpha), name, label) for alpha in alphas]
    said = tuple(
        (Statement("worst_group", f"{model} serves {name} {label} worst.", concern=True),) for model in names
    )
    trade_off = (
        Column("model", "Model"),
        Column("concordance_index", "c-index", "value"),
        Column(f"imparity {name}", "gap", "value"),
        Column("share_of_gain", "share of the gain", "share"),
        Column(f"group_disparity {name}", "group disparity", "value"),
    )
    rows = tuple(
        {
            "model": model,
            "alpha": alpha,
            "stop": f"{alpha:g}",
            "concordance_index": 0.8 - 0.1 * (1 - alpha),
            f"imparity {name}": 0.05 * alpha,
            "share_of_gain": alpha,
            f"group_disparity {name}": alpha,
        }
        for model, alpha in zip(names, alphas, strict=True)
    )
    control = tuple(
        {"factor": c / 4, "share_of_gain": c / 4, f"group_disparity {name}": c / 4} for c in range(5)
    )
    two = (Column("name", "Fact"), Column("value", "Value"))
    verdict = (
        Column("who", "Group"),
        Column("patients", "Patients", "count"),
        Column("finding", "Finding"),
    )
    found = (
        Column("group", "Subgroup"),
        Column("patients", "Patients", "count"),
        Column("p", "p", "p"),
    )
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
        "groups": Part(
            by_model=tuple(tables["groups"] for tables in own), statements_by_model=said, facts={"n_tests": 9}
        ),
        "calibration": Part(
            by_model=tuple(tables["calibration"] for tables in own),
            facts={
                "time_unit": "days",
                "at": "2 days",
                "at_few_times": False,
                "shown": ["curves", "intervals", "slope"],
                "judged": "over the whole follow-up",
                "event": "the event",
                "method": " (Kaplan-Meier)",
                "histograms": [
                    [{"attribute": name, "group": label, "edges": [0.0, 0.5, 1.0], "heights": [1.0, 0.4]}]
                ]
                * len(own),
            },
        ),
        "missed": Part(
            statements=(Statement("subgroups", f"Different: {rule}."),),
            tables=(
                Table("significant", "Subgroups.", found, ({"group": rule, "patients": 60, "p": 0.01},)),
            ),
        ),
        "trade-off": Part(
            tables=(
                Table("trade_off", "Models.", trade_off, rows),
                Table(
                    "control", "Shrinking.", (Column("factor", "Factor", "value"), *trade_off[3:]), control
                ),
            ),
            by_model=tuple(tables["trade-off"] for tables in own),
            facts={"attributes": {name: name}},
        ),
        "method": Part(
            tables=(Table("data", "Data.", two, ({"name": name, "value": label},)),),
            facts={"missing": [], "limits": ["Groups are as recorded."]},
        ),
    }
    models = tuple(
        ModelAudit(
            name=model,
            alpha=alpha,
            audited=alpha == 0.5,
            statements=said[k],
            headline={"c-index": f"{0.8 - 0.1 * (1 - alpha):.3f}", "served worst": f"{name} {label}"},
            tables={table.key: table for tables in own[k].values() for table in tables},
        )
        for k, (model, alpha) in enumerate(zip(names, alphas, strict=True))
    )
    return AuditReport(
        title=title,
        subtitle=f"1,200 patients, groups by {name}.",
        created="2025-01-31",
        version="1.2.3",
        level="95 %",
        time_unit="days",
        models=models,
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
