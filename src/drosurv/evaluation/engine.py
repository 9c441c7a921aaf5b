"""The scoring engine: every metric of the catalogue for one model on one set of patients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from drosurv.evaluation.attributes import Attribute, Count
from drosurv.evaluation.between import Between, Number
from drosurv.evaluation.catalogue import CATALOGUE, Metric, Need, with_what_it_reads
from drosurv.evaluation.patients import Patients, hazards_exist
from drosurv.evaluation.sheet import Place, Sheet
from drosurv.inference import Draws, largest_difference, permutation_test
from drosurv.inference.resampling import in_parallel, replicate_rng, seed_sequence
from drosurv.metrics.sampled_pairs import Pairs
from drosurv.target import FloatArray, IntArray

EVERYONE = "overall"
ALL = "all"
# Attribute and metric.
Key = tuple[str, str]


@dataclass(frozen=True, eq=False)
class _Set:
    """Metrics of one set of patients, and where they stand."""

    attribute: str
    label: str
    patients: Patients
    rows: IntArray
    metrics: Sequence[Metric]

    @property
    def places(self) -> list[Place]:
        return [Place(self.attribute, self.label, metric.name) for metric in self.metrics]

    def values(self, weight: FloatArray, resampled: bool) -> list[float]:
        own = weight[self.rows]
        return [
            float("nan") if resampled and not metric.resampled else metric(self.patients, own)
            for metric in self.metrics
        ]


@dataclass(frozen=True, eq=False)
class _Groups:
    """One metric of all groups of an attribute, and where it stands."""

    name: str
    attribute: Attribute
    patients: Patients
    metric: Metric

    @property
    def places(self) -> list[Place]:
        return [Place(self.name, label, self.metric.name) for label in self.attribute.labels]

    def values(self, weight: FloatArray, resampled: bool) -> list[float]:
        attribute = self.attribute
        own = weight[attribute.kept]
        found: list[float] = self.metric.function(self.patients, attribute.kept_groups, own).tolist()
        return found


@dataclass(frozen=True, eq=False)
class Panel:
    """One model's patients in all their groups, and the metrics that they can have.

    Parameters
    ----------
    everyone : Patients
        All of them.
    attributes : sequence of Attribute
        Their groups.
    intersection : Attribute, optional
        Intersections of all attributes, for F_cap.
    X : (n, d) float64, optional
        Standardised features, for distances between patients.
    scale : float
        Hazard difference allowed per unit of feature distance in F_I.
    pairs : "auto", "all" or int
        How many pairs of patients disparities between patients look at.
    wanted : collection of str, optional
        Metrics to compute; by default all.
    notes : tuple of str
        What is left out, and why.
    """

    everyone: Patients
    attributes: Sequence[Attribute] = ()
    intersection: Attribute | None = None
    X: FloatArray | None = None
    scale: float = 0.01
    pairs: Pairs = "auto"
    wanted: Collection[str] | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def has_hazards(self) -> bool:
        """Whether every exp(risk) is a positive number; differences of hazards have no value otherwise."""
        return hazards_exist(self.everyone.risk)

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that can be computed of what is there."""
        names = CATALOGUE.keys() if self.wanted is None else with_what_it_reads(set(self.wanted))
        return tuple(
            metric for metric in CATALOGUE.values() if metric.name in names and not self.lacks(metric)
        )

    def lacks(self, metric: Metric) -> tuple[Need, ...]:
        """What the metric needs and these patients do not have."""
        scoring = self.everyone.scoring
        has: dict[Need, Callable[[], bool]] = {
            "survival": lambda: scoring.has_curves,
            "reference": lambda: scoring.reference is not None,
            "features": lambda: self.X is not None,
            "groups": lambda: bool(self.attributes),
            "hazards": lambda: self.has_hazards,
        }
        return tuple(need for need in metric.needs if not has[need]())

    def of(self, kind: str) -> list[Metric]:
        """Those of one kind (see :class:`~drosurv.evaluation.catalogue.Metric`)."""
        return [metric for metric in self.metrics if metric.of == kind]

    def rescored(self, risk: FloatArray, wanted: Collection[str]) -> Panel:
        """The same patients with other risk scores and no curves, and some metrics."""
        scoring = replace(self.everyone.scoring, model=risk, reference=None)
        return replace(self, everyone=Patients(scoring), wanted=wanted)

    @cached_property
    def kept(self) -> dict[str, Patients]:
        """Attribute to all patients that belong to one of its groups."""
        return {attribute.name: self._of(attribute) for attribute in self.attributes}

    @cached_property
    def members(self) -> dict[Key, Patients]:
        """Attribute and label to the patients of a group."""
        return {
            (attribute.name, label): self.everyone.take(rows)
            for attribute in self.attributes
            for label, rows in zip(attribute.labels, attribute.rows, strict=True)
        }

    @cached_property
    def counts(self) -> dict[Key, Count]:
        """Attribute and label to the number of patients and events."""
        return {key: Count.of(patients.target) for key, patients in self.members.items()}

    def sheet(
        self,
        replicates: int = 0,
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
        n, parts = len(self.everyone), self._parts
        places = [place for part in parts for place in part.places]
        streams = seed_sequence(random_state)
        # The first row is the patients themselves, whose undefined values are told of together, by group.
        values = np.empty((1 + replicates, len(places)))
        weights = np.ones((1 + replicates, n), dtype=np.uint16)

        def draw(row: int) -> tuple[IntArray, list[float]]:
            if row == 0:
                times = np.ones(n, dtype=np.int64)
            else:
                rows = replicate_rng(streams, row - 1).integers(n, size=n)
                times = np.bincount(rows, minlength=n)
            weight = times.astype(np.float64)
            return times, [value for part in parts for value in part.values(weight, resampled=row > 0)]

        # What the patients share (sorted pairs, curves) is made once, before threads ask for it.
        ((_, values[0]),) = in_parallel(draw, 1, 1)
        drawn = in_parallel(lambda replicate: draw(1 + replicate), replicates, threads)
        for row, (times, found) in enumerate(drawn, 1):
            weights[row], values[row] = times, found
            advance()
        return Sheet(places, values[0], values[1:], weights[1:])

    def overall(self, sheet: Sheet) -> dict[str, Number]:
        """Metric to its number of everybody."""
        found: dict[str, Number] = {
            metric.name: self.number(sheet, Place(EVERYONE, ALL, metric.name))
            for metric in self.of("patients")
        }
        for metric in self.of("everybody"):
            found[metric.name] = metric.function(self._between(None, sheet, found))
        return found

    def gaps(self, sheet: Sheet, overall: Mapping[str, Number]) -> dict[Key, Number]:
        """Attribute and metric to the number that compares its groups."""
        found: dict[Key, Number] = {}
        for attribute in self.attributes:
            known = dict(overall)
            for metric in self.metrics:
                if metric.of == "attribute":
                    known[metric.name] = metric.function(self._between(attribute, sheet, known))
                elif metric.of == "patients" and metric.by_group and metric.resampled:
                    values, draws = sheet.groups(attribute.name, attribute.labels, metric.name)
                    known[metric.name] = largest_difference(values, draws, metric.widest)
                else:
                    continue
                found[attribute.name, metric.name] = known[metric.name]
        return found

    def number(self, sheet: Sheet, place: Place) -> Draws:
        """A number of a set of patients with its own kind of interval."""
        metric = CATALOGUE[place.metric]
        return sheet[place]._replace(lowest=metric.lowest, highest=metric.highest, method=metric.interval)

    def p_values(
        self,
        permutations: int,
        *,
        random_state: Any = None,
        threads: int | None = None,
        advance: Callable[[], None] = lambda: None,
    ) -> dict[Key, float]:
        """p-values of the gaps between groups, by permutation of the labels.

        Parameters
        ----------
        permutations : int
            Number of random permutations of the labels; 0 for no test.
        random_state, threads
            As in :func:`~drosurv.metrics.permutation_test`.
        advance : callable
            Called after each test.

        Returns
        -------
        dict
            Attribute and metric to p-value, where the catalogue has a test; the others' come from the bootstrap.
        """
        found: dict[Key, float] = {}
        for name, attribute, metric in self.tests if permutations else ():
            assert metric.test is not None
            patients = self._of(attribute)
            result = permutation_test(
                metric.test(patients),
                attribute.kept_groups,
                permutations=permutations,
                random_state=random_state,
                threads=threads,
            )
            found[name, metric.name] = result.p_value
            advance()
        return found

    @cached_property
    def tests(self) -> list[tuple[str, Attribute, Metric]]:
        """Attributes and metrics whose gaps are tested by permutation."""
        tested = [metric for metric in self.metrics if metric.test is not None]
        found = [
            (attribute.name, attribute, metric)
            for attribute in self.attributes
            for metric in tested
            if metric.of != "everybody"
        ]
        if self.intersection is not None and len(self.intersection.groups) > 1:
            found += [(EVERYONE, self.intersection, metric) for metric in tested if metric.of == "everybody"]
        return found

    @cached_property
    def _parts(self) -> list[_Set | _Groups]:
        """What is computed anew for every replicate; each part knows its places."""
        sets = self.of("patients")
        by_group = [metric for metric in sets if metric.by_group]
        found: list[_Set | _Groups] = [
            _Set(EVERYONE, ALL, self.everyone, np.arange(len(self.everyone)), sets)
        ]
        for attribute in self.attributes:
            for label, rows in zip(attribute.labels, attribute.rows, strict=True):
                patients = self.members[attribute.name, label]
                found.append(_Set(attribute.name, label, patients, rows, by_group))
            for metric in self.of("groups"):
                found.append(_Groups(attribute.name, attribute, self.kept[attribute.name], metric))
        if self.intersection is not None:
            read = {name for metric in self.of("everybody") for name in metric.reads}
            for metric in self.of("groups"):
                if metric.name in read:
                    found.append(_Groups(EVERYONE, self.intersection, self._of(self.intersection), metric))
        return found

    def _of(self, attribute: Attribute) -> Patients:
        # Attributes that leave nobody out share the sorted pairs of everyone.
        everybody = len(attribute.kept) == len(self.everyone)
        return self.everyone if everybody else self.everyone.take(attribute.kept)

    def _between(self, attribute: Attribute | None, sheet: Sheet, known: Mapping[str, Number]) -> Between:
        rows = np.arange(len(self.everyone)) if attribute is None else attribute.kept
        return Between(
            EVERYONE if attribute is None else attribute.name,
            self.intersection if attribute is None else attribute,
            self.everyone if attribute is None else self.kept[attribute.name],
            rows,
            self.X if self.X is None or len(rows) == len(self.X) else self.X[rows],
            self.scale,
            self.pairs,
            sheet,
            known,
        )
