"""The picture of the groups: observed over predicted risk of each by a time on a log axis, and of 100 patients.

All patients come first, then groups with a problem, the others, groups too small to be judged, and subgroups that a
search found. Where no risks are known, events during follow-up are compared. It is drawn on the page, in notebooks, and
as text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from drosurv.errors import ArgumentError
from drosurv.judging.verdict import PROBLEMS, FindingRow, briefly
from drosurv.judging.words import SUBGROUP, compared_events, events_sentence, of_hundred, risk_sentence, who
from drosurv.patients.groups import EVERYONE
from drosurv.presentation import axes_or_new, ratio_with_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Attributes with more groups, such as hospitals, are not drawn group by group.
MANY_GROUPS = 8

State = Literal["all", "wrong", "right", "small", "found"]
_ORDER: tuple[State, ...] = ("all", "wrong", "right", "small", "found")
# The axis reaches from one over the first number to it at least, and to the second at most; because of subgroups that
# were found, which may have no event in a part of the follow-up, to the third at most.
_NARROWEST, _WIDEST, _WIDEST_FOUND = 2.0, 10.0, 5.0
_TICKS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
# Letters of the text: longest name, and the width of the axis.
_NAME, _STRIP = 32, 21
_RATIO = {"ratio": "ratio", "low": "ratio_low", "high": "ratio_high"}
_COLOURS = {"all": "black", "wrong": "C3", "right": "C0", "small": "0.6", "found": "C3"}


class PictureRow(NamedTuple):
    """A group: its ratio with its interval (NaN where not known), what it compares, and its state.

    With a time (`by`), the ratio is that of the observed `risk`, with its own interval, and the mean `predicted` risk
    by then; else that of events observed and expected.
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
    by: str = ""
    predicted: float = math.nan
    risk: float = math.nan
    risk_low: float = math.nan
    risk_high: float = math.nan

    @property
    def compared(self) -> str:
        """What was observed and expected, of 100 patients or in events; empty for groups that are not judged."""
        if self.state == "small":
            return ""
        if self.by:
            had, expected = of_hundred(self.risk, self.predicted, self.risk_low, self.risk_high)
            return f"{had} of 100, {expected} expected"
        return compared_events(self.observed, self.expected) if self.expected > 0 else ""

    @property
    def words(self) -> str:
        """What was observed and expected, with the note; only the note for groups that are not judged."""
        return ", ".join(filter(None, (self.compared, self.note)))

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


