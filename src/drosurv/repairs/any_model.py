"""Repair any survival model: one to be fitted, one that is frozen, or predictions made elsewhere."""

from __future__ import annotations

from typing import Any

from drosurv.repairs.repaired_cox import RepairedCox


def repair(
    model: Any,
    X: Any,
    y: Any,
    *,
    features: Any = None,
    frozen: bool = False,
    clusters: Any = None,
    **options: Any,
) -> RepairedCox:
    """Find the groups a survival model is wrong about, and correct it there.

    Parameters
    ----------
    model : estimator, or a pair (times, survival)
        With ``frozen=False`` an unfitted estimator, which is fitted on all patients and, to see its errors, on parts
        of them. With ``frozen=True`` a fitted model, or survival probabilities (n, m) at m increasing times, of
        patients that the model was not trained on; it is left as it is.
    X : (n, d) array or DataFrame
        Features, as the model takes them.
    y : structured array (n,)
        Event flag and time; see :class:`drosurv.Surv`.
    features : (n, d') DataFrame, optional
        Columns that rules may speak about, in units a reader knows; ``X`` by default.
    frozen : bool
        Whether the model stays as it is. Then the chance of a false repair is bounded whatever the data: see the
        guide on repairs.
    clusters : (n,) labels, optional
        Rows with the same label, such as those of one patient, are never on both sides of a check.
    **options
        Parameters of :class:`drosurv.RepairedCox`, such as ``max_repairs`` or ``random_state``.

    Returns
    -------
    RepairedCox
        Fitted. Where only predictions were given, use its ``correct``.

    Examples
    --------
    A model trained in one place, repaired with patients of another:

    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> there = make_hidden_minority(n_samples=2000, minority=0.0, random_state=0)
    >>> here = make_hidden_minority(n_samples=2000, minority=0.3, random_state=1)
    >>> model = drosurv.CoxPH().fit(there.X, there.y)
    >>> repaired = drosurv.repair(model, here.X, here.y, frozen=True, random_state=0)
    >>> str(repaired.repairs_[-1].rule)
    'x5 > 0.54'
    """
    if frozen:
        return RepairedCox(**options)._fit_frozen(model, X, y, features, clusters)
    if isinstance(model, tuple):
        raise ValueError(
            "predictions (times, survival) belong to a model that stays as it is: pass frozen=True."
        )
    return RepairedCox(base=model, **options).fit(X, y, features, clusters)
