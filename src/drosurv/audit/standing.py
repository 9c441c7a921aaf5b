"""How each group stands: against no model, against the reference, and what came true of its predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from drosurv.audit.evidence import Evidence
from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.attributes import ALL, EVERYONE, rows_by_group, whose
from drosurv.evaluation.statements import HARM_METRICS, judged_gains, number_of
from drosurv.presentation import GroupNumber, sentences

Against = Literal["better", "not shown", "worse", "too few", "not tested"]
# Of a patient's groups the first of these that holds is the patient's own.
WORST_FIRST: tuple[Against, ...] = ("worse", "not shown", "too few", "not tested", "better")
CHANCE = 0.5


@dataclass(frozen=True)
class Standing:
    """One group, or everybody: how many they are (also of 100 audited patients), and how they are served.

    The c-index has its interval; NaN is what is not known. `no_model` and `reference` say whether the group is shown
    to be better or worse served than without a model, and than by the reference, "" where there is none. Expected and
    observed is survival at the horizon.
    """

    attribute: str
    group: str
    patients: int
    events: int
    of_100: int
    c_index: tuple[float, float, float]
    reference_c_index: float
    no_model: Against
    reference: Against | Literal[""]
    expected: float
    observed: float

    @property
    def name(self) -> str:
        """What the group is called."""
        return whose(self.attribute, self.group, "all patients")


def standings(evidence: Evidence) -> list[Standing]:
    """Everybody first, then every group of every attribute."""
    result = evidence.audited
    gains = _gains(result)
    unknown: Against = "too few" if result.settings.n_bootstrap else "not tested"
    came: dict[tuple[Any, Any], tuple[Any, Any]] = {
        (row.attribute, row.group): (row.predicted, row.observed)
        for row in result.calibration.itertuples()
        if row.horizon == result.settings.horizon
    }
    found = []
    for row in result.select(metric="concordance_index"):
        key = row.attribute, row.group
        if row.kind == "gap":
            continue
        expected, observed = came.get(key, (np.nan, np.nan))
        found.append(
            Standing(
                *key,
                patients=row.n,
                events=row.events,
                of_100=round(100 * row.n / len(evidence.target)),
                c_index=(row.value, row.low, row.high),
                reference_c_index=evidence.ranked_by_reference.get(key, np.nan),
                no_model=sentences.against_nothing(gains[key]) if key in gains else unknown,
                reference="" if evidence.against is None else evidence.against.served(*key),
                expected=expected,
                observed=observed,
            )
        )
    return found


def per_100(evidence: Evidence, groups: list[Standing], of: str) -> dict[Against, int]:
    """Of 100 audited patients, how many are in groups that stand so; a patient counts by the worst of his groups."""
    codes = np.full(len(evidence.target), WORST_FIRST.index("better"))
    for attribute in evidence.attributes:
        # Whoever is in none of its groups is in one too small to be shown.
        codes[~attribute.groups.kept] = WORST_FIRST.index("too few")
    rows = rows_by_group(evidence.attributes) or {(EVERYONE, ALL): np.arange(len(codes))}
    for group in groups:
        if (group.attribute, group.group) in rows and (state := getattr(group, of)):
            members = rows[group.attribute, group.group]
            codes[members] = np.minimum(codes[members], WORST_FIRST.index(state))
    counts = np.bincount(codes, minlength=len(WORST_FIRST))
    return dict(zip(WORST_FIRST, _of_100(counts), strict=True))


def _of_100(counts: np.ndarray) -> list[int]:
    """Whole numbers that add up to 100 (largest remainders)."""
    exact = 100 * counts / max(counts.sum(), 1)
    whole = np.floor(exact).astype(int)
    order = np.argsort(whole - exact, kind="stable")
    whole[order[: 100 - whole.sum()]] += 1
    return [int(count) for count in whole]


def _gains(result: EvaluationResult) -> dict[tuple[str, str], list[GroupNumber]]:
    """Gains over no model by group; without curves, pairs ranked rightly beyond the half that chance gives."""
    curves = bool(result.select(metric=HARM_METRICS[0]))
    metrics, zero = (HARM_METRICS, 0.0) if curves else (["concordance_index"], CHANCE)
    overall = (
        row
        for row in result.select(kind="overall")
        if row.metric in metrics and row.status == "ok" and not np.isnan(row.low)
    )
    numbers = [*(number_of(row, zero) for row in overall), *judged_gains(result, metrics, zero)]
    return sentences.by_group(numbers)
