"""Rules that define subgroups by conditions on the columns of a table, and the search for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numba
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from drosurv.errors import ArgumentError, arg, require
from drosurv.patients.arrays import on_host
from drosurv.patients.observation import in_pandas, require_rows
from drosurv.patients.target import BoolArray, FloatArray
from drosurv.tables.values import label

Comparison = Literal["<=", ">", "is", "is not", "is missing"]
# How comparisons are written, as in the names of groups ("diabetes = 1").
_SIGNS = {"is": "=", "is not": "not"}


@dataclass(frozen=True)
class Condition:
    """One comparison of one column with a value; a missing value meets only "is missing".

    >>> from drosurv.judging.rules import Condition
    >>> str(Condition("age", ">", 65.0)), str(Condition("sex", "is", "f")), str(Condition("stage", "is not", "III"))
    ('age > 65', 'sex = f', 'stage not III')
    """

    column: str
    comparison: Comparison
    value: Any = None

    def __str__(self) -> str:
        if self.comparison == "is missing":
            return f"{self.column} is missing"
        # 15 digits show the threshold, and no rounding errors of binary fractions.
        value = f"{self.value:.15g}" if isinstance(self.value, float) else label(self.value)
        return f"{self.column} {_SIGNS.get(self.comparison, self.comparison)} {value}"

    def holds(self, table: pd.DataFrame) -> BoolArray:
        """Return which rows (n,) of a table meet the condition."""
        column = table[self.column]
        missing: BoolArray = column.isna().to_numpy(dtype=np.bool_)
        if self.comparison == "is missing":
            return missing
        met: BoolArray
        if self.comparison in ("is", "is not"):
            equal = np.array([value == self.value for value in column.astype(object).where(~missing, None)])
            met = equal if self.comparison == "is" else ~equal
        else:
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
            met = numbers <= self.value if self.comparison == "<=" else numbers > self.value
        return met & ~missing


@dataclass(frozen=True, repr=False)
class Rule:
    """Conditions, at least one, that all hold.

    >>> from drosurv.judging.rules import Condition, Rule
    >>> str(Rule((Condition("age", ">", 65.0), Condition("sex", "is", "female"))))
    'age > 65 and sex = female'
    """

    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))

    def __repr__(self) -> str:
        return f"<Rule: {self}>"

    def holds(self, table: pd.DataFrame) -> BoolArray:
        """Return which rows (n,) of a table meet every condition."""
        met: BoolArray = np.logical_and.reduce([condition.holds(table) for condition in self.conditions])
        return met


COMPARISONS: tuple[Comparison, ...] = get_args(Comparison)
N_CUTS = 40
MOST_LEVELS = 200

Codes = NDArray[np.int16]
Positions = NDArray[np.int32]


class Atom(NamedTuple):
    """A condition on a coded table: number of the column, comparison, code of the value."""

    column: int
    comparison: Comparison
    code: int


@dataclass(frozen=True, eq=False)
class CodedTable:
    """A table of n rows and d columns, coded by integers (d, n).

    The code of a number is how many thresholds lie below it; the code of a category is its level, with one more code
    for all rare levels; missing values are -1. `values` holds the increasing thresholds, or the levels, of each column.
    """

    names: tuple[str, ...]
    codes: Codes
    values: tuple[tuple[Any, ...], ...]
    numeric: tuple[bool, ...]

    @classmethod
    def from_table(
        cls, table: pd.DataFrame, n_cuts: int = N_CUTS, most_levels: int = MOST_LEVELS
    ) -> CodedTable:
        """Code a table: numbers by thresholds at rounded quantiles, categories by their most frequent levels."""
        codes = np.empty((table.shape[1], len(table)), dtype=np.int16)
        values, numeric = [], []
        for name, own in zip(table.columns, codes, strict=True):
            column = table[name]
            # A column of two values is a category: "diabetes = 1" reads better than "diabetes > 0".
            is_number = pd.api.types.is_numeric_dtype(column) and column.nunique() > 2
            if is_number:
                numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
                cuts = _readable_cuts(numbers[np.isfinite(numbers)], n_cuts)
                code = np.where(np.isnan(numbers), -1, np.searchsorted(cuts, numbers, side="left"))
                levels: tuple[Any, ...] = tuple(cuts.tolist())
            else:
                # A Categorical also counts levels that no patient has.
                counts = column.value_counts()
                levels = tuple(counts.index[counts > 0][:most_levels])
                code = pd.Index(levels, dtype=object).get_indexer(column.astype(object))
                # Rare levels have a code, so that they can meet "is not".
                code = np.where((code < 0) & column.notna().to_numpy(), len(levels), code)
            own[:] = code
            values.append(levels)
            numeric.append(is_number)
        return cls(tuple(table.columns), codes, tuple(values), tuple(numeric))

    @property
    def n_codes(self) -> int:
        """Number of codes of the column with most values, and one for missing values: -1 is the last."""
        return max(len(values) for values in self.values) + 2

    @cached_property
    def atoms(self) -> Positions:
        """All conditions that a rule may have, (A, 3): column, number of the comparison, and code."""
        found: list[tuple[int, int, int]] = []
        for column, (values, numeric) in enumerate(zip(self.values, self.numeric, strict=True)):
            missing = bool((self.codes[column] < 0).any())
            # With one level, "is" is a condition only if values are missing. With two, "is not" one is "is" the other.
            kinds = range(2) if numeric else range(2, {0: 2, 1: 2 + missing, 2: 3}.get(len(values), 4))
            found += [(column, kind, code) for kind in kinds for code in range(len(values))]
            if missing:
                found.append((column, 4, 0))
        return np.array(found, dtype=np.int32).reshape(-1, 3)

    @cached_property
    def blocks(self) -> Positions:
        """Positions in ``atoms`` at which a new pair of column and comparison begins."""
        pairs = self.atoms[:, :2]
        return np.flatnonzero((np.diff(pairs, axis=0, prepend=-1) != 0).any(axis=1)).astype(np.int32)

    @cached_property
    def listed(self) -> list[Atom]:
        """The conditions of ``atoms`` as :class:`Atom`."""
        return [Atom(column, COMPARISONS[kind], code) for column, kind, code in self.atoms.tolist()]

    def codes_met(self, atom: Atom) -> BoolArray:
        """Return which codes (n_codes,) of its column meet a condition; the last code is for missing values."""
        codes = np.arange(self.n_codes)
        present: BoolArray = codes < self.n_codes - 1
        met: dict[str, BoolArray] = {
            "<=": present & (codes <= atom.code),
            ">": present & (codes > atom.code),
            "is": codes == atom.code,
            "is not": present & (codes != atom.code),
            "is missing": ~present,
        }
        return met[atom.comparison]

    def covers(self, atoms: tuple[Atom, ...]) -> BoolArray:
        """Return which patients (n,) meet every condition."""
        met = np.ones(self.codes.shape[1], dtype=np.bool_)
        for atom in atoms:
            met &= self.codes_met(atom)[self.codes[atom.column]]
        return met

    def rule(self, atoms: tuple[Atom, ...]) -> Rule:
        """Return conditions as a rule in the units and names of the table."""
        conditions = []
        for column, comparison, code in sorted(atoms, key=lambda one: (one.column, one.comparison == "<=")):
            value = None if comparison == "is missing" else self.values[column][code]
            conditions.append(Condition(self.names[column], comparison, value))
        return Rule(tuple(conditions))


def readable_table(X: Any, n: int, names: Any = None, features: Any = None) -> pd.DataFrame:
    """Return the columns that rules may use, of the features or X; those without names get `names` or x0, x1, ..."""
    name, given = ("X", in_pandas(X)) if features is None else ("features", in_pandas(features))
    given = given.to_frame() if isinstance(given, pd.Series) else given
    values = given if isinstance(given, pd.DataFrame) else np.asarray(on_host(given))
    require(values.ndim == 2, name, "be a table with one row per patient", given)
    # Tables of other libraries may hold numbers as objects.
    table = pd.DataFrame(values, copy=False).reset_index(drop=True).infer_objects()
    known = names is not None and len(names) == table.shape[1]
    others = names if known else [f"x{j}" for j in range(table.shape[1])]
    table.columns = [
        column if isinstance(column, str) else other for column, other in zip(table, others, strict=True)
    ]
    require(table.shape[1], name, "have columns that rules can use", table.shape)
    require_rows(name, table, n)
    if not table.columns.is_unique:
        repeated = sorted(set(table.columns[table.columns.duplicated()]))
        raise ArgumentError(name, f"{arg(name)}: columns {repeated} occur more than once: rename them.")
    return table


def _readable_cuts(numbers: FloatArray, n_cuts: int) -> FloatArray:
    """Return quantiles, rounded to a unit that is small against their range; whole numbers are not rounded."""
    if len(numbers) == 0 or np.ptp(numbers) == 0:
        return np.empty(0)
    cuts: FloatArray = np.quantile(numbers, np.arange(1, n_cuts) / n_cuts, method="inverted_cdf")
    if not (numbers == np.rint(numbers)).all():
        spread = float(np.diff(np.quantile(numbers, [0.05, 0.95]))[0] or np.ptp(numbers))
        cuts = np.round(cuts, int(2 - np.floor(np.log10(spread))))
    # Not -0, which equals 0 and would be written where it is the first of both.
    distinct: FloatArray = np.unique(cuts + 0.0)
    inside = (distinct >= numbers.min()) & (distinct < numbers.max())
    return np.compress(inside, distinct)


# Patients whose values fit in the processor's cache while every column is summed.
BLOCK = 128


class RuleCriterion(Protocol):
    """Criterion of the search: a function of sums over the patients of a rule."""

    def sums_by_code(self, codes: Codes, inside: NDArray[np.intp], n_codes: int) -> FloatArray:
        """Return sums (d, n_codes, k) over the patients inside, for each code (d, n) of each column."""

    def scores(self, sums: FloatArray) -> FloatArray:
        """Scores (A,) of A rules with sums (A, k); minus infinity where a rule is not allowed."""


class Candidate(NamedTuple):
    """A rule and its score."""

    atoms: tuple[Atom, ...]
    score: float


class RuleSearch:
    """Beam search: the `beam` best rules of each length are extended; only the patients `counted` (n,) are used."""

    def __init__(self, table: CodedTable, criterion: RuleCriterion, counted: BoolArray, beam: int) -> None:
        self.table, self.criterion, self.counted, self.beam = table, criterion, counted, beam

    def by_length(self, max_conditions: int) -> Iterator[list[Candidate]]:
        """Yield the rules found of each length, the best first."""
        kept: list[tuple[Atom, ...]] = [()]
        for _ in range(max_conditions):
            longer: dict[frozenset[Atom], Candidate] = {}
            for atoms in kept:
                taken = {atom[:2] for atom in atoms}
                for candidate in self.extensions(atoms):
                    if candidate.atoms[-1][:2] not in taken:
                        longer.setdefault(frozenset(candidate.atoms), candidate)
            if not longer:
                return
            ranked = sorted(longer.values(), key=lambda candidate: -candidate.score)
            yield ranked
            kept = [candidate.atoms for candidate in ranked[: self.beam]]

    def extensions(self, atoms: tuple[Atom, ...]) -> list[Candidate]:
        """Return the rule with one more condition: for each column and comparison, that with the best value."""
        table = self.table
        if len(table.atoms) == 0:
            return []
        inside = np.flatnonzero(self.counted & table.covers(atoms))
        by_code = self.criterion.sums_by_code(table.codes, inside, table.n_codes)
        scores = np.ascontiguousarray(self.criterion.scores(sums_by_atom(by_code, table.atoms)))
        best = _best_of_blocks(scores, table.blocks)
        return [
            Candidate((*atoms, table.listed[position]), float(scores[position]))
            for position in best[np.isfinite(scores[best])].tolist()
        ]


@numba.njit(cache=True, nogil=True)
def sums_by_code(codes: Codes, values: FloatArray, inside: NDArray[np.intp], n_codes: int) -> FloatArray:
    """Return sums (d, n_codes, k) of values (n, k) over the patients inside, for each code of each column."""
    d, k = codes.shape[0], values.shape[1]
    sums = np.zeros((d, n_codes, k))
    for start in range(0, len(inside), BLOCK):
        stop = min(start + BLOCK, len(inside))
        for column in range(d):
            for position in range(start, stop):
                i = inside[position]
                cell = sums[column, codes[column, i]]
                for j in range(k):
                    cell[j] += values[i, j]
    return sums


@numba.njit(cache=True, nogil=True)
def sums_by_atom(by_code: FloatArray, atoms: Positions) -> FloatArray:
    """Return sums (A, k) over the patients who meet each condition, from the sums of :func:`sums_by_code`."""
    n_codes, k = by_code.shape[1], by_code.shape[2]
    sums = np.empty((len(atoms), k))
    below, total = np.zeros((n_codes, k)), np.zeros(k)
    last = -1
    for a in range(len(atoms)):
        column, kind, code = atoms[a, 0], atoms[a, 1], atoms[a, 2]
        cells = by_code[column]
        if column != last:
            last = column
            for j in range(k):
                total[j] = 0.0
            for c in range(n_codes - 1):
                for j in range(k):
                    total[j] += cells[c, j]
                    below[c, j] = total[j]
        for j in range(k):
            if kind == 0:
                sums[a, j] = below[code, j]
            elif kind == 1:
                sums[a, j] = total[j] - below[code, j]
            elif kind == 2:
                sums[a, j] = cells[code, j]
            elif kind == 3:
                sums[a, j] = total[j] - cells[code, j]
            else:
                sums[a, j] = cells[n_codes - 1, j]
    return sums


@numba.njit(cache=True, nogil=True)
def _best_of_blocks(score: FloatArray, blocks: Positions) -> NDArray[np.intp]:
    """Return the position of the largest score in each block of conditions; the first of equal ones."""
    best = np.empty(len(blocks), dtype=np.intp)
    for b in range(len(blocks)):
        stop = blocks[b + 1] if b + 1 < len(blocks) else len(score)
        largest = blocks[b]
        for a in range(blocks[b], stop):
            if score[a] > score[largest]:
                largest = a
        best[b] = largest
    return best
