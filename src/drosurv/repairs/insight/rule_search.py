"""The one search over rules: sums over the patients of every rule from one pass over coded columns.

What makes a rule good is the criterion's business (:class:`RuleCriterion`): the harm its patients bear, or how wrong
a model is about them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from drosurv.repairs.insight.rules import Atom, CodedTable, Codes, Places
from drosurv.target import BoolArray, FloatArray

# Patients whose values stay in the processor's cache while every column is counted.
BLOCK = 128


class RuleCriterion(Protocol):
    """What a rule is judged by: a function of sums over its patients."""

    @property
    def values(self) -> FloatArray:
        """What is summed, (n, k)."""

    def scores(self, sums: FloatArray) -> FloatArray:
        """Scores (s, A) of A rules with sums (A, k): the first decides, the last steers the search.

        Minus infinity where a rule is not allowed.
        """


class Candidate(NamedTuple):
    """A rule, its score, and how promising it is to be made longer."""

    atoms: tuple[Atom, ...]
    score: float
    promise: float


class RuleSearch:
    """Beam search: the most promising rules of each length are made longer by one condition.

    The beam is how many of each length that is; only the patients counted (n,) count.
    """

    def __init__(self, table: CodedTable, criterion: RuleCriterion, counted: BoolArray, beam: int) -> None:
        self.table, self.criterion, self.counted, self.beam = table, criterion, counted, beam

    def by_length(self, max_conditions: int) -> Iterator[list[Candidate]]:
        """For each length the rules found, the most promising first."""
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
            ranked = sorted(longer.values(), key=lambda candidate: -candidate.promise)
            yield ranked
            kept = [candidate.atoms for candidate in ranked[: self.beam]]

    def extensions(self, atoms: tuple[Atom, ...]) -> list[Candidate]:
        """The rule with one more condition: of each comparison on each column the best values by each score."""
        table = self.table
        if len(table.atoms) == 0:
            return []
        inside = np.flatnonzero(self.counted & table.covers(atoms))
        by_code = sums_by_code(table.codes, self.criterion.values, inside, table.n_codes)
        scores = self.criterion.scores(sums_by_atom(by_code, table.atoms))
        places = np.stack([_best_of_blocks(score, table.blocks) for score in scores])
        best = np.unique(places[np.isfinite(np.take_along_axis(scores, places, axis=1))])
        added = [table.listed[place] for place in best.tolist()]
        found = zip(added, scores[0, best].tolist(), scores[-1, best].tolist(), strict=True)
        return [Candidate((*atoms, atom), score, promise) for atom, score, promise in found]

    def revalued(self, rule: Candidate) -> Candidate:
        """The same conditions, each value chosen again in the light of the others."""
        for atom in rule.atoms:
            others = tuple(other for other in rule.atoms if other != atom)
            again = [c for c in self.extensions(others) if c.atoms[-1][:2] == atom[:2]]
            rule = max([rule, *again], key=lambda candidate: candidate.score)
        return rule


@numba.njit(cache=True, nogil=True)
def sums_by_code(codes: Codes, values: FloatArray, inside: NDArray[np.intp], n_codes: int) -> FloatArray:
    """Sums (d, n_codes, k) of values (n, k) over the patients inside, for each code of each column (d, n)."""
    d, k = codes.shape[0], values.shape[1]
    sums = np.zeros((d, n_codes, k))
    for start in range(0, len(inside), BLOCK):
        stop = min(start + BLOCK, len(inside))
        for column in range(d):
            for place in range(start, stop):
                i = inside[place]
                cell = sums[column, codes[column, i]]
                for j in range(k):
                    cell[j] += values[i, j]
    return sums


@numba.njit(cache=True, nogil=True)
def sums_by_atom(by_code: FloatArray, atoms: Places) -> FloatArray:
    """Sums (A, k) over the patients who meet each atom, from the sums of :func:`sums_by_code`."""
    n_codes, k = by_code.shape[1], by_code.shape[2]
    sums = np.empty((len(atoms), k))
    below, total = np.zeros((n_codes, k)), np.zeros(k)
    last = -1
    for a in range(len(atoms)):
        column, kind, code = atoms[a]
        cells = by_code[column]
        if column != last:
            last = column
            total[:] = 0.0
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
def _best_of_blocks(score: FloatArray, blocks: Places) -> NDArray[np.intp]:
    """The place of the largest score in each block of atoms; the first of equal ones."""
    best = np.empty(len(blocks), dtype=np.intp)
    for b in range(len(blocks)):
        stop = blocks[b + 1] if b + 1 < len(blocks) else len(score)
        place = blocks[b]
        for a in range(blocks[b], stop):
            if score[a] > score[place]:
                place = a
        best[b] = place
    return best
