"""Weights of y count copies of its rows, in every public function that judges."""

import numpy as np
import pandas as pd
import pytest

from drosurv import CoxPH, audit, certify, compare, evaluate, monitor
from drosurv.datasets import make_hidden_minority
from drosurv.patients.target import with_fields

N = 160
DATA = make_hidden_minority(N, random_state=0)
X, Y = DATA.X, DATA.y
GROUPS = np.where(X["x1"] > 0, "high", "low")
WEIGHT = np.tile([2, 1, 0, 1], N // 4)
ROWS = np.repeat(np.arange(N), WEIGHT)
MODEL = CoxPH(l2=0.1).fit(X, Y)


def evaluated(X, y, groups):
    found = evaluate(MODEL, X, y, sensitive_features=groups, subgroups={"young": X["x2"] < 0}, threshold=0.5)
    names = ("table", "groups", "times", "decisions", "decision_curves", "calibration", "findings")
    return {name: getattr(found, name) for name in names}


def certified(X, y, groups):
    found = certify(MODEL, X, y, alpha=0.3, n_bootstrap=59, horizon=1.0)
    names = ("observed", "expected", "ratio", "low", "high", "brier")
    return {"all patients": pd.Series({name: found.overall[name] for name in names}), "bounds": found.bounds}


def compared(X, y, groups):
    models = {"cox": MODEL, "scores": X["x1"].to_numpy()}
    return {"table": compare(models, X, y, sensitive_features=groups, metrics="concordance_index")}


def audited(X, y, groups):
    report = audit(MODEL, X, y, sensitive_features=groups, search_rules=False)
    return {key: pd.DataFrame(list(report.tables[key].rows)) for key in ("groups", "by_group", "accuracy")}


def monitored(X, y, groups):
    found = monitor(MODEL, X, y, start=10 * X["x2"].to_numpy(), sensitive_features=groups, every=1.0)
    return {"path": found.path}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sections("verdict", "groups")
@pytest.mark.parametrize("judge", [evaluated, certified, compared, audited, monitored])
def test_a_row_of_weight_two_is_two_rows_and_one_of_weight_zero_is_none(judge):
    weighted = judge(X, with_fields(Y, weight=WEIGHT), GROUPS)
    copied = judge(X.iloc[ROWS].reset_index(drop=True), Y[ROWS], GROUPS[ROWS])
    for name, wanted in copied.items():
        assert len(wanted) > 0
        compare_with = pd.testing.assert_frame_equal if wanted.ndim == 2 else pd.testing.assert_series_equal
        compare_with(weighted[name], wanted)
