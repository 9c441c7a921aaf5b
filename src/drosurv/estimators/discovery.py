"""The list of all estimators, for tests, the command line, the docs and reports."""

from __future__ import annotations

from importlib import import_module

from sklearn.base import BaseEstimator

# Subpackages that export estimators.
_SUBPACKAGES = ("drosurv.estimators", "drosurv.repairs")
_COMPETING = ("drosurv.competing",)


def all_estimators(causes: bool = False) -> list[tuple[str, type[BaseEstimator]]]:
    """Return the name and class of every survival model of drosurv, sorted by name.

    Parameters
    ----------
    causes : bool
        Whether to include models of competing causes, which need another target, of
        :meth:`drosurv.Surv.competing`.

    Examples
    --------
    >>> import drosurv
    >>> [name for name, _ in drosurv.all_estimators() if name.startswith("DROCox")]
    ['DROCox', 'DROCoxSplit']
    """
    found = {}
    for package in map(import_module, (*_SUBPACKAGES, *_COMPETING) if causes else _SUBPACKAGES):
        for name in package.__all__:
            exported = getattr(package, name)
            if isinstance(exported, type) and issubclass(exported, BaseEstimator):
                found[name] = exported
    return sorted(found.items())
