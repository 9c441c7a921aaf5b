"""The report of the demonstration: DRO-COX on FLC, audited on patients kept away."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drosurv.audit.audit import audit
from drosurv.audit.report import AuditReport


def audit_flc(
    alpha: float = 0.2,
    *,
    alpha_path: Sequence[float] | None = None,
    search_rules: bool = True,
    n_bootstrap: int = 200,
    n_bootstrap_path: int = 50,
    random_state: int = 0,
    on_step: Callable[[str, int], None] | None = None,
) -> AuditReport:
    """Train DRO-COX on FLC and audit it by age and gender, with the models of the slider.

    Parameters
    ----------
    alpha : float
        Share of patients that the audited model protects, in (0, 1].
    alpha_path, search_rules, n_bootstrap, n_bootstrap_path, random_state, on_step
        As in :func:`~drosurv.audit.audit`; the seed also draws the training patients.

    Returns
    -------
    AuditReport
    """
    from sklearn.pipeline import make_pipeline

    from drosurv.datasets import load_flc, split
    from drosurv.estimators import DROCox
    from drosurv.tables import TableEncoder

    train, _, test = split(load_flc(), random_state, impute=False)
    model = make_pipeline(TableEncoder(), DROCox(alpha=alpha)).fit(train.X, train.y)
    return audit(
        model,
        test.X,
        test.y,
        sensitive_features=test.sensitive_features,
        X_train=train.X,
        y_train=train.y,
        features=test.X.drop(columns="sex").assign(gender=test.sensitive_features["gender"]),
        alpha_path=alpha_path,
        search_rules=search_rules,
        data_name="FLC",
        time_title="days",
        n_bootstrap=n_bootstrap,
        n_bootstrap_path=n_bootstrap_path,
        random_state=random_state,
        on_step=on_step,
    )
