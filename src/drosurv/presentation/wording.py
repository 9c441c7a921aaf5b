"""Numbers, intervals, p-values, times and names of groups as text."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["text", "count", "share", "points", "signed_points", "value", "p", "time"]
NOTHING = "–"
# Larger numbers are written as powers of ten.
HUGE = 1e9
# So are smaller ones.
_TINY = 1e-6
# Smaller p-values are written as "below 0.001".
_SMALLEST_P = 0.001
# Smaller numbers are rounding errors of 0.
_ZERO = 1e-12
# Larger ratios of events are written as "more than 1,000".
_LARGEST_RATIO = 1000
# Significant digits of numbers in files.
_DIGITS = 6
# Days of each unit of time.
DAYS = {"days": 1.0, "weeks": 7.0, "months": 30.4375, "years": 365.25}
_UNITS = {
    "minutes": "minutes?",
    "hours": "hours?|stunden?|heures?",
    "days": "days?|tagen?|jours?",
    "weeks": "weeks?|wochen?|semaines?",
    "months": "months?|monaten?|mois",
    "years": "years?|jahren?|ans|années?",
}
_UNIT = re.compile(
    "(?<![a-z])(?:" + "|".join(f"(?P<{unit}>{words})" for unit, words in _UNITS.items()) + ")(?![a-z])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Statement:
    """A sentence of a summary, and whether it is a concern that a reader should act on.

    The code says what it is about, for programs; codes do not change between versions.
    """

    code: str
    text: str
    concern: bool = False


def written(value: Any, kind: Kind = "value", *, beside: Iterable[Any] = ()) -> str:
    """Return a value as text; a dash if it is missing, and a text unchanged.

    Points are percentage points; "signed_points" have a sign. Times are written without their unit. The value and all
    values `beside` it, such as its interval, have the same number of decimals.

    >>> [written(0.1234), written(0.00123), written(0.1234, "share"), written(1234, "count")]
    ['0.123', '0.00123', '12.3 %', '1,234']
    """
    if is_missing(value):
        return NOTHING
    if kind == "text" or isinstance(value, str):
        return str(value)
    together = [value, *(other for other in beside if not is_missing(other))]
    return _number(float(value), kind, max(abs(float(number)) for number in together))


def counted(n: int, what: str) -> str:
    """Return a number of things, in the singular or plural.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def counted_patients(patients: int, rows: int = 0, clusters: int = 0, clusters_name: str = "") -> str:
    """Return a number of patients in words, with the number of their rows if larger, and of their clusters if any.

    >>> counted_patients(3), counted_patients(1200, rows=1300), counted_patients(300, 300, 100, "litter")
    ('3 patients', '1,300 rows of 1,200 patients', '300 patients in 100 clusters (litter)')
    """
    who = counted(patients, "patient")
    who = f"{rows:,} rows of {who}" if rows > patients else who
    where = f" in {counted(clusters, 'cluster')}" if clusters else ""
    return f"{who}{where}" + (f" ({clusters_name})" if clusters and clusters_name else "")


def with_interval(value: Any, low: Any, high: Any, kind: Kind = "value", *, right: float = 0.0) -> str:
    """Return a value and, if it is known, its interval, all with the same number of decimals.

    An end that would be rounded to the `right` value has more, which show on which side of it the end is.

    >>> with_interval(0.712, 0.6904, 0.733), with_interval(0.1, 0.05, 0.15, "share")
    ('0.712 (0.690 to 0.733)', '10.0 % (5.0 to 15.0 %)')
    >>> with_interval(0.011, -0.0003, 0.022), with_interval(0.45, 0.4, 0.4998, right=0.5)
    ('0.011 (−0.0003 to 0.022)', '0.450 (0.400 to 0.4998)')
    """
    interval = interval_text(low, high, kind, beside=value, right=right)
    return f"{written(value, kind, beside=(low, high))} ({interval})" if interval else written(value, kind)


