"""The picture of the groups: observed over expected events of each, on a log axis around 1, and counts per 100.

All patients come first, then groups with a problem, the others, groups too small to be judged, and subgroups that a
search found. It is drawn on the page, in notebooks, and as text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from drosurv.errors import ArgumentError
from drosurv.evaluation.attributes import EVERYONE
from drosurv.evaluation.curves_by_group import MANY_GROUPS
from drosurv.findings.verdict import PROBLEMS, FindingRow, briefly
from drosurv.findings.words import SUBGROUP, counts_sentence, per_hundred, who
from drosurv.presentation import axes_or_new, ratio_with_interval, written

if TYPE_CHECKING:
    from matplotlib.axes import Axes

State = Literal["all", "wrong", "right", "small", "found"]
_ORDER: tuple[State, ...] = ("all", "wrong", "right", "small", "found")
# The axis reaches from one over the first number to it at least, and to the second at most; because of subgroups that
# were found, which may have no event in a part of the follow-up, to the third at most.
_NARROWEST, _WIDEST, _WIDEST_FOUND = 2.0, 10.0, 5.0
_TICKS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
# Letters of the text: longest name, the rule in a shortened name at least, and the width of the axis.
_NAME, _LEAST_RULE, _STRIP = 32, 8, 21
_COLOURS = {"all": "black", "wrong": "C3", "right": "C0", "small": "0.6", "found": "C3"}


class PictureRow(NamedTuple):
    """A group: events observed and expected, their ratio with its interval (NaN where not known), and its state.

    If events are those of a part of the follow-up, `when` is this part in words, and the name ends with it.
    """

    who: str
    state: State
    patients: int
    observed: float
    expected: float
    ratio: float
    low: float = math.nan
    high: float = math.nan
    note: str = ""
    everybody: bool = False
    when: str = ""

    @property
    def words(self) -> str:
        """Events per 100 patients, with the note; only the note for groups that are not judged."""
        if self.state == "small" or not self.expected > 0:
            return self.note
        expected, observed = (per_hundred(events, self.patients) for events in (self.expected, self.observed))
        return f"per 100, {expected} expected, {observed} observed{self.note and f', {self.note}'}"

    @property
    def numbers(self) -> str:
        """The ratio with its interval."""
        if math.isnan(self.ratio) or self.state == "small":
            return ""
        return ratio_with_interval(self.ratio, self.low, self.end)

    @property
    def end(self) -> float:
        """Upper end of the interval: infinite if only the lower one is known, because JSON has no infinite numbers."""
        return math.inf if math.isnan(self.high) else self.high


def shortened(text: str, width: int, when: str = "") -> str:
    """Return a text of at most `width` letters, with dots for what is left out; a last part `when` is kept.

    >>> shortened("age is infants", 9), shortened("differ <= 2 and etype = 2, by 3 years", 28, "by 3 years")
    ('age is...', 'differ <= 2 a..., by 3 years')
    """
    if len(text) <= width:
        return text
    end = f"..., {when}" if when else "..."
    # If there is no room for the rule beside the time, the time is left out.
    end = end if len(end) <= width - _LEAST_RULE else "..."
    return f"{text[: width - len(end)]}{end}"


@dataclass(frozen=True)
class GroupPicture:
    """Rows of groups, in the order in which they are drawn."""

    rows: tuple[PictureRow, ...]

    @classmethod
    def of(cls, rows: Iterable[PictureRow]) -> GroupPicture:
        """Sort rows: by state, and groups with a problem by their distance from 1."""

        def place(row: PictureRow) -> tuple[int, float]:
            wrong = row.state == "wrong" and row.ratio > 0
            state: State = "all" if row.everybody else row.state
            return _ORDER.index(state), -abs(math.log(row.ratio)) if wrong else 0.0

        return cls(tuple(sorted(rows, key=place)))

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, Any]]) -> GroupPicture:
        """Return the picture of rows that were read from JSON, in their order; None is not known."""
        unknown = dict.fromkeys(("observed", "expected", "ratio", "low", "high"), math.nan)
        known = [{key: value for key, value in row.items() if value is not None} for row in records]
        return cls(tuple(PictureRow(**(unknown | row)) for row in known))

    @property
    def reach(self) -> float:
        """The upper end of the axis; the lower one is one over it."""
        wide = _NARROWEST
        for row in self.rows:
            most = {"small": _NARROWEST, "found": _WIDEST_FOUND}.get(row.state, _WIDEST)
            known = [abs(math.log(value)) for value in (row.ratio, row.low, row.high) if 0 < value < math.inf]
            wide = max(wide, min(1.1 * math.exp(max(known, default=0.0)), most))
        return wide

    @property
    def ticks(self) -> tuple[float, ...]:
        """Values that are written below the axis."""
        return tuple(tick for tick in _TICKS if 1 / self.reach <= tick <= self.reach)

    def counts(self, **words: Any) -> str:
        """Say how many of 100 patients had the event, in the group with the most serious problem or in everybody.

        Words are those of :func:`~drosurv.findings.words.counts_sentence`.
        """
        known = [row for row in self.rows if row.expected > 0]
        wrong = [row for row in known if row.state == "wrong"]
        if not known:
            return ""
        row = (wrong or known)[0]
        whom = "" if row.everybody else row.who
        return counts_sentence(row.patients, row.expected, row.observed, whom=whom, **words)

    def to_text(self) -> str:
        """Return the picture as lines of text; groups with a problem have an exclamation mark."""
        if not self.rows:
            return ""
        width = min(max(len(row.who) for row in self.rows), _NAME)
        axis = [" "] * _STRIP
        for tick in self.ticks:
            label, at = f"{tick:g}", self._column(tick)
            start = min(max(at - len(label) // 2, 0), _STRIP - len(label))
            if not "".join(axis[max(start - 1, 0) : start + len(label) + 1]).strip():
                axis[start : start + len(label)] = label
        lines = [
            f"{'':{width + 2}} patients  {'observed / expected':{_STRIP + 21}} per 100: expected, observed"
        ]
        for row in self.rows:
            mark = "! " if row.state in ("wrong", "found") else "  "
            patients = f"{row.patients:,}" if row.patients else ""
            end = row.note
            if row.expected > 0 and row.state != "small":
                counts = [per_hundred(events, row.patients) for events in (row.expected, row.observed)]
                end = ", ".join([*counts, *([row.note] if row.note else [])])
            name = shortened(row.who, width, row.when)
            lines.append(
                f"{mark}{name:{width}} {patients:>8}  {self._strip(row)}  {row.numbers:19} {end}".rstrip()
            )
        return "\n".join([*lines, f"{'':{width + 13}}{''.join(axis)}".rstrip()])

    def _column(self, value: float) -> int:
        share = (math.log(value) / math.log(self.reach) + 1) / 2
        return round(min(max(share, 0.0), 1.0) * (_STRIP - 1))

    def _strip(self, row: PictureRow) -> str:
        """Return the axis of one row: | at 1, o at the ratio, - over the interval; < and > beyond the axis."""
        cells = [" "] * _STRIP
        if row.low == row.low and row.state != "small":
            first, last = self._column(max(row.low, 1e-9)), self._column(max(row.end, 1e-9))
            cells[first : last + 1] = "-" * (last + 1 - first)
        cells[self._column(1.0)] = "|"
        if row.ratio == row.ratio and row.state != "small":
            inside = 1 / self.reach <= row.ratio <= self.reach
            mark = "o" if inside else "<" if row.ratio < 1 else ">"
            cells[self._column(max(row.ratio, 1e-9))] = mark
        return "".join(cells)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the picture; groups with a problem are red, small ones grey, found subgroups have open dots.

        Ratios beyond the axis are triangles at its end.
        """
        if not any(row.expected > 0 for row in self.rows):
            raise ArgumentError(
                "model", "there are no expected events to draw: the predictions have no survival curves."
            )
        longest = max(len(row.who) for row in self.rows)
        # Room for the names, beside that for the axis and the counts.
        ax = axes_or_new(ax, width=6.2 + 0.09 * longest, height=0.9 + 0.36 * max(len(self.rows), 2))
        top = self.reach
        ax.axvline(1.0, color="0.45", lw=0.8)
        for y, row in enumerate(self.rows):
            colour = _COLOURS[row.state]
            if row.low == row.low and row.state != "small":
                ax.plot([max(row.low, 1 / top), min(row.end, top)], [y, y], color=colour, lw=1.5)
            if row.ratio >= 0:
                face = "white" if row.state == "found" else colour
                mark = "<" if row.ratio < 1 / top else ">" if row.ratio > top else "o"
                ax.plot(min(max(row.ratio, 1 / top), top), y, mark, color=colour, markerfacecolor=face, ms=6)
            ax.text(
                1.02,
                y,
                row.words,
                transform=ax.get_yaxis_transform(),
                va="center",
                fontsize="small",
                color="0.45" if row.state == "small" else "black",
                parse_math=False,
            )
        names = [
            f"{row.who}  ({written(row.patients, 'count')})" if row.patients else row.who for row in self.rows
        ]
        # A dollar sign in a name does not start a formula.
        labels = ax.set_yticks(range(len(names)), names, parse_math=False)
        for tick, row in zip(labels, self.rows, strict=True):
            tick.label1.set_color(_COLOURS[row.state])
        ax.set_ylim(len(self.rows) - 0.4, -0.6)
        ax.set_xscale("log")
        ax.set_xlim(1 / top, top)
        ax.minorticks_off()
        ax.set_xticks(list(self.ticks), [f"{tick:g}" for tick in self.ticks])
        ax.set_xlabel("observed / expected events")
        return ax


