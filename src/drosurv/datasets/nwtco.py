"""Relapse of Wilms tumour in children, from the National Wilms Tumor Study."""

from __future__ import annotations

import numpy as np
import pandas as pd

from drosurv.datasets.dataset import Card, Dataset, bundled
from drosurv.target import Surv

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
    table = bundled("nwtco")
    unfavourable = (table[["histol", "instit"]] == 2).astype(float)
    X = pd.concat([table[["age", "stage", "study"]].astype(float), unfavourable], axis="columns")
    y = Surv.from_arrays(table["rel"] == 1, table["edrel"])
    groups = pd.DataFrame({"age": np.where(table["age"] < 24, "under 2 years", "2 years or more")})
    return Dataset(NWTCO.name, X, y, groups)