def interval_text(
    low: Any, high: Any, kind: Kind = "value", *, beside: Any = 0.0, size: float = 0.0, right: float = 0.0
) -> str:
    """Return an interval as text, also without one end (infinity); empty if an end is not known, or both are infinite.

    It has the decimals of the value `beside` it, or of a number of the given size if that is larger; more for an end
    near the `right` value, as in :func:`with_interval`.

    >>> interval_text(14.0849, math.inf), interval_text(-math.inf, 0.27), interval_text(math.nan, 1.0)
    ('14.085 or more', '0.270 or less', '')
    """

    def end(value: Any) -> str:
        shown = written(value, kind, beside=(low, high, beside, size))
        is_right = kind == "value" and shown == written(right, beside=(low, high, beside, size))
        return _apart(value, right, shown) if is_right else shown

    if is_missing(beside):
        return ""
    if low == -math.inf and not is_missing(high):
        return f"{end(high)} or less"
    if high == math.inf and not is_missing(low):
        return f"{end(low)} or more"
    return "" if is_missing(low) or is_missing(high) else f"{end(low).removesuffix(' %')} to {end(high)}"


def _apart(value: float, right: float, shown: str) -> str:
    """Return a value that is `shown` as if it were the right one with the first digit in which the two differ."""
    distance = abs(value - right)
    if distance < _TINY:
        return shown
    return _fixed(value, -math.floor(math.log10(distance))).replace("-", "−")


def as_sentence(text: str) -> str:
    """Return a message as a sentence, with a capital and one full stop.

    >>> as_sentence("column 'age' is constant"), as_sentence("Nothing was found.")
    ("Column 'age' is constant.", 'Nothing was found.')
    """
    return f"{first_upper(text).rstrip('.')}."


def ratio_text(value: float) -> str:
    """Return a ratio of events for a sentence; beyond 1,000 only that it is larger, since its size has no meaning.

    >>> ratio_text(1.204), ratio_text(4e8), ratio_text(float("inf"))
    ('1.20', 'more than 1,000', 'more than 1,000')
    """
    return f"more than {_LARGEST_RATIO:,}" if value > _LARGEST_RATIO else f"{value:.2f}".replace("-", "−")


def ratio_with_interval(value: float, low: float, high: float) -> str:
    """Return a ratio of events and its interval; without it if it is not known or wholly beyond 1,000.

    An end that two decimals would round to 1 has more, which show on which side of 1 it is.

    >>> ratio_with_interval(1.14, 1.003, 1.28), ratio_with_interval(1.14, 0.9996, 1.28)
    ('1.14 (1.003 to 1.28)', '1.14 (0.9996 to 1.28)')
    >>> ratio_with_interval(2.0, 1.5, 3e4), ratio_with_interval(2.0, 1.5, math.inf)
    ('2.00 (1.50 to more than 1,000)', '2.00 (1.50 or more)')
    >>> ratio_with_interval(-4.9, -math.inf, 0.27)
    '−4.90 (0.27 or less)'
    >>> ratio_with_interval(4e8, 1e8, 1e9)
    'more than 1,000'
    """
    if math.isnan(low) or low > _LARGEST_RATIO or (low, high) == (-math.inf, math.inf):
        return ratio_text(value)
    if low == -math.inf:
        return f"{ratio_text(value)} ({end_of_ratio(high)} or less)"
    end = f"to {end_of_ratio(high)}" if math.isfinite(high) else "or more"
    return f"{ratio_text(value)} ({end_of_ratio(low)} {end})"


def end_of_ratio(end: float) -> str:
    """Return an end of the interval of a ratio, with more than two decimals if they would round it to 1."""
    shown = ratio_text(end)
    return _apart(end, 1.0, shown) if shown == "1.00" else shown


def p_text(p: float) -> str:
    """Return a p-value for a sentence.

    >>> p_text(0.0312), p_text(0.00001)
    ('p = 0.031', 'p below 0.001')
    """
    shown = written(p, "p")
    return f"p {'' if p < _SMALLEST_P else '= '}{shown}"


def moment(time: Any, unit: str = "") -> str:
    """Return a time with its unit, "2,255 days", or "time 2,255" if the unit is not known.

    >>> moment(2255.0, "days"), moment(1.0, "years"), moment(2255.0)
    ('2,255 days', '1 year', 'time 2,255')
    """
    number = written(time, "time")
    if not unit:
        return f"time {number}"
    return f"{number} {unit.removesuffix('s') if number == '1' else unit}"


def time_span(since: Any, until: Any, unit: str = "") -> str:
    """Return a part of the follow-up in words.

    >>> time_span(2.0, 3.0, "years"), time_span(38.4, 85.4)
    ('from 2 to 3 years', 'from time 38.4 to 85.4')
    """
    if unit:
        return f"from {written(since, 'time')} to {moment(until, unit)}"
    return f"from {moment(since)} to {written(until, 'time')}"


