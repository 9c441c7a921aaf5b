"""Every call with an argument that cannot be used: the kind of error, the argument it names, and what it says.

What each says stands in messages.txt. After a change, ``WRITE_MESSAGES=1 pytest tests/test_messages.py`` writes that
file anew, and its difference shows what users will read.
"""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pytest
import torch
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.ensemble import RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.svm import FastSurvivalSVM

import drosurv
from drosurv import (
    MLP,
    AcceleratedFailureTime,
    CauseSpecificCox,
    CoxPH,
    CoxPHCV,
    DeepHit,
    DiscreteTimeHazard,
    DROCox,
    GroupDROCox,
    NullModel,
    PublishedCox,
    RegularizedCox,
    RepairedCox,
    SubgroupRobustCox,
    Surv,
    Trees,
    audit,
    certify,
    check,
    compare,
    evaluate,
    monitor,
    plan,
    repair,
)
from drosurv.curves import StepFunction, parse_survival
from drosurv.datasets import Dataset, make_hidden_minority, split
from drosurv.errors import ArgumentError, ArgumentTypeError, InputError, MissingPackage
from drosurv.evaluation import evaluate_by_cause, get_scorer
from drosurv.evaluation.evaluator import parse_attributes
from drosurv.losses.cox_partial import cox_partial
from drosurv.losses.full_likelihood import Intervals, PiecewiseExponential, full_likelihood
from drosurv.losses.summed_likelihood import StratifiedLikelihood
from drosurv.metrics import (
    FollowUp,
    calibration_at,
    concordance_index,
    d_calibration,
    decisions,
    dynamic_auc,
    integrated_brier_score,
    integrated_calibration_index,
    random_intercept,
    uno_concordance,
)
from drosurv.metrics.competing_risks import brier_score_by_cause
from drosurv.metrics.likelihood_gain import likelihood_gains
from drosurv.objectives import chi_square, worst_case_weights
from drosurv.objectives.chi_square import ChiSquare
from drosurv.paper import (
    censored_individual_disparity,
    concordance_imparity,
    group_disparity,
    individual_disparity,
    intersectional_disparity,
)
from drosurv.patients.draws import seed_sequence
from drosurv.patients.groups import parse_groups
from drosurv.patients.observation import Rows, generator, in_pandas
from drosurv.patients.target import Target, parse_competing_target, parse_target, with_fields
from drosurv.predictions import Predictions, as_predictions
from drosurv.predictions.columns import prediction_columns
from drosurv.predictions.given import read_columns, read_predictions
from drosurv.solvers.neighborhoods import as_neighborhoods, forest, nearest_neighbors, subgroup_columns
from drosurv.solvers.networks import ModuleBatch, build, mlp, module_scores
from drosurv.tables import SurvivalTable, TableEncoder
from drosurv.tables.groups import group_labels
from drosurv.tables.guess import UnknownColumns, guess_columns
from drosurv.tables.target_columns import TargetColumns

pytestmark = pytest.mark.filterwarnings("ignore")

N = 60
X = pd.DataFrame(
    {"age": 50.0 + np.arange(N) * 7 % 31, "dose": np.arange(N) % 5 / 2, "sex": np.arange(N) % 2.0}
)
Y = Surv.from_arrays(np.arange(N) % 3 > 0, 1.0 + np.arange(N) * 11 % 19)
SEX = np.where(X["sex"] == 1, "f", "m")
CAUSES = Surv.competing(np.arange(N) % 3, 1.0 + np.arange(N) * 11 % 19)
SURVIVAL = {"time": Y["time"], "event": Y["event"].astype(int)}
TWO = Surv.from_arrays([True, False], [1.0, 2.0])
FLAT = np.full((N, 2), [0.9, 0.8])
TIMES = [5.0, 10.0]
FEW = (TIMES, FLAT)
ENTRY = with_fields(Y, entry=np.zeros(N))
MASKED = np.ma.array([1, 0, 1], mask=[False, True, False])
THIRD = Surv.competing(np.arange(N) % 4, Y["time"])
BOTH = Predictions(incidence={1: 1 - FLAT, 2: (1 - FLAT) / 2}, times=TIMES)
FOUR = {"event": [True, False, True, True], "time": [2.0, 3.0, 5.0, 6.0]}


@cache
def cox(**parameters):
    return CoxPH(**parameters).fit(X, Y)


@cache
def cohort(n):
    data = make_hidden_minority(n, random_state=0)
    return data.X, data.y


@cache
def of_strata():
    return CoxPH().fit(X, Y, strata=SEX, offset=X["dose"])


@cache
def of_causes(*given):
    return CauseSpecificCox().fit(X, CAUSES, **{"strata": SEX, "offset": X["dose"]} if given else {})


@cache
def of_tensor():
    return CoxPH().fit(torch.as_tensor(X.to_numpy()), Y)


def shown(**options):
    return evaluate(cox(), X, Y, sensitive_features={"sex": SEX, "old": X["age"] > 65}, **options)


def target(event, time):
    """A target as no builder would make it."""
    y = np.empty(len(time), [("event", "?"), ("time", "<f8")])
    y["event"], y["time"] = event, time
    return y


def by_hand(*types, **values):
    """A target with fields that were added by hand."""
    y = np.zeros(4, [("died", "?"), ("days", "f8"), *types])
    y["died"], y["days"] = FOUR["event"], FOUR["time"]
    for name, value in values.items():
        y[name] = value
    return y


def given(form=Surv.from_arrays, **changed):
    return form(**{**FOUR, **changed})


def rows(*, strata=None, offset=None, **fields):
    y = Surv.from_arrays([True, False, True, False], FOUR["time"], **fields)
    return Rows.parse(y, strata=strata, offset=offset, judged=False)


def events(values, times=None, **options):
    """The target of a table of times t and events e."""
    frame = pd.DataFrame({"t": range(1, len(values) + 1) if times is None else times, "e": values})
    return TargetColumns("t", "e", **options).parse(frame)


def dates(start, end):
    frame = pd.DataFrame({"from": start, "to": end, "e": [1] * len(start)})
    return TargetColumns(None, "e", start="from", end="to").parse(frame)


def encoded(values, **parameters):
    return TableEncoder(**parameters).fit(pd.DataFrame({"c": values, "x": np.arange(60) % 7}))


def robust(features=X, **parameters):
    settings = {"alpha": 0.5, "min_group": 10, "n_trees": 3, "random_state": 0, "recalibrate": False}
    return SubgroupRobustCox(**settings | parameters).fit(features, Y)


def of_groups(groups, **parameters):
    return GroupDROCox(**parameters).fit(X, Y, sensitive_features=groups)


def penalised(groups=None, name="keya_group", **parameters):
    return RegularizedCox(**{"penalty": name, **parameters}).fit(X, Y, sensitive_features=groups)


def brier(survival=((0.5, 0.4), (0.6, 0.3)), times=(1.0, 1.5), **options):
    return integrated_brier_score(TWO, TWO, np.array(survival), times, **options)


def by_cause(**changed):
    known = {"cause": [1, 0], "time": [1.0, 2.0], "incidence": [[0.5]] * 2, "at": [1.5], **changed}
    return brier_score_by_cause(FollowUp.parse(TWO), **known)


def decided(**changed):
    known = {"event_probability": [0.1, 0.2], "threshold": 0.5, "horizon": 1.0, **changed}
    return decisions(TWO, **known)


def watched(**changed):
    fields = changed.pop("fields", {})
    given = {"start": pd.date_range("2021-01-01", periods=N), "time_unit": "days", **changed}
    return monitor(cox(), X, with_fields(Y, **fields), **given)


def incidences(*names, factor=1.0):
    y = Surv.competing([0, 1, 2, 1, 0, 2, 1, 0], np.arange(1.0, 9.0))
    base = np.linspace(0.01, 0.2, 8)
    table = factor * pd.DataFrame({name: base + 0.1 * k for k, name in enumerate(names)})
    return read_columns(prediction_columns(table.assign(age=3), causes=("1", "2")), y, cause=1)


def outcomes(**columns):
    """A table of which the columns of time and event are guessed."""
    frame = {"age": 30 + np.arange(N), "trt": np.arange(N) % 2, "marker": np.sin(np.arange(N))}
    return guess_columns(pd.DataFrame({**frame, **columns}))


def two_times():
    event, time = Y["event"], Y["time"]
    split = {
        "days_to_death": np.where(event, time, np.nan),
        "days_to_last_visit": np.where(event, np.nan, time),
    }
    return outcomes(vital_status=np.where(event, "Dead", "Alive"), **split)


