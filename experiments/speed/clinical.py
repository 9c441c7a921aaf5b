"""Inference and clinical data: what the Cox table, a bootstrap, entry times and strata cost."""

import numpy as np

from drosurv import CoxPH, DROCox
from drosurv.patients.target import with_fields
from experiments.speed import peers
from experiments.speed.clock import best, in_turns
from experiments.speed.data import correlated, flc
from experiments.speed.rows import at_most, faster, missing, within

PART = "clinical"


def rows():
    """Every target of clinical data."""
    X, y = correlated(100_000, 50)
    plain, both = in_turns([lambda: CoxPH().fit(X, y), lambda: CoxPH().fit(X, y).summary()], 7)
    yield at_most(
        PART, "summary() of plain Cox, n = 100,000, d = 50, added to the fit", both.cpu, plain.cpu, 1.3
    )
    rng = np.random.default_rng(0)
    entry = y["time"] * rng.uniform(-0.5, 0.9, len(y))
    strata = rng.integers(0, 10, len(y))
    cases = {
        "entry times": (with_fields(y, entry=entry), {}, {"entry": entry}),
        "ten strata": (y, {"strata": strata}, {"strata": strata}),
    }
    for name, (own, given, known) in cases.items():
        plain, ours = in_turns([lambda: CoxPH().fit(X, y), lambda: CoxPH().fit(X, own, **given)], 3)  # noqa: B023
        yield at_most(PART, f"Cox with {name} against the plain fit", ours.cpu, plain.cpu, 2.0)
        what = f"Cox with {name} against R"
        try:
            coef, theirs = peers.fit("R", X, y, **known)
        except peers.Missing as reason:
            yield missing(PART, what, "5x faster", str(reason))
            continue
        # The same model, to R's own precision.
        assert np.abs(coef - ours.result.coef_).max() < 1e-5
        yield faster(PART, what, ours.cpu, theirs, 5.0)
    X, y, _ = flc()[0]
    model = DROCox(recalibrate=False, alpha=0.2).fit(X, y)
    boot = best(lambda: model.summary(method="bootstrap", n_bootstrap=1000), 1, warm_up=False)
    yield within(PART, "1,000 bootstrap refits of DRO-COX on FLC's training patients", boot.wall, 15.0)
