"""Intervals of predicted survival, against R's survfit.coxph: recorded numbers, and R itself where it is installed."""

import numpy as np
import pandas as pd
import pytest

import drosurv
from drosurv import CoxPH, CoxPHCV, Surv
from drosurv.datasets import make_hidden_minority
from drosurv.patients.target import with_fields

from .coefficients.test_recorded_r import DATA

X, Y, TIMES = DATA[["a", "b"]], Surv.from_arrays(DATA["event"] == 1, DATA["time"]), [3.5, 5.0, 8.0]
NEW = pd.DataFrame({"a": [1, 0], "b": [0.5, -0.5], "stratum": [1, 2]})
# Name: options of coxph in R, and arguments of fit.
CASES = {
    "plain": ("Surv(time, event) ~ a + b, data", ()),
    "strata": ("Surv(time, event) ~ a + b + strata(stratum), data", ("strata",)),
    "everything": (
        "Surv(entry, time, event) ~ a + b + strata(stratum), data, weights = weight, cluster = cluster",
        ("strata", "entry", "clusters", "weight"),
    ),
}
SCRIPT = """
data <- read.csv("data.csv"); new <- read.csv("new.csv")
""" + "".join(
    f"""
for (ties in c("breslow", "efron")) {{
  fit <- coxph({model}, ties = ties, control = coxph.control(eps = 1e-12, toler.chol = 1e-13))
  numbers <- sapply(1:2, function(i) {{
    s <- summary(survfit(fit, newdata = new[i, ], conf.int = 0.9), times = c(3.5, 5, 8), extend = TRUE)
    c(s$surv, s$lower, s$upper)
  }})
  give(paste0("{name}_", ties), t(numbers))
}}
"""
    for name, (model, _) in CASES.items()
)
# Of two patients: survival, lower and upper ends of 90 % intervals at three times each.
# fmt: off
RECORDED = {
    "plain_breslow": [
        [0.73539664, 0.554860607, 0.185888091,
         0.530966094, 0.328920155, 0.043654539,
         1, 0.936003126, 0.791541576],
        [0.920381061, 0.852987646, 0.634943844,
         0.819780417, 0.699455054, 0.391281179,
         1, 1, 1],
    ],
    "plain_efron": [
        [0.727857738, 0.547457984, 0.172217778,
         0.520082006, 0.321470075, 0.037844797,
         1, 0.932311489, 0.783699885],
        [0.921533298, 0.856426161, 0.636031575,
         0.820975761, 0.703779375, 0.391856714,
         1, 1, 1],
    ],
    "strata_breslow": [
        [0.449693329, 0.295059902, 0.073543996,
         0.181833589, 0.080534084, 0.002355003,
         1, 1, 1],
        [1, 0.940578204, 0.696379879,
         1, 0.832644097, 0.435416749,
         1, 1, 1],
    ],
    "strata_efron": [
        [0.415252767, 0.269335791, 0.06346848,
         0.151452448, 0.066335202, 0.001696031,
         1, 1, 1],
        [1, 0.94475884, 0.693995213,
         1, 0.842355816, 0.431523573,
         1, 1, 1],
    ],
    "everything_breslow": [
        [0.333400042, 0.283373233, 0.090764241,
         0.120489502, 0.091929439, 0.007462415,
         0.922533385, 0.873500267, 1],
        [1, 0.931870005, 0.611155194,
         1, 0.821995118, 0.389527165,
         1, 1, 0.958882217],
    ],
    "everything_efron": [
        [0.292811746, 0.24826611, 0.078726909,
         0.092525124, 0.070646454, 0.005756102,
         0.92665337, 0.872457967, 1],
        [1, 0.935464786, 0.605215239,
         1, 0.830199971, 0.383166395,
         1, 1, 0.955943659],
    ],
}
# fmt: on


def predicted(case):
    name, ties = case.split("_")
    columns = {"entry": "entry", "clusters": "cluster", "weight": "weight"}
    given = CASES[name][1]
    y = with_fields(Y, **{field: DATA[column] for field, column in columns.items() if field in given})
    model = CoxPH(ties=ties, tol=1e-14).fit(X, y, strata=DATA["stratum"] if given else None)
    strata = {"strata": NEW["stratum"]} if given else {}
    return model.predict_survival_function(NEW[["a", "b"]], times=TIMES, level=0.9, **strata)


@pytest.mark.parametrize("case", RECORDED)
def test_intervals_are_those_of_survfit(case):
    np.testing.assert_allclose(np.hstack(predicted(case)), RECORDED[case], atol=1e-8)


def test_recorded_numbers_are_those_of_r(run_r):
    answers = run_r(SCRIPT, data=DATA, new=NEW)
    for case, recorded in RECORDED.items():
        np.testing.assert_allclose(answers[case], recorded, atol=1e-8)
        np.testing.assert_allclose(np.hstack(predicted(case)), answers[case], atol=1e-11)


@pytest.fixture(scope="module")
def minority():
    return make_hidden_minority(400, random_state=0)


@pytest.mark.parametrize("model", [CoxPH(), CoxPHCV(), CoxPHCV(splines=False)])
def test_every_form_of_the_curves_has_intervals(model, minority):
    model.fit(minority.X, minority.y)
    some = minority.X.iloc[:5]
    array = model.predict_survival_function(some, return_array=True, level=0.95)
    np.testing.assert_array_equal(array.survival, model.predict_survival_function(some, return_array=True))
    assert ((array.low <= array.survival) & (array.survival <= array.high)).all()
    steps = model.predict_survival_function(some, level=0.95)
    for values, functions in zip(array, steps, strict=True):
        np.testing.assert_array_equal(values, [function.y for function in functions])
    narrower = model.predict_survival_function(some, return_array=True, level=0.5)
    later = slice(5, None)
    assert (narrower.low[:, later] > array.low[:, later]).all()


def test_a_penalty_narrows_intervals(minority):
    widths = []
    for l2 in (0.0, 1.0):
        found = (
            CoxPH(l2=l2)
            .fit(minority.X, minority.y)
            .predict_survival_function(minority.X, times=[0.5], level=0.95)
        )
        widths.append((np.log(found.high) - np.log(found.low)).mean())
    assert widths[1] < 0.9 * widths[0]


def test_a_saved_model_has_no_training_data_for_intervals(minority, tmp_path):
    CoxPH().fit(minority.X, minority.y).save(tmp_path / "model")
    model = drosurv.load(tmp_path / "model")
    with pytest.raises(
        ValueError, match="level needs the training data, which a saved model does not contain"
    ):
        model.predict_survival_function(minority.X, level=0.9)
