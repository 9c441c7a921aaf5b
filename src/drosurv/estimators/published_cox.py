"""A published Cox model: coefficients and a baseline survival from a table in an article.

Terms of a score are a column, ``column=level``, ``log(column)``, ``column^2``, and their products with ``*``. They are
read by a fixed grammar; nothing in them is evaluated as code. Names with signs of the grammar are written between
backticks.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from drosurv.curves import CurveType, StepFunction
from drosurv.errors import ArgumentError, arg, as_number, did_you_mean, require
from drosurv.patients.observation import in_pandas
from drosurv.patients.target import FloatArray
from drosurv.presentation import counted

# A mean that differs from the published one by this factor, and by so many standard deviations, is in another unit.
_OTHER_UNIT, _DEVIATIONS = 2.0, 3.0
# So is some column if patients have on average more than 20 times the published hazard, or less than a twentieth,
# or if nearly everybody, or nobody, is predicted to have the event.
_LARGEST_MEAN = float(np.log(20.0))
_CERTAIN = 1e-6
_NAME = r"\s*(?:`[^`]+`|[^`*=^()]+?)\s*"
_POWER = r"(?:\^\s*(?P<power>[1-9])\s*)?"
_FACTOR = re.compile(
    rf"(?:\s*log\((?P<logged>{_NAME})\)\s*{_POWER})"
    rf"|(?:(?P<leveled>{_NAME})=(?P<level>[^*=]+))|(?:(?P<column>{_NAME}){_POWER.replace('power', 'raised')})"
)
# Fewer patients do not show that a level is misspelt, or a column in another unit.
FEW_PATIENTS = 10
# Levels are listed in messages only if they are few, and each has so many patients.
_MOST_LEVELS, _LEAST_PATIENTS = 10, 5


class PublishedCox(BaseEstimator):
    r"""A Cox model from its published coefficients and baseline survival; it is not fitted.

    .. math:: S(t \mid x) = S_0(t)^{\exp(\sum_j b_j (z_j(x) - c_j))}

    for the published times t only: between them nothing is known, and nothing is made up. It can be evaluated, audited,
    certified, compared and repaired like a fitted model.

    Parameters
    ----------
    coefficients : dict of str to float
        Coefficient b of each term z: a column, ``"column=level"``, ``"log(column)"``, ``"column^2"``, and products with
        ``*``. Names with such signs are written between backticks.
    baseline_survival : dict of float to float
        Baseline survival by time, in the unit of the patients' times.
    center : float or dict of str to float
        What is subtracted: the mean linear predictor, or the mean of each term, on its own scale (that of
        ``"log(sbp)"`` is a logarithm).

    Attributes
    ----------
    feature_names_in_ : array of str
        Columns that the terms need.
    unique_times_ : array
        The published times.

    Examples
    --------
    >>> import pandas as pd
    >>> from drosurv import PublishedCox
    >>> score = PublishedCox({"age": 0.05, "sex=male": 0.4}, {5: 0.95, 10: 0.89}, center={"age": 55})
    >>> patients = pd.DataFrame({"age": [55, 75], "sex": ["female", "male"]})
    >>> score.predict(patients).tolist()
    [0.0, 1.4]
    >>> score.predict_survival_function(patients, times=[10]).round(3).tolist()
    [[0.89], [0.623]]
    """

    score_type: ClassVar[str] = "log hazard"
    curve_type: ClassVar[CurveType] = "points"

    def __init__(
        self,
        coefficients: Mapping[str, float],
        baseline_survival: Mapping[float, float],
        center: float | Mapping[str, float] = 0.0,
    ) -> None:
        self.coefficients = coefficients
        self.baseline_survival = baseline_survival
        self.center = center

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PublishedCox:
        """Read a score from a CSV file with the columns term, coefficient and, if terms are centred, center.

        Rows ``baseline,10,0.889`` give the baseline survival at a time; a row ``mean,,26.19`` the mean linear
        predictor that is subtracted.
        """
        return cls(**_read(Path(path)))

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the parameters and return the model, which is not fitted."""
        self._checked()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Return True: a published model is ready for use."""
        return True

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file that :func:`drosurv.load` reads; see :func:`drosurv.save`."""
        from drosurv.estimators.persistence import save

        save(self, path)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Columns that the terms need."""
        columns = [column for term in self._checked() for column in term.columns]
        return np.array(list(dict.fromkeys(columns)), dtype=object)

    @property
    def unique_times_(self) -> FloatArray:
        """The published times, ascending."""
        self._checked()
        return np.array(sorted(self._survival_by_time))

    @property
    def known_times(self) -> str:
        """A sentence on the times at which survival is known."""
        times = ", ".join(f"{time:g}" for time in self.unique_times_)
        return f"The score gives survival at {times}; nothing is known at other times, also not between them."

    def predict(self, X: Any) -> FloatArray:
        """Return the log risk (n,) of each patient: the centred linear predictor.

        Parameters
        ----------
        X : DataFrame
            Patients, with the columns that the terms need, in the published units.
        """
        terms, table = self._checked(), in_pandas(X)
        if not isinstance(table, pd.DataFrame):
            raise ArgumentError("X", "X must be a DataFrame, because the terms of a score name its columns.")
        center: Mapping[str, float] = self.center if isinstance(self.center, Mapping) else {}
        total = np.full(len(table), 0.0 if isinstance(self.center, Mapping) else -float(self.center))
        for term in terms:
            values = term.values(table)
            if term.text in center:
                _check_unit(term, values, float(center[term.text]))
            total += self.coefficients[term.text] * (values - center.get(term.text, 0.0))
        self._check_risks(total, terms, table)
        return total

    def predict_survival_function(
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Return survival at the published times: (n,) functions that raise at other times, or an array (n, T).

        Parameters
        ----------
        X : DataFrame
            As in :meth:`predict`.
        return_array : bool
            Return values at all published times.
        times : (T,) array, optional
            Some of the published times; an array is returned. Other times are an error.
        """
        known = self.unique_times_
        at = known if times is None else np.atleast_1d(np.asarray(times, dtype=np.float64))
        unknown = at[~np.isin(at, known)]
        if len(unknown):
            published = ", ".join(f"{time:g}" for time in known)
            raise ArgumentError(
                "times",
                f"{arg('times')} holds {unknown[0]:g}, but the score gives survival at {published} only.",
            )
        baseline = np.array([self._survival_by_time[float(time)] for time in at])
        survival = baseline ** np.exp(self.predict(X))[:, None]
        if return_array or times is not None:
            return survival
        found = np.empty(len(survival), dtype=object)
        found[:] = [PublishedCurve(known, row) for row in survival]
        return found

    @property
    def _survival_by_time(self) -> dict[float, float]:
        return {float(time): float(survival) for time, survival in self.baseline_survival.items()}

    def _checked(self) -> tuple[Term, ...]:
        """Return the terms, after checking the parameters."""
        for name in ("coefficients", "baseline_survival"):
            given = getattr(self, name)
            require(isinstance(given, Mapping) and len(given) > 0, name, "be a dict with entries", given)
        terms = tuple(Term.parse(str(text)) for text in self.coefficients)
        for text, value in self.coefficients.items():
            require(np.isfinite(as_number(value)), "coefficients", f"give {text!r} a number", value)
        previous = 1.0
        for time, survival in sorted(self._survival_by_time.items()):
            require(0 < time < np.inf, "baseline_survival", "have times above 0", time)
            fits = 0 < survival < 1 and survival <= previous
            wanted = "have survival between 0 and 1 that does not increase"
            require(fits, "baseline_survival", wanted, {time: survival})
            previous = survival
        centers = self.center if isinstance(self.center, Mapping) else {terms[0].text: self.center}
        for text, value in centers.items():
            require(text in self.coefficients, "center", "name terms of coefficients", text)
            require(np.isfinite(as_number(value)), "center", "hold numbers", value)
        return terms

    def _check_risks(self, log_risk: FloatArray, terms: tuple[Term, ...], X: pd.DataFrame) -> None:
        """Raise if patients have risks that only another unit of a column explains."""
        if len(X) < FEW_PATIENTS:
            return
        _, survival = max(self._survival_by_time.items())
        event = 1.0 - survival ** np.exp(np.clip(log_risk, -700.0, 50.0))
        typical, mean = float(np.median(event)), float(log_risk.mean())
        centred = isinstance(self.center, Mapping) or self.center != 0
        if _CERTAIN < typical < 1 - _CERTAIN and not (centred and abs(mean) > _LARGEST_MEAN):
            return
        amounts = list(dict.fromkeys(f.column for term in terms for f in term.factors if f.is_plain))
        shown = ", ".join(f"{name} {float(pd.to_numeric(X[name]).mean()):.4g}" for name in amounts)
        raise ArgumentError(
            "coefficients",
            f"the median predicted risk is {100 * typical:.3g} %, which is not plausible: a column is in another unit, "
            f"or the score is not for these patients. Compare the means with the published ones: {shown}.",
        )