def shortened(text: str, width: int) -> str:
    """Return a text of at most `width` letters, with dots for what is left out.

    >>> shortened("age is infants", 9)
    'age is...'
    """
    return text if len(text) <= width else f"{text[: width - 3]}..."


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
        unknown = dict.fromkeys(("observed", "expected", "ratio"), math.nan)
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

    @property
    def by(self) -> str:
        """The time by which risks are compared; empty if events are."""
        return next((row.by for row in self.rows if row.by), "")

    @property
    def compares(self) -> str:
        """What the axis shows."""
        return f"observed / predicted risk by {self.by}" if self.by else "observed / expected events"

    @property
    def axis_label(self) -> str:
        """What the axis shows, and whether intervals are adjusted: those of events are, those of risks are not."""
        return f"{self.compares}, intervals {'not adjusted' if self.by else 'adjusted'}"

    def counts(self, event: str = "the event", until: str = "") -> str:
        """Say what was observed and expected `until` a time, in the group with the most serious problem or all."""
        known = [row for row in self.rows if row.compared and row.state != "found"]
        wrong = [row for row in known if row.state == "wrong"]
        if not known:
            return ""
        row = (wrong or known)[0]
        whom = "" if row.everybody else row.who
        if not row.by:
            return events_sentence(row.observed, row.expected, whom=whom, by=until)
        ends = row.predicted, row.risk, row.risk_low, row.risk_high
        return risk_sentence(*ends, by=row.by, whom=whom, event=event)

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
        lines = [f"{'':{width + 2}} patients  {self.axis_label}".rstrip()]
        for row in self.rows:
            mark = "! " if row.state in ("wrong", "found") else "  "
            patients, name = f"{row.patients:,}" if row.patients else "", shortened(row.who, width)
            line = f"{mark}{name:{width}} {patients:>8}  {self._strip(row)}  {row.numbers:19} {row.words}"
            lines.append(line.rstrip())
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
        """Draw the picture: problems are red, small groups grey, found subgroups open, far ratios triangles."""
        if not any(row.compared for row in self.rows):
            reasons = [row.note for row in self.rows if row.expected > 0]
            raise ArgumentError(
                "model",
                f"nobody is judged, so that there is nothing to draw: {reasons[0]}."
                if reasons
                else "there are no expected events to draw: the predictions have no survival curves.",
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
        names = [f"{row.who}  ({row.patients:,})" if row.patients else row.who for row in self.rows]
        # A dollar sign in a name does not start a formula.
        labels = ax.set_yticks(range(len(names)), names, parse_math=False)
        for tick, row in zip(labels, self.rows, strict=True):
            tick.label1.set_color(_COLOURS[row.state])
        ax.set_ylim(len(self.rows) - 0.4, -0.6)
        ax.set_xscale("log")
        ax.set_xlim(1 / top, top)
        ax.minorticks_off()
        ax.set_xticks(list(self.ticks), [f"{tick:g}" for tick in self.ticks])
        ax.set_xlabel(self.axis_label)
        return ax


def picture_of(
    groups: Sequence[Mapping[str, Any]],
    findings: Sequence[FindingRow] = (),
    risks: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
    by: str = "",
) -> GroupPicture:
    """Return the picture of a group table; of attributes with many groups, only those with a problem.

    Problems that the ratio of a group does not show are named beside it. Where risks are compared, a wrong number of
    events is one of them if the interval of the ratio of risks includes 1. `risks` are the rows of a table of times for
    the time `by`, by attribute and group; without them events are compared.
    """
    problems = briefly(findings, but="level")
    levels = [row for row in findings if row.question == "level" and row.status in PROBLEMS]
    wrong = {(row.attribute, row.group): row for row in levels}
    counts = Counter(row["attribute"] for row in groups)
    rows = []
    for row in groups:
        key = attribute, group = row["attribute"], row["group"]
        everybody = attribute == EVERYONE
        state: State = "all" if everybody else "right"
        if attribute == SUBGROUP:
            state = "found"
        elif row["status"] in PROBLEMS:
            state = "wrong"
        elif not row["judged"]:
            state = "small"
        if counts[attribute] > MANY_GROUPS and state not in ("wrong", "found"):
            continue
        shown: dict[str, Any] = {name: _number(row[name]) for name in ("observed", "expected")} | _ratio(row)
        if risks:
            shown |= beside_risk(risks.get(key), by)
        named = [problems[key]] if key in problems else []
        if risks and key in wrong and shown["low"] <= 1 <= shown["high"]:
            until = "during follow-up" if math.isnan(wrong[key].time) else "by the last predicted time"
            named.insert(0, f"wrong number of events {until}")
        shown["note"] = str(row["why"] or "; ".join(named) or shown.get("note", ""))
        name = str(group) if attribute == SUBGROUP else who(attribute, group)
        rows.append(PictureRow(name, state, int(row["patients"]), **shown, everybody=everybody))
    return GroupPicture.of(rows)


def beside_risk(row: Mapping[str, Any] | None, by: str) -> dict[str, Any]:
    """Return what a picture of risks shows of a row of the table of times, which has the time `by`."""
    if row is None or row["observed"] is None:
        # On an axis of risks there is no ratio of events.
        unknown = dict.fromkeys(("ratio", "low", "high", "expected"), math.nan)
        return unknown | {"note": f"not followed until {by}"}
    risk = {"risk": row["observed"]} | {f"risk_{end}": _number(row[end]) for end in ("low", "high")}
    return {"by": by, "predicted": row["predicted"], **risk, **_ratio(row)}


def _ratio(row: Mapping[str, Any]) -> dict[str, float]:
    return {name: _number(row[key]) for name, key in _RATIO.items()}


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