def in_years(time: float, unit: str) -> str:
    """Return a time in years, in brackets, if it is two years or more and not in years already; else an empty text.

    >>> in_years(1592.0, "days"), in_years(60.0, "months"), in_years(300.0, "days"), in_years(5.0, "years")
    (' (4.4 years)', ' (5.0 years)', '', '')
    """
    years = time * DAYS.get(unit, 0.0) / DAYS["years"]
    return f" ({years:.1f} years)" if years >= 2 and unit != "years" else ""


def unit_in(name: str) -> str:
    """Return the unit of times in a column's name, in English, German or French; empty if there is none.

    >>> unit_in("survival_months"), unit_in("Überlebenszeit (Tage)"), unit_in("dtime")
    ('months', 'days', '')
    """
    found = _UNIT.search(name)
    return "" if found is None else str(found.lastgroup)


def plain(value: Any, digits: int | None = _DIGITS) -> Any:
    """Return a value that JSON can hold: a Python number, a string, or None for missing and infinite numbers.

    Numbers are rounded to six significant digits; `digits` None keeps all.
    """
    if type(value) in (str, int, bool):
        return value
    if type(value) is not float and hasattr(value, "tolist"):
        value = value.tolist()
    if is_missing(value):
        return None
    if isinstance(value, float):
        return value if digits is None else float(f"{value:.{digits}g}")
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(entry, digits) for entry in value]
    if isinstance(value, Mapping):
        return {str(key): plain(entry, digits) for key, entry in value.items()}
    return str(value)


def complement(share: float | None) -> float | None:
    """Return 1 - share, or None for an unknown share."""
    return None if share is None else 1.0 - share


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, infinite, or pandas' missing value."""
    if value is None:
        return True
    if isinstance(value, float):
        return not math.isfinite(value)
    return type(value).__name__ in ("NAType", "NaTType")


def _number(value: float, kind: Kind, largest: float) -> str:
    """Return the value with the decimals that suit the largest of the numbers written together."""
    if kind == "count":
        text = f"{value:,.0f}"
    elif kind == "share":
        text = f"{_fixed(100 * value, 1)} %"
    elif kind in ("points", "signed_points"):
        text = _fixed(100 * value, 1)
        text = f"+{text}" if kind == "signed_points" and float(text.replace(",", "")) > 0 else text
    elif kind == "p":
        text = f"below {_SMALLEST_P}" if value < _SMALLEST_P else f"{value:.3f}"
        # Usually, tests reject below 0.05.
        text = _apart(value, 0.05, text) if text == "0.050" else text
    elif kind == "time":
        text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    else:
        text = _decimal(value, largest)
    return text.replace("-", "−")


def _decimal(value: float, largest: float) -> str:
    if largest >= HUGE:
        return f"{value:.3g}"
    if largest >= 1000:
        return f"{value:,.0f}"
    if largest >= 0.01 or largest < _ZERO:
        return _fixed(value, 3)
    if largest < _TINY:
        return f"{value:.3g}" if abs(value) >= _ZERO else "0"
    # Three digits of the largest number: 0.000015 beside 0.000663, not 1.47e-05.
    return _fixed(value, 2 - math.floor(math.log10(largest))).rstrip("0").rstrip(".")


def _fixed(value: float, digits: int) -> str:
    """Return a number with so many decimals; a negative number that is rounded to 0 has no sign."""
    return f"{round(value, digits) + 0.0:,.{digits}f}"


_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)"
_CUT = re.compile(rf"(?P<column>.+?)\s*[<>]=?\s*(?P<cut>{_NUMBER})")
_SIDE = re.compile(rf"(?P<sign><=|>=|<|>)\s*(?P<cut>{_NUMBER})")
# Labels of the groups of a cut: one of its sides, missing, or none.
_OF_CUT = re.compile(rf"(?:{_SIDE.pattern}|missing)?")
_WORDS = {">": "over {}", "<=": "{} or below", "<": "under {}", ">=": "{} or over"}
# Between the attributes, and the labels, of an intersection; between the two groups of a gap.
AND, VERSUS = " & ", " vs "


