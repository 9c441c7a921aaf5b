"""Nothing that is shown depends on the order of rows or columns, or on what groups, clusters and columns are called."""

from math import isclose
from pathlib import Path
from runpy import run_path

import numpy as np
import pandas as pd
import pytest

from drosurv import audit, certify, check, compare, evaluate

SCRIPT = run_path(str(Path(__file__).parent / "fixtures" / "calls_of_0_4.py"))
patients, outcome, fitted, survival, incidences = (
    SCRIPT[name] for name in ("patients", "outcome", "fitted", "survival", "incidences")
)
CoxPH, CauseSpecificCox, FEW_TIMES = (SCRIPT[name] for name in ("CoxPH", "CauseSpecificCox", "FEW_TIMES"))


def coarse(n=150):
    """Return patients of whom many have the same times, or all but the same cluster."""
    one = patients(n, wrong=2.0, ties=True)
    return one._replace(X=one.X.assign(age=one.X["age"].round(-1), marker=one.X["marker"].round()))


def in_two_rows():
    """Return two rows of each patient, with one weight."""
    one = SCRIPT["in_two_rows"](patients(140, wrong=2.0))
    return one._replace(weight=np.repeat(one.weight[::2], 2))


def survivals(one):
    """Return two tables of predictions at few times."""
    return [survival(one, FEW_TIMES, error) for error in (0.0, 0.5)]


def models(fields="", causes=False):
    """Return a function that returns two models, trained on other patients."""
    trained = [
        fitted(CauseSpecificCox(l2=l2) if causes else CoxPH(l2=l2), fields, causes) for l2 in (0.0, 0.3)
    ]
    return lambda one: trained


