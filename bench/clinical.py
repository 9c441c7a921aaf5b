"""Inference and clinical data: what the Cox table, a bootstrap, entry times and strata cost."""

import numpy as np

from bench.clock import best
from bench.data import correlated, flc
from bench.rows import Row, within
from drosurv import CoxPH, DROCox

PART = "clinical"


def rows():
    """Every target of clinical data."""
    X, y = correlated(100_000, 50)
    plain = best(lambda: CoxPH().fit(X, y), 3)
    both = best(lambda: CoxPH().fit(X, y).summary(), 3)
    yield _costs("summary() of plain Cox, n = 100,000, d = 50, added to the fit", both.cpu, plain.cpu, 1.3)
    rng = np.random.default_rng(0)
    entry, strata = y["time"] * rng.uniform(-0.5, 0.9, len(y)), rng.integers(0, 10, len(y))
    late = best(lambda: CoxPH().fit(X, y, entry=entry), 3)
    yield _costs("Cox with entry times against the plain fit", late.cpu, plain.cpu, 2.0)
    within_strata = best(lambda: CoxPH().fit(X, y, strata=strata), 3)
    yield _costs("Cox with ten strata against the plain fit", within_strata.cpu, plain.cpu, 2.0)
    X, y, _ = flc()[0]
    model = DROCox().fit(X, y)
    boot = best(lambda: model.summary(method="bootstrap", n_boot=1000), 1, warm_up=False)
    yield within(PART, "1,000 bootstrap refits of DRO-COX on FLC's training patients", boot.wall, 15.0)


def _costs(what, ours, plain, most):
    ratio = ours / plain
    note = f"{ours:.3f} s against {plain:.3f} s"
    return Row(PART, what, f"at most {most:g}x", f"{ratio:.2f}x", ratio <= most, note, {"ratio": ratio})
