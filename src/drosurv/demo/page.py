"""The report of the demonstration: the repaired model beside plain Cox, on patients kept away."""

from __future__ import annotations

from collections.abc import Callable

from drosurv.audit import AuditReport, audit
from drosurv.datasets import make_hidden_minority
from drosurv.repairs import RepairedCox


def story_report(
    *,
    random_state: int = 0,
    n_hidden: int = 6000,
    n_bootstrap: int = 200,
    on_step: Callable[[str, int], None] | None = None,
) -> AuditReport:
    """Audit the repaired model on the simulated patients, by the group that was hidden.

    Parameters
    ----------
    random_state, n_hidden
        As in :func:`tell`.
    n_bootstrap, on_step
        As in :func:`~drosurv.audit.audit`.
    """
    train, test = (
        make_hidden_minority(n, random_state=seed)
        for n, seed in ((n_hidden - n_hidden // 3, 2 * random_state), (n_hidden // 3, 2 * random_state + 1))
    )
    return audit(
        RepairedCox(random_state=random_state).fit(train.X, train.y),
        test.X,
        test.y,
        sensitive_features=test.sensitive_features,
        X_train=train.X,
        y_train=train.y,
        data_name="simulated patients with a hidden group",
        n_bootstrap=n_bootstrap,
        random_state=random_state,
        on_step=on_step,
    )
