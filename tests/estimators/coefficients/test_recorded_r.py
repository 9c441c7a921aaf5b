"""Numbers that R's survival package (3.5-3) gave once, for machines without R.

The script, with the columns of ``DATA`` as a data frame `data`:

    for (ties in c("breslow", "efron")) {
      fit <- coxph(Surv(entry, time, event) ~ a + b + strata(stratum), data, weights = weight, cluster = cluster,
                   ties = ties, control = coxph.control(eps = 1e-12, toler.chol = 1e-13))
      print(coef(fit)); print(sqrt(diag(fit$naive.var))); print(sqrt(diag(vcov(fit))))
      print(resid(fit, "martingale")); print(cox.zph(fit)$table)
    }
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import f

from drosurv import CoxPH, Surv
from drosurv.estimators.coefficients import FittedCox, fitted_cox, proportional_hazards_test
from drosurv.losses.cox_partial import CoxPartial
from drosurv.patients.target import Target, with_fields

DATA = pd.DataFrame(
    {
        "entry": [0, 0, 1, 0, 2, 0, 3, 1, 0, 4, 2, 0, 5, 3, 0, 1],
        "time": [2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 9, 9, 10, 11],
        "event": [1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 0],
        "stratum": [1, 1, 1, 2, 1, 2, 1, 2, 2, 2, 1, 1, 2, 2, 1, 2],
        "cluster": [1, 3, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8],
        "weight": [1, 2, 1, 1, 0.5, 1, 3, 1, 1, 2, 1, 1, 1, 0.5, 1, 2],
        "a": [1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0],
        "b": [0.2, 1.1, -0.4, 0.8, 1.5, -0.9, 0.3, 0.6, 1.2, -0.7, 0.1, 0.9, -0.2, 0.4, 0.5, -1.3],
    }
)
RECORDED = {
    "breslow": {
        "coef": [0.9368241106, 0.5406548904],
        "naive": [0.6332107062, 0.4538849728],
        "robust": [0.4388513687, 0.2773474674],
        "martingale": [
            *(0.7519190213, 0.4046260067, 0.3247847404, 0.0, 0.3478157738, 0.8549536644, -0.0571799995),
            *(0.6323145237, -0.2978248289, 0.5580621527, -0.7807338740, -0.1673007301, -0.8530987231),
            *(-1.1192251244, -0.9402890594, -0.4464281896),
        ],
        "zph": [0.440767318, 0.202171023, 0.485091495],
        "zph p": [0.506752336, 0.652974136, 0.784627852],
    },
    "efron": {
        "coef": [0.9573042569, 0.5933116576],
        "naive": [0.6337838766, 0.4601477287],
        "robust": [0.4479994796, 0.2964956103],
        "martingale": [
            *(0.7531186643, 0.4711534465, 0.4343162982, 0.0, 0.2368120793, 0.8629479089, -0.0562695088),
            *(0.6688050257, -0.2315126625, 0.5540179965, -0.8662488554, -0.2372376562, -0.9526213536),
            *(-1.1840014772, -0.9758528572, -0.4318270864),
        ],
        "zph": [0.493975662, 0.243675679, 0.551640144],
        "zph p": [0.482159192, 0.621563859, 0.758949475],
    },
}


def fitted(ties, coef):
    target = Target(
        DATA["event"].to_numpy() == 1,
        DATA["time"].to_numpy(dtype=float),
        DATA["entry"].to_numpy(dtype=float),
        DATA["stratum"].to_numpy() - 1,
    )
    likelihood = CoxPartial(target, ties, DATA["weight"].to_numpy())
    return FittedCox(DATA[["a", "b"]].to_numpy(dtype=float), likelihood, np.array(coef))


@pytest.mark.parametrize("ties", RECORDED)
def test_inference_is_that_of_r(ties):
    r = RECORDED[ties]
    fit = fitted(ties, r["coef"])
    naive = fit.covariance
    np.testing.assert_allclose(np.sqrt(np.diag(naive)), r["naive"], rtol=1e-8)
    robust = fitted_cox.sandwich(fit, DATA["cluster"].to_numpy() - 1)
    np.testing.assert_allclose(np.sqrt(np.diag(robust)), r["robust"], rtol=1e-8)
    np.testing.assert_allclose(fitted_cox.martingale(fit), r["martingale"], rtol=1e-7, atol=1e-9)
    test = proportional_hazards_test(fit)
    np.testing.assert_allclose(test.chi_square, r["zph"], rtol=1e-7)
    np.testing.assert_allclose(test.p, r["zph p"], rtol=1e-7)


@pytest.mark.parametrize("ties", RECORDED)
def test_weighted_score_residuals_sum_to_zero_at_the_optimum(ties):
    fit = fitted(ties, RECORDED[ties]["coef"])
    np.testing.assert_allclose(DATA["weight"] @ fitted_cox.score(fit), [0.0, 0.0], atol=1e-8)


def test_dependent_features_have_no_variance():
    fit = fitted("efron", [0.5, 0.2])
    X = np.column_stack([fit.X, fit.X[:, 0] * 2, np.ones(len(fit.X))])
    more = FittedCox(X, fit.likelihood, np.array([0.5, 0.2, 0.0, 0.0]))
    variance = np.diag(more.covariance)
    assert np.isnan(variance).tolist() == [True, False, True, True]
    assert variance[1] == pytest.approx(fit.covariance[1, 1], rel=1e-8)


def test_an_unknown_transform_of_time_is_named():
    with pytest.raises(ValueError, match=r"transform must be 'km'.*'sqrt'"):
        proportional_hazards_test(fitted("efron", [0.5, 0.2]), "sqrt")


def test_the_test_names_features_that_change_with_time():
    found = proportional_hazards_test(fitted("efron", RECORDED["efron"]["coef"]), names=["a", "b"])
    assert found.to_frame().index.tolist() == ["a", "b", "all together"]
    assert found.to_frame()["df"].tolist() == [1, 1, 2]
    assert found.sentence().startswith("No evidence against proportional hazards (p = 0.759")
    # R's cox.zph of the recidivism data: no single feature, but all together (p = 0.013).
    p = np.array([0.803, 0.0145, 0.150, 0.0398, 0.315, 0.892, 0.471, 0.0134])
    together = replace(found, names=tuple("abcdefg"), p=p, chi_square=p)
    assert together.sentence().startswith(
        "The test of all features together rejects proportional hazards (p = 0.013"
    )
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    # Of the first feature more is worse early on and better later.
    time = np.where(X[:, 0] > 0, rng.uniform(0, 1, 400) ** 3, rng.uniform(0.2, 0.6, 400))
    changing = FittedCox(X, CoxPartial(Target(np.ones(400, dtype=bool), time)), np.array([0.3, 0.0]))
    test = proportional_hazards_test(changing, names=["a", "b"])
    assert "the effect of a (p below 0.001) changes with time (test" in str(test)
    # Each of several has a p-value of its own, Holm's: twice the smaller, and the larger.
    both = replace(test, p=np.array([0.01, 0.04, 0.01])).sentence()
    assert "the effects of a (p = 0.020), b (p = 0.040) change with time (test" in both
    constant = FittedCox(np.ones((400, 1)), changing.likelihood, np.zeros(1))
    nothing = proportional_hazards_test(constant)
    assert nothing.sentence().startswith(
        "Proportional hazards cannot be tested: all events have the same time, or"
    )


def by_definition(x, time, event, beta, g, clusters):
    """Statistic of the change with g of one coefficient, with the variance of sums over clusters."""
    risk, U = np.exp(beta * x), np.zeros((2, len(x)))
    information = np.zeros(2)
    for e in np.flatnonzero(event):
        share = (time >= time[e]) * risk / risk[time >= time[e]].sum()
        mean = share @ x
        part = (x - mean) * ((np.arange(len(x)) == e) - share)
        U += np.outer([1, g[e]], part)
        information += np.array([1, g[e]]) * (share @ (x - mean) ** 2)
    own = U[1] - information[1] / information[0] * U[0]
    sums, k = np.bincount(clusters, own), len(np.unique(clusters))
    return own.sum() ** 2 / (k / (k - 1) * (sums**2).sum())


@pytest.mark.parametrize(("seed", "larger"), [(5, True), (2, False)])
def test_with_clusters_the_test_uses_the_variance_of_their_sums_if_p_is_larger(seed, larger):
    rng = np.random.default_rng(seed)
    x, time, event = rng.normal(size=40), rng.exponential(size=40), rng.random(40) < 0.8
    y = Surv.from_arrays(event, time)
    model = CoxPH(tol=1e-12).fit(x[:, None], y)
    coef, clusters = float(model.coef_[0]), np.arange(40) // 5
    alone = model.check_proportional_hazards("identity")
    together = (
        CoxPH(tol=1e-12)
        .fit(x[:, None], with_fields(y, clusters=clusters))
        .check_proportional_hazards("identity")
    )
    g = time - time[event].mean()
    wanted = by_definition(x, time, event, coef, g, clusters)
    assert (f.sf(wanted, 1, 7) > alone.p[0]) == larger
    expected = (wanted, f.sf(wanted, 1, 7)) if larger else (alone.chi_square[0], alone.p[0])
    np.testing.assert_allclose((together.chi_square[0], together.p[0]), expected, rtol=1e-6)
    said = "x0, all together: variance of sums over the 8 clusters, and p of chi_square / df by an F distribution"
    assert (said in str(together)) == larger
    assert "F distribution" not in str(alone)
    # Copies in clusters are no evidence.
    rows = np.repeat(np.arange(40), 5)
    copies = CoxPH(tol=1e-12).fit(x[rows, None], y[rows]).check_proportional_hazards("identity")
    five = (
        CoxPH(tol=1e-12)
        .fit(x[rows, None], with_fields(y[rows], clusters=rows))
        .check_proportional_hazards("identity")
    )
    np.testing.assert_allclose(copies.chi_square, 5 * alone.chi_square, rtol=1e-6)
    once = by_definition(x, time, event, coef, g, np.arange(40))
    np.testing.assert_allclose(five.chi_square[0], once, rtol=1e-6)


def test_the_plot_shows_the_residuals_of_one_feature():
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    fit = fitted("efron", RECORDED["efron"]["coef"])
    found = proportional_hazards_test(fit, names=["a", "b"])
    ax = found.plot("b")
    np.testing.assert_allclose(
        np.sort(ax.lines[0].get_ydata()), np.sort(fitted_cox.scaled_schoenfeld(fit)[:, 1])
    )
    plt.close(ax.figure)
    with pytest.raises(ValueError, match=r"feature must be one of \['a', 'b'\], got 'c'"):
        found.plot("c")
