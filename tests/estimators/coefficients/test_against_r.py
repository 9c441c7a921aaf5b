"""Covariances, residuals and the proportional hazards test, against R's survival package."""

import numpy as np
import pandas as pd
import pytest

from drosurv.estimators.coefficients import FittedCox, fitted_cox, proportional_hazards_test
from drosurv.losses.cox_partial import CoxPartial
from drosurv.patients.target import Target


def simulated(seed=0, n=120):
    """Ties, weights, late entry, strata, clusters, an offset."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 2] = rng.integers(0, 2, n)
    time = np.ceil(8 * rng.exponential(np.exp(-X @ [0.5, -0.4, 0.3]))) + 1
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        time=time,
        event=(rng.random(n) < 0.7).astype(int),
        entry=time - rng.integers(1, 9, n) * rng.choice([0.5, 1.0], n),
        stratum=rng.integers(0, 3, n),
        cluster=rng.integers(0, 30, n),
        weight=rng.uniform(0.3, 3, n),
        offset=rng.normal(size=n) / 3,
    )


# Name: features, and the parts of the model.
CASES = {
    f"{name}_{ties}": (table, features, ties, parts)
    for ties in ("breslow", "efron")
    for name, table, features, parts in [
        ("plain", "sim", "a b c", ()),
        ("weighted", "sim", "a b c", ("weight",)),
        ("entry", "sim", "a b c", ("entry",)),
        ("strata", "sim", "a b c", ("stratum",)),
        ("everything", "sim", "a b c", ("entry", "stratum", "weight", "cluster", "offset")),
        ("lung", "lung", "age sex ph.ecog", ()),
        ("pbc", "pbc", "age edema bili albumin", ("stratum",)),
        ("colon", "colon", "age nodes differ", ("cluster",)),
        ("rotterdam", "rotterdam", "age meno nodes grade", ()),
        ("mgus2", "mgus2", "age hgb creat mspike", ("entry",)),
        ("heart", "heart", "age surgery transplant", ("entry", "cluster")),
        # Recurrences after Wei, Lin and Weissfeld, and after Prentice, Williams and Peterson.
        ("bladder", "bladder", "rx size number", ("stratum", "cluster")),
        ("bladder2", "bladder2", "rx size number", ("entry", "stratum", "cluster")),
    ]
}
DATA = """
sim <- read.csv("sim.csv")
lung <- na.omit(with(survival::lung, data.frame(time, event = status == 2, age, sex, ph.ecog)))
pbc <- na.omit(with(survival::pbc,
  data.frame(time, event = status == 2, age, edema, bili, albumin, stratum = sex == "f")))
colon <- na.omit(with(survival::colon, data.frame(time, event = status, age, nodes, differ, cluster = id)))
rotterdam <- with(survival::rotterdam, data.frame(time = dtime, event = death, age, meno, nodes, grade))
mgus2 <- na.omit(with(survival::mgus2,
  data.frame(time = 12 * age + futime, event = death, entry = 12 * age - .5, age = age, hgb, creat, mspike)))
heart <- with(survival::heart,
  data.frame(time = stop, event, entry = start, age, surgery, transplant = as.integer(transplant == 1), cluster = id))
bladder <- with(survival::bladder, data.frame(time = stop, event, rx, size, number, stratum = enum, cluster = id))
bladder2 <- with(survival::bladder2,
  data.frame(time = stop, event, entry = start, rx, size, number, stratum = enum, cluster = id))
for (name in c("lung", "pbc", "colon", "rotterdam", "mgus2", "heart", "bladder", "bladder2")) {
  data <- get(name); data$event <- as.integer(data$event); keep(name, data); assign(name, data)
}
"""


def script():
    lines = [DATA]
    for name, (table, features, ties, parts) in CASES.items():
        outcome = "Surv(entry, time, event)" if "entry" in parts else "Surv(time, event)"
        terms = features.split()
        terms += ["strata(stratum)"] if "stratum" in parts else []
        terms += ["offset(offset)"] if "offset" in parts else []
        options = ", weights = weight" if "weight" in parts else ""
        options += f", cluster = {'cluster' if 'cluster' in parts else f'seq_len(nrow({table}))'}"
        lines.append(
            f"""
