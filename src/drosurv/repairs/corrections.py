"""Repairs found and fitted on some of the patients, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from drosurv.repairs.evidence import Limits, Residuals, poisson_ridge, propose
from drosurv.repairs.rules import Atom, CodedTable
from drosurv.target import BoolArray, FloatArray

Kind = Literal["everyone", "effects", "level"]
Version = Literal["full", "own", "level"]

# A single repair multiplies no hazard by more than exp(2.5) = 12, nor by less than 1/12.
LARGEST_REPAIR = 2.5
# Effects less probable than this to differ are left alone.
LEAST_INCLUSION = 0.02
VERSIONS: dict[Kind, tuple[Version, ...]] = {
    "everyone": ("own", "level"),
    "effects": ("full", "own", "level"),
    "level": ("level",),
}
STRENGTHS = (1.0, 0.5)
# Every version at every strength, in the order in which a group's ratios list them.
CHOICES = {
    kind: [(version, strength) for version in versions for strength in STRENGTHS]
    for kind, versions in VERSIONS.items()
}


@dataclass(frozen=True, eq=False)
class Correction:
    """Log hazard ratios r = clip(z @ everywhere + inside * (z @ own)).

    Effects (p,) for everyone, and further ones inside the group.
    """

    everywhere: FloatArray
    own: FloatArray

    def of(self, z: FloatArray, inside: BoolArray) -> FloatArray:
        """Log hazard ratios (n,) of patients with columns z (n, p)."""
        r: FloatArray = z @ self.everywhere + inside * (z @ self.own)
        return np.clip(r, -LARGEST_REPAIR, LARGEST_REPAIR)


@dataclass(frozen=True, eq=False)
class Found:
    """A group that was found, and each version of its repair.

    `atoms` are the conditions of its rule, none for all patients; `inside` (n,) says which patients meet it; `ratios`
    (v, n) are the log hazard ratios of every choice of version and strength.
    """

    atoms: tuple[Atom, ...]
    inside: BoolArray
    corrections: dict[Version, Correction]
    ratios: FloatArray


class Chain:
    """Repairs found and fitted on the counted patients (n,) only.

    The residuals are those of all n patients under the model as it is; r (n,) holds their log hazard ratios of all
    repairs so far.
    """

    def __init__(
        self, table: CodedTable, residuals: Residuals, counted: BoolArray, max_conditions: int
    ) -> None:
        self.table, self.residuals, self.counted = table, residuals, counted
        self.max_conditions = max_conditions
        self.r = np.zeros(len(counted))

    def find(self, kind: Kind, limits: Limits) -> Found | None:
        """The next group and the fitted versions of its repair; None if no rule has posterior odds above 1."""
        now = self.residuals.after(self.r)
        if kind == "everyone":
            atoms: tuple[Atom, ...] = ()
            inclusion = (np.arange(now.n_effects + 1) <= 1).astype(np.float64)
        else:
            proposal = propose(self.table, now, self.counted, limits, self.max_conditions)
            if proposal is None or proposal.log_odds <= 0:
                return None
            atoms, inclusion = proposal.atoms, proposal.group.inclusion
        inside = self.table.covers(atoms)
        corrections = {
            version: fit_version(version, now, inside, self.counted, inclusion, limits.tau)
            for version in VERSIONS[kind]
        }
        whole = {version: fitted.of(now.columns, inside) for version, fitted in corrections.items()}
        ratios = np.stack([strength * whole[version] for version, strength in CHOICES[kind]])
        return Found(atoms, inside, corrections, ratios)

    def commit(self, found: Found | None, choice: int) -> None:
        """Keep a repair, where one was found: what is found next is found after it."""
        if found is not None:
            self.r = self.r + found.ratios[choice]


def fit_version(
    version: Version,
    residuals: Residuals,
    inside: BoolArray,
    counted: BoolArray,
    inclusion: FloatArray,
    tau: float,
) -> Correction:
    """Poisson ridge whose penalty on an effect is the smaller the more probably it differs; the level always does.

    The version "full" has effects for everyone and for the group, "own" for the group only, "level" one number for
    the group.
    """
    p = residuals.n_effects + 1
    columns = np.flatnonzero(inclusion > LEAST_INCLUSION) if version != "level" else np.array([0])
    columns = np.union1d([0], columns).astype(np.intp)
    penalty = 1 / (tau**2 * np.where(columns == 0, 1.0, inclusion[columns]))
    # Versions that change only the group are fitted there only.
    rows = np.flatnonzero(counted if version == "full" else counted & inside)
    z = residuals.columns[np.ix_(rows, columns)]
    design = np.hstack([z, z * inside[rows, None]]) if version == "full" else z
    theta = poisson_ridge(
        design,
        residuals.events[rows],
        residuals.expected[rows],
        np.tile(penalty, design.shape[1] // len(columns)),
    )
    everywhere, own = np.zeros(p), np.zeros(p)
    own[columns] = theta[-len(columns) :]
    if version == "full":
        everywhere[columns] = theta[: len(columns)]
    return Correction(everywhere, own)
