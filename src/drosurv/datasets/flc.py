"""Serum free light chain and mortality, one of the paper's datasets."""

from __future__ import annotations

import pandas as pd

from drosurv.datasets.dataset import Card, Dataset, bundled
from drosurv.datasets.published import label, prepare_as_published
from drosurv.target import Surv

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
    source = bundled("flc")
    male = (source["sex"] == "M").astype(float)
    numbers = source[["age", "creatinine", "flc.grp", "kappa", "lambda"]].astype(float)
    dataset = Dataset(
        FLC.name,
        pd.concat([numbers, male], axis="columns"),
        Surv.from_arrays(source["death"] == 1, source["futime"]),
        label(age=(numbers["age"] > 65).astype(float), gender=male),
    )
    return prepare_as_published(dataset, ["gender", "age"]) if as_published else dataset