def _check_unit(term: Term, values: FloatArray, published: float) -> None:
    """Raise if the mean of a column is so far from the published one that it must be in another unit."""
    factor = term.factors[0]
    if (
        len(values) < FEW_PATIENTS
        or len(term.factors) > 1
        or not factor.is_plain
        or set(values) <= {0.0, 1.0}
    ):
        return
    mean = float(values.mean())
    if factor.log:
        ratio = np.exp(abs(mean - published))
    else:
        ratio = max(abs(mean / published), abs(published / mean)) if mean * published > 0 else 1.0
    if ratio ** (1 / factor.power) >= _OTHER_UNIT and abs(mean - published) > _DEVIATIONS * values.std():
        raise ArgumentError(
            "coefficients",
            f"term {term.text!r} has the mean {mean:.4g} here, but {published:.4g} in the published patients: column "
            f"{factor.column!r} is in another unit.",
        )


class PublishedCurve(StepFunction):
    """Survival of a patient at the published times; other times raise, except 0."""

    def __call__(self, x: ArrayLike) -> Any:
        """Return the survival at published times, and 1 at time 0."""
        times = np.asarray(x, dtype=np.float64)
        unknown = ~np.isin(times, self.x) & (times != 0)
        if unknown.any():
            first = np.atleast_1d(times)[np.atleast_1d(unknown)][0]
            raise ArgumentError(
                "times", f"survival at {first:g} is not known: the score gives it at {self.x.tolist()}."
            )
        survival = np.where(times == 0, 1.0, super().__call__(times))
        return float(survival) if times.ndim == 0 else survival