fit <- coxph({outcome} ~ {" + ".join(terms)}, {table}, ties = "{ties}", robust = TRUE{options}, x = TRUE,
             control = coxph.control(timefix = FALSE, eps = 1e-12, toler.chol = 1e-13, iter.max = 50))
give("{name}.coef", coef(fit)); give("{name}.naive", fit$naive.var); give("{name}.robust", vcov(fit))
give("{name}.loglik", fit$loglik)
for (type in c("martingale", "deviance", "score", "dfbeta")) give(paste0("{name}.", type), resid(fit, type = type))
give("{name}.schoenfeld", resid(fit, type = "schoenfeld"))
give("{name}.scaled_schoenfeld", resid(fit, type = "scaledsch"))
for (transform in c("km", "rank", "identity", "log"))
  give(paste0("{name}.zph_", transform), cox.zph(fit, transform, terms = FALSE)$table[, c(1, 3)])
"""
        )
    return "\n".join(lines)


@pytest.fixture(scope="module")
def r(run_r):
    return run_r(script(), sim=simulated())


@pytest.fixture(params=CASES)
def case(request, r):
    """R's fit as ours, the clusters, and R's answers under short names."""
    name = request.param
    table, features, ties, parts = CASES[name]
    data = simulated() if table == "sim" else r.table(table)

    def column(part):
        return data[part].to_numpy() if part in parts else None

    stratum, clusters = column("stratum"), column("cluster")
    target = Target(
        data["event"].to_numpy() == 1,
        data["time"].to_numpy(dtype=float),
        None if "entry" not in parts else column("entry").astype(float),
        None if stratum is None else np.unique(stratum, return_inverse=True)[1],
    )
    likelihood = CoxPartial(target, ties, column("weight"), column("offset"))
    fit = FittedCox(data[features.split()].to_numpy(dtype=float), likelihood, r[f"{name}.coef"][:, 0])
    codes = None if clusters is None else np.unique(clusters, return_inverse=True)[1]
    return fit, codes, lambda wanted: r[f"{name}.{wanted}"]


def assert_agrees(found, wanted, tolerance=1e-7):
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())


def test_covariances_are_those_of_coxph(case):
    fit, clusters, r = case
    assert_agrees(fit.covariance, r("naive"))
    assert_agrees(fitted_cox.sandwich(fit, clusters), r("robust"))


def test_residuals_are_those_of_coxph(case):
    fit, _, r = case
    assert_agrees(fitted_cox.martingale(fit), r("martingale")[:, 0])
    deviance = r("deviance")[:, 0]
    # On ARM, R rounds a martingale residual just above the event flag and gives NA; the residual is then about 0.
    known = np.isfinite(deviance)
    assert known.sum() >= len(known) - 3
    assert_agrees(fitted_cox.deviance(fit)[known], deviance[known], 1e-6)
    np.testing.assert_allclose(fitted_cox.deviance(fit)[~known], 0.0, atol=1e-3)
    assert_agrees(fitted_cox.score(fit), r("score"))
    assert_agrees(fitted_cox.dfbeta(fit), r("dfbeta"))
    # Events with the same time stand in the same order in both: by stratum, time and row.
    assert_agrees(fitted_cox.schoenfeld(fit), r("schoenfeld"))
    assert_agrees(fitted_cox.scaled_schoenfeld(fit), r("scaled_schoenfeld"))


@pytest.mark.parametrize("transform", ["km", "rank", "identity", "log"])
def test_the_proportional_hazards_test_is_cox_zph(case, transform):
    fit, _, r = case
    found = proportional_hazards_test(fit, transform)
    wanted = r(f"zph_{transform}")
    assert_agrees(found.chi_square, wanted[:, 0], 1e-6)
    np.testing.assert_allclose(found.p, wanted[:, 1], rtol=1e-5, atol=1e-12)
