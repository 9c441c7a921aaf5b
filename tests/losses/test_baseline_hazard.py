"""Baseline hazards, against sums over the risk sets and against R's survfit."""

import numpy as np
import pandas as pd
import pytest

from drosurv.losses.cox_partial import CoxPartial
from drosurv.patients.target import Target


def sample(seed=0, n=80):
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 12, n).astype(float)
    target = Target(rng.random(n) < 0.6, time, time - rng.integers(1, 12, n) / 2, rng.integers(0, 2, n))
    return target, rng.normal(size=n), rng.uniform(0.3, 2, n)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("shift", [0.0, 900.0])
def test_jumps_follow_the_definition(ties, shift):
    target, scores, weight = sample()
    loss = CoxPartial(target, ties, weight)
    found = loss.log_hazard_jumps(scores + shift)
    risk = weight * np.exp(scores)
    for k, (time, stratum) in enumerate(zip(loss.event_times, loss.event_strata, strict=True)):
        inside = (target.stratum == stratum) & (target.entry < time) & (target.time >= time)
        died = inside & target.event & (target.time == time)
        m = died.sum()
        share = np.arange(m) / m if ties == "efron" else np.zeros(m)
        wanted = (weight[died].mean() / (risk[inside].sum() - share * risk[died].sum())).sum()
        assert found[k] + shift == pytest.approx(np.log(wanted), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_cumulative_hazards_are_those_of_survfit(run_r, ties):
    target, scores, weight = sample(1)
    data = pd.DataFrame(
        {
            "x": scores,
            "entry": target.entry,
            "time": target.time,
            "event": target.event.astype(int),
            "stratum": target.stratum,
            "weight": weight,
        }
    )
    r = run_r(
        f"""
data <- read.csv("data.csv")
fit <- coxph(Surv(entry, time, event) ~ x + strata(stratum), data, ties = "{ties}", weights = weight,
             control = coxph.control(timefix = FALSE))
curve <- survfit(fit, newdata = data.frame(x = 0))
give("coef", coef(fit))
give("curve", cbind(rep(0:1, curve$strata), curve$time, curve$cumhaz)[curve$n.event > 0, ])
""",
        data=data,
    )
    loss = CoxPartial(target, ties, weight)
    jumps = loss.log_hazard_jumps(scores * r["coef"][0, 0])
    found = np.concatenate([np.cumsum(np.exp(jumps[loss.event_strata == s])) for s in (0, 1)])
    np.testing.assert_allclose(
        np.column_stack([loss.event_strata, loss.event_times, found]), r["curve"], rtol=1e-7
    )