def _read(path: Path) -> dict[str, Any]:
    """Return the parameters that a file of a score holds."""
    text = path.read_text(encoding="utf-8-sig")
    mark = max(",;\t", key=text.partition("\n")[0].count)
    rows = [
        [cell.strip() for cell in row] for row in csv.reader(text.splitlines(), delimiter=mark) if any(row)
    ]
    names = [name.lower() for name in rows[0]] if rows else []
    if names[:2] != ["term", "coefficient"] or names[2:] not in ([], ["center"]):
        raise ArgumentError(
            "coefficients",
            f"{path} must begin with the columns term, coefficient and, if terms are centred, center.",
        )
    coefficients: dict[str, float] = {}
    baseline: dict[float, float] = {}
    centers: dict[str, float] = {}
    mean: float | None = None
    for number, row in enumerate(rows[1:], start=2):
        term, first, second = (*row, "", "")[:3]
        value, other = (_number(path, number, cell, mark) for cell in (first, second))
        if term == "baseline" and value is not None and other is not None:
            baseline[value] = other
        elif term == "mean" and value is None and other is not None:
            mean = other
        elif value is None or not term:
            raise ArgumentError("coefficients", f"{path}, line {number}: term {term!r} has no coefficient.")
        elif term in coefficients:
            raise ArgumentError("coefficients", f"{path}, line {number}: term {term!r} is given twice.")
        else:
            coefficients[term] = value
            if other is not None:
                centers[term] = other
    if not baseline:
        raise ArgumentError(
            "coefficients",
            f"{path} has no baseline survival: add a row such as baseline,10,0.889 (time, survival).",
        )
    if mean is not None and centers:
        raise ArgumentError("coefficients", f"{path} has both a mean and centers of terms: leave out one.")
    return {
        "coefficients": coefficients,
        "baseline_survival": baseline,
        "center": centers or (0.0 if mean is None else mean),
    }


def _number(path: Path, line: int, cell: str, mark: str) -> float | None:
    """Return the number of a cell, None if it is empty; with semicolons a comma may be the decimal mark."""
    if not cell:
        return None
    try:
        return float(cell.replace(",", ".") if mark != "," else cell)
    except ValueError as error:
        raise ArgumentError("coefficients", f"{path}, line {line}: {cell!r} is not a number.") from error


