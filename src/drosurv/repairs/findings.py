"""Results of the search for the patients a model predicts worst: data, table, text and figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from drosurv.metrics.inference import observed_over_expected
from drosurv.presentation import Column, Table, axes_or_new, literal, with_interval
from drosurv.repairs.rules import Rule
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Estimate:
    """A number with its interval: a mean (Student's t), a difference (Welch's), or a ratio of events (Poisson)."""

    value: float
    low: float
    high: float

    @classmethod
    def mean(cls, values: FloatArray, confidence: float) -> Estimate:
        """Return the mean of the values; NaN for fewer than two."""
        n = len(values)
        if n < 2:
            return cls(np.nan, np.nan, np.nan)
        return cls._around(float(values.mean()), float(values.var(ddof=1)) / n, n - 1, confidence)

    @classmethod
    def difference(cls, first: FloatArray, second: FloatArray, confidence: float) -> Estimate:
        """Return the mean of the first group minus that of the second."""
        sizes = np.array([len(first), len(second)])
        if sizes.min() < 2:
            return cls(np.nan, np.nan, np.nan)
        parts = np.array([first.var(ddof=1), second.var(ddof=1)]) / sizes
        total = float(parts.sum())
        freedom = 1 / float(((parts / total) ** 2 / (sizes - 1)).sum()) if total > 0 else 1.0
        return cls._around(float(first.mean() - second.mean()), total, freedom, confidence)

    @classmethod
    def ratio(cls, events: float, expected: float, confidence: float) -> Estimate:
        """Return observed over expected events, with the exact interval of a Poisson count; NaN if 0 are expected."""
        found = observed_over_expected(events, expected, level=confidence)
        return cls(found.estimate, found.low, found.high)

    @classmethod
    def _around(cls, value: float, variance: float, freedom: float, confidence: float) -> Estimate:
        half_width = float(stats.t.ppf((1 + confidence) / 2, freedom) * np.sqrt(variance))
        return cls(value, value - half_width, value + half_width)

    def named(self, name: str) -> dict[str, float]:
        """Return value and interval as entries of a row: ``name``, ``name_low`` and ``name_high``."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}

    def __str__(self) -> str:
        return f"{self.value:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


Wrong = Literal["harm", "level", "effects"]


@dataclass(frozen=True)
class _Words:
    """Phrases for a kind of error of the model."""

    found: str
    none: str
    harm: str


_WORDS: dict[str, _Words] = {
    "harm": _Words(
        "The model predicts these patients worse than no model does",
        "is predicted worse than by no model",
        "Harm is the loss in log likelihood per patient against no model",
    ),
    "level": _Words(
        "The model expects too many or too few events for these patients",
        "has more or fewer events than the model expects",
        "Harm is the log likelihood per patient that a correction of the level gains",
    ),
    "effects": _Words(
        "The number of events, or effects of features, differ from the model for these patients",
        "has another number of events or other effects than the model",
        "Harm is the gain in log likelihood per patient of a correction that was fitted to other patients",
    ),
}


@dataclass(frozen=True)
class Finding:
    """One rule, and the results of its test.

    Parameters
    ----------
    rule : Rule
        Found on all patients.
    n_patients, share, n_events : int, float, int
        Patients who meet the rule, their share of all, and their events.
    n_checked : int
        Checked patients: those who meet the rule that was found without their fold.
    harm, rest, difference : Estimate
        Mean harm of the checked patients, of the others, and the difference. Each end of the intervals holds with the
        given confidence, for all rules together.
    harm_found : float
        Mean harm of the patients on whom the rule was found: biased upwards by the search.
    folds_found : int
        Number of folds without which the search found the group again.
    stability : float
        Share of bootstrap samples in which the search found the group again.
    observed_expected : Estimate or None
        Observed over expected events of the checked patients; None for harm against no model.
    p : float or None
        P-value adjusted for all subgroups searched, for kind "level".
    harmed, stable : bool
        Whether the interval of the checked harm lies above 0, and whether the group is found again often enough.
    """

    rule: Rule
    n_patients: int
    share: float
    n_events: int
    n_checked: int
    harm: Estimate
    rest: Estimate
    difference: Estimate
    harm_found: float
    folds_found: int
    stability: float
    harmed: bool
    stable: bool
    observed_expected: Estimate | None = None
    p: float | None = None

    @property
    def verdict(self) -> str:
        """The reason why the rule is, or is not, reported as a group."""
        if self.p is not None:
            return "significant"
        if self.harmed and self.stable:
            return "harmed"
        if self.harmed:
            return "not stable: other samples give other rules"
        return "not confirmed on patients not used to find it"


