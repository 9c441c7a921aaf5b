"""Which estimators there are: tests, the command line, the docs and reports ask here and keep no list of their own."""

from __future__ import annotations

from importlib import import_module

from sklearn.base import BaseEstimator

# Rooms whose tables of contents name estimators.
_ROOMS = ("drosurv.estimators", "drosurv.repairs")
_OF_CAUSES = ("drosurv.competing",)


def all_estimators(causes: bool = False) -> list[tuple[str, type[BaseEstimator]]]:
    """Name and class of every survival model of drosurv, by name.

    Parameters
    ----------
    causes : bool
        Whether to list models of competing causes too. They are fitted to another target, of
        :meth:`drosurv.Surv.competing`, so that whoever fits all models to one target has no use for them.

    Examples
    --------
    >>> import drosurv
    >>> [name for name, _ in drosurv.all_estimators() if name.startswith("DROCox")]
    ['DROCox', 'DROCoxSplit']
    """
    found = {}
    for room in map(import_module, (*_ROOMS, *_OF_CAUSES) if causes else _ROOMS):
        for name in room.__all__:
            thing = getattr(room, name)
            if isinstance(thing, type) and issubclass(thing, BaseEstimator):
                found[name] = thing
    return sorted(found.items())
