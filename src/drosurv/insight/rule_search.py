"""Search for the rule whose patients bear the clearest harm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numba
import numpy as np
from numpy.typing import NDArray

from drosurv.insight.rules import Comparison, Condition, Rule
from drosurv.target import BoolArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd

COMPARISONS: tuple[Comparison, ...] = get_args(Comparison)
N_CUTS = 40
MOST_LEVELS = 200
BEAM = 12
# How many standard errors are taken off a summed harm before rules are compared: small groups must earn it.
DISCOUNT = 1.0
# How many times the harm borne must rise to be worth one more condition: short rules read and hold better.
WORTH_A_CONDITION = 1.5

Codes = NDArray[np.int16]


class Atom(NamedTuple):
    """A condition as the search sees it: column number, comparison, code of the value."""

    column: int
    comparison: Comparison
    code: int


@dataclass(frozen=True, eq=False)
class CodedTable:
    """A table whose columns are cut into codes once, so that the search only counts.

    Parameters
    ----------
    names : tuple of d str
    codes : (d, n) int16
        Numbers: how many thresholds lie below the value. Categories: which level, or one more for all rare
        ones. Missing: -1.
    values : tuple of d tuples
        Thresholds, increasing, or levels.
    numeric : tuple of d bool
    """

    names: tuple[str, ...]
    codes: Codes
    values: tuple[tuple[Any, ...], ...]
    numeric: tuple[bool, ...]

    @classmethod
    def from_table(cls, table: pd.DataFrame) -> CodedTable:
        """Cut numbers at their quantiles, rounded to readable values; take categories as they are."""
        import pandas as pd

        codes, values, numeric = [], [], []
        for name in table.columns:
            column = table[name]
            # Two values are a flag, however written: "diabetes is 1" reads better than "diabetes > 0".
            is_number = pd.api.types.is_numeric_dtype(column) and column.nunique() > 2
            if is_number:
                numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
                cuts = _readable_cuts(numbers[np.isfinite(numbers)])
                code = np.where(np.isnan(numbers), -1, np.searchsorted(cuts, numbers, side="left"))
                levels: tuple[Any, ...] = tuple(cuts.tolist())
            else:
                levels = tuple(column.value_counts().index[:MOST_LEVELS])
                code = pd.Index(levels, dtype=object).get_indexer(column.astype(object))
                # A level too rare to be named in a rule still takes part in "is not".
                code = np.where((code < 0) & column.notna().to_numpy(), len(levels), code)
            codes.append(code)
            values.append(levels)
            numeric.append(is_number)
        names = tuple(str(name) for name in table.columns)
        return cls(names, np.array(codes, dtype=np.int16), tuple(values), tuple(numeric))

    @property
    def n_codes(self) -> int:
        """Codes of the longest column, and one for the missing: -1 addresses the last place."""
        return max(len(values) for values in self.values) + 2

    @cached_property
    def allowed(self) -> BoolArray:
        """Which codes each comparison may be made with: (comparisons, d, codes)."""
        allowed = np.zeros((len(COMPARISONS), len(self.names), self.n_codes - 1), dtype=np.bool_)
        for column, (values, numeric) in enumerate(zip(self.values, self.numeric, strict=True)):
            # A single level tells nobody apart; of two, "is not" one says no more than "is" the other.
            kinds = slice(0, 2) if numeric else slice(2, {0: 2, 1: 2, 2: 3}.get(len(values), 4))
            allowed[kinds, column, : len(values)] = True
        allowed[4, :, 0] = True
        return allowed

    def covers(self, atoms: tuple[Atom, ...]) -> BoolArray:
        """Which patients (n,) meet every atom."""
        met = np.ones(self.codes.shape[1], dtype=np.bool_)
        for column, comparison, value in atoms:
            code = self.codes[column]
            match comparison:
                case "<=":
                    met &= (code <= value) & (code >= 0)
                case ">":
                    met &= code > value
                case "is":
                    met &= code == value
                case "is not":
                    met &= (code != value) & (code >= 0)
                case "is missing":
                    met &= code < 0
        return met

    def rule(self, atoms: tuple[Atom, ...]) -> Rule:
        """Atoms in the table's own units and names."""
        conditions = []
        for column, comparison, code in sorted(
            atoms, key=lambda atom: (atom.column, atom.comparison == "<=")
        ):
            value = None if comparison == "is missing" else self.values[column][code]
            conditions.append(Condition(self.names[column], comparison, value))
        return Rule(tuple(conditions))


class Candidate(NamedTuple):
    """Atoms, and lower bounds of the harm that the patients who meet them bear together.

    `borne` counts harm from zero, `excess` from the mean of all patients: a group that is harmed only under a
    second condition shows in the excess first.
    """

    atoms: tuple[Atom, ...]
    borne: float
    excess: float