@dataclass(frozen=True, repr=False)
class WorstOff:
    """The subgroups that a model predicts worst.

    Parameters
    ----------
    findings : tuple of Finding
        Every rule the search proposed, confirmed or not, in the order found.
    overall : Estimate
        Mean harm of all patients; negative is a gain over no model.
    n_patients, n_events : int
        Numbers of patients and events in the data.
    confidence : float
    min_group : int
    kind : {"harm", "level", "effects"}
        What was searched for.
    """

    findings: tuple[Finding, ...]
    overall: Estimate
    n_patients: int
    n_events: int
    confidence: float
    min_group: int
    kind: Wrong = "harm"

    @property
    def groups(self) -> tuple[Finding, ...]:
        """Rules that are confirmed: harmed on patients not used to find them, and stable."""
        return tuple(finding for finding in self.findings if finding.harmed and finding.stable)

    @property
    def status(self) -> str:
        """One sentence that says what was found."""
        if self.groups:
            rules = "; ".join(self._described(group) for group in self.groups)
            return f"{_WORDS[self.kind].found}: {rules}."
        n = len(self.findings)
        many = "1 rule was" if n == 1 else f"{n} rules were"
        tried = f"{many} tested and not confirmed" if n else "no rule was found"
        return f"No stable group of at least {self.min_group} patients {_WORDS[self.kind].none} ({tried})."

    def _described(self, group: Finding) -> str:
        ratio = group.observed_expected
        if ratio is None:
            return str(group.rule)
        return f"{group.rule} ({ratio.value:.1f} times as many events as expected, {ratio.low:.1f} to {ratio.high:.1f})"

    def __str__(self) -> str:
        return self.status

    def __repr__(self) -> str:
        return self.to_table().to_text() if self.findings else self.status

    def to_frame(self) -> pd.DataFrame:
        """Return one row per rule, confirmed or not (column ``verdict``); intervals as ``_low`` and ``_high``."""
        rows: list[dict[str, Any]] = []
        for f in self.findings:
            row: dict[str, Any] = {"rule": str(f.rule), "verdict": f.verdict, "patients": f.n_patients}
            row |= {"share": f.share, "events": f.n_events, "checked": f.n_checked}
            row |= f.harm.named("harm") | f.rest.named("rest") | f.difference.named("difference")
            row |= {"harm_found": f.harm_found, "folds_found": f.folds_found, "stability": f.stability}
            if f.observed_expected is not None:
                row |= f.observed_expected.named("observed_expected")
            if f.p is not None:
                row |= {"p": f.p}
            rows.append(row)
        return pd.DataFrame(rows, columns=list(rows[0]) if rows else COLUMNS)

    @property
    def note(self) -> str:
        """Note on how the columns of the table of rules were computed."""
        overall = self.overall
        if self.kind == "level":
            return (
                "All subgroups of one or two conditions with at least 10 predicted events were tested together, by "
                "simulation from the model; p is adjusted for all of them. Smallest subgroup: "
                f"{self.min_group} patients."
            )
        parts = [
            f"{_WORDS[self.kind].harm}, measured on patients not used to find the rule; negative is a gain.",
            f"All {self.n_patients:,} patients: {with_interval(overall.value, overall.low, overall.high)}.",
            f"Smallest group searched for: {self.min_group} patients.",
        ]
        if self.findings:
            parts += [
                "Found again: share of bootstrap samples in which the search finds the same group.",
                f"Each end of an interval holds with {100 * self.confidence:g} % confidence, for all rules together.",
                "A patient who meets several rules is counted in the first.",
            ]
        return " ".join(parts)

    def to_table(self) -> Table:
        """Return a table of the rules."""
        if self.kind == "level":
            tested = (
                Column("rule", "Rule"),
                Column("patients", "Patients", "count"),
                Column("share", "Of all", "share"),
                Column("events", "Events", "count"),
                Column.measured("observed_expected", "Observed / expected"),
                Column("p", "p, adjusted", "value"),
            )
            return Table.of("worst_off", self.status, tested, self.to_frame(), (self.note,))
        columns = (
            Column("rule", "Rule"),
            Column("patients", "Patients", "count"),
            Column("share", "Of all", "share"),
            Column("events", "Events", "count"),
            Column.measured("harm", "Harm there"),
            Column.measured("rest", "Harm elsewhere"),
            Column("stability", "Found again", "share"),
            Column("verdict", "Verdict"),
        )
        return Table.of("worst_off", self.status, columns, self.to_frame(), (self.note,))

    def to_markdown(self) -> str:
        """Return the status, and a table of the rules with harm of patients not used to find them, as Markdown."""
        if not self.findings:
            return f"{literal(self.status)}\n\n{literal(self.note)}\n"
        return self.to_table().to_markdown()

    def _repr_html_(self) -> str:
        return self.to_table().to_html()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the harm of each rule's checked patients and of all patients, with intervals."""
        ax = axes_or_new(ax)
        rows = [("all patients", self.overall, "0.5")]
        rows += [(str(f.rule), f.harm, "C3" if f in self.groups else "0.7") for f in self.findings]
        for position, (_, estimate, color) in enumerate(reversed(rows)):
            ax.plot([estimate.low, estimate.high], [position, position], color=color)
            ax.plot(estimate.value, position, "o", color=color)
        ax.axvline(0, color="0.3", linewidth=0.8)
        # A dollar sign in a name does not start a formula.
        ax.set_yticks(range(len(rows)), [name for name, _, _ in reversed(rows)], parse_math=False)
        ax.set_xlabel("mean harm (right: harmed)")
        ax.set_title(_WORDS[self.kind].found if self.groups else "No stable harmed group")
        return ax


COLUMNS = [
    "rule", "verdict", "patients", "share", "events", "checked", "harm", "harm_low", "harm_high", "rest",
    "rest_low", "rest_high", "difference", "difference_low", "difference_high", "harm_found", "folds_found",
    "stability",
]  # fmt: skip
