"""Disparities of hazards: between patients, between groups, between intersections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from drosurv.evaluation.attributes import Attribute
from drosurv.evaluation.pair_influence import censored_influence, individual_influence
from drosurv.evaluation.panel import ALL, CENTRE, EVERYONE, Panel
from drosurv.evaluation.sheet import Cell, Sheet
from drosurv.inference import Draws, Extreme, largest_deviation, largest_difference
from drosurv.metrics import (
    censored_group_disparity,
    censored_individual_disparity,
    group_disparity,
    individual_disparity,
    intersectional_disparity,
)
from drosurv.metrics.fairness import Convention
from drosurv.target import FloatArray, IntArray

# Attribute and metric.
Key = tuple[str, str]
# F_I of shrunken scores, whose hazards are all near, takes every pair; more patients than this are sampled.
SAMPLED_PATIENTS = 5_000


@dataclass(frozen=True, eq=False)
class Disparities:
    """The disparities of any risk scores of the same patients.

    Parameters
    ----------
    X : (n, d) float64, optional
        Standardised features; without them disparities between patients are left out.
    attributes : sequence of Attribute
        Groups of the patients.
    intersection : Attribute, optional
        Intersections of all attributes.
    convention : "paper" or "table"
        Printed definitions, or those behind the published tables.
    scale : float
        Hazard difference allowed per unit of feature distance in F_I.
    """

    X: FloatArray | None
    attributes: Sequence[Attribute]
    intersection: Attribute | None
    convention: Convention = "paper"
    scale: float = 0.01

    @cached_property
    def sample(self) -> IntArray | None:
        """Rows that `of_hazards` estimates F_I from; None if it takes all patients."""
        if self.X is None or len(self.X) <= SAMPLED_PATIENTS:
            return None
        return np.random.default_rng(0).choice(len(self.X), SAMPLED_PATIENTS, replace=False)

    def of_hazards(self, risk: FloatArray) -> dict[Key, float]:
        """F_I, F_cap and every attribute's F_G of scores that are compared with each other.

        Those without features or groups are left out.
        """
        found: dict[Key, float] = {}
        if self.X is not None:
            found[EVERYONE, "individual_disparity"] = self._individual(risk, self.X)
        if self.intersection is not None:
            found[EVERYONE, "intersectional_disparity"] = intersectional_disparity(
                risk, self.intersection.groups, convention=self.convention
            )
        for attribute in self.attributes:
            found[attribute.name, "group_disparity"] = group_disparity(
                risk, attribute.groups, convention=self.convention
            )
        return found

    def _individual(self, risk: FloatArray, X: FloatArray) -> float:
        if self.sample is None:
            return individual_disparity(risk, X, scale=self.scale, convention=self.convention)
        value = individual_disparity(
            risk[self.sample], X[self.sample], scale=self.scale, convention=self.convention
        )
        # A mean over pairs stands for all of them; a sum is scaled up to all.
        pairs = len(X) * (len(X) - 1) / (len(self.sample) * (len(self.sample) - 1))
        return value if self.convention == "table" else value * pairs

    def drawn(self, panel: Panel, sheet: Sheet) -> dict[Key, Draws | Extreme]:
        """All disparities of a panel's model with their replicates; none if its hazards overflow or are 0."""
        if not panel.has_hazards:
            return {}
        found: dict[Key, Draws | Extreme] = {}
        for attribute in self.attributes:
            means, drawn = sheet.groups(attribute.name, attribute.labels, "mean_hazard")
            centre = sheet[Cell(attribute.name, ALL, CENTRE)]
            found[attribute.name, "group_disparity"] = largest_deviation(
                means, centre.estimate, drawn, centre.draws
            )
        if self.intersection is not None:
            means, drawn = sheet.groups(EVERYONE, self.intersection.labels, "mean_hazard")
            found[EVERYONE, "intersectional_disparity"] = largest_difference(np.log(means), np.log(drawn))
        return found | self._between_patients(panel, sheet, found) if self.X is not None else found

    def _between_patients(
        self, panel: Panel, sheet: Sheet, between_groups: dict[Key, Draws | Extreme]
    ) -> dict[Key, Draws | Extreme]:
        assert self.X is not None
        X, risk, hazard = self.X, panel.everyone.risk, panel.everyone.hazard
        individual = sheet.linear(
            individual_disparity(risk, X, scale=self.scale, convention=self.convention),
            lambda: individual_influence(hazard, X, scale=self.scale, convention=self.convention),
        )
        found: dict[Key, Draws | Extreme] = {
            (EVERYONE, "individual_disparity"): individual,
            (EVERYONE, "censored_individual_disparity"): self._censoring_aware(panel, sheet, None),
        }
        for attribute in self.attributes:
            group = between_groups[attribute.name, "group_disparity"]
            cap = between_groups[EVERYONE, "intersectional_disparity"]
            found[attribute.name, "average_disparity"] = Draws(
                (individual.estimate + group.estimate + cap.estimate) / 3,
                (individual.draws + group.draws + cap.draws) / 3,
                lowest=0.0,
            )
            found[attribute.name, "censored_group_disparity"] = self._censoring_aware(panel, sheet, attribute)
        return found

    def _censoring_aware(self, panel: Panel, sheet: Sheet, attribute: Attribute | None) -> Draws:
        assert self.X is not None
        rows = np.arange(len(self.X)) if attribute is None else attribute.kept
        groups = None if attribute is None else attribute.kept_groups
        X, target, hazard = self.X[rows], panel.everyone.target.take(rows), panel.everyone.hazard[rows]

        def influence() -> FloatArray:
            # Patients left out of the attribute have none.
            found = np.zeros(len(panel.everyone))
            found[rows] = censored_influence(target, hazard, X, groups, scale=self.scale)
            return found

        risk = panel.everyone.risk[rows]
        if groups is None:
            return sheet.linear(censored_individual_disparity(target, risk, X, scale=self.scale), influence)
        return sheet.linear(censored_group_disparity(target, risk, X, groups, scale=self.scale), influence)