@dataclass(frozen=True)
class Factor:
    """A factor of a term: a column, its logarithm or a power, or whether it has a level."""

    column: str
    level: str | None = None
    log: bool = False
    power: int = 1

    @property
    def is_plain(self) -> bool:
        """Whether it is an amount, whose mean can be compared with a published one."""
        return self.level is None

    def values(self, X: pd.DataFrame, term: str) -> FloatArray:
        """Return the values (n,) of a table; raise if a column, level or number is missing."""
        if self.column not in X.columns:
            raise ArgumentError(
                "coefficients",
                f"term {term!r} needs column {self.column!r}, which the table does not have."
                f"{did_you_mean(self.column, X.columns)}",
            )
        column = X[self.column]
        if missing := int(column.isna().sum()):
            raise ArgumentError(
                "coefficients",
                f"term {term!r} needs column {self.column!r}, which is empty for {counted(missing, 'patient')}: "
                "fill it in, or leave these patients out.",
            )
        return (
            self._numbers(column, term) if self.level is None else self._has_level(column, self.level, term)
        )

    def _numbers(self, column: pd.Series[float], term: str) -> FloatArray:
        """Return the values (n,) of a term of numbers: the column, its power or its logarithm."""
        values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        if not np.isfinite(values).all():
            raise ArgumentError(
                "coefficients",
                f"term {term!r} needs numbers, which column {self.column!r} does not hold: write a category as "
                f"'{self.column}=LEVEL'.{_levels(column)}",
            )
        if self.log and (values <= 0).any():
            raise ArgumentError(
                "coefficients",
                f"term {term!r} is a logarithm, but {counted(int((values <= 0).sum()), 'value')} of column "
                f"{self.column!r} are 0 or negative: correct them, or check the unit.",
            )
        return (np.log(values) if self.log else values) ** self.power

    def _has_level(self, column: pd.Series[float], level: str, term: str) -> FloatArray:
        """Return 1 for the patients (n,) whose category is the level, 0 for others; raise if nobody has it."""
        if column.dtype.kind in "biuf":
            try:
                wanted = {"true": 1.0, "false": 0.0}.get(level.lower()) if column.dtype.kind == "b" else None
                inside = column.to_numpy(dtype=np.float64) == (float(level) if wanted is None else wanted)
            except ValueError:
                inside = np.zeros(len(column), dtype=np.bool_)
            # A flag that nobody has is no mistake.
            known = inside.any() or (level in ("0", "1") and column.isin([0, 1]).all())
        else:
            texts = column.astype(str).str.strip()
            inside = (texts == level).to_numpy()
            categories = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else ()
            known = inside.any() or level in map(str, categories)
        if not known and len(column) >= FEW_PATIENTS:
            raise ArgumentError(
                "coefficients",
                f"term {term!r}: no patient has the level {level!r} in column {self.column!r}.{_levels(column, level)} "
                "Correct the level, or leave the term out if it applies to nobody here.",
            )
        return np.asarray(inside, dtype=np.float64)


@dataclass(frozen=True)
class Term:
    """A term of a score: the product of its factors."""

    text: str
    factors: tuple[Factor, ...]

    @staticmethod
    def parse(text: str) -> Term:
        """Read a term; raise if it is not of the grammar."""
        parts = re.findall(r"(?:`[^`]*`|[^*`])+", text) if "**" not in text else []
        factors = [_factor(part) for part in parts]
        # Stars between backticks are part of a name.
        stars = text.count("*") - sum(name.count("*") for name in re.findall(r"`[^`]*`", text))
        if not factors or len(parts) != stars + 1 or None in factors:
            raise ArgumentError(
                "coefficients",
                f"term {text!r} cannot be read: write a column, column=level, log(column), column^2, or products of "
                "them with *; put names with such signs between backticks.",
            )
        return Term(text, tuple(factor for factor in factors if factor is not None))

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the term needs."""
        return tuple(factor.column for factor in self.factors)

    def values(self, X: pd.DataFrame) -> FloatArray:
        """Return the values (n,) of a table."""
        found: FloatArray = np.prod([factor.values(X, self.text) for factor in self.factors], axis=0)
        return found


def _factor(text: str) -> Factor | None:
    """Read a factor; None if it cannot be read."""
    found = _FACTOR.fullmatch(text)
    if found is None:
        return None
    name = found["logged"] or found["leveled"] or found["column"]
    column = name.strip().strip("`").strip()
    if not column:
        return None
    if found["level"] is not None:
        return Factor(column, level=found["level"].strip())
    power = int(found["power"] or found["raised"] or 1)
    return Factor(column, log=found["logged"] is not None, power=power)


def _levels(column: pd.Series[float], level: str = "") -> str:
    """Name the levels of a column, or the nearest to a given one, if each has enough patients to be named."""
    counts = column.astype(str).str.strip().value_counts()
    if len(counts) > _MOST_LEVELS or counts.min() < _LEAST_PATIENTS:
        return ""
    return did_you_mean(level, counts.index) or f" It holds {', '.join(sorted(map(repr, counts.index)))}."
