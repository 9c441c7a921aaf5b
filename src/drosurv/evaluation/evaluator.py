"""Metrics of one model for everybody and every group, with bootstrap replicates and tests."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.evaluation.attributes import (
    ALL,
    EVERYONE,
    Attribute,
    Count,
    intersection_of,
    rows_by_group,
)
from drosurv.evaluation.catalogue import CATALOGUE, GroupComparison, Metric, Need, with_what_it_reads
from drosurv.evaluation.data import Subset, hazards_exist
from drosurv.groups import Groups
from drosurv.metrics import compare_follow_up
from drosurv.metrics.follow_up import FollowUpComparison
from drosurv.metrics.inference import Draws, largest_difference, permutation_test
from drosurv.metrics.inference.gaps import ratio_spread
from drosurv.metrics.inference.intervals import in_parallel, replicate_rng, seed_sequence
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.observation import Inference, sample_of_many
from drosurv.target import FloatArray, IntArray

_NO_REPLICATES = Inference(n_bootstrap=0)
Number = TypeVar("Number", np.uint8, np.float64)
# Attribute and metric, or attribute and group.
Key = tuple[str, str]
# Attribute, group and metric.
RowKey = tuple[str, str, str]


@dataclass(frozen=True, eq=False)
class BootstrapValues:
    """Values of all metrics with their bootstrap replicates, NaN where undefined, by attribute, group and metric.

    The weights (replicates, m) say how often each patient was drawn, of very many each of those in samples.
    """

    numbers: Mapping[RowKey, Draws]
    weights: NDArray[np.uint8]

    def groups(self, attribute: str, labels: Sequence[str], metric: str) -> tuple[FloatArray, FloatArray]:
        """Return a metric's values (k,) in the groups of an attribute, and their replicates (replicates, k)."""
        found = [self.numbers[(attribute, label, metric)] for label in labels]
        return np.array([one.estimate for one in found]), np.column_stack([one.draws for one in found])


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Metrics of one model on one set of patients and their groups: all that can be computed, or those `wanted`.

    Notes say what is left out, and why; `not_compared` is the one that says why there is no reference. Without
    `inside_groups`, metrics of one set of patients are computed for everybody only, and not for each group. Rows of one
    of the `clusters` (n,) are drawn together in replicates; `patients` (n,) are the numbers of the rows' patients, if
    some have several.
    """

    everyone: Subset
    attributes: Sequence[Attribute] = ()
    wanted: Collection[str] | None = None
    notes: tuple[str, ...] = ()
    inside_groups: bool = True
    clusters: IntArray | None = None
    patients: IntArray | None = None
    not_compared: str = ""

    @cached_property
    def has_hazards(self) -> bool:
        """Whether every exp(risk) is a positive number; differences of hazards have no value otherwise."""
        return self.everyone.data.predicted.has_log_hazards and hazards_exist(self.everyone.risk)

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that can be computed from the predictions, features and groups given."""
        names = CATALOGUE.keys() if self.wanted is None else with_what_it_reads(set(self.wanted))
        return tuple(
            metric for metric in CATALOGUE.values() if metric.name in names and not self.lacks(metric)
        )

    def lacks(self, metric: Metric) -> bool:
        """Whether the metric needs something that these patients do not have."""
        data = self.everyone.data
        has: dict[Need, Callable[[], bool]] = {
            "risk": lambda: data.predicted.has_risk,
            "log hazard": lambda: data.predicted.has_log_hazards,
            "slope": lambda: (
                bool(np.ptp(data.judged.score)) if data.is_judged else data.predicted.has_log_hazards
            ),
            "gains": lambda: data.is_judged,
            "survival": lambda: data.has_curves,
            "curves": lambda: data.has_curves and data.few_times is None,
            "two times": lambda: data.has_curves and (data.few_times is None or len(data.brier_times) > 1),
            "reference": lambda: data.reference_risk is not None,
            "features": lambda: data.features is not None,
            "groups": lambda: bool(self.attributes),
            "hazards": lambda: self.has_hazards,
        }
        return not all(has[need]() for need in metric.needs)

    def of(self, kind: str) -> list[Metric]:
        """Metrics of one kind (see `of` in :class:`~drosurv.evaluation.catalogue.Metric`)."""
        return [metric for metric in self.metrics if metric.of == kind]

    def without(self, groups: Collection[tuple[str, str]], wanted: Collection[str]) -> Evaluator:
        """Return the evaluator without some groups, given by attribute and label, for the metrics `wanted` only.

        An attribute with fewer than two groups left is left out.
        """
        left = (attribute.without(groups) for attribute in self.attributes)
        compared = [attribute for attribute in left if len(attribute.labels) > 1]
        return replace(self, attributes=compared, wanted=wanted)

    def of_scores(self, everyone: Subset, wanted: Collection[str] | None) -> Evaluator:
        """Return an evaluator of the same patients and groups with other scores, for the metrics `wanted` only."""
        other = replace(self, everyone=everyone, wanted=wanted)
        # Follow-up does not depend on scores, and is slow to compare.
        vars(other)["follow_ups"] = self.follow_ups
        return other

    @cached_property
    def partitions(self) -> dict[str, Attribute]:
        """Every attribute by name; under "overall" the intersections of all, if F_cap compares them."""
        named = {attribute.name: attribute for attribute in self.attributes}
        crossed = any("groups" in metric.needs for metric in self.of("everybody"))
        return {**named, EVERYONE: intersection_of(self.attributes)} if crossed else named

    @cached_property
    def kept(self) -> dict[str, Subset]:
        """Patients that belong to a group, by partition."""
        # Partitions of all patients share their sorted pairs.
        everybody = len(self.everyone)
        return {
            name: self.weighted(name) if len(of.kept) == everybody else self.weighted(name).take(of.kept)
            for name, of in self.partitions.items()
        }

    @cached_property
    def follow_ups(self) -> dict[str, FollowUpComparison]:
        """How follow-up differs between the groups of each attribute."""
        target = self.everyone.target
        return {
            one.name: compare_follow_up(target.take(one.groups.kept), one.kept_groups)
            for one in self.attributes
        }

    def weighted(self, name: str) -> Subset:
        """Return everybody, with censoring weights by group if the follow-up of the attribute's groups differs."""
        differs = name in self.follow_ups and self.follow_ups[name].differs
        return replace(self.everyone, groups=self.partitions[name].groups) if differs else self.everyone

    @cached_property
    def members(self) -> dict[Key, Subset]:
        """Patients of each group, by attribute and label."""
        return {key: self.weighted(key[0]).take(rows) for key, rows in rows_by_group(self.attributes).items()}

    @cached_property
    def counts(self) -> dict[Key, Count]:
        """Numbers of patients and events of each group, by attribute and label."""
        return {key: self.count(patients) for key, patients in self.members.items()}

    def count(self, patients: Subset) -> Count:
        """Return the numbers of patients and events in some rows."""
        count = Count.of(patients.target)
        if self.patients is None:
            return count
        codes = self.patients if patients.rows is None else self.patients[patients.rows]
        return Count(len(np.unique(codes)), count.events, count.patients)

    def clusters_of(self, patients: Subset) -> IntArray | None:
        """Return the numbers of the clusters of some patients; None without clusters."""
        if self.clusters is None or patients.rows is None:
            return self.clusters
        return self.clusters[patients.rows]

    def draw(
        self, inference: Inference = _NO_REPLICATES, *, advance: Callable[[], None] = lambda: None
    ) -> BootstrapValues:
        """Compute all metrics on the patients and on bootstrap replicates of them; call `advance` after each.

        Evaluators of the same patients draw the same replicates with the same seed.
        """
        streams, replicates = seed_sequence(inference.random_state), inference.n_bootstrap
        sampled = self._drawn_rows if replicates else None
        n, clusters = len(self.everyone) if sampled is None else len(sampled), self.clusters
        if clusters is not None and sampled is not None:
            clusters = np.unique(clusters[sampled], return_inverse=True)[1]
        drawn_from = n if clusters is None else int(clusters.max()) + 1

        def draw(row: int) -> tuple[IntArray, list[float]]:
            rows = replicate_rng(streams, row).integers(drawn_from, size=drawn_from)
            times = np.bincount(rows, minlength=drawn_from)
            times = times if clusters is None else times[clusters]
            return times, list(self._values(times.astype(np.float64), resampled=True).values())

        # This also computes sorted pairs and curves, which threads share. A later warning names undefined values.
        with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
            values = self._values(np.ones(len(self.everyone)), resampled=False)
            centres = self._values(np.ones(n), resampled=True) if replicates and self._samples else values
        # A patient is practically never drawn more than 255 times.
        draws, weights = np.empty((replicates, len(values))), np.empty((replicates, n), dtype=np.uint8)
        for row, (times, found) in enumerate(in_parallel(draw, replicates, inference.n_jobs, n)):
            weights[row], draws[row] = times, found
            advance()
        numbers = {}
        for (key, value), drawn in zip(values.items(), draws.T, strict=True):
            metric = CATALOGUE[key[2]]
            if not replicates:
                numbers[key] = Draws(value, drawn, *metric.bounds)
                continue
            some, whole = self._samples.get(key[:2]), self.members.get(key[:2], self.everyone)
            if metric.of == "groups":
                some, whole = self._compared_samples.get(key[0], (None, None))[0], self.kept[key[0]]
            if some is not None:
                drawn = value + _scale(metric, some, whole) * (drawn - centres[key])
            if metric.error is not None and np.nanstd(drawn) > 0:
                drawn = value + metric.error(whole) / np.nanstd(drawn) * (drawn - value)
            error, freedom = self._weight_error(key), self._freedom(key)
            numbers[key] = Draws(value, drawn, *metric.bounds, metric.interval, error, freedom=freedom)
        return BootstrapValues(numbers, weights)

    @cached_property
    def _samples(self) -> dict[Key, Subset]:
        """Samples of everybody and of groups of very many patients, from which replicates are drawn."""
        everybody = {(EVERYONE, ALL): self.everyone, **self.members}
        found = {key: sample_of(patients, self.clusters) for key, patients in everybody.items()}
        return {key: some for key, some in found.items() if some is not everybody[key]}

    @cached_property
    def _compared_samples(self) -> dict[str, tuple[Subset, Groups]]:
        """Samples of the patients of a partition, with their groups, if these are very many patients."""
        found = {}
        for name, partition in self.partitions.items():
            rows, groups = self._sample_of_groups(partition), partition.kept_groups
            if rows is not None:
                found[name] = self.kept[name].take(rows), replace(groups, codes=groups.codes[rows])
        return found

    def _sample_of_groups(self, partition: Attribute) -> IntArray | None:
        """Return the rows of a sample with patients of all groups of a partition; None if all patients are used."""
        clusters = None if self.clusters is None else self.clusters[partition.kept]
        smallest = int(partition.kept_groups.sizes.min())
        target = self.everyone.target.take(partition.kept)
        return sample_of_many(target, clusters, resampled=True, smallest=smallest)

    @cached_property
    def _drawn_rows(self) -> IntArray | None:
        """Rows of the patients in any sample; None if replicates are drawn from all patients."""
        if not self._samples:
            return None
        needed = [self._samples.get(key, some).rows for key, some in self.members.items()]
        # Also those of intersections that no metric compares: models are compared on the same replicates.
        for partition in (*self.attributes, *([intersection_of(self.attributes)] if self.attributes else ())):
            rows = self._sample_of_groups(partition)
            needed.append(None if rows is None else partition.kept[rows])
        known = [rows for rows in (self._samples[EVERYONE, ALL].rows, *needed) if rows is not None]
        return np.unique(np.concatenate(known)) if len(known) > len(needed) else None

    @cached_property
    def _places(self) -> IntArray | None:
        """Position (n,) of each patient in `_drawn_rows`; None if replicates are drawn from all patients."""
        if self._drawn_rows is None:
            return None
        places = np.zeros(len(self.everyone), dtype=np.intp)
        places[self._drawn_rows] = np.arange(len(self._drawn_rows))
        return places

    def drawn_weight(self, weight: NDArray[Number], patients: Subset) -> NDArray[Number]:
        """Return how often each of some patients was drawn, from one of the weights (m,) of the replicates."""
        if patients.rows is None:
            return weight
        return weight[patients.rows if self._places is None else self._places[patients.rows]]

    def _freedom(self, key: RowKey) -> float:
        """Return the degrees of freedom of a number: of the events, or clusters if these are fewer."""
        attribute, label, _ = key
        patients = self.members.get((attribute, label), self.everyone)
        events, clusters = patients.target.n_events, self.clusters_of(patients)
        return float(min(events, events if clusters is None else len(np.unique(clusters))) - 1)

    def _weight_error(self, key: RowKey) -> float:
        """Return the standard error that estimated censoring weights add to a metric; 0 for metrics without weights."""
        attribute, label, metric = key
        if metric != "integrated_brier_score":
            return 0.0
        patients = self.everyone if attribute == EVERYONE else self.members[attribute, label]
        return patients.brier_weight_error if len(patients) else 0.0

    def _values(self, weight: FloatArray, *, resampled: bool) -> dict[RowKey, float]:
        """Compute the metrics of everybody and of all groups with patient weights (n,); runs for every replicate."""
        found: dict[RowKey, float] = {}
        censoring = self._uno_weights(weight) if resampled and self._estimates_censoring else None

        def weight_of(patients: Subset) -> FloatArray:
            if resampled:
                return self.drawn_weight(weight, patients)
            return weight if patients.rows is None else weight[patients.rows]

        def add(attribute: str, label: str, patients: Subset, metrics: Sequence[Metric]) -> None:
            if resampled:
                patients = self._samples.get((attribute, label), patients)
            weights = weight_of(patients)
            for metric in metrics:
                known = metric.resampled or not resampled
                again: tuple[FloatArray, ...] = ()
                if metric.reweighted and censoring is not None and patients.groups is None:
                    again = (censoring if patients.rows is None else censoring[patients.rows],)
                value = value_of(metric, patients, weights, *again) if known else float("nan")
                found[(attribute, label, metric.name)] = value

        add(EVERYONE, ALL, self.everyone, self.of("patients"))
        needed = {part for metric in self.of("everybody") for part in metric.reads}
        for name, attribute in self.partitions.items():
            if name != EVERYONE and self._inside:
                for label in attribute.labels:
                    add(name, label, self.members[name, label], self._inside)
            for metric in self.of("groups"):
                if name != EVERYONE or metric.name in needed:
                    patients, groups = self.kept[name], attribute.kept_groups
                    if resampled:
                        patients, groups = self._compared_samples.get(name, (patients, groups))
                    values = metric.function(patients, groups, weight_of(patients)).tolist()
                    keys = [(name, label, metric.name) for label in attribute.labels]
                    found.update(zip(keys, values, strict=True))
        return found

    @cached_property
    def _estimates_censoring(self) -> bool:
        """Whether replicates estimate weights for censoring again: those of the metrics are of these patients."""
        if self._samples or not any(metric.reweighted for metric in self.metrics):
            return False
        target = self.everyone.target
        given, own = self.everyone.data.follow_up.uno_weights(target), self._uno_weights(np.ones(len(target)))
        return np.array_equal(given, own)

    def _uno_weights(self, weight: FloatArray) -> FloatArray:
        """Return Uno's weights (n,) of everybody, with the censoring of these patients, counted by weights (n,)."""
        target = self.everyone.target
        curve = KaplanMeier.both(target, weight)[1]
        own = replace(self.everyone.data.follow_up, times=curve.times, censoring=curve.survival)
        return own.uno_weights(target)

    def numbers(self, drawn: BootstrapValues) -> dict[Key, Draws]:
        """Return the gap of each attribute and metric and, under "overall", the metrics of everybody."""
        found: dict[Key, Draws] = {}
        for metric in self.of("patients"):
            found[EVERYONE, metric.name] = drawn.numbers[(EVERYONE, ALL, metric.name)]
        for metric in self.of("everybody"):
            found[EVERYONE, metric.name] = self._compared(metric, EVERYONE, drawn, found)
        for attribute in self.attributes:
            for metric in self.metrics:
                key = attribute.name, metric.name
                if metric.of == "attribute":
                    found[key] = self._compared(metric, attribute.name, drawn, found)
                elif metric in self._inside and metric.resampled:
                    lowest, highest = metric.bounds
                    values = drawn.groups(attribute.name, attribute.labels, metric.name)
                    found[key] = largest_difference(*values, largest=highest - lowest)
        return found

    def _compared(
        self, metric: Metric, name: str, drawn: BootstrapValues, known: Mapping[Key, Draws]
    ) -> Draws:
        """Compute a metric that compares groups from the other metrics that it `reads`."""
        values, numbers = {}, {}
        for part in metric.reads:
            if CATALOGUE[part].of == "groups":
                values[part] = drawn.groups(name, self.partitions[name].labels, part)
            else:
                numbers[part] = known[(name, part) if (name, part) in known else (EVERYONE, part)]
        groups, patients = None, self.everyone
        if name != EVERYONE:
            groups, patients = self.partitions[name].kept_groups, self.kept[name]
        sample: tuple[Subset, Groups | None] = patients, groups
        if len(drawn.weights) and name == EVERYONE:
            sample = self._samples.get((EVERYONE, ALL), patients), None
        elif len(drawn.weights):
            sample = self._compared_samples.get(name, sample)

        def sums(values: FloatArray) -> FloatArray:
            # Row by row, because all weights as floats would take eight times the memory.
            return np.array([self.drawn_weight(weight, sample[0]) @ values for weight in drawn.weights])

        resampled = sums if len(drawn.weights) else None
        number: Draws = metric.function(GroupComparison(patients, groups, values, numbers, sample, resampled))
        return number

    def p_values(
        self, inference: Inference, *, advance: Callable[[], None] = lambda: None
    ) -> dict[Key, float]:
        """Test gaps by permutation of the labels, for metrics that have a `test`; return p-values.

        The p-values of other gaps, and with clusters of all, come from the bootstrap. `advance` is called after each
        test.
        """
        found: dict[Key, float] = {}
        for name, metric in self.tests if inference.n_bootstrap and self.clusters is None else ():
            assert metric.test is not None
            kept = self.kept[name]
            some = sample_of(kept)
            result = permutation_test(
                metric.test(kept),
                self.partitions[name].kept_groups,
                permutations=inference.n_bootstrap,
                random_state=inference.random_state,
                n_jobs=inference.n_jobs,
                of_sample=None if some is kept else (metric.test(some), len(some)),
            )
            found[name, metric.name] = result.p
            advance()
        return found

    @cached_property
    def tests(self) -> list[tuple[str, Metric]]:
        """Partitions and metrics whose gaps are tested by permutation."""
        return [
            (name, metric)
            for name, attribute in self.partitions.items()
            for metric in self.metrics
            if metric.test is not None
            and (metric.of == "everybody") == (name == EVERYONE)
            and (name != EVERYONE or len(attribute.groups) > 1)
        ]

    @cached_property
    def _inside(self) -> list[Metric]:
        """Metrics that are also computed for each group."""
        return [metric for metric in self.of("patients") if metric.by_group and self.inside_groups]


def sample_of(patients: Subset, clusters: IntArray | None = None) -> Subset:
    """Return a random sample of very many patients, clusters whole; fewer patients are returned unchanged."""
    if clusters is not None and patients.rows is not None:
        clusters = clusters[patients.rows]
    rows = sample_of_many(patients.target, clusters, resampled=True)
    return patients if rows is None else patients.take(rows)


def _scale(metric: Metric, some: Subset, whole: Subset) -> float:
    """Return the standard error of a metric of all patients over that of a sample."""
    scale = float(np.sqrt(len(some) / len(whole)))
    if metric.terms is None:
        return scale
    # A few patients with large censoring weights may determine the error, and the sample may have none of them.
    of_some, of_whole = (ratio_spread(*metric.terms(patients)) for patients in (some, whole))
    return scale * of_whole / of_some if of_some > 0 else scale


def value_of(metric: Metric, patients: Subset, weight: FloatArray, *censoring: FloatArray) -> float:
    """Return a metric of a set of patients; NaN if all weights are 0 or the value is infinite.

    A metric that is reweighted may be given weights for `censoring` (n,).
    """
    if not weight.any():
        return float("nan")
    value = float(metric.function(patients, weight, *censoring))
    return value if np.isfinite(value) else float("nan")
