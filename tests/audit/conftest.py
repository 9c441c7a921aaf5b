import pytest

from drosurv.audit import AuditReport, Column, ModelAudit, Statement, Table, WorstOffAudit

HOSTILE = "</script><script>document.title='owned'</script>\"'<img src=x onerror=alert(1)>{{7*7}}"
ENDS = ("low", "high")


def group_row(attribute, group, c_index, *, worst=False, note=""):
    return {
        "attribute": attribute,
        "group": group,
        "patients": 1200,
        "events": 300,
        "c_index": c_index,
        "c_low": c_index - 0.05,
        "c_high": c_index + 0.05,
        "brier_skill": 0.2,
        "s_low": 0.1,
        "s_high": 0.3,
        "worst": worst,
        "note": note,
    }


def make_model(alpha, c_index, name="age", label=">65", *, audited=False):
    title = f"DROCox, alpha {alpha:g}"
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
        for k in range(10)
    ]
    strips = (
        Column("patients", "Patients", "count"),
        Column("events", "Events", "count"),
        Column("c_index", "c-index", "value", ("c_low", "c_high")),
        Column("brier_skill", "Brier skill", "share", ("s_low", "s_high")),
    )
    groups = (
        group_row("", "all patients", c_index),
        group_row(name, label, c_index - 0.1, worst=True),
        group_row(name, "others", c_index - 0.02, note="few events"),
    )
    horizon = Column("horizon", "Time", "time")
    return ModelAudit(
        name=title,
        alpha=alpha,
        audited=audited,
        statements=(Statement("worst_group", f"{title} serves {name} {label} worst.", concern=True),),
        headline={"c-index": f"{c_index:.3f}", "served worst": f"{name} {label}"},
        accuracy=Table(
            "accuracy",
            "Accuracy.",
            metric,
            ({"metric": "c-index", "estimate": c_index, "low": 0.6, "high": 0.9},),
        ),
        fairness=Table(
            "fairness",
            "Fairness.",
            metric,
            ({"metric": "imparity", "estimate": 0.1, "low": 0.0, "high": 0.2},),
        ),
        groups=Table("by_group", "Groups.", (*place, *strips), groups),
        calibration=Table(
            "calibration",
            "Calibration.",
            (*place, horizon, *shares),
            tuple({**row, "horizon": row["time"]} for row in curve[3:6]),
        ),
        survival=Table(
            "survival", "Curves.", (*place, Column("time", "Time", "time"), *shares), tuple(curve)
        ),
        shrinkage=Table(
            "shrinkage",
            "Shrinkage.",
            metric,
            ({"metric": "slope", "estimate": 1.1, "low": None, "high": None},),
        ),
    )


def make_report(name="age", label=">65", rule="age > 71", alphas=(1.0, 0.5, 0.2), title="Audit of a test"):
    models = tuple(make_model(a, 0.8 - 0.1 * (1 - a), name, label, audited=a == 0.5) for a in alphas)
    trade_off = (
        Column("model", "Model"),
        Column("concordance_index", "c-index", "value"),
        Column(f"imparity {name}", "gap", "value"),
        Column("share_of_gain", "information kept", "share"),
        Column(f"group_disparity {name}", "group disparity", "value"),
    )
    rows = tuple(
        {
            "model": m.name,
            "alpha": m.alpha,
            "stop": m.stop_label,
            "concordance_index": 0.8 - 0.1 * (1 - m.alpha),
        }
        | {f"imparity {name}": 0.05 * m.alpha, "share_of_gain": m.alpha, f"group_disparity {name}": m.alpha}
        for m in models
    )
    control = tuple(
        {"factor": c / 4, "share_of_gain": c / 4, f"group_disparity {name}": c / 4} for c in range(5)
    )
    facts = Table(
        "data", "Data.", (Column("name", "Fact"), Column("value", "Value")), ({"name": name, "value": label},)
    )
    rules = ({"rule": rule, "verdict": "harmed", "patients": 60},)
    return AuditReport(
        title=title,
        subtitle=f"1,200 patients, groups by {name}.",
        created="2025-01-31",
        version="1.2.3",
        level="95 %",
        time_title="days",
        attributes=(name,),
        models=models,
        trade_off=Table("trade_off", "Models.", trade_off, rows),
        control=Table(
            "control", "Shrinking.", (Column("factor", "Factor", "value"), *trade_off[3:]), control
        ),
        worst_off=WorstOffAudit(
            f"Served worse than by no model: {rule}.",
            Table(
                "worst_off",
                "Rules.",
                (Column("rule", "Rule"), Column("patients", "Patients", "count")),
                rules,
            ),
            "Harm is a loss.",
        ),
        method=(facts,),
        limits=("Groups are as recorded.",),
    )


@pytest.fixture
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