def attribute_name(attribute: str, group: str = "") -> str:
    """Return the name of an attribute: the column, if it is a cut of one.

    If the group, or a group of a gap, is not a side of the cut but its truth value, the name is the cut itself.

    >>> attribute_name("age>65"), attribute_name("sex & age>65"), attribute_name("age>65", "True")
    ('age', 'sex & age', 'age>65')
    """
    groups = [label.split(AND) for label in group.split(VERSUS)]
    names = []
    for k, part in enumerate(attribute.split(AND)):
        cut = _CUT.fullmatch(part)
        sides = all(_OF_CUT.fullmatch(labels[k]) for labels in groups if k < len(labels))
        names.append(cut["column"] if cut and sides else part)
    return AND.join(names)


def headings(groups: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the headings of attributes: the column; the cut itself if a column has several cuts.

    >>> headings({"age>65": [">65", "<=65"], "sex": ["f", "m"]}), headings({"age>65": [">65"], "age>80": [">80"]})
    ({'age>65': 'age', 'sex': 'sex'}, {'age>65': 'age>65', 'age>80': 'age>80'})
    """
    short = {
        attribute: attribute_name(attribute, VERSUS.join(labels)) for attribute, labels in groups.items()
    }
    shared = Counter(short.values())
    return {attribute: name if shared[name] == 1 else attribute for attribute, name in short.items()}


def label_name(attribute: str, group: str) -> str:
    """Return the name of a group, or of the two groups of a gap, below the name of their attribute.

    >>> label_name("age>65", ">65"), label_name("sex", "f"), label_name("age>65", ">65 vs <=65")
    ('over 65', 'f', 'over 65 vs 65 or below')
    """
    for between in (VERSUS, AND):
        if between in group:
            return between.join(label_name(attribute, part) for part in group.split(between))
    side = _SIDE.fullmatch(group)
    return group if side is None else _WORDS[side["sign"]].format(side["cut"])


def group_name(attribute: str, group: str) -> str:
    """Return the name of a group with that of its attribute.

    >>> group_name("age>65", ">65"), group_name("diabetes", "1"), group_name("sex & age>65", "f & <=65")
    ('age over 65', 'diabetes = 1', 'sex f & age 65 or below')
    >>> group_name("age>65", "True"), group_name("hospital", "County Hospital")
    ('age>65 True', 'County Hospital')
    """
    names, labels = attribute.split(AND), group.split(AND)
    if len(names) == len(labels) > 1:
        return AND.join(map(group_name, names, labels))
    if group != attribute and re.search(rf"(?<!\w){re.escape(attribute)}(?!\w)", group, re.IGNORECASE):
        return group
    # Without "=" a number would look like a part of the name, or a count.
    sign = "= " if re.fullmatch(_NUMBER, group) else ""
    return f"{attribute_name(attribute, group)} {sign}{label_name(attribute, group)}"


def listing(names: Sequence[str], most: int = 8) -> str:
    """List names, the last after "and"; those beyond `most` are only counted.

    >>> listing(["a", "b", "c"]), listing(["a", "b", "c"], most=1)
    ('a, b and c', 'a and 2 others')
    """
    shown = list(names[:most])
    if len(names) > most:
        left = len(names) - most
        shown = [*shown, f"{left} {'other' if left == 1 else 'others'}"]
    *others, last = shown or [""]
    return f"{', '.join(others)} and {last}" if others else last


def cause_in_words(cause: int | None, names: Sequence[str] = ()) -> str:
    """Return a cause, None for any, for a sentence: its name in quotation marks, or its number without `names`.

    >>> cause_in_words(2, ["cancer", "other death"]), cause_in_words(2), cause_in_words(None, ["cancer", "other"])
    ("'other death'", 'cause 2', "any cause ('cancer' and 'other')")
    """
    if cause is None:
        return f"any cause ({listing(list(map(repr, names)))})" if names else "any cause"
    return repr(names[cause - 1]) if cause <= len(names) else cause_title(cause)


def cause_label(cause: int, names: Sequence[str] = ()) -> int | str:
    """Return a cause for a cell of a table, or a part of a column's name: its name, or its number.

    >>> cause_label(2, ["cancer", "other death"]), cause_label(2)
    ('other death', 2)
    """
    return names[cause - 1] if cause <= len(names) else cause


def cause_title(label: int | str) -> str:
    """Return the title of a cause from its label.

    >>> cause_title("other death"), cause_title(2)
    ('other death', 'cause 2')
    """
    return label if isinstance(label, str) else f"cause {label}"


def first_upper(text: str) -> str:
    """Return a text with its first letter in upper case and the rest unchanged."""
    return text[:1].upper() + text[1:]
