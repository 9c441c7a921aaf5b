"""Datasets that are part of the package: serum free light chain (FLC), and the National Wilms Tumor Study."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pandas as pd

from drosurv.datasets.dataset import Card, Dataset
from drosurv.datasets.published import label, prepare_as_published
from drosurv.patients.target import Surv


def read_bundled(name: str) -> pd.DataFrame:
    """Read a table that is part of the package."""
    with (files("drosurv.datasets") / "data" / f"{name}.csv.gz").open("rb") as file:
        return pd.read_csv(file, compression="gzip")


FLC = Card(
    name="flc",
    about="residents of Olmsted County aged 50 or more, by serum free light chain",
    patients=7874,
    features=6,
    events=2169,
    sensitive_attributes=("age", "gender"),
    source="bundled with drosurv",
    provenance="R package survival 3.5-3 (flchain), LGPL (>= 2); made by datasets/data/make.R",
    left_out={
        "chapter": "cause of death",
        "sample.yr": "not used in the published tables",
        "mgus": "not used in the published tables",
    },
)


def load_flc(as_published: bool = False) -> Dataset:
    """Serum free light chain and mortality: 7,874 residents aged 50 or more, 6 features, 72.5 % censored.

    Features are age, creatinine (1,350 missing), flc.grp (1 to 10), kappa, lambda and sex (male 1); three
    patients die at time 0. Sensitive attributes are age over 65 and gender.

    Parameters
    ----------
    as_published : bool
        False leaves missing values NaN; True imputes medians inside intersectional cells over all rows and
        regroups rows by cell, as behind the published tables.

    Examples
    --------
    >>> from drosurv.datasets import load_flc
    >>> load_flc().X.columns.tolist()
    ['age', 'creatinine', 'flc.grp', 'kappa', 'lambda', 'sex']

    References
    ----------
    Dispenzieri et al. (2012), Use of nonclonal serum immunoglobulin free light chains to predict overall
    survival in the general population, Mayo Clinic Proceedings 87(6).
    """
    source = read_bundled("flc")
    male = (source["sex"] == "M").astype(float)
    numbers = source[["age", "creatinine", "flc.grp", "kappa", "lambda"]].astype(float)
    dataset = Dataset(
        FLC.name,
        pd.concat([numbers, male], axis="columns"),
        Surv.from_arrays(source["death"] == 1, source["futime"]),
        label(age=(numbers["age"] > 65).astype(float), gender=male),
    )
    return prepare_as_published(dataset, ["gender", "age"]) if as_published else dataset


NWTCO = Card(
    name="nwtco",
    about="children with Wilms tumour in the third and fourth trials of the National Wilms Tumor Study Group",
    event="relapse",
    patients=4028,
    features=5,
    events=571,
    sensitive_attributes=("age",),
    source="bundled with drosurv",
    provenance="R package survival 3.5-3 (nwtco), LGPL (>= 2); made by datasets/data/make.R",
    left_out={
        "seqno": "numbers the children",
        "in.subcohort": "says who was drawn for a case-cohort analysis",
    },
)


def load_nwtco() -> Dataset:
    """Relapse of Wilms tumour: 4,028 children, 5 features, 85.8 % censored.

    Features are age (months), stage (1 to 4), study (third or fourth trial), and whether the histology was
    unfavourable by the central pathologist (histol) and by the local institution (instit). Times are days to relapse
    or last seen. The sensitive attribute is an age of at least two years.

    Examples
    --------
    >>> from drosurv.datasets import load_nwtco
    >>> load_nwtco()
    nwtco: 4,028 patients x 5 features, 85.8 % censored, sensitive: age

    References
    ----------
    Breslow and Chatterjee (1999), Design and analysis of two-phase studies with binary outcome applied to Wilms tumour
    prognosis, Applied Statistics 48.
    """
    table = read_bundled("nwtco")
    unfavourable = (table[["histol", "instit"]] == 2).astype(float)
    X = pd.concat([table[["age", "stage", "study"]].astype(float), unfavourable], axis="columns")
    y = Surv.from_arrays(table["rel"] == 1, table["edrel"])
    groups = pd.DataFrame({"age": np.where(table["age"] < 24, "under 2 years", "2 years or more")})
    return Dataset(NWTCO.name, X, y, groups)