def picture_of(groups: Sequence[Mapping[str, Any]], findings: Sequence[FindingRow] = ()) -> GroupPicture:
    """Return the picture of a group table; of attributes with many groups, only those with a problem.

    Problems that the ratio of a group does not show are named beside it.
    """
    problems = briefly(findings, but="level")
    counts = Counter(row["attribute"] for row in groups)
    rows = []
    for row in groups:
        attribute, everybody = row["attribute"], row["attribute"] == EVERYONE
        state: State = "all" if everybody else "right"
        if attribute == SUBGROUP:
            state = "found"
        elif row["status"] in PROBLEMS:
            state = "wrong"
        elif not row["judged"]:
            state = "small"
        if counts[attribute] > MANY_GROUPS and state not in ("wrong", "found"):
            continue
        rows.append(
            PictureRow(
                str(row["group"]) if attribute == SUBGROUP else who(attribute, row["group"]),
                state,
                int(row["patients"]),
                observed=_number(row["observed"]),
                expected=_number(row["expected"]),
                ratio=_number(row["ratio"]),
                low=_number(row["ratio_low"]),
                high=_number(row["ratio_high"]),
                note=str(row["why"] or problems.get((attribute, row["group"]), "")),
                everybody=everybody,
            )
        )
    return GroupPicture.of(rows)


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
