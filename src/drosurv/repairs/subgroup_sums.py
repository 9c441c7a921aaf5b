"""All subgroups that one or two conditions on the columns of a table define, and sums over their patients.

For each pair of columns the values are summed in a two-way table of codes. Multiplied from both sides with the
indicators of the conditions, it gives the sums over all subgroups of that pair. So the patients are read once, not once
for every subgroup.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numba
import numpy as np
from numpy.typing import NDArray

from drosurv.repairs.rules import Atom, CodedTable, Rule
from drosurv.target import BoolArray, FloatArray, IntArray

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
        self.codes = np.ascontiguousarray(
            np.where(table.codes < 0, n_codes - 1, table.codes).T.astype(np.uint8)
        )
        by_column = [[atom for atom in table.listed if atom.column == j] for j in range(d)]
        most = max((len(atoms) for atoms in by_column), default=0)
        self._met = np.zeros((d, most, n_codes))
        for j, atoms in enumerate(by_column):
            for a, atom in enumerate(atoms):
                self._met[j, a] = table.codes_met(atom)
        self.paired = d <= MOST_PAIRED
        pairs = [(a, b) for a in range(d) for b in range(a + 1, d)] if self.paired else []
        self._pairs = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        singles: list[tuple[Atom, ...]] = [(atom,) for atom in table.listed]
        singles += [
            (above, below)
            for atoms in by_column
            for above in atoms
            for below in atoms
            if above.comparison == ">" and below.comparison == "<=" and above.code < below.code
        ]
        self._singles = singles
        self._single_column = np.array([atoms[0].column for atoms in singles], dtype=np.intp)
        self._single_met = np.array(
            [np.prod([table.codes_met(atom) for atom in atoms], axis=0) for atoms in singles]
        ).reshape(-1, n_codes)
        self._by_column = by_column
        # Columns have fewer than `most` conditions: which elements of the (most, most) arrays of a pair are used.
        size = np.array([len(atoms) for atoms in by_column], dtype=np.intp)
        number = np.arange(most)
        exists = (number[None, :, None] < size[self._pairs[:, 0], None, None]) & (
            number[None, None, :] < size[self._pairs[:, 1], None, None]
        )
        self._existing = np.flatnonzero(exists.ravel())
        self.kept: IntArray = np.arange(len(singles) + len(self._existing))

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
        two = np.zeros((len(self._pairs), n_codes, n_codes, k))
        for start in range(0, n, _ROWS):
            rows = slice(start, min(start + _ROWS, n))
            add_to_cells(self.codes[rows], np.ascontiguousarray(values_of(rows)), one, two)
        single = np.matmul(self._single_met[:, None, :], one[self._single_column])[:, 0, :]
        first, second = self._met[self._pairs[:, 0]], self._met[self._pairs[:, 1]]
        half = np.matmul(first, two.reshape(len(two), n_codes, n_codes * k)).reshape(
            *first.shape[:2], n_codes, k
        )
        pairs = np.matmul(second[:, None], half).reshape(-1, k)
        out = np.empty((len(self), k))
        n_single = int(np.searchsorted(self.kept, len(single)))
        chosen = self._existing[self.kept[n_single:] - len(single)]
        # `mode` other than "raise" writes to `out` without another copy.
        np.take(single, self.kept[:n_single], axis=0, out=out[:n_single], mode="clip")
        np.take(pairs, chosen, axis=0, out=out[n_single:], mode="clip")
        return out

    def batches(self, n_bootstrap: int) -> list[int]:
        """Return the sizes of batches of replicates that share one pass over the patients."""
        each = len(self._pairs) * self.table.n_codes**2 + len(self._existing)
        size = int(np.clip(_NUMBERS // max(each, 1), 1, _TOGETHER))
        return [min(size, n_bootstrap - start) for start in range(0, n_bootstrap, size)]

    def atoms(self, number: int) -> tuple[Atom, ...]:
        """Return the conditions of one of the subgroups kept."""
        subgroup = int(self.kept[number])
        if subgroup < len(self._singles):
            return self._singles[subgroup]
        most = self._met.shape[1]
        pair, rest = divmod(int(self._existing[subgroup - len(self._singles)]), most * most)
        a, b = divmod(rest, most)
        first, second = self._pairs[pair]
        return self._by_column[first][a], self._by_column[second][b]

    def rule(self, number: int) -> Rule:
        """Return one of the subgroups kept, as a rule in the units of the table."""
        return self.table.rule(self.atoms(number))

    def members(self, number: int) -> BoolArray:
        """Return which patients (n,) are in one of the subgroups kept."""
        return self.table.covers(self.atoms(number))


@numba.njit(cache=True, nogil=True)
def add_to_cells(codes: NDArray[np.uint8], values: FloatArray, one: FloatArray, two: FloatArray) -> None:
    """Add values (n, k) to the sums of their codes (n, d): `one` (d, C, k) of columns, `two` (P, C, C, k) of pairs.

    Pairs are all or none.
    """
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
