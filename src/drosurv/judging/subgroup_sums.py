"""All subgroups that one or two conditions on the columns of a table define, and sums over their patients.

For each pair of columns the values are summed in a two-way table of codes, and then cumulatively over both codes. A
condition is met by one or two ranges of codes, so that the sum over a subgroup is a difference of cumulative sums at
the ends of these ranges. So the patients are read once, not once for every subgroup.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numba
import numpy as np
from numpy.typing import NDArray

from drosurv.judging.rules import Atom, CodedTable, Rule
from drosurv.patients.target import BoolArray, FloatArray, IntArray

# Rows whose values are computed at a time, and rows that fit in the processor's cache.
_ROWS, _BLOCK = 16_384, 512
# Most replicates that share one pass over the patients, and about how many numbers they may take in memory.
_TOGETHER, _NUMBERS = 16, 4_000_000


# With more columns, subgroups of two columns are left out: their number and the time grow with its square.
MOST_PAIRED = 60


class Subgroups:
    """Subgroups of a coded table: single conditions, two on different columns, and intervals of one column.

    With more than 60 columns there are no two conditions on different columns.

    They are numbered; `kept` are the numbers of those in use, in increasing order, at first all.
    """

    def __init__(self, table: CodedTable) -> None:
        self.table = table
        d, n_codes = len(table.names), table.n_codes
        # -1, for missing values, becomes the last code.
        self.codes = np.ascontiguousarray((table.codes % n_codes).T.astype(np.uint8))
        conditions = table.listed
        by_column = [[i for i, atom in enumerate(conditions) if atom.column == j] for j in range(d)]
        self._conditions = conditions
        self._ends = _all_ends([table.codes_met(atom) for atom in conditions])
        self.paired = d <= MOST_PAIRED
        columns = [(a, b) for a in range(d) for b in range(a + 1, d)] if self.paired else []
        # The numbers of the pair of columns and of both conditions, (3, P).
        self._pairs = np.hstack(
            [np.empty((3, 0), np.intp)]
            + [
                np.array(np.meshgrid(number, by_column[a], by_column[b], indexing="ij")).reshape(3, -1)
                for number, (a, b) in enumerate(columns)
            ]
        ).astype(np.intp)
        self._n_tables = len(columns)
        singles: list[tuple[Atom, ...]] = [(atom,) for atom in conditions]
        singles += [
            (conditions[above], conditions[below])
            for numbers in by_column
            for above in numbers
            for below in numbers
            if conditions[above].comparison == ">"
            and conditions[below].comparison == "<="
            and conditions[above].code < conditions[below].code
        ]
        self._singles = singles
        self._single_column = np.array([atoms[0].column for atoms in singles], dtype=np.intp)
        self._single_ends = _all_ends(
            [np.logical_and.reduce([table.codes_met(atom) for atom in atoms]) for atoms in singles]
        )
        self.kept: IntArray = np.arange(len(singles) + self._pairs.shape[1])

    def __len__(self) -> int:
        return len(self.kept)

    def keep(self, wanted: BoolArray) -> None:
        """Keep only some of the subgroups kept so far."""
        self.kept = self.kept[wanted]

    def of_rows(self, rows: IntArray) -> Subgroups:
        """Return the same subgroups of some rows of the table, to sum their values."""
        found = copy(self)
        found.codes = np.ascontiguousarray(self.codes[rows])
        return found

    def sums(self, values: FloatArray) -> FloatArray:
        """Return sums (G, k) of values (n, k) over the subgroups kept."""
        return self.sums_of_parts(values.shape[1], lambda rows: values[rows])

    def sums_of_parts(self, k: int, values_of: Callable[[slice], FloatArray]) -> FloatArray:
        """Return sums (G, k) of values that `values_of` returns for some rows (m, k) at a time."""
        n, d = self.codes.shape
        n_codes = self.table.n_codes
        one = np.zeros((d, n_codes, k))
        two = np.zeros((self._n_tables, n_codes, n_codes, k))
        for start in range(0, n, _ROWS):
            rows = slice(start, min(start + _ROWS, n))
            add_to_cells(self.codes[rows], np.ascontiguousarray(values_of(rows)), one, two)
        out = np.zeros((len(self), k))
        n_single = int(np.searchsorted(self.kept, len(self._singles)))
        singles = self.kept[:n_single]
        # In rows: numba would compile the loop again for an array stored otherwise.
        pairs = self._pairs.take(self.kept[n_single:] - len(self._singles), axis=1)
        _add_single(one, self._single_column[singles], self._single_ends[singles], out[:n_single])
        _add_pairs(two, pairs, self._ends, out[n_single:])
        return out

    def batches(self, n_bootstrap: int) -> list[int]:
        """Return the sizes of batches of replicates that share one pass over the patients."""
        each = self._n_tables * self.table.n_codes**2 + self._pairs.shape[1]
        size = int(np.clip(_NUMBERS // max(each, 1), 1, _TOGETHER))
        return [min(size, n_bootstrap - start) for start in range(0, n_bootstrap, size)]

    def atoms(self, number: int) -> tuple[Atom, ...]:
        """Return the conditions of one of the subgroups kept."""
        subgroup = int(self.kept[number])
        if subgroup < len(self._singles):
            return self._singles[subgroup]
        _, first, second = self._pairs[:, subgroup - len(self._singles)]
        return self._conditions[first], self._conditions[second]

    def rule(self, number: int) -> Rule:
        """Return one of the subgroups kept, as a rule in the units of the table."""
        return self.table.rule(self.atoms(number))

    def members(self, number: int) -> BoolArray:
        """Return which patients (n,) are in one of the subgroups kept."""
        return self.table.covers(self.atoms(number))


def _all_ends(met: list[BoolArray]) -> IntArray:
    """Return the ends (m, 3) of the codes that each of m conditions meets; there may be none."""
    return np.array(list(map(_ends, met)), dtype=np.intp).reshape(-1, 3)


def _ends(met: BoolArray) -> list[int]:
    """Return the ends of the ranges of codes that are met: of the last range, the gap before it, and the first.

    The sum over these codes is the cumulative sum before the first end, less that before the second, plus that before
    the third; 0 stands for none.
    """
    last, gap, first, *_ = [*np.flatnonzero(np.diff(met, prepend=False, append=False))[::-1], 0, 0, 0]
    return [int(last), int(gap), int(first)]


@numba.njit(cache=True, nogil=True)
def add_to_cells(codes: NDArray[np.uint8], values: FloatArray, one: FloatArray, two: FloatArray) -> None:
    """Add values (n, k) to sums by code (n, d), `one` (d, C, k), and by pairs of codes or none, `two` (P, C, C, k)."""
    n, d = codes.shape
    k = values.shape[1]
    # A block of patients, and the sums of one pair of columns, fit in the processor's cache.
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        pair = 0
        for a in range(d):
            for i in range(start, stop):
                code = codes[i, a]
                for j in range(k):
                    one[a, code, j] += values[i, j]
            for b in range(a + 1, d if len(two) else 0):
                for i in range(start, stop):
                    first, second = codes[i, a], codes[i, b]
                    for j in range(k):
                        two[pair, first, second, j] += values[i, j]
                pair += 1


@numba.njit(cache=True, nogil=True)
def _add_single(one: FloatArray, column: IntArray, ends: IntArray, out: FloatArray) -> None:
    """Add sums over the ranges of codes that end at `ends` (G, 3); `one` (d, C, k) becomes cumulative."""
    d, n_codes, k = one.shape
    for a in range(d):
        for code in range(1, n_codes):
            for j in range(k):
                one[a, code, j] += one[a, code - 1, j]
    for g in range(len(out)):
        for s in range(3):
            if ends[g, s] > 0:
                sign = 1.0 - 2.0 * (s % 2)
                for j in range(k):
                    out[g, j] += sign * one[column[g], ends[g, s] - 1, j]


@numba.njit(cache=True, nogil=True)
def _add_pairs(two: FloatArray, pairs: IntArray, ends: IntArray, out: FloatArray) -> None:
    """Add sums over the codes of two conditions, with `ends` (A, 3); `two` (P, C, C, k) becomes cumulative."""
    n_tables, n_codes, _, k = two.shape
    for table in range(n_tables):
        for first in range(n_codes):
            for second in range(1, n_codes):
                for j in range(k):
                    two[table, first, second, j] += two[table, first, second - 1, j]
        for first in range(1, n_codes):
            for second in range(n_codes):
                for j in range(k):
                    two[table, first, second, j] += two[table, first - 1, second, j]
    for g in range(len(out)):
        table, a, b = pairs[0, g], pairs[1, g], pairs[2, g]
        for s in range(3):
            for t in range(3):
                first, second = ends[a, s], ends[b, t]
                if first > 0 and second > 0:
                    sign = 1.0 - 2.0 * ((s + t) % 2)
                    for j in range(k):
                        out[g, j] += sign * two[table, first - 1, second - 1, j]
