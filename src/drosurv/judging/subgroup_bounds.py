"""The result of `certify`: bounds on the error of a model in all subgroups, in words, as a table and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from drosurv.judging.adjustment import RELEVANCE, SEARCH_SHARE, Adjusted, Question, is_relevant, is_wrong
from drosurv.judging.excluded_errors import excluded_errors
from drosurv.judging.group_picture import GroupPicture, PictureRow
from drosurv.judging.questions import KINDS
from drosurv.judging.residual_tests import JudgedValue
from drosurv.judging.rules import Condition, Rule
from drosurv.judging.simultaneous_tests import LEAST, LEAST_EXPECTED, MOST
from drosurv.judging.subgroup_sums import MOST_PAIRED, Subgroups
from drosurv.judging.verdict import FindingRow
from drosurv.judging.words import ALL_PATIENTS, period, sentence, subgroup_events
from drosurv.patients.groups import ALL, EVERYONE
from drosurv.presentation import (
    Column,
    Table,
    counted,
    first_upper,
    moment,
    p_text,
    plain,
    plain_rows,
    ratio_text,
    written,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REPLICATES = 999
BRIER, GAIN = "brier", "gain"
_RATIOS = (MOST, LEAST)


def fewest_replicates(level: float) -> int:
    """Return the smallest number of replicates with which a p-value can be at most 1 - level."""
    return int(np.ceil(3 / (1 - level))) - 1


@dataclass(frozen=True, eq=False, repr=False)
class SubgroupBounds:
    """Bounds on how wrong a model is in any subgroup that one or two conditions define, from :func:`certify`.

    Parameters
    ----------
    bounds : DataFrame
        Rows "observed/expected, most", "observed/expected, least", "brier" (not with late entry and predictions at few
        times) and "gain". Columns: ``estimate``, the most extreme value of a subgroup; ``bound``, which no subgroup
        exceeds, with confidence `level` for all at once; and ``group``, the subgroup that has this bound.
    significant : DataFrame
        Subgroups with more or fewer events than expected (``question`` "level"), or with events at other times than
        expected ("timing"), after adjustment for all subgroups and both questions, in the order of their p-values, but
        first the simplest subgroup that explains the most significant one: group, patients, question, observed,
        expected, ratio, p (adjusted), events, since, until. For the timing of events, observed and expected are events
        from ``since`` to ``until``, the expected ones as a share of all ``events`` of the subgroup; NaN is the end.
    rules, rescaled_rules : tuple of Rule
        The groups of `significant` and of `rescaled`.
    overall : dict
        All patients together: observed, expected, ratio with its interval (low, high) and p, brier, gain. Interval
        and p are adjusted for the test of the timing of events and for the search, as in an audit.
    rescaled : DataFrame or None
        As `significant`, after the model's hazards are multiplied by the overall ratio, in each part of the follow-up
        if the timing is wrong for all patients; None if the model is not significantly wrong for all together.
    n_subgroups, n_patients, n_events : int
        Numbers of subgroups that were tested together, of patients who were judged, and of their events.
    alpha, level : float
        As given.
    horizon : float
        Time of the Brier score.
    counted_until : float or None
        Time until which events were counted; None for the whole follow-up.
    timing : dict or None
        Part of the follow-up with too many or too few of all patients' events, as a row of `significant`; None if the
        timing of events is not significantly wrong for all patients together.
    notes : tuple of str
        How patients with entry times or several rows were evaluated.
    subgroups : Subgroups
        The subgroups that were tested.
    n_bootstrap : int
        Number of simulations.
    design_effect : float
        How many times larger the variance of observed events is than that of independent patients, if patients are in
        clusters.
    """

    bounds: pd.DataFrame
    significant: pd.DataFrame
    rules: tuple[Rule, ...]
    overall: dict[str, float]
    rescaled: pd.DataFrame | None
    n_subgroups: int
    n_patients: int
    alpha: float
    level: float
    horizon: float
    n_events: int = 0
    counted_until: float | None = None
    timing: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    subgroups: Subgroups | None = None
    n_bootstrap: int = REPLICATES
    design_effect: float = 1.0
    rescaled_rules: tuple[Rule, ...] = ()

    @property
    def definition(self) -> str:
        """What defines the subgroups, in words."""
        alone = f"a single column of more than {MOST_PAIRED} defines"
        return "one or two conditions define" if self._paired else alone

    @property
    def _paired(self) -> bool:
        return self.subgroups is None or self.subgroups.paired

    @property
    def n_columns(self) -> int:
        """Number of columns that may define subgroups."""
        return 0 if self.subgroups is None else len(self.subgroups.table.names)

    def beside(self, findings: Sequence[FindingRow]) -> SubgroupBounds:
        """Return the result of a search beside findings of the same patients, with p-values adjusted for them too.

        The search has its share of the error rate. What is said of all patients together is that of the findings.
        """
        everybody = {row.question: row for row in findings if row.attribute == EVERYONE}
        level, timing = everybody.get("level"), everybody.get("timing")
        wrong = any(row is not None and row.status == "miscalibrated" for row in (level, timing))
        found = self._adjusted(1 / SEARCH_SHARE, rescaled=wrong)
        if level is not None and not np.isnan(level.value):
            overall = {**found.overall, "low": level.low, "high": level.high, "p": level.p}
            found = replace(found, overall=overall)
        if timing is not None and found.timing is not None:
            found = replace(found, timing={**found.timing, "p": timing.p})
        return found

    def to_report(self, findings: Sequence[FindingRow]) -> list[tuple[dict[str, Any], Rule]]:
        """Return the significant subgroups with their rules, but those in a named group with a wrong number of events.

        If the predictions are corrected for everybody first, named groups are not among them: their own findings may
        say that the given predictions are right.
        """
        found, rules = self.significant, self.rules
        if self.rescaled is not None:
            found, rules = self.rescaled, self.rescaled_rules
        levels = [row for row in findings if row.question == "level"]
        named = {str(Condition(row.attribute, "is", row.group)): row.status for row in levels}
        wrong = {group for group, status in named.items() if status == "miscalibrated"}
        return [
            (row, rule)
            for row, rule in zip(plain_rows(found), rules, strict=True)
            if wrong.isdisjoint(map(str, rule.conditions))
            and (self.rescaled is None or row["group"] not in named)
        ]

    def _adjusted(self, factor: float, *, rescaled: bool) -> SubgroupBounds:
        """Return the result with p-values multiplied by a factor; `rescaled` if predictions of everybody are wrong."""

        def kept(found: pd.DataFrame, rules: tuple[Rule, ...]) -> tuple[pd.DataFrame, tuple[Rule, ...]]:
            adjusted = found.assign(p=np.minimum(found["p"] * factor, 1.0))
            stay = (adjusted["p"] <= 1 - self.level).to_numpy()
            return adjusted[stay], tuple(rule for rule, stays in zip(rules, stay, strict=True) if stays)

        significant, rules = kept(self.significant, self.rules)
        again: pd.DataFrame | None = None
        rescaled_rules: tuple[Rule, ...] = ()
        if rescaled and self.rescaled is not None:
            again, rescaled_rules = kept(self.rescaled, self.rescaled_rules)
        return replace(
            self, significant=significant, rules=rules, rescaled=again, rescaled_rules=rescaled_rules
        )

    @property
    def correction(self) -> str:
        """How predictions for everybody were corrected before subgroups were judged again, in words."""
        if self.timing is not None:
            return "after hazards are multiplied by one number in each part of the follow-up"
        return f"after hazards are multiplied by {self.overall['ratio']:.2f}"

    @property
    def sizes(self) -> str:
        """Return the size of the subgroups that were tested, in words."""
        share = f"at least {100 * self.alpha:g} % of the {self.n_patients:,} patients"
        return f"{share} and {LEAST_EXPECTED:g} expected events"

    @property
    def rounded(self) -> dict[str, float]:
        """The bounds rounded outward, so that they stay bounds: ratios to two decimals, the others to three."""
        return {
            str(name): _outward(bound, -1 if name in (LEAST, GAIN) else 1, 2 if name in _RATIOS else 3)
            for name, bound in self.bounds["bound"].items()
        }

    @property
    def excluded(self) -> str:
        """Which ratios of events no subgroup has, in words; bounds of 0 and infinity exclude none."""
        most, least = self.rounded[MOST], self.rounded[LEAST]
        sides = [f"more than {most:.2f} times"] if np.isfinite(most) else []
        sides += [f"fewer than {least:.2f} times"] if least > 0 else []
        return f"{', or '.join(sides)}{',' if len(sides) > 1 else ''}"

    def summary(self, time_unit: str = "", *, overall: bool = True) -> str:
        """Return the findings and the bounds in sentences; `overall` includes those on all patients together."""
        everybody, found = self.overall, self.significant if self.rescaled is None else self.rescaled
        sentences = self._of_everybody(time_unit) if overall else []
        after = "" if self.rescaled is None else f"{first_upper(self.correction)}, "
        if len(found):
            shown = "; ".join(
                f"{row['group']}: {subgroup_events(row, time_unit)}, p = {row['p']:.3f})"
                for row in plain_rows(found.head(_SHOWN))
            )
            more = f"; and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
            verb = "differs" if len(found) == 1 else "differ"
            differ = f"{counted(len(found), 'subgroup')} {verb} significantly from what the model predicts"
            sentences.append(f"{after}{differ}: {shown}{more}.")
        elif self.n_bootstrap < (enough := fewest_replicates(self.level)):
            few = f"the smallest p-value of {self.n_bootstrap} replicates is 3/{self.n_bootstrap + 1}"
            sentences.append(f"No subgroup can be significant: {few}; at least {enough:,} are needed.")
        else:
            none = "no subgroup differs significantly from what the model predicts."
            sentences.append(f"{after}{none}" if after else f"N{none[1:]}")
        bound, events = self.rounded, f"none has {self.excluded} the predicted events"
        if not self.excluded:
            events = "no wrong number of events can be excluded"
        until = "" if self.counted_until is None else f" until {moment(self.counted_until, time_unit)}"
        sentences += [
            f"With {100 * self.level:g} % confidence, of the {self.n_subgroups:,} subgroups of {self.sizes} "
            f"that {self.definition}:",
            f"{events}{until} (all patients: {ratio_text(everybody['ratio'])} times);",
            *self._brier_sentence(time_unit),
            f"none gains less than {written(bound[GAIN])} in log likelihood per patient over no model (all patients: "
            f"{written(everybody[GAIN])}).",
            f"Not covered: subgroups that {'more than two' if self._paired else 'several'} columns, finer cuts or "
            "unmeasured columns define.",
        ]
        if overall and self.n_columns:
            how: dict[str, Any] = {
                "n_columns": self.n_columns,
                "subgroup_share": self.alpha,
                "level": self.level,
            }
            how |= {"design_effect": self.design_effect, "n_tests": None}
            sentences.append(excluded_errors(self.n_patients, self.n_events, **how))
        return "\n".join([*sentences, *map(first_upper, self.notes)])

    def _of_everybody(self, time_unit: str) -> list[str]:
        """Return the number of events of all patients in the words of the findings, and their timing if it is wrong."""
        until = np.nan if self.counted_until is None else self.counted_until
        ratio, low, high, p = (self.overall[name] for name in ("ratio", "low", "high", "p"))
        value = JudgedValue(ratio, root=float, time=until)
        test = Question(KINDS["level"], EVERYONE, ALL, value, details={"unit": time_unit})
        significant = is_wrong(test, value, p, self.level)
        wrong = significant and is_relevant(value, RELEVANCE)
        adjusted = Adjusted(test, ratio, low, high, p, wrong, significant)
        found = [sentence(test.kind.status if wrong else "clear", adjusted)]
        if self.timing is not None:
            part = subgroup_events(self.timing, time_unit)
            timed = f"The timing of events is wrong for {ALL_PATIENTS}: {part}"
            found.append(f"{timed}, adjusted {p_text(self.timing['p'])}).")
        return found

    def _brier_sentence(self, time_unit: str) -> tuple[str, ...]:
        if BRIER not in self.rounded:
            return ()
        most, at = f"{self.rounded[BRIER]:.3f}", moment(self.horizon, time_unit)
        return (f"none has a Brier score above {most} at {at} (all patients: {self.overall[BRIER]:.3f});",)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as numbers, strings, lists and dicts that JSON can hold."""
        names = ("n_subgroups", "n_patients", "n_events", "alpha", "level", "horizon", "counted_until")
        return {
            "bounds": self.bounds.astype({"estimate": float, "bound": float}).to_dict("index"),
            "significant": plain_rows(self.significant),
            "rescaled": None if self.rescaled is None else plain_rows(self.rescaled),
            "timing": None if self.timing is None else plain(self.timing),
            "overall": plain(self.overall, None),
            **{name: getattr(self, name) for name in names},
            "notes": list(self.notes),
        }

    def to_table(self) -> Table:
        """Return a table of the bounds."""
        columns = (
            Column("measure", "measure"),
            Column("all", "all patients", "value"),
            Column("estimate", "most extreme", "value"),
            Column("bound", "no subgroup is beyond", "value"),
            Column("group", "subgroup with that bound"),
        )
        rows: list[dict[str, Any]] = []
        for name, row in self.bounds.iterrows():
            is_ratio = name in _RATIOS
            everybody = self.overall["ratio" if is_ratio else str(name)]
            values = {"all": everybody, "estimate": row["estimate"], "bound": self.rounded[str(name)]}
            # As many decimals as in the sentences.
            shown = {key: f"{value:.2f}" if is_ratio else written(value) for key, value in values.items()}
            rows.append({"measure": name, **shown, "group": row["group"]})
        confidence = f"{100 * self.level:g} % confidence for all at once"
        caption = f"{self.n_subgroups:,} subgroups of {self.sizes}, {confidence}"
        return Table("subgroup_bounds", caption, columns, tuple(rows), tuple(self.summary().split("\n")))

    def __repr__(self) -> str:
        return self.to_table().to_text()

    def _repr_html_(self) -> str:
        return self.to_table().to_html()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw observed / expected events of all patients and of significant subgroups, and the bounds of any."""
        return self.picture.plot(ax)

    @property
    def picture(self) -> GroupPicture:
        """All patients, any subgroup with the bounds as its interval, and the significant ones."""
        bound, overall = self.bounds["bound"], self.overall
        everybody = PictureRow(
            "all patients",
            "all" if self.rescaled is None else "wrong",
            self.n_patients,
            observed=overall["observed"],
            expected=overall["expected"],
            ratio=overall["ratio"],
            low=overall["low"],
            high=overall["high"],
            everybody=True,
        )
        anyone = PictureRow(
            "any subgroup",
            "right",
            0,
            observed=np.nan,
            expected=np.nan,
            ratio=np.nan,
            low=float(bound[LEAST]),
            high=float(bound[MOST]),
            note=f"{100 * self.level:g} % bounds: {self.rounded[LEAST]:.2f} to {self.rounded[MOST]:.2f}",
        )
        found = [
            PictureRow(
                ", ".join(filter(None, (row["group"], period(row["since"], row["until"])))),
                "found",
                **{name: row[name] for name in ("patients", "observed", "expected", "ratio")},
            )
            for row in plain_rows(self.significant.head(_SHOWN))
        ]
        return GroupPicture.of([everybody, anyone, *found])


# Largest number of significant subgroups in a sentence or figure.
_SHOWN = 5


def _outward(value: float, side: int, digits: int) -> float:
    """Round up (side 1) or down (-1), so that a bound stays one."""
    return side * float(np.ceil(side * value * 10**digits - 1e-9) / 10**digits)
