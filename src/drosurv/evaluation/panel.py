"""All numbers of one model on one set of patients, as one function of the patients' weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from drosurv.evaluation.attributes import Attribute
from drosurv.evaluation.measures import MEASURES, Measure
from drosurv.evaluation.patients import Patients, hazards_exist
from drosurv.evaluation.sheet import Cell, Sheet
from drosurv.groups import Groups, ratio_by_group
from drosurv.inference import Draws
from drosurv.inference.resampling import in_threads, replicate_rng, seed_sequence
from drosurv.target import FloatArray, IntArray

EVERYONE = "overall"
ALL = "all"
# The mean hazard of all patients of an attribute: a metric of its own, since a group may be called "all".
CENTRE = "mean_hazard_of_all"


class Member(NamedTuple):
    """One group of one attribute, ready to be scored."""

    label: str
    rows: IntArray
    patients: Patients


def number_of(sheet: Sheet, attribute: str, group: str, measure: Measure) -> Draws:
    """A measure's number with its own kind of interval."""
    number = sheet[Cell(attribute, group, measure.name)]
    return number._replace(lowest=measure.lowest, method=measure.interval)


@dataclass(frozen=True, eq=False)
class Panel:
    """One model's patients, in all their groups.

    Parameters
    ----------
    everyone : Patients
        All of them.
    attributes : sequence of Attribute
        Their groups.
    intersection : Attribute, optional
        Intersections of all attributes, for F_cap.
    smooth : bool
        Whether group means of hazards are smoothed, as behind the published tables.
    """

    everyone: Patients
    attributes: Sequence[Attribute]
    intersection: Attribute | None
    smooth: bool

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """The metrics that can be computed of what the model said."""
        return tuple(measure for measure in MEASURES.values() if measure.applies_to(self.everyone))

    @cached_property
    def has_hazards(self) -> bool:
        """Whether every exp(risk) is a positive number; differences of hazards have no value otherwise."""
        return hazards_exist(self.everyone.risk)

    @cached_property
    def members(self) -> dict[str, tuple[Member, ...]]:
        """Attribute to its groups."""
        return {
            attribute.name: tuple(
                Member(label, rows, self.everyone.take(rows))
                for label, rows in zip(attribute.labels, attribute.rows, strict=True)
            )
            for attribute in self.attributes
        }

    @cached_property
    def kept(self) -> dict[str, Patients]:
        """Attribute to all patients that belong to one of its groups."""
        return {attribute.name: self._of(attribute) for attribute in self.attributes}

    @cached_property
    def cells(self) -> list[Cell]:
        """What each entry of `values` is."""
        found = [Cell(EVERYONE, ALL, measure.name) for measure in self.measures]
        for attribute in self.attributes:
            for label in attribute.labels:
                found += [Cell(attribute.name, label, m.name) for m in self.measures if m.by_group]
            found += [Cell(attribute.name, label, "concordance_fraction") for label in attribute.labels]
        if self.has_hazards:
            for attribute in self.attributes:
                found += [Cell(attribute.name, label, "mean_hazard") for label in attribute.labels]
                found.append(Cell(attribute.name, ALL, CENTRE))
            if self.intersection is not None:
                found += [Cell(EVERYONE, label, "mean_hazard") for label in self.intersection.labels]
        return found

    def values(self, weight: FloatArray, *, resampled: bool = False) -> FloatArray:
        """Values of all cells under patient weights (n,), which count copies.

        Parameters
        ----------
        weight : (n,) float64
            Ones for the patients themselves.
        resampled : bool
            Whether this is a replicate, in which metrics without an interval stay NaN.
        """

        def value(measure: Measure, patients: Patients, weight: FloatArray) -> float:
            return float("nan") if resampled and not measure.resampled else measure(patients, weight)

        found = [value(measure, self.everyone, weight) for measure in self.measures]
        for attribute in self.attributes:
            for member in self.members[attribute.name]:
                own = weight[member.rows]
                found += [value(m, member.patients, own) for m in self.measures if m.by_group]
            kept = self.kept[attribute.name]
            counts = kept.imparity.imparity_counts(weight[attribute.kept])
            found += ratio_by_group(attribute.kept_groups, counts.numerator, counts.denominator).tolist()
        if self.has_hazards:
            for attribute in self.attributes:
                own, hazard = weight[attribute.kept], self.kept[attribute.name].hazard
                found += self._mean_hazards(attribute.kept_groups, hazard, own).tolist()
                found.append(float(own @ hazard / own.sum()) if own.any() else float("nan"))
            if self.intersection is not None:
                kept_rows = self.intersection.kept
                hazard, own = self.everyone.hazard[kept_rows], weight[kept_rows]
                found += self._mean_hazards(self.intersection.kept_groups, hazard, own).tolist()
        return np.array(found)

    def sheet(
        self,
        replicates: int,
        *,
        random_state: Any = None,
        threads: int | None = None,
        advance: Callable[[], None] = lambda: None,
    ) -> Sheet:
        """Values on the patients and on bootstrap replicates of them.

        Panels of the same patients, with the same seed, get the same replicates.

        Parameters
        ----------
        replicates : int
            Number of replicates; 0 for none.
        random_state : int, Generator or None
            Seed of the draws.
        threads : int, optional
            Replicates computed at once; by default one per processor core. The result does not depend on it.
        advance : callable
            Called after each replicate.
        """
        n = len(self.everyone)
        streams = seed_sequence(random_state)
        draws = np.empty((replicates, len(self.cells)))
        weights = np.empty((replicates, n), dtype=np.uint16)
        estimate = self._estimate()

        def draw(replicate: int) -> None:
            rows = replicate_rng(streams, replicate).integers(n, size=n)
            weights[replicate] = np.bincount(rows, minlength=n)
            draws[replicate] = self.values(weights[replicate].astype(np.float64), resampled=True)
            advance()

        if replicates:
            in_threads(draw, replicates, threads)
        return Sheet(self.cells, estimate, draws, weights)

    def _estimate(self) -> FloatArray:
        found: list[FloatArray] = []
        # Undefined values are told of together, by group, once all are known.
        in_threads(lambda _: found.append(self.values(np.ones(len(self.everyone)))), 1, 1)
        return found[0]

    def _of(self, attribute: Attribute) -> Patients:
        # Attributes that leave nobody out share the sorted pairs of everyone.
        everybody = len(attribute.kept) == len(self.everyone)
        return self.everyone if everybody else self.everyone.take(attribute.kept)

    def _mean_hazards(self, groups: Groups, hazard: FloatArray, weight: FloatArray) -> FloatArray:
        size, total = groups.sums(weight), groups.sums(weight * hazard)
        with np.errstate(invalid="ignore"):
            means = (total + 0.5) / (size + 1.0) if self.smooth else total / size
        return np.where(size > 0, means, np.nan)
