"""The loss of patients with several rows is that of the patients in one."""

import numpy as np

from drosurv.losses import PiecewiseExponential, RowsOfPatients
from drosurv.target import Target


def test_patients_cut_in_rows_have_the_losses_and_derivatives_of_the_whole():
    rng = np.random.default_rng(0)
    n = 30
    time, event, X = rng.exponential(size=n), rng.random(n) < 0.6, rng.normal(size=(n, 2))
    cut, shuffled = time * rng.uniform(0.1, 0.9, n), rng.permutation(2 * n)
    target = Target(np.r_[np.zeros(n, bool), event], np.r_[cut, time], np.r_[np.full(n, -1.0), cut])
    # Numbers with gaps, as after some patients were drawn.
    patient = 3 * np.r_[:n, :n][shuffled]
    last = np.argsort(shuffled)[n:]
    loss = RowsOfPatients(PiecewiseExponential(target.take(shuffled), 4), patient, last)
    whole = PiecewiseExponential(Target(event, time), 4)
    rows = np.r_[X, X][shuffled]
    theta, psi, q = rng.normal(size=2), whole.start[None] + 0.1, rng.random((1, n))
    np.testing.assert_allclose(loss((rows @ theta)[None], psi), whole((X @ theta)[None], psi))
    (by_score, by_psi), (wanted, of_psi) = loss.pullback(q), whole.pullback(q)
    np.testing.assert_allclose(by_score @ rows, wanted @ X)
    np.testing.assert_allclose(by_psi, of_psi)
    which = np.array([2, 7, 8])
    np.testing.assert_allclose(loss.jacobian(rows, which), whole.jacobian(X, which), atol=1e-12)
    np.testing.assert_allclose(loss.hessian(q, rows), whole.hessian(q, X), atol=1e-12)
    np.testing.assert_allclose(loss.null_losses()[last], whole.null_losses())
    assert loss.event_share == whole.event_share
    # A part of the patients, with all of their rows.
    own = np.flatnonzero(patient < 30)
    part, alone = loss.take(own), whole.take(np.arange(10))
    np.testing.assert_allclose(part((rows[own] @ theta)[None], psi), alone((X[:10] @ theta)[None], psi))
    np.testing.assert_allclose(
        part.everyone(part((rows[own] @ theta)[None], psi)).sum(),
        loss((rows @ theta)[None], psi)[0, :10].sum(),
    )