def table(*, since=None, id=None, clusters=None, **changed):
    """A table of which the second row is changed."""
    known = {"who": [f"p{k}" for k in range(N)], "days": Y["time"], "status": Y["event"], "age": X["age"]}
    frame = pd.DataFrame(known).assign(litter=1.0 * (np.arange(N) // 2), since=since)
    for name, value in changed.items():
        frame.loc[1, name] = value
    target = TargetColumns("days", "status", entry=None if since is None else "since")
    return SurvivalTable.parse(
        frame.drop(columns="since" if since is None else []), target, id=id, clusters=clusters
    )


class Broken:
    def __init__(self, average, adjoint):
        self.average, self.adjoint = average, adjoint


class RiskOnly:
    def predict(self, X):
        return np.zeros(len(X))


class Untouched:
    def predict(self, X):
        raise AssertionError


def without(package, call):
    """Call as if a package were not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, package, None)
        return call()


def above_1():
    """A column of probabilities, of which one lies above 1."""
    return pd.DataFrame({"S3": np.where(np.arange(40) == 7, 1.2, np.linspace(0.6, 0.8, 40))})


def surv_of(data, event="died", time="days"):
    return Surv.from_dataframe(event, time, pd.DataFrame(data))


GROUPS = pd.DataFrame({"age": np.r_[40.0:70.0:30j], "sex": ["f", "m", None] * 10})
CURVES = [StepFunction(np.array([0.0, 4.0]), np.array([1.0, 0.5]))] * 2


# A call, the argument that its error names, and the kind of the error where it is no ArgumentError.
# fmt: off
CASES = {
    # Targets and their fields.
    "target: a pair": (lambda: parse_target((np.array([True]), np.array([1.0]))), None, InputError),
    "target: times only": (lambda: parse_target(np.array([1.0, 2.0])), None, InputError),
    "target: nan": (lambda: parse_target(target([True, False], [1.0, np.nan])), None, InputError),
    "target: infinite": (lambda: parse_target(target([True, False], [1.0, np.inf])), None, InputError),
    "target: negative": (lambda: parse_target(target([True, False], [1.0, -2.0])), None, InputError),
    "target: no event": (lambda: parse_target(target([False, False], [1.0, 2.0])), None, InputError),
    "target: empty": (lambda: parse_target(target([], [])), None, InputError),
    "target: event of numbers": (lambda: parse_target(np.array([(1, 2.0)], "i8,f8")), None, InputError),
    "target: time of text": (lambda: parse_target(np.array([(True, "a")], "?,U1")), None, InputError),
    "target: time of days": (lambda: parse_target(np.array([(True, 3)], "?,m8[D]")), None, InputError),
    "Surv: codes": (lambda: Surv.from_arrays([1, 2], [1.0, 1.0]), None, InputError),
    "Surv: words": (lambda: Surv.from_arrays(["yes", "no"], [1.0, 1.0]), None, InputError),
    "Surv: unknown column": (lambda: surv_of({"days": [1.0]}), None, InputError),
    "Surv: no table": (lambda: Surv.from_dataframe(X, "event", "time"), "data", ArgumentTypeError),
    "Surv: lengths": (lambda: Surv.from_arrays([True], [1.0, 2.0]), None, InputError),
    "Surv: swapped": (lambda: surv_of({"died": [1, 0], "days": [3.0, 8.0]}, "days", "died"), None, InputError),
    "Surv: missing event": (lambda: Surv.from_arrays([1.0, np.nan, 0.0], [1.0, 2.0, 3.0]), None, InputError),
    "Surv: masked event": (lambda: Surv.from_arrays(MASKED, [1.0, 2.0, 3.0]), None, InputError),
    "Surv: masked time": (lambda: Surv.from_arrays([1, 0, 1], MASKED), None, InputError),
    "Surv: masked entry": (lambda: Surv.from_arrays([1, 0, 1], [1.0, 2.0, 3.0], entry=MASKED), None, InputError),
    "causes: masked": (lambda: Surv.competing(MASKED, [1.0, 2.0, 3.0]), None, InputError),
    "causes: masked time": (lambda: Surv.competing([1, 0, 1], MASKED), None, InputError),
    "causes: words": (lambda: Surv.competing(["cancer", "other"], [1.0, 2.0]), None, InputError),
    "causes: half": (lambda: Surv.competing([0.5, 1], [1.0, 2.0]), None, InputError),
    "causes: nan": (lambda: Surv.competing([np.nan, 1], [1.0, 2.0]), None, InputError),
    "causes: negative": (lambda: Surv.competing([-1, 1], [1.0, 2.0]), None, InputError),
    "causes: lengths": (lambda: Surv.competing([1, 2, 3], [1.0, 2.0]), None, InputError),
    "causes: one never happens": (
        lambda: parse_competing_target(Surv.competing([0, 1, 3], [1.0, 2.0, 3.0])), None, InputError
    ),
    "causes: none happens": (lambda: parse_competing_target(Surv.competing([0, 0], [1.0, 2.0])), None, InputError),
    "causes: an event": (lambda: parse_competing_target(TWO), None, InputError),
    "entry: too late": (lambda: given(entry=[0, 1, 5, 1]), "entry"),
    "entry: infinite": (lambda: given(entry=[0, np.inf, 1, 1]), "entry"),
    "entry: of a table": (lambda: given(entry=pd.Series([0, np.nan, 1, 1], index=[4, 7, 8, 9])), "entry"),
    "entry: length": (lambda: rows(entry=[0, 1]), "entry"),
    "entry: text": (lambda: rows(entry=["a", "b", "c", "d"]), "entry"),
    "weight: negative": (lambda: given(weight=[1, 1, -1, 1]), "weight"),
    "weight: length": (lambda: given(weight=[1, 1]), "weight"),
    "id: missing": (lambda: given(id=["a", None, "b", "c"]), "id"),
    "id: nan": (lambda: given(id=["a", np.nan, "b", "c"]), "id"),
    "id: texts and numbers": (lambda: given(id=["a", "b", 3, "c"]), "id"),
    "id: pairs": (lambda: given(id=[("a", 1), ("b", 2), ("c", 3), ("d", 4)]), "id"),
    "id: dates": (lambda: given(id=pd.to_datetime(["2001-01-01"] * 4)), "id"),
    "id: no entry": (lambda: rows(id=[1, 1, 2, 3]), "id"),
    "id: overlap": (lambda: rows(id=[1, 1, 2, 3], entry=[0, 1, 0, 0]), "id"),
    "clusters: missing": (lambda: given(clusters=[1.0, np.nan, 2.0, 2.0]), "clusters"),
    "clusters: halves": (lambda: given(clusters=[1.0, 1.5, 2.0, 2.0]), "clusters"),
    "offset: infinite": (lambda: rows(offset=[0, np.inf, 1, 1]), "offset"),
    "strata: length": (lambda: rows(strata=["a", "b"]), "strata"),
    "strata: two axes": (lambda: rows(strata=[["a"]] * 4), "strata"),
    "field: unknown": (lambda: evaluate(np.arange(4.0), None, by_hand(("hospital", "i8"))), None, InputError),
    "field: capital": (lambda: evaluate(np.arange(4.0), None, by_hand(("Entry", "f8"))), None, InputError),
    "field: objects": (lambda: CoxPH().fit(X[:4], by_hand(("id", "O"), id=None)), "id"),
    "field: entry of text": (lambda: CoxPH().fit(X[:4], by_hand(("entry", "U3"))), "entry"),
    "weights: twice": (lambda: CoxPH().fit(X, with_fields(Y, weight=np.ones(N)), np.ones(N)), "sample_weight"),
    "weights: twice in a metric": (
        lambda: concordance_index(with_fields(Y, weight=np.ones(N)), X["age"], sample_weight=np.ones(N)),
        "sample_weight"
    ),
    "weights: twice in a repair": (
        lambda: RepairedCox().fit(X, with_fields(Y, weight=np.ones(N)), sample_weight=np.ones(N)), "sample_weight"
    ),
    "weights: twice in a Brier score": (
        lambda: integrated_brier_score(TWO, with_fields(TWO, weight=[1, 1]), FLAT[:2], [1.0, 1.5],
            sample_weight=[1, 1]), "sample_weight"
    ),
    "seed: text": (lambda: generator("seven"), "random_state"),
    "seed: half": (lambda: seed_sequence(1.5), "random_state"),
    "seed: negative": (lambda: seed_sequence(-1), "random_state"),
    "lazy table": (lambda: in_pandas(polars.LazyFrame({"a": [1]})), "X"),
    "no narwhals": (
        lambda: without("narwhals", lambda: in_pandas(polars.DataFrame({"a": [1]}))), None, MissingPackage
    ),
    # Groups.
    "groups: one": (lambda: parse_groups(["a", "a"]), "groups"),
    "groups: none": (lambda: parse_groups([None, None], missing="drop"), "groups"),
    "groups: length": (lambda: parse_groups(["a", "b"], n=3), None, InputError),
    "groups: missing": (lambda: parse_groups(["a", "b"], missing="ignore"), None, InputError),
    "groups: one called missing": (lambda: parse_groups(["a", "missing", None]), "groups"),
    "groups: a text": (lambda: parse_groups("ab"), None, InputError),
    "groups: empty": (lambda: parse_groups([]), None, InputError),
    "groups: three axes": (lambda: parse_groups(np.zeros((2, 2, 2))), None, InputError),
    "groups: unknown label": (lambda: parse_groups(["a", "b"], labels=["a"]), None, InputError),
    "attribute: one group": (lambda: parse_attributes({"sex": ["f", "f"]}, 2), "sensitive_features"),
    "attribute: length": (lambda: parse_attributes({"sex": ["f", "m", "f"]}, 2), None, InputError),
    "attribute: two of a name": (
        lambda: parse_attributes(pd.DataFrame([["f", "m"], ["m", "f"]], columns=["a", "a"]), 2), "sensitive_features"
    ),
    # Curves and predictions.
    "curve: negative time": (lambda: CURVES[0](-1.0), "times"),
    "curve: no time": (lambda: CURVES[0]([1.0, np.nan]), "times"),
    "curve: values": (lambda: StepFunction([1.0, 2.0], [0.5]), "y"),
    "curves: no times": (lambda: parse_survival([[0.8, 0.5]], 1), "survival"),
    "curves: too few times": (lambda: parse_survival([[0.8, 0.5]], 1, [1.0]), "times"),
    "curves: falling times": (lambda: parse_survival([[0.8, 0.5]], 1, [2.0, 1.0]), "times"),
    "curves: other names": (
        lambda: parse_survival(pd.DataFrame([[0.8, 0.5]], columns=[2.0, 1.0]), 1, [1.0, 2.0]), "times"
    ),
    "curves: patients": (lambda: parse_survival([[0.8, 0.5]], 2, [1.0, 2.0]), "survival"),
    "curves: one axis": (lambda: parse_survival([0.8], 1, [1.0]), "survival"),
    "curves: hazards": (lambda: parse_survival([[2.0]], 1, [1.0]), "survival"),
    "curves: percent": (lambda: as_predictions((TIMES, 100 * FLAT), None, N).survival_curves, "survival"),
    "curves: missing": (lambda: as_predictions((TIMES, FLAT * np.nan), None, N).survival_curves, "survival"),
    "curves: rise": (lambda: as_predictions((TIMES, FLAT[:, ::-1]), None, N).survival_curves, "survival"),
    "curves: negative times": (lambda: as_predictions(([-2.0, 1.0], FLAT), None, N).survival_curves, "times"),
    "predictions: three": (lambda: as_predictions((TIMES, FLAT, 3), None, N), "model"),
    "predictions: risk only": (lambda: as_predictions(RiskOnly(), X, N).survival_curves, "model"),
    "predictions: type": (lambda: Predictions(survival=FLAT, times=TIMES, curve_type="linear"), "curve_type"),
    "predictions: names": (
        lambda: Predictions(incidence={1: pd.DataFrame(1 - FLAT, columns=[9, 2])}, times=TIMES), "times"
    ),
    "predictions: columns": (lambda: as_predictions(FLAT, None, N), "model"),
    "predictions: nan": (lambda: as_predictions(Predictions([1.0, np.nan]), None, 2).risk, "the risk of model"),
    "predictions: length": (lambda: as_predictions(Predictions([1.0, 2.0]), None, 3).risk, "the risk of model"),
    "predictions: scores": (lambda: as_predictions([1.0, 2.0], None, 3).risk, "the risk of model"),
    "predictions: an object": (lambda: as_predictions(object(), None, 3), "model", ArgumentTypeError),
    "predictions: rows": (lambda: as_predictions(cox(), X[:5], N).risk, "X"),
    "predictions: no X": (lambda: as_predictions(cox(), None, N).risk, "X"),
    "predictions: nothing": (Predictions, "risk"),
    "incidences: falling times": (lambda: Predictions(incidence={1: 1 - FLAT}, times=[2.0, 1.0]), "times"),
    "incidences: no times": (lambda: Predictions(incidence={1: 1 - FLAT}), "incidence"),
    "incidences: smooth": (
        lambda: Predictions(incidence={1: 1 - FLAT}, times=TIMES, curve_type="smooth"), "curve_type"
    ),
    "incidences: length": (
        lambda: evaluate(Predictions(incidence={1: 1 - FLAT[1:]}, times=TIMES), X, CAUSES, cause=1), "incidence"
    ),
    "given: rise": (lambda: read_predictions([[0.9, 0.8], [0.9, 0.95]], TWO, times=[1, 2]), "survival"),
    "given: percent": (lambda: read_predictions([[900, 80], [70, 60]], TWO, times=[1, 2]), "survival"),
    "given: kind": (lambda: read_predictions([[0.9], [0.9]], TWO, times=[1.5]), "kind"),
    "given: falling": (lambda: read_predictions([[0.9, 0.8]] * 2, TWO, times=[2, 1]), "times"),
    "given: three": (lambda: read_predictions([[0.9, 0.8]] * 2, TWO, times=[1, 2, 3]), "times"),
    "given: missing": (lambda: read_predictions([[0.9, 0.8], [np.nan, 0.7]], TWO, times=[1, 2]), "predictions"),
    "given: words": (lambda: read_predictions([["0.9", "low"], ["0.9", "0.7"]], TWO, times=[1, 2]), "predictions"),
    "columns: decimal comma": (
        lambda: prediction_columns(pd.DataFrame({"one": ["0,9", "0,8"], "x": 1}), survival=["one=1"]), "missing"
    ),
    "columns: one above 1": (lambda: prediction_columns(above_1()), "survival"),
    "columns: one percent above 100": (lambda: prediction_columns(100 * above_1(), survival=["S3=3"]), "survival"),
    "columns: other times": (lambda: incidences("cif_1_5", "cif_2_6"), "survival"),
    "columns: falling incidences": (lambda: incidences("cif_1_5", "cif_1_3"), "survival"),
    "columns: sum above 1": (lambda: incidences("cif_1_5", "cif_2_5", factor=3.0), "incidence"),
    "columns: a score of a cause": (lambda: incidences("lp"), "cause"),
    # Metrics.
    "brier: range": (lambda: brier(times=[1.0, 95.0]), "times"),
    "brier: no times": (lambda: brier(np.zeros((2, 0)), []), "times"),
    "brier: one time": (lambda: brier([[0.5], [0.4]], [1.5]), "times"),
    "brier: times needed": (lambda: brier(times=None), "survival"),
    "brier: three times": (lambda: brier(times=[1.0, 1.2, 1.5]), "times"),
    "brier: falling times": (lambda: brier(times=[1.5, 1.0]), "times"),
    "brier: curves": (lambda: brier([[0.5, 0.4]]), "survival"),
    "brier: hazards": (lambda: brier([[3.0, 3.0]] * 2), "survival"),
    "brier: nan": (lambda: brier([[np.nan, np.nan]] * 2), "survival"),
    "brier: one axis": (lambda: brier([0.5, 0.4]), "survival"),
    "brier: grid": (lambda: integrated_brier_score(TWO, TWO, CURVES, grid="outside"), "grid"),
    "auc: before the first event": (lambda: dynamic_auc(Y, Y, X["age"], [0.5, 10.0]), "times"),
    "auc: beyond the end": (lambda: dynamic_auc(Y, Y, X["age"], [10.0, 95.0]), "times"),
    "auc: nan": (lambda: dynamic_auc(Y, Y, X["age"], [np.nan]), "times"),
    "auc: no times": (lambda: dynamic_auc(Y, Y, X["age"], []), "times"),
    "uno: tau": (lambda: uno_concordance(TWO, Y, X["age"], tau=50.0), "tau"),
    "concordance: nan": (lambda: concordance_index(TWO, [1.0, np.nan]), "risk"),
    "concordance: length": (lambda: concordance_index(TWO, [1.0]), "risk"),
    "concordance: two axes": (lambda: concordance_index(TWO, [[1.0, 2.0], [3.0, 4.0]]), "risk"),
    "concordance: words": (lambda: concordance_index(TWO, ["high", "low"]), "risk"),
    "concordance: weight": (lambda: concordance_index(TWO, [1.0, 2.0], sample_weight=[1.0, -1.0]), "sample_weight"),
    "concordance: weights": (lambda: concordance_index(TWO, [1.0, 2.0], sample_weight=[1.0]), "sample_weight"),
    "concordance: entry": (lambda: concordance_index(by_hand(("entry", "f8"), entry=9.0), np.arange(4.0)), "entry"),
    "concordance: strata": (lambda: concordance_index(TWO, [1.0, 0.0], strata=["x", None]), "strata"),
    "imparity: one group": (lambda: concordance_imparity(TWO, [1.0, 0.0], ["a"] * 2), "groups"),
    "calibration: horizons": (lambda: calibration_at(TWO, [[0.5]] * 2, [np.nan], times=[1.0]), "horizons"),
    "calibration: horizon": (lambda: integrated_calibration_index(TWO, [[0.5]] * 2, np.inf, times=[1.0]), "horizon"),
    "calibration: level": (lambda: calibration_at(TWO, [[0.5]] * 2, [1.0], times=[1.0], level=95), "level"),
    "calibration: bins": (lambda: d_calibration(TWO, [[0.5]] * 2, times=[1.0], n_bins=1), "n_bins"),
    "causes: halves": (lambda: by_cause(cause=[0.5, 1]), None, InputError),
    "causes: below 0": (lambda: by_cause(cause=[-1, 1]), None, InputError),
    "causes: one time": (lambda: by_cause(time=[1.0]), None, InputError),
    "causes: nan time": (lambda: by_cause(time=[1.0, np.nan]), None, InputError),
    "causes: negative time": (lambda: by_cause(time=[1.0, -1.0]), None, InputError),
    "causes: columns": (lambda: by_cause(incidence=[[0.5, 0.5]] * 2), "incidence"),
    "causes: above 1": (lambda: by_cause(incidence=[[1.5]] * 2), "incidence"),
    "causes: too late": (lambda: by_cause(at=[3.0]), "at"),
    "causes: at nan": (lambda: by_cause(at=[np.nan]), "at"),
    "decisions: threshold": (lambda: decided(threshold=0), "threshold"),
    "decisions: horizon": (lambda: decided(horizon=-1), "horizon"),
    "decisions: percent": (lambda: decided(event_probability=[20.0, 0.1]), "event_probability"),
    "decisions: length": (lambda: decided(event_probability=[0.1]), "event_probability"),
    "gain: intervals": (lambda: likelihood_gains(TWO, TWO, CURVES, n_intervals=0), "n_intervals"),
    "gain: curves": (lambda: likelihood_gains(TWO, TWO[:1], CURVES), "survival"),
    "gain: event at 0": (lambda: likelihood_gains(target([True, False], [0.0, 2.0]), TWO, CURVES), "y_train"),
    "random intercept: two groups": (lambda: random_intercept([1, 2], [1.0, 2.0]), "expected"),
    "random intercept: nothing expected": (lambda: random_intercept([1, 2, 3], [1.0, 0.0, 2.0]), "expected"),
    "scorer: unknown": (lambda: get_scorer("accuracy"), "name"),
    "scorer: groups": (lambda: get_scorer("worst_group_c")(cox(), X, Y), "sensitive_features"),
    "scorer: one group": (
        lambda: get_scorer("worst_group_c")(cox(), X, Y, sensitive_features=["a"] * N), "sensitive_features"
    ),
    "scorer: curves": (
        lambda: get_scorer("neg_ibs", y_train=Y)(FastSurvivalSVM().fit(X, Surv.event_time(Y)), X, Y), "model"
    ),
    # The paper's metrics and penalties.
    "disparity: one group": (lambda: group_disparity([0.0, 1.0], ["a", "a"]), "groups"),
    "disparity: one attribute": (lambda: intersectional_disparity([0.0, 1.0], [["a"], ["a"]]), "attributes"),
    "disparity: labels": (lambda: group_disparity([0.0, 1.0], ["a"]), None, InputError),
    "disparity: nan": (lambda: group_disparity([0.0, np.nan], ["a", "b"]), "risk"),
    "disparity: overflow": (lambda: group_disparity([0.0, 1e3], ["a", "b"]), "risk"),
    "disparity: convention": (lambda: group_disparity([0.0, 1.0], ["a", "b"], convention="tables"), "convention"),
    "disparity: underflow": (lambda: intersectional_disparity([0.0, -900.0], ["a", "b"]), "risk"),
    "disparity: features": (lambda: individual_disparity([0.0, 1.0], [[1.0]]), "X"),
    "disparity: nan feature": (lambda: individual_disparity([0.0, 1.0], [[1.0], [np.nan]]), "X"),
    "disparity: nobody": (lambda: individual_disparity([], np.empty((0, 2))), "risk"),
    "disparity: scale": (lambda: individual_disparity([0.0, 1.0], [[1.0], [2.0]], scale=-1.0), "scale"),
    "disparity: scale nan": (
        lambda: censored_individual_disparity(TWO, [0.0, 1.0], [[1.0], [2.0]], scale=np.nan), "scale"
    ),
    "penalty: labels": (lambda: penalised(np.zeros(7)), None, InputError),
    "penalty: a name": (lambda: penalised("age"), None, InputError),
    "penalty: three axes": (lambda: penalised(np.zeros((N, 2, 2))), None, InputError),
    "penalty: no column": (lambda: penalised(np.zeros((N, 0))), None, InputError),
    "penalty: unknown": (lambda: penalised(SEX, "equality"), "penalty"),
    "penalty: weight": (lambda: penalised(SEX, weight=-1.0), "weight"),
    "penalty: weight nan": (lambda: penalised(SEX, weight=np.nan), "weight"),
    "penalty: weight of text": (lambda: penalised(SEX, weight="much"), "weight"),
    "penalty: infinite scale": (lambda: penalised(SEX, scale=np.inf), "scale"),
    "penalty: batch of one": (lambda: penalised(SEX, network=MLP(batch_size=1)), "batch_size"),
    "penalty: batch of halves": (lambda: penalised(SEX, network=MLP(batch_size=2.5)), "batch_size"),
    "penalty: batch on a device": (lambda: penalised(SEX, network=MLP(batch_size=128), device="cuda"), "batch_size"),
    # Balls, losses, neighbourhoods and networks.
    "ball: unknown": (lambda: worst_case_weights(torch.ones(3), 0.5, ball="wasserstein"), "ball"),
    "ball: constant": (lambda: chi_square(torch.ones(3), 0.5, constant="loose"), "constant"),
    "ball: constant of the class": (lambda: ChiSquare(0.5, "loose"), "constant"),
    "loss: ties": (
        lambda: cox_partial(torch.zeros(2), torch.tensor([True, True]), torch.ones(2), ties="exact"), "ties"
    ),
    "loss: no follow-up": (lambda: PiecewiseExponential(Target(np.ones(2, bool), np.zeros(2))), None, InputError),
    "loss: psi": (lambda: full_likelihood(*(torch.zeros(k) for k in (1, 3, 1, 1, 1))), None, InputError),
    "loss: intervals": (lambda: Intervals.from_target(Target(np.ones(1, bool), np.ones(1)), 0), "n_intervals"),
    "loss: stratum without follow-up": (
        lambda: StratifiedLikelihood(Target(np.ones(3, bool), np.array([0.0, 0.0, 2.0]), stratum=np.array([0, 0, 1]))),
        "strata"
    ),
    "kernel: shape kept": (lambda: as_neighborhoods(Broken(lambda r: r[..., :2], lambda q: q), 5), None, InputError),
    "kernel: sum": (lambda: as_neighborhoods(Broken(lambda r: 2 * r, lambda q: 2 * q), 5), None, InputError),
    "kernel: negative": (
        lambda: as_neighborhoods(Broken(lambda r: 2 * r - r[::-1], lambda q: 2 * q - q[::-1]), 5), None, InputError
    ),
    "kernel: transpose": (
        lambda: as_neighborhoods(Broken(lambda r: r * 0 + r.mean(), lambda q: q), 5), None, InputError
    ),
    "kernel: size": (lambda: as_neighborhoods(np.eye(3), 5), None, InputError),
    "kernel: row": (lambda: as_neighborhoods(np.eye(5) * 0.5, 5), None, InputError),
    "kernel: negative entries": (lambda: as_neighborhoods(2 * np.eye(5) - 0.2, 5), None, InputError),
    "kernel: nan": (lambda: as_neighborhoods(sparse.eye(5) * np.nan, 5), None, InputError),
    "kernel: text": (lambda: as_neighborhoods("forest of trees", 5), None, InputError),
    "neighbours: none": (lambda: nearest_neighbors(np.zeros((10, 1)), n_neighbors=0), "n_neighbors"),
    "neighbours: too many": (lambda: nearest_neighbors(np.zeros((10, 1)), n_neighbors=11), "n_neighbors"),
    "forest: min_group": (lambda: forest(np.zeros((100, 1)), np.zeros(100), min_group=50), "min_group"),
    "subgroups: unknown column": (lambda: subgroup_columns(X.to_numpy(), ["weight"], [*X]), "subgroup_features"),
    "subgroups: no names": (lambda: subgroup_columns(X.to_numpy(), ["age"], None), "subgroup_features"),
    "subgroups: position": (lambda: subgroup_columns(X.to_numpy(), [3], None), "subgroup_features"),
    "subgroups: constant": (lambda: subgroup_columns(np.ones((2, 3)), [1], [*X]), None, InputError),
    "subgroups: none": (lambda: subgroup_columns(X.to_numpy(), [], [*X]), None, InputError),
    "subgroups: a text": (lambda: subgroup_columns(X.to_numpy(), "age", [*X]), "subgroup_features"),
    "subgroups: a number": (lambda: subgroup_columns(X.to_numpy(), 1, [*X]), "subgroup_features"),
    "subgroups: 1.0": (lambda: subgroup_columns(X.to_numpy(), [1.0], [*X]), "subgroup_features"),
    "subgroups: None": (lambda: subgroup_columns(X.to_numpy(), [None], [*X]), "subgroup_features"),
    "subgroups: True": (lambda: subgroup_columns(X.to_numpy(), [True, False], [*X]), "subgroup_features"),
    "network: no module": (lambda: build(lambda d: d, 4, seed=0), None, TypeError),
    "network: an instance": (lambda: build(mlp(4), 4, seed=0), None, TypeError),
    "network: two scores": (
        lambda: ModuleBatch([build(lambda d: torch.nn.Linear(d, 2), 3, seed=0)], np.zeros((6, 3))).scores(),
        "network"
    ),
    "network: two scores later": (
        lambda: module_scores(build(lambda d: torch.nn.Linear(d, 2), 3, seed=0), np.zeros((6, 3))), "network"
    ),
    "network: no lightgbm": (
        lambda: without("lightgbm", lambda: CoxPH(network="trees").fit(X, Y)), None, MissingPackage
    ),
    "setting: lr": (lambda: CoxPH(MLP(lr=-1)).fit(X, Y), "lr"),
    "setting: max_iter": (lambda: CoxPH(Trees(max_iter=0)).fit(X, Y), "max_iter"),
    "setting: n_iter_no_change": (lambda: CoxPH(Trees(n_iter_no_change=0)).fit(X, Y), "n_iter_no_change"),
    "setting: params": (lambda: CoxPH(Trees(params=3)).fit(X, Y), "params"),
    "setting: hidden of a module": (lambda: CoxPH(MLP(module=mlp, hidden=(3,))).fit(X, Y), "hidden"),
    "setting: dropout of a module": (lambda: CoxPH(MLP(module=mlp, dropout=0.5)).fit(X, Y), "dropout"),
    "setting: the class": (lambda: CoxPH(MLP).fit(X, Y), None, TypeError),
    "setting: beside trees": (lambda: CoxPH("trees", lr=0.1).fit(X, Y), "lr"),
    "setting: beside a perceptron": (lambda: DeepHit(max_iter=7).fit(X, Y), "max_iter"),
    "setting: trees of DeepHit": (lambda: DeepHit(network="trees").fit(X, Y), "network"),
    "setting: early_stopping": (
        lambda: CoxPH(MLP(early_stopping=True, validation_fraction=0.1)).fit(X, Y), "early_stopping"
    ),
    # Models.
    "aft: alpha": (lambda: AcceleratedFailureTime(alpha=0.5).fit(X, Y).summary(), "alpha"),
    "aft: l2": (lambda: AcceleratedFailureTime(l2=0.1).fit(X, Y).summary(), "l2"),
    "aft: method": (lambda: AcceleratedFailureTime().fit(X, Y).summary(method="bootstrap"), "method"),
    "aft: time 0": (lambda: AcceleratedFailureTime().fit(X[:2], target([True] * 2, [0.0, 1.0])), "y"),
    "aft: distribution": (lambda: AcceleratedFailureTime("gamma").fit(X, Y), "distribution"),
    "hazard: link": (lambda: DiscreteTimeHazard(link="probit").fit(X, Y), "link"),
    "null model: intervals": (lambda: NullModel(n_intervals=0).fit(X, Y), "n_intervals"),
    "cv: splines True": (lambda: CoxPHCV(splines=True).fit(X, Y), "splines"),
    "cv: splines 2": (lambda: CoxPHCV(splines=2).fit(X, Y), "splines"),
    "cv: splines 8": (lambda: CoxPHCV(splines=8).fit(X, Y), "splines"),
    "cv: splines None": (lambda: CoxPHCV(splines=None).fit(X, Y), "splines"),
    "cv: no penalty": (lambda: CoxPHCV(l2s=[]).fit(X, Y), "l2s"),
    "cv: negative penalty": (lambda: CoxPHCV(l2s=[-1.0]).fit(X, Y), "l2s"),
    "cv: one penalty": (lambda: CoxPHCV(l2s=0.1).fit(X, Y), "l2s"),
    "cv: penalty of text": (lambda: CoxPHCV(l2s=["a"]).fit(X, Y), "l2s"),
    "cv: folds": (lambda: CoxPHCV(cv=1).fit(X, Y), "cv"),
    "cv: ties": (lambda: CoxPHCV(ties="exact").fit(X, Y), "ties"),
    "cv: seed": (lambda: CoxPHCV(random_state="seven").fit(X, Y), "random_state"),
    "group dro: no groups": (lambda: of_groups(None), "sensitive_features"),
    "group dro: one group": (lambda: of_groups(np.zeros(N)), "sensitive_features"),
    "group dro: length": (lambda: of_groups(SEX[:-1]), None, InputError),
    "group dro: alpha 0": (lambda: of_groups(SEX, alpha=0.0), "alpha"),
    "group dro: alpha of text": (lambda: of_groups(SEX, alpha="a"), "alpha"),
    "group dro: two alphas": (lambda: of_groups(SEX, alpha=[0.1, 0.2]), "alpha"),
    "group dro: intervals": (lambda: of_groups(SEX, n_intervals=0), "n_intervals"),
    "group dro: device": (lambda: of_groups(SEX, device="meta"), "device"),
    "group dro: weight 0": (
        lambda: GroupDROCox().fit(X, Y, sample_weight=X["sex"], sensitive_features=SEX), "sensitive_features"
    ),
    "robust: alpha": (lambda: robust(alpha=0.04), "alpha"),
    "robust: alpha just too small": (lambda: SubgroupRobustCox(min_group=50).fit(*cohort(499)), "alpha"),
    "robust: group of all": (lambda: robust(min_group=500, alpha=1.0), "alpha"),
    "robust: no split": (lambda: robust(min_group=40, alpha=0.9), "min_group"),
    "robust: ball": (lambda: robust(ball="paper"), "ball"),
    "robust: kernel": (lambda: robust(kernel="trees"), "kernel"),
    "robust: min_group 0": (lambda: robust(min_group=0), "min_group"),
    "robust: min_group 20.5": (lambda: robust(min_group=20.5), "min_group"),
    "robust: no trees": (lambda: robust(n_trees=0), "n_trees"),
    "robust: no intervals": (lambda: robust(n_intervals=0), "n_intervals"),
    "robust: unknown column": (lambda: robust(subgroup_features=["weight"]), "subgroup_features"),
    "robust: a text": (lambda: robust(subgroup_features="age"), "subgroup_features"),
    "robust: position": (lambda: robust(subgroup_features=[6]), "subgroup_features"),
    "robust: no names": (lambda: robust(X.to_numpy(), subgroup_features=["age"]), "subgroup_features"),
    "robust: constant": (lambda: robust(X.assign(age=1.0), subgroup_features=["age"]), None, InputError),
    "robust: all alike": (lambda: robust(np.ones((N, 3))), None, InputError),
    "robust: kernel size": (lambda: robust(kernel=lambda *_: np.eye(3)), None, InputError),
    "robust: kernel sum": (lambda: robust(kernel=lambda *_: 2 * np.eye(N)), None, InputError),
    "robust: device": (lambda: robust(device="meta"), "device"),
    "robust: diverged": (lambda: robust(network=MLP(lr=1e30, max_iter=5)), "lr"),
    "robust: recalibrate": (lambda: robust(alpha=0.2, min_group=12, recalibrate=True), "recalibrate"),
    "causes: one is missing": (
        lambda: CauseSpecificCox().fit(X, Surv.competing(2 * CAUSES["cause"], CAUSES["time"])), None, InputError
    ),
    "causes: fitted to an event": (lambda: CauseSpecificCox().fit(X, Y), None, InputError),
    "causes: cause 3": (lambda: CauseSpecificCox().fit(X, CAUSES).predict(X, cause=3), None, InputError),
    "causes: cause 1.5": (lambda: CauseSpecificCox().fit(X, CAUSES).predict(X, cause=1.5), None, InputError),
    "causes: alpha": (lambda: CauseSpecificCox(2.0).fit(X, CAUSES), "alpha"),
    "causes: sandwich": (lambda: CauseSpecificCox(0.8).fit(X, CAUSES).summary(method="sandwich"), None, InputError),
    "causes: of one event": (lambda: CoxPH().fit(X, CAUSES), None, InputError),
    "causes: two events of an id": (
        lambda: CauseSpecificCox(0.9).fit(X[:4], Surv.competing([1, 2] * 2, [1, 2] * 2, id=[1, 1, 2, 2], entry=[0,
            1] * 2)), "id"
    ),
    "causes: offset": (lambda: of_causes("strata").predict(X), "offset"),
    "causes: strata": (lambda: of_causes("strata").predict_cumulative_incidence(X, TIMES, offset=X["dose"]), "strata"),
    "causes: offset of a model without": (lambda: of_causes().predict_survival_function(X, offset=X["dose"]), "offset"),
    "fit: X and y swapped": (lambda: CoxPH().fit(Y, X), "X"),
    "fit: id without entry": (lambda: CoxPH().fit(X, with_fields(Y, id=np.arange(N) // 2)), "id"),
    "tensor: nan": (lambda: of_tensor().predict(torch.full((4, 3), torch.nan)), "X"),
    "tensor: one axis": (lambda: CoxPH().fit(torch.zeros(3), Y), "X"),
    "tensor: infinite": (lambda: CoxPH().fit(torch.as_tensor(X.assign(dose=np.inf).to_numpy()), Y), None, InputError),
    "tensor: rows": (lambda: CoxPH().fit(torch.zeros(7, 3), Y), "X"),
    "tensor: strata": (lambda: CoxPH().fit(torch.as_tensor(X.to_numpy()), Y, strata=SEX), "X"),
    "predict: strata": (lambda: of_strata().predict_survival_function(X, offset=X["dose"]), "strata"),
    "predict: offset": (lambda: of_strata().predict_survival_function(X, strata=SEX), "offset"),
    "predict: unknown stratum": (
        lambda: of_strata().predict_survival_function(X, strata=["w"] * N, offset=X["dose"]), "strata"
    ),
    "predict: labels": (lambda: of_strata().predict_survival_function(X, strata=["f"], offset=X["dose"]), "strata"),
    "predict: strata of a model without": (lambda: cox().predict_survival_function(X, strata=SEX), "strata"),
    "predict: strata of a median": (lambda: of_strata().predict_median(X, offset=X["dose"]), "strata"),
    "predict: conditional_after": (lambda: cox().predict_median(X, conditional_after=-1.0), "conditional_after"),
    "predict: conditional_after nan": (lambda: cox().predict_median(X, conditional_after=np.nan), "conditional_after"),
    "predict: conditional_after of three": (
        lambda: cox().predict_median(X, conditional_after=[1.0, 2.0, 3.0]), "conditional_after"
    ),
    "predict: q": (lambda: cox().predict_quantile(X, 50), "q"),
    "predict: q of text": (lambda: cox().predict_quantile(X, "half"), "q"),
    "predict: until": (lambda: cox().predict_expectation(X, until=1e9), "until"),
    "intervals: level": (lambda: cox().predict_survival_function(X, level=95), "level"),
    "intervals: conditional": (lambda: cox().predict_survival_function(X, level=0.9, conditional_after=1.0), "level"),
    "intervals: worst case": (lambda: DROCox().fit(X, Y).predict_survival_function(X, level=0.9), None, InputError),
    "intervals: a copied column": (
        lambda: CoxPH().fit(X.assign(old=X["age"]), Y).predict_survival_function(X.assign(old=X["age"]), level=0.9),
        "level"
    ),
    "intervals: null model": (lambda: NullModel().fit(X, Y).predict_survival_function(X, level=0.9), "level"),
    "summary: network": (lambda: CoxPH(MLP(max_iter=2)).fit(X, Y).summary(), "network"),
    "summary: method": (lambda: cox().summary(method="exact"), "method"),
    "summary: sandwich": (lambda: DROCox(recalibrate=False).fit(X, Y).summary(method="sandwich"), "method"),
    "summary: no model": (lambda: drosurv.summary(StandardScaler()), None, InputError),
    "residuals": (lambda: DROCox(recalibrate=False).fit(X, Y).residuals(), None, InputError),
    "score: no coefficient": (lambda: PublishedCox({}, {5: 0.9}).fit(), "coefficients"),
    "score: text": (lambda: PublishedCox({"age": "x"}, {5: 0.9}).fit(), "coefficients"),
    "score: above 1": (lambda: PublishedCox({"age": 1.0}, {5: 1.2}).fit(), "baseline_survival"),
    "score: rises": (lambda: PublishedCox({"age": 1.0}, {5: 0.8, 10: 0.9}).fit(), "baseline_survival"),
    "score: center": (lambda: PublishedCox({"age": 1.0}, {5: 0.8}, {"sex": 1.0}).fit(), "center"),
    # Repairs.
    "repair: max_repairs": (lambda: RepairedCox(max_repairs=-1).fit(X, Y), "max_repairs"),
    "repair: max_conditions": (lambda: RepairedCox(max_conditions=0).fit(X, Y), "max_conditions"),
    "repair: min_group of text": (lambda: RepairedCox(min_group="small").fit(X, Y), "min_group"),
    "repair: min_group": (lambda: RepairedCox(min_group=1).fit(X, Y), "min_group"),
    "repair: min_events": (lambda: RepairedCox(min_events=0).fit(X, Y), "min_events"),
    "repair: folds": (lambda: RepairedCox(folds=2).fit(X, Y), "folds"),
    "repair: more folds than patients": (lambda: RepairedCox(folds=61, min_events=1, min_group=2).fit(X, Y), "folds"),
    "repair: evidence": (lambda: RepairedCox(evidence=0).fit(X, Y), "evidence"),
    "repair: clusters": (lambda: RepairedCox(CoxPH()).fit(X, with_fields(Y, clusters=np.arange(30))), "clusters"),
    "repair: no hazards": (lambda: RepairedCox(FastSurvivalSVM()).fit(X, Y), "model"),
    "repair: strata": (lambda: RepairedCox(CoxPH()).fit(X, Y, strata=SEX), "strata"),
    "repair: offset when frozen": (lambda: repair(cox(), X, Y, frozen=True, offset=np.zeros(N)), "offset"),
    "repair: entry": (lambda: RepairedCox(RandomSurvivalForest()).fit(X, ENTRY), "entry"),
    "repair: weight": (lambda: repair(CoxPHSurvivalAnalysis(), X, with_fields(Y, weight=np.ones(N))), "weight"),
    "repair: weight when frozen": (
        lambda: repair(cox(), X, with_fields(Y, weight=np.full(N, 2)), frozen=True), "weight"
    ),
    "repair: unknown option": (lambda: repair(cox(), X, Y, max_repair=1), "max_repair", ArgumentTypeError),
    "repair: unfitted model of causes": (lambda: repair(CauseSpecificCox(), X, CAUSES, cause=1), "cause"),
    "repair: unknown cause": (
        lambda: repair(CauseSpecificCox().fit(X, CAUSES), X, CAUSES, cause=3, frozen=True), "cause"
    ),
    "repair: one incidence": (
        lambda: repair(Predictions(incidence={1: 1 - FLAT}, times=TIMES), X, CAUSES, cause=1), "cause"
    ),
    "repair: subgroup of rows": (lambda: robust().fit(X, with_fields(ENTRY, id=np.arange(N))), "id"),
    "repair: network": (
        lambda: RepairedCox(CoxPH(MLP(max_iter=2)), max_repairs=0).fit(X, Y).hazard_ratios(), None, InputError
    ),
    "repair: summary of predictions": (
        lambda: repair(FEW, X, Y, frozen=True, max_repairs=0).summary(), None, InputError
    ),
    "repair: keep_columns": (lambda: repair(CoxPH(), X, Y, features=X, keep_columns="dse"), "keep_columns"),
    # Judging.
    "evaluate: labels": (lambda: evaluate(cox(), X, Y, sensitive_features=["a"]), None, InputError),
    "evaluate: overall": (lambda: evaluate(cox(), X, Y, sensitive_features={"overall": SEX}), "sensitive_features"),
    "evaluate: rows": (lambda: evaluate(cox(), X[:3], Y), "X"),
    "evaluate: y": (lambda: evaluate(cox(), X, np.zeros(5)), None, InputError),
    "evaluate: nobody followed": (lambda: evaluate(cox(), X, target(Y["event"], np.zeros(N))), None, InputError),
    "evaluate: y_train": (lambda: evaluate(cox(), X, Y, y_train=np.zeros(5)), None, InputError),
    "evaluate: columns of X_train": (lambda: evaluate(cox(), X, Y, X_train=X[["age"]], y_train=Y), "X_train"),
    "evaluate: rows of X_train": (lambda: evaluate(cox(), X, Y, X_train=X[:7], y_train=Y), "X_train"),
    "evaluate: reference": (lambda: evaluate(cox(), X, Y, reference=[1.0]), "the risk of reference"),
    "evaluate: level of text": (lambda: evaluate(cox(), X, Y, level="x"), "level"),
    "evaluate: level first": (lambda: evaluate(Untouched(), X, Y, level=95), "level"),
    "evaluate: strata": (lambda: evaluate(cox(), X, Y, strata=2), "strata"),
    "evaluate: relevance": (lambda: evaluate(cox(), X, Y, relevance=0.9), "relevance"),
    "evaluate: scores": (lambda: evaluate(np.r_[np.zeros(N - 1), np.nan], X, Y), "model"),
    "evaluate: thresholds": (lambda: evaluate(cox(), X, Y, thresholds=[0.2, 1.0]), "thresholds"),
    "evaluate: no thresholds": (lambda: evaluate(cox(), X, Y, thresholds=[]), "thresholds"),
    "evaluate: thresholds of text": (lambda: evaluate(cox(), X, Y, thresholds=["a"]), "thresholds"),
    "evaluate: subgroups": (lambda: evaluate(cox(), X, Y, subgroups=["a"]), "subgroups", ArgumentTypeError),
    "evaluate: positions": (lambda: evaluate(cox(), X, Y, subgroups={"some": [0, 1]}), "subgroups"),
    "evaluate: horizon not predicted": (lambda: evaluate(FEW, None, Y, horizon=7.0), "horizon"),
    "evaluate: horizon too late": (lambda: evaluate(cox(), X, Y, horizon=50.0), "horizon"),
    "evaluate: predicted after the end": (lambda: evaluate(([50.0, 60.0], FLAT), None, Y), "predictions"),
    "evaluate: predicted before the first event": (lambda: evaluate(([0.1, 0.2], FLAT), None, Y), "predictions"),
    "evaluate: y_train with entry": (lambda: evaluate(cox(), X, ENTRY, y_train=Y), "y_train"),
    "evaluate: scores with entry": (lambda: evaluate(np.zeros(N), X, ENTRY), "model"),
    "evaluate: offset of the fit": (lambda: evaluate(of_strata(), X, Y), "offset"),
    "evaluate: weight 0": (lambda: evaluate(cox(), X, with_fields(Y, weight=np.zeros(N))), "weight"),
    "evaluate: weight .5": (lambda: evaluate(cox(), X, with_fields(Y, weight=np.full(N, 0.5))), "weight"),
    "evaluate: plot": (lambda: evaluate(np.arange(N), X, Y).plot(), "model"),
    "evaluate: a function": (lambda: evaluate(lambda X: X, X, Y), "model", ArgumentTypeError),
    "evaluate: offset of a model without": (
        lambda: evaluate(AcceleratedFailureTime().fit(X, Y), X, Y, offset=np.zeros(N)), "offset"
    ),
    "evaluate: names of X_train": (
        lambda: evaluate(cox(), X, Y, X_train=X.rename(columns={"age": "years"}), y_train=Y), "X_train"
    ),
    "evaluate: cause of one event": (lambda: evaluate(of_causes(), X, Y, cause=1), "cause"),
    "evaluate: cause 3": (lambda: evaluate(of_causes(), X, CAUSES, cause=3), "cause"),
    "evaluate: cause of a model of one event": (lambda: evaluate(cox(), X, CAUSES, cause=1), "cause"),
    "evaluate: cause not given": (lambda: evaluate(BOTH, X, CAUSES, cause=3), "cause"),
    "evaluate: incidences and one event": (lambda: evaluate(BOTH, X, Y, cause=1), "cause"),
    "evaluate: untrained cause": (lambda: evaluate(of_causes(), X, THIRD, cause=3), "cause"),
    "evaluate: entry of a cause": (
        lambda: evaluate(FEW, X, with_fields(CAUSES, entry=np.full(N, 0.5)), cause=1), "entry"
    ),
    "by cause: entry": (lambda: evaluate_by_cause(BOTH, X, with_fields(CAUSES, entry=np.full(N, 0.5))), "entry"),
    "by cause: groups": (
        lambda: evaluate_by_cause(of_causes(), X, CAUSES, at=[5.0], sensitive_features=["a", "b"]), None, InputError
    ),
    "evaluate: horizon after the curves": (
        lambda: evaluate((np.linspace(0.1, 12, 99), np.linspace(1, 0.5, 99) * np.ones((N, 1))), None, Y,
            horizon=15.0), "horizon"
    ),
    "result: attribute": (lambda: shown().difference(), "attribute"),
    "result: method": (lambda: shown().ratio("sex", "sideways"), "method"),
    "plot: metric": (lambda: shown().plot_groups("share_of_gain"), "metric"),
    "plot: attribute": (lambda: shown().plot_survival("race"), "attribute"),
    "plot: metric of the control": (
        lambda: shown(reference=np.arange(N), paper=True).plot_control("group_disparity", "race"), "metric"
    ),
    "plot: no control": (lambda: shown().plot_control(), "metric"),
    "compare: a list": (lambda: compare([cox()], X, Y), "models", ArgumentTypeError),
    "compare: nothing": (lambda: compare({}, X, Y), "models"),
    "compare: one score": (lambda: compare({"cox": cox(), "short": [1.0]}, X, Y), "the risk of models['short']"),
    "compare: level": (lambda: compare({"a": Untouched()}, X, Y, level=95), "level"),
    "compare: metrics": (lambda: compare({"a": cox()}, X, Y, metrics="c"), "metrics"),
    "compare: offset": (lambda: compare({"a": cox()}, X, Y, offset=np.zeros(N)), "offset"),
    "compare: strata": (lambda: compare({"a": cox()}, X, Y, strata=SEX), "strata"),
    "compare: scores with entry": (lambda: compare({"a": cox(), "b": np.zeros(N)}, X, ENTRY), "models"),
    "compare: y_train with entry": (lambda: compare({"a": cox()}, X, ENTRY, y_train=Y), "y_train"),
    "compare: predicted after the end": (lambda: compare({"late": ([50.0, 60.0], FLAT)}, X, Y), "predictions"),
    "audit: folds of predictions": (lambda: audit(FEW, X, Y, folds=3), "folds"),
    "audit: features": (lambda: audit(cox(), X, Y, features=X[:5]), "features"),
    "audit: rows": (lambda: audit(cox(), X[:5], Y), "X"),
    "audit: folds and reference": (lambda: audit(CoxPH(), X, Y, folds=3, reference=np.zeros(N)), "folds"),
    "audit: folds and X_train": (lambda: audit(CoxPH(), X, Y, folds=3, X_train=X), "folds"),
    "audit: folds and y_train": (lambda: audit(CoxPH(), X, Y, folds=3, y_train=Y), "folds"),
    "audit: folds": (lambda: audit(CoxPH(), X, Y, folds=50), "folds"),
    "audit: X_train with entry": (lambda: audit(cox(), X, ENTRY, X_train=X[:9]), "X_train"),
    "audit: entry of a recipe": (lambda: audit(CoxPHSurvivalAnalysis(), X, ENTRY, folds=3), "entry"),
    "audit: y_train needed": (lambda: audit(CoxPHSurvivalAnalysis().fit(X, Surv.event_time(Y)), X, Y), "y_train"),
    "audit: a function": (lambda: audit(lambda X: X, X, Y), "model", ArgumentTypeError),
    "audit: a name": (lambda: audit("cox", X, Y), "model", ArgumentTypeError),
    "audit: a class": (lambda: audit(CoxPH, X, Y), "model", ArgumentTypeError),
    "audit: keep_columns": (lambda: audit(cox(), X, Y, features=X, keep_columns="dse"), "keep_columns"),
    "audit: untrained cause": (lambda: audit(of_causes(), X, THIRD, cause=3), "cause"),
    "audit: predicted after the end": (lambda: audit(([50.0, 60.0], FLAT), X, Y), "predictions"),
    "audit: folds incomplete": (lambda: audit(CoxPH(), X, Y, folds=[(np.arange(30), np.arange(30, 50))]), "folds"),
    "audit: no folds": (lambda: audit(CoxPH(), X, Y, folds=[]), "folds"),
    "audit: folds of the training patients": (
        lambda: audit(CoxPH(), X, Y, folds=[(np.arange(N), np.arange(30)), (np.arange(N), np.arange(30, N))]), "folds"
    ),
    "audit: one fold": (lambda: audit(CoxPH(), X, Y, folds=1), "folds"),
    "audit: not fitted": (lambda: audit(CoxPH(), X, Y), None, NotFittedError),
    "audit: pipeline not fitted": (lambda: audit(make_pipeline(StandardScaler(), CoxPH()), X, Y), None, NotFittedError),
    "certify: a name": (lambda: certify("cox", X, Y), "model", ArgumentTypeError),
    "certify: alpha 0": (lambda: certify(cox(), X, Y, alpha=0.0), "alpha"),
    "certify: level": (lambda: certify(cox(), X, Y, level=1.0), "level"),
    "certify: horizon": (lambda: certify(cox(), X, Y, horizon=-1.0), "horizon"),
    "certify: brier_time": (lambda: certify(cox(), X, Y, brier_time=50.0), "brier_time"),
    "certify: horizon too late": (lambda: certify(cox(), X, Y, horizon=50.0), "horizon"),
    "certify: alpha too large": (lambda: certify(CoxPH().fit(*cohort(400)), *cohort(400), alpha=1), "alpha"),
    "certify: too few expected events": (
        lambda: certify(CoxPH().fit(*cohort(400)), *cohort(400), horizon=0.01), "model"
    ),
    "certify: scores": (lambda: certify(Predictions(np.zeros(N)), X, Y), "model"),
    "certify: few patients": (lambda: certify(cox(), X[:40], Y[:40]), "y"),
    "certify: keep_columns": (lambda: certify(cox(), X, Y, features=X, keep_columns="dse"), "keep_columns"),
    "certify: untrained cause": (lambda: certify(of_causes(), X, THIRD, cause=3), "cause"),
    "certify: entry of a cause": (
        lambda: certify(FEW, X, with_fields(CAUSES, entry=np.full(N, 0.5)), cause=1), "entry"
    ),
    "certify: predicted after the end": (lambda: certify(([50.0, 60.0], FLAT), X, Y), "predictions"),
    "certify: predicted before the first event": (lambda: certify(([0.1, 0.2], FLAT), X, Y), "predictions"),
    "monitor: a score of few times": (
        lambda: monitor(PublishedCox({"age": 0.07}, {9: 0.6}, center={"age": 65}), X, Y, start=range(N)), "model"
    ),
    "monitor: few times": (lambda: monitor(FEW, None, Y, start=range(N)), "model"),
    "monitor: no start": (lambda: watched(start=[None] * N), "start"),
    "monitor: start of words": (lambda: watched(start=["yesterday"] * N), "start"),
    "monitor: start of two": (lambda: watched(start=[1.0, 2.0]), "start"),
    "monitor: every": (lambda: watched(every="week"), "every"),
    "monitor: every of numbers": (lambda: watched(every="year", start=np.arange(1.0 * N), time_unit=None), "every"),
    "monitor: no look": (lambda: watched(every=5000), "every"),
    "monitor: tolerance": (lambda: watched(tolerance=0.9), "tolerance"),
    "monitor: lag": (lambda: watched(lag=-1), "lag"),
    "monitor: lag too long": (lambda: watched(lag=5000), "lag"),
    "monitor: alpha": (lambda: watched(alpha=0), "alpha"),
    "monitor: cause": (lambda: watched(cause=1), "cause"),
    "monitor: time_unit": (lambda: watched(time_unit="hours"), "time_unit"),
    "monitor: unit of the times": (
        lambda: monitor(cox(), X, Surv.from_arrays(Y["event"], 5000 * Y["time"]), start=["2001-01-01"] * N,
                        time_unit="months"), "time_unit"
    ),
    "monitor: id": (lambda: watched(fields={"id": np.zeros(N, int)}), "id"),
    "monitor: weight": (lambda: watched(fields={"weight": np.full(N, 1.5)}), "weight"),
    "monitor: cause of given survival": (
        lambda: monitor((np.linspace(0.1, 30, 300), np.linspace(1, 0.5, 300) * np.ones((N, 1))), None, CAUSES,
            start=range(N), cause=1), "cause"
    ),
    "monitor: attribute of a picture": (lambda: watched().plot("age"), "attribute"),
    "plan: event_rate": (lambda: plan(event_rate=1.2), "event_rate"),
    "plan: c_index": (lambda: plan(event_rate=0.3, c_index=0.5), "c_index"),
    "plan: spread": (lambda: plan(event_rate=0.3, c_index=0.7, spread=1.0), "spread"),
    "plan: ratio": (lambda: plan(event_rate=0.3, ratio=1.0), "ratio"),
    "plan: share": (lambda: plan(event_rate=0.3, groups={"women": 40}), "groups"),
    "plan: rate above": (lambda: plan(event_rate=0.3, groups={"w": (0.5, 0.9)}), "groups"),
    "plan: rate below": (lambda: plan(event_rate=0.3, groups={"w": (0.9, 0.1)}), "groups"),
    "plan: groups": (lambda: plan(event_rate=0.3, groups=["w"]), "groups", ArgumentTypeError),
    "plan: n": (lambda: plan(event_rate=0.3, n=0), "n"),
    "plan: power": (lambda: plan(event_rate=0.3, power=1), "power"),
    "plan: events and rate": (lambda: plan(event_rate=0.3, events=0.3), "events"),
    "plan: nothing": (plan, "event_rate"),
    "check: an array": (lambda: check(X.to_numpy()), "table", ArgumentTypeError),
    "check: clusters": (lambda: check(X.assign(**SURVIVAL), clusters=X), "clusters", ArgumentTypeError),
    "check: horizon": (lambda: check(X.assign(**SURVIVAL), horizon="a"), "horizon"),
    "check: cause": (lambda: check(X.assign(**SURVIVAL), cause=2), "cause"),
    "check: no rows": (lambda: check(X[:0]), "table"),
    "check: two of a name": (lambda: check(pd.concat([X, X], axis=1)), "table"),
    "check: lists": (lambda: check(X.assign(age=[[1]] * N)), None, InputError),
    "check: few events": (lambda: check(X.assign(time=Y["time"], died=np.arange(N) < 5)), "event"),
    # Tables.
    "encoder: unseen": (lambda: encoded(["a", "b"] * 30, unseen="guess"), "unseen"),
    "encoder: two of a name": (lambda: TableEncoder().fit(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])), "X"),
    "encoder: all the same": (lambda: TableEncoder().fit(pd.DataFrame({"a": [1, 1]})), None, InputError),
    "encoder: names of features": (
        lambda: TableEncoder().fit(pd.DataFrame({"c=m": [1, 2, 3], "c": ["m", "f", "f"]})), None, InputError
    ),
    "encoder: categorical": (lambda: encoded([1, 2] * 30, categorical=["cc"]), "categorical"),
    "encoder: drop": (lambda: encoded([1, 2] * 30, drop=["cc"]), "drop"),
    "encoder: names": (lambda: encoded([f"name {i}" for i in range(60)]), "drop"),
    "encoder: remarks": (lambda: encoded([f"remark {i}" for i in range(8)] + [None] * 52), "drop"),
    "encoder: one word": (lambda: encoded([*map(str, range(59)), "unknown"]), "drop"),
    "encoder: limits": (lambda: encoded([f"{i % 40},5" for i in range(58)] + ["<0,5"] * 2), "drop"),
    "encoder: decimal comma": (lambda: encoded([f"{i % 40},5" for i in range(60)]), "drop"),
    "encoder: thousands": (lambda: encoded([*map(str, range(59)), "1,204"]), "drop"),
    "encoder: dates": (lambda: encoded(pd.date_range("2020-01-01", periods=60)), "drop"),
    "encoder: months": (lambda: encoded([f"{1950 + i}-06" for i in range(20)] * 3), "drop"),
    "encoder: infinite": (lambda: encoded([1.0, np.inf] * 30), "drop"),
    "encoder: lists": (lambda: encoded([[1], [2]] * 30), "drop"),
    "encoder: complex": (lambda: encoded(np.array([1 + 2j, 3] * 30)), "drop"),
    "encoder: unseen level": (
        lambda: encoded(["a", "b"] * 30, unseen="error").transform(pd.DataFrame({"c": ["z"], "x": 1})),
        None, InputError
    ),
    "encoder: missing column": (lambda: encoded(["a", "b"] * 30).transform(pd.DataFrame({"x": [1]})), "feature"),
    "encoder: text among numbers": (
        lambda: encoded([1, 2] * 30).transform(pd.DataFrame({"c": [1, "old"], "x": 1})), "missing"
    ),
    "groups: many numbers": (lambda: group_labels(GROUPS, ["age"]), "groups"),
    "groups: unknown column": (lambda: group_labels(GROUPS, ["sexx"]), "groups"),
    "groups: unknown column of a cut": (lambda: group_labels(GROUPS, ["ages>65"]), "groups"),
    "groups: a cut of text": (lambda: group_labels(GROUPS, ["sex>1"]), "groups"),
    "groups: no cut": (lambda: group_labels(GROUPS, ["age=65"]), "groups"),
    "groups: a cut at text": (lambda: group_labels(GROUPS, ["age>old"]), "groups"),
    "event: value": (lambda: events(["yes", "no"], event_value="Maybe"), "event_value"),
    "event: missing": (lambda: events([None, 1, None]), "drop_missing_target"),
    "event: marked only": (lambda: events([None, "died"]), "drop_missing_target"),
    "event: dates": (lambda: events(["2020-01-01", None]), "event"),
    "event: unknown outcome": (lambda: events(["D", "A", "?", "?"], event_value="D"), "missing"),
    "event: unknown outcome of two": (lambda: events(["dead", "alive"] * 5 + ["unknown"] * 5), "missing"),
    "event: unknown cause": (lambda: events(["dead", "alive"] * 5 + ["unknown"] * 5, causes=True), "missing"),
    "time: text": (lambda: events([1, 0], ["3", "soon"]), "missing"),
    "time: decimal comma": (lambda: events([1, 0], ["3", "4,5"]), "missing"),
    "time: limit": (lambda: events([1, 0], ["4,5", "<0,5"]), "missing"),
    "time: units": (lambda: events([1, 0, 0], ["4 months", "5 months", "3"]), "missing"),
    "time: dates": (lambda: events([1, 0], pd.to_datetime(["2020-01-01", "2021-01-01"])), "start"),
    "time: dates as text": (lambda: events([1, 0], ["2020-01-01", "2021-01-01"]), "start"),
    "time: an event": (lambda: events([1, 0], [True, False]), None, InputError),
    "time: empty": (lambda: events([1, 0], [1.0, np.nan]), "drop_missing_target"),
    "time: negative": (lambda: events([1, 0], [1.0, -2.0]), "drop_missing_target"),
    "time: infinite": (lambda: events([1, 0], [np.inf, np.inf]), None, InputError),
    "column: unknown": (lambda: TargetColumns("tt", "e").parse(pd.DataFrame({"t": [1], "e": [1]})), "time"),
    "column: twice": (lambda: TargetColumns("e", "e").parse(pd.DataFrame({"t": [1], "e": [1]})), "time"),
    "column: end and event": (
        lambda: TargetColumns(None, "e", start="t", end="e").parse(pd.DataFrame({"t": [1], "e": [1]})), "end"
    ),
    "column: no time": (lambda: TargetColumns(event="e", time=None), "time"),
    "column: two times": (lambda: TargetColumns(event="e", time="t", start="s", end="d"), "time"),
    "dates: end first": (lambda: dates(["2020-01-02"], ["2020-01-01"]), "end"),
    "dates: day or month": (lambda: dates(["03/04/2020"], ["05/06/2020"]), "start"),
    "dates: word": (lambda: dates(["2020-01-02"], ["soon"]), "end"),
    "dates: number": (lambda: dates([37.5], ["2020-01-02"]), "start"),
    "dates: 30 February": (lambda: dates(["2020-02-30"], ["2020-03-01"]), "start"),
    "dates: day numbers": (lambda: dates([10905, 8302], [11081, 8301]), "end"),
    "dates: no month": (lambda: dates([202001], [9999]), "end"),
    "dates: far month": (lambda: dates([202001] * 30, [202105] * 29 + [999912]), "end"),
    "dates: far day": (lambda: dates(["2020-01-02"], ["9999-12-31"]), "end"),
    "dates: 120 years": (lambda: dates([pd.Timestamp("1900-01-01")], [pd.Timestamp("2024-03-01")]), "end"),
    "dates: another x": (lambda: dates([20200102], ["2020-01-02x"]), "end"),
    "dates: empty": (lambda: dates(["2020-01-02"], [None]), "drop_missing_target"),
    "guess: two times": (two_times, "time", UnknownColumns),
    "guess: dates": (
        lambda: outcomes(died=np.arange(N) % 2, diagnosed=["2020-01-01", "2020-02-03"] * 30, last_seen="2021-01-01"),
        "time", UnknownColumns
    ),
    "guess: nothing": (outcomes, "time", UnknownColumns),
    "guess: an age": (lambda: outcomes(age_days=np.arange(N), died=Y["event"] * 1), "time", UnknownColumns),
    "guess: no event": (lambda: outcomes(time=Y["time"], status="alive"), "event"),
    "guess: a treatment": (lambda: outcomes(time=Y["time"]), "time", UnknownColumns),
    "guess: marked events": (lambda: outcomes(days=Y["time"], died=np.where(Y["event"], 1.0, np.nan)), "event"),
    "table: entry": (lambda: table(since=np.where(np.arange(N) == 1, 99, 0)).entry, "entry"),
    "table: clusters and id": (lambda: table(id="who", clusters="who"), "id"),
    "table: clusters missing": (lambda: table(id="who", clusters="litter", litter=np.nan), "clusters"),
    "table: patient of two clusters": (lambda: table(id="who", clusters="litter", who="p2"), "clusters"),
    # Datasets.
    "dataset: size": (lambda: split(make_hidden_minority(50, random_state=0), 0, test_size=30), "test_size"),
    "dataset: text": (
        lambda: split(make_hidden_minority(50, random_state=0), 0, validation_size="x"), "validation_size"
    ),
    "dataset: n_features": (lambda: make_hidden_minority(n_features=4), "n_features"),
    "dataset: n_samples": (lambda: make_hidden_minority(n_samples=0), "n_samples"),
    "dataset: minority": (lambda: make_hidden_minority(minority=1.5), "minority"),
    "dataset: minority nan": (lambda: make_hidden_minority(minority=float("nan")), "minority"),
    "dataset: membership": (lambda: make_hidden_minority(membership="quadratic"), "membership"),
    "dataset: seed": (lambda: make_hidden_minority(random_state="x"), "random_state"),
    "dataset: other patients": (lambda: Dataset("d", X, Y[:1], pd.DataFrame({"sex": SEX})), None, InputError),
    "dataset: columns": (lambda: Dataset("d", X.assign(c=1, d=True), Y, pd.DataFrame({"sex": SEX})), None, InputError),
}
# fmt: on

WORDINGS = Path(__file__).with_name("messages.txt")


@cache
def read_wordings():
    """What each error says: a line with its name, then the indented message."""
    texts, name = {}, ""
    for line in WORDINGS.read_text().splitlines():
        if line.startswith("    "):
            texts[name] = f"{texts[name]}\n{line[4:]}" if name in texts else line[4:]
        else:
            name = line
    return texts


def error_of(name):
    call, argument, kind = (*CASES[name], ArgumentError)[:3]
    with pytest.raises(kind) as found:
        call()
    assert type(found.value) is kind
    assert getattr(found.value, "argument", None) == argument
    return str(found.value)


@pytest.mark.parametrize("name", CASES)
def test_the_error_is_of_its_kind_names_its_argument_and_says_what_is_written(name):
    assert error_of(name) == read_wordings()[name]


def test_every_wording_belongs_to_a_case():
    if "WRITE_MESSAGES" in os.environ:
        texts = {name: error_of(name).replace("\n", "\n    ") for name in CASES}
        WORDINGS.write_text("".join(f"{name}\n    {text}\n" for name, text in texts.items()))
        read_wordings.cache_clear()
    assert [*read_wordings()] == [*CASES]