# Patients, what predicts them, fields of y, and arguments.
CASES = {
    "plain": (patients, models, "", {}),
    "ties": (coarse, models, "", {}),
    "weights": (lambda: patients(80, ties=True), models, "weight", {}),
    "clusters": (coarse, models, "clusters", {}),
    "late entry": (patients, lambda: models("entry"), "entry", {}),
    "rows of a patient": (in_two_rows, lambda: models("entry"), "entry id", {}),
    "correlated rows": (lambda: coarse()._replace(id=np.arange(150) // 3), models, "id", {}),
    "all fields": (in_two_rows, lambda: models("entry"), "entry id clusters weight", {}),
    "any cause": (coarse, lambda: models(causes=True), "", {"causes": True}),
    "one cause": (coarse, lambda: models(causes=True), "", {"causes": True, "cause": "cancer"}),
    "few times": (coarse, lambda: survivals, "clusters", {}),
    "one cause at few times": (
        coarse,
        lambda: lambda one: [incidences(one, FEW_TIMES), incidences(one, FEW_TIMES)],
        "",
        {"causes": True, "cause": 1},
    ),
    # They take scores that differ by rounding errors for different ones: nobody has equal features here.
    "the paper's metrics": (patients, models, "", {"paper": True}),
}

# An audit adds the search for subgroups and the page's words.
AUDITED = ("ties", "clusters", "late entry", "one cause", "few times")


def shuffled(one):
    order = np.random.default_rng(0).permutation(len(one.time))
    return type(one)(
        *(
            part.iloc[order].reset_index(drop=True) if isinstance(part, pd.DataFrame) else part[order]
            for part in one
        )
    )


def differences(one, other, where=""):
    """Return what differs between two nested results by more than 1e-9."""
    if isinstance(one, dict) and isinstance(other, dict):
        if list(one) != list(other):
            return [(where, list(one), list(other))]
        return [found for key in one for found in differences(one[key], other[key], f"{where}/{key}")]
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return [(where, len(one), len(other))]
        return [
            found
            for k, parts in enumerate(zip(one, other, strict=True))
            for found in differences(*parts, f"{where}/{k}")
        ]
    if isinstance(one, float) and isinstance(other, float):
        same = isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) or (np.isnan(one) and np.isnan(other))
        return [] if same else [(where, one, other)]
    return [] if one == other else [(where, one, other)]


def evaluated(predicted, one, y, **options):
    how = {"sensitive_features": one.groups, "horizon": 3.0, "threshold": 0.3, **options}
    found = evaluate(predicted[0], one.X, y, **how)
    curves = found.calibration_curves
    tables = [found.table, found.between_large, found.groups, found.calibration, found.survival]
    tables += [found.findings, found.decisions, found.by_cause]
    tables += [] if curves is None else [curves.numbers, curves.points]
    return [None if table is None else table.to_dict("list") for table in tables]


def compared(predicted, one, y, **options):
    named = dict(zip("ab", predicted, strict=True))
    return compare(named, one.X, y, sensitive_features=one.groups["sex"], **options).to_dict("list")


def certified(predicted, one, y, **options):
    return certify(predicted[0], one.X, y, alpha=0.3, n_bootstrap=59, **options).to_dict()


def audited(predicted, one, y, **options):
    how = {"sensitive_features": one.groups["sex"], "horizon": 3.0, **options}
    return as_shown(audit(predicted[0], one.X, y, **how))


def as_shown(found):
    """Return a report or a check as a dict, without when it was made and how long it took."""
    shown = found.to_dict()
    shown.get("report", shown).pop("created")
    return shown


@pytest.mark.filterwarnings("ignore::drosurv.evaluation.SmallGroupWarning")
@pytest.mark.parametrize(
    ("case", "verb"),
    [
        *((case, verb) for case in CASES for verb in (evaluated, compared, certified) if "paper" not in case),
        ("the paper's metrics", evaluated),
        *((case, audited) for case in AUDITED),
    ],
)
def test_the_order_of_rows_changes_nothing(case, verb):
    make, predictor, fields, how = CASES[case]
    predict, how = predictor(), dict(how)
    causes, one = how.pop("causes", False), make()
    first, second = (
        verb(predict(these), these, outcome(these, fields, causes), **how) for these in (one, shuffled(one))
    )
    assert differences(first, second) == []


@pytest.mark.usefixtures("quick_check")
def test_the_order_of_rows_changes_nothing_that_a_check_finds():
    def shown(these):
        table = pd.concat([these.X, these.groups], axis=1).assign(months=these.time, died=these.cause > 0)
        table = table.assign(entry=these.entry, id=these.id)
        return as_shown(check(table, time="months", event="died", groups=["sex"], entry="entry", id="id"))

    one = in_two_rows()
    assert differences(shown(one), shown(shuffled(one))) == []


@pytest.mark.parametrize("fields", ["", "clusters"])
@pytest.mark.parametrize("times", [np.arange(1, 101) / 10, FEW_TIMES], ids=["many times", "few times"])
def test_names_and_the_order_of_columns_do_not_change_bounds(times, fields):
    one = coarse()
    # Nobody differs in the predictions, so that the columns decide the order in which outcomes are drawn.
    predicted = times, np.exp(-np.outer(np.ones(150), times / 5))

    def bounds(features, clusters):
        y = outcome(one._replace(clusters=clusters), fields)
        return certify(predicted, None, y, features=features, alpha=0.3, n_bootstrap=59)

    table = pd.concat([one.X, one.groups], axis=1)
    first = bounds(table, one.clusters)
    names = {"sex": "c", "age": "z", "region": "a", "marker": "b", "treated": "y"}
    called = {"f": "man", "m": "female", "north": "x", "south": "b", "west": "c"}
    renamed = table[["region", "treated", "marker", "sex", "age"]].replace(called).rename(columns=names)
    second = bounds(renamed, np.array([f"hospital {7 * k % 12}" for k in one.clusters]))
    np.testing.assert_allclose(
        second.bounds[["estimate", "bound"]].astype(float),
        first.bounds[["estimate", "bound"]].astype(float),
        rtol=1e-9,
    )
    np.testing.assert_allclose(np.sort(second.significant["p"]), np.sort(first.significant["p"]), rtol=1e-9)