def search_rules(
    table: CodedTable,
    harm: FloatArray,
    *,
    max_rules: int,
    max_conditions: int,
    min_group: int,
    weight: FloatArray | None = None,
) -> list[tuple[Atom, ...]]:
    """Rules in the order found, each among the patients whom no earlier rule covers.

    A rule is the better the more harm its patients bear together, counted at the lower end of an interval:
    it should hold everyone who is harmed and no one who is not. The search keeps the best few rules of each
    length.

    Parameters
    ----------
    table : CodedTable
    harm : (n,)
        Positive where a patient is served worse than by no model.
    max_rules, max_conditions : int
    min_group : int
        Least number of patients in a rule.
    weight : (n,), optional
        How often each patient counts (bootstrap draws).
    """
    left = np.ones(len(harm)) if weight is None else weight.astype(np.float64)
    rules: list[tuple[Atom, ...]] = []
    while len(rules) < max_rules and left.any():
        best = _Beam(table, harm, left, min_group).best(max_conditions)
        if best.borne <= 0:
            break
        rules.append(best.atoms)
        left = np.where(table.covers(best.atoms), 0.0, left)
    return rules


class _Beam:
    """Search of one rule among weighted patients, keeping the most promising rules of each length."""

    def __init__(self, table: CodedTable, harm: FloatArray, weight: FloatArray, min_group: int) -> None:
        self.table, self.min_group = table, min_group
        self.sums = np.stack([weight, weight * harm, weight * harm**2])
        self.mean = float(self.sums[1].sum() / self.sums[0].sum())

    def best(self, max_conditions: int) -> Candidate:
        best = Candidate((), -np.inf, -np.inf)
        beam = [best]
        for _ in range(max_conditions):
            longer: dict[frozenset[Atom], Candidate] = {}
            for candidate in beam:
                taken = {atom[:2] for atom in candidate.atoms}
                for longer_one in self._extensions(candidate.atoms):
                    if longer_one.atoms[-1][:2] not in taken:
                        longer.setdefault(frozenset(longer_one.atoms), longer_one)
            if not longer:
                break
            leader = self._refined(max(longer.values(), key=lambda candidate: candidate.borne))
            if leader.borne > max(best.borne * WORTH_A_CONDITION, best.borne):
                best = leader
            beam = sorted(longer.values(), key=lambda candidate: -candidate.excess)[:BEAM]
        return best

    def _refined(self, rule: Candidate) -> Candidate:
        """The same conditions, each value chosen again in the light of the others."""
        for atom in rule.atoms:
            others = tuple(other for other in rule.atoms if other != atom)
            again = [c for c in self._extensions(others) if c.atoms[-1][:2] == atom[:2]]
            rule = max([rule, *again], key=lambda candidate: candidate.borne)
        return rule

    def _extensions(self, atoms: tuple[Atom, ...]) -> list[Candidate]:
        """The rule with one more condition: of every kind on every column the two best values."""
        table, inside = self.table, self.table.covers(atoms)
        sums = _sums_by_code(table.codes, self.sums * inside, table.n_codes)
        present = sums[..., :-1]
        total, below = present.sum(axis=-1, keepdims=True), present.cumsum(axis=-1)
        missing = np.broadcast_to(sums[..., -1:], present.shape)
        count, harm, squares = np.stack([below, total - below, present, total - present, missing], axis=1)
        n = np.maximum(count, 1.0)
        error = np.sqrt(n * np.maximum(squares / n - (harm / n) ** 2, 0.0))
        allowed = table.allowed & (count >= self.min_group)
        borne = np.where(allowed, harm - DISCOUNT * error, -np.inf)
        excess = np.where(allowed, borne - self.mean * count, -np.inf)
        found = []
        for choice in (borne.argmax(axis=-1), excess.argmax(axis=-1)):
            for kind, column in np.argwhere(allowed.any(axis=-1)):
                code = choice[kind, column]
                atom = Atom(int(column), COMPARISONS[kind], int(code))
                at = (kind, column, code)
                found.append(Candidate((*atoms, atom), float(borne[at]), float(excess[at])))
        return found


def _readable_cuts(numbers: FloatArray) -> FloatArray:
    """Quantiles rounded to a unit that is small against the spread, whole numbers for whole numbers."""
    if len(numbers) == 0 or np.ptp(numbers) == 0:
        return np.empty(0)
    cuts: FloatArray = np.quantile(numbers, np.arange(1, N_CUTS) / N_CUTS, method="inverted_cdf")
    if not (numbers == np.rint(numbers)).all():
        spread = float(np.diff(np.quantile(numbers, [0.05, 0.95]))[0] or np.ptp(numbers))
        cuts = np.round(cuts, int(2 - np.floor(np.log10(spread))))
    distinct: FloatArray = np.unique(cuts)
    inside = (distinct >= numbers.min()) & (distinct < numbers.max())
    return np.compress(inside, distinct)


@numba.njit(cache=True, nogil=True)
def _sums_by_code(codes: Codes, values: FloatArray, n_codes: int) -> FloatArray:
    sums = np.zeros((values.shape[0], codes.shape[0], n_codes))
    for i in range(codes.shape[1]):
        if values[0, i] != 0:
            for column in range(codes.shape[0]):
                for k in range(values.shape[0]):
                    sums[k, column, codes[column, i]] += values[k, i]
    return sums
