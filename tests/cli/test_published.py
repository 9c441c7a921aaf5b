"""Published analyses redone from the command line: the tables of R and lifelines, to 1e-5."""

import warnings

import numpy as np
import pytest

from drosurv.workflows.saved_model import OpenedModel

# Fleming and Harrington's model of primary biliary cirrhosis, also in Therneau and Grambsch; and the lung cancer trial
# of Kalbfleisch and Prentice, with a baseline hazard for each type of cell.
SCRIPT = """
pbc$logbili <- log(pbc$bili)
pbc$logprotime <- log(pbc$protime)
keep("pbc", pbc)
keep("veteran", veteran)
exact <- coxph.control(eps = 1e-12, toler.chol = 1e-13, iter.max = 50)
fits <- list(
  pbc = coxph(Surv(time, status == 2) ~ age + edema + logbili + albumin + logprotime, pbc, control = exact),
  veteran = coxph(Surv(time, status) ~ trt + karno + diagtime + age + prior + strata(celltype), veteran,
                  control = exact)
)
for (name in names(fits)) {
  fit <- fits[[name]]
  give(paste0(name, ".table"), summary(fit)$coefficients[, c(1, 2, 3, 4, 5)])
  give(paste0(name, ".concordance"), fit$concordance["concordance"])
}
"""
SHOWN = ["coef", "exp(coef)", "se(coef)", "z", "p"]
CHOICES = {
    "pbc": ("--event-value", "2", "--features", "age,edema,logbili,albumin,logprotime", "--complete-cases"),
    "veteran": ("--strata", "celltype"),
}


@pytest.fixture(scope="module")
def r(run_r):
    return run_r(SCRIPT)


# R's models count a transplantation as censored, which the command mentions.
@pytest.mark.filterwarnings("ignore:event column 'status' also holds '1'")
@pytest.mark.parametrize("name", CHOICES)
def test_the_table_is_that_of_r(drosurv, r, name, tmp_path):
    r.table(name).to_csv(tmp_path / "data.csv", index=False)
    target = ("--time", "time", "--event", "status", "--model", "cox", "--set", "ties=efron")
    drosurv.ok("fit", tmp_path / "data.csv", *target, *CHOICES[name], "-o", tmp_path / "model")
    rows = drosurv.json("summary", tmp_path / "model")
    found = np.array([[row[column] for column in SHOWN] for row in rows])
    np.testing.assert_allclose(found, r[f"{name}.table"], rtol=1e-5, atol=1e-9)
    opened = OpenedModel.open(tmp_path / "model")
    if name == "pbc":
        # Plain Cox beside it, trained with the same ties, is the same model and no other to prefer.
        np.testing.assert_allclose(opened.plain_cox().coef_, opened.estimator.coef_, rtol=1e-6)
    frame = r.table(name)
    frame = frame.dropna(subset=opened.encoder.used_)
    c_index = opened.estimator.score(opened.features(frame), opened.table(frame).y, **opened.observed(frame))
    assert c_index == pytest.approx(r[f"{name}.concordance"].item(), abs=1e-5)


@pytest.mark.peer
def test_the_table_is_that_of_lifelines(drosurv, tmp_path):
    import lifelines
    from lifelines.datasets import load_rossi

    load_rossi().to_csv(tmp_path / "rossi.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = lifelines.CoxPHFitter().fit(load_rossi(), "week", "arrest").summary
    target = ("--time", "week", "--event", "arrest", "--model", "cox", "--set", "ties=efron")
    drosurv.ok("fit", tmp_path / "rossi.csv", *target, "-o", tmp_path / "model")
    rows = drosurv.json("summary", tmp_path / "model")
    found = np.array([[row[column] for column in SHOWN] for row in rows])
    np.testing.assert_allclose(found, theirs[SHOWN], rtol=1e-5, atol=1e-6)
