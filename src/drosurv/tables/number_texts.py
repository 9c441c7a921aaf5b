"""Numbers written as text: decimal marks, separators of thousands, percent signs, and codes that are no numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import pandas as pd

from drosurv.errors import ArgumentError, arg

# Numbers with leading zeros, or with more digits than a float holds, such as ids of patients.
CODE = r"[+-]?(?:0\d|\d{16})"
DATE = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}(?:[ T].*)?"
# Before pandas 3.1, `to_numeric` may return a neighbour of the float that is nearest to a text with many digits.
# Patients held out in a file would then not be recognised in their table, and would be trained on.
_TO_NUMERIC_IS_EXACT = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
_POWER = r"(?:[eE][+-]?\d+)?"
_NUMBER = rf"[+-]?\d*[.,]?\d[\d.,]*{_POWER}"
# Thousands are also separated by spaces, of which there are three, and in Switzerland by apostrophes.
_SPACES = " \u00a0\u202f'’"
_SPACED = rf"[+-]?[1-9]\d{{0,2}}(?:[{_SPACES}]\d{{3}})+(?:[.,]\d+)?"
_OTHER = {",": ".", ".": ","}
# A number that shows its decimal mark, by mark: "1.5" and "1,234.5", but not "1.234", which may be 1234.
_SURE = {
    mark: re.compile(
        rf"[+-]?(?:(?:\d+|[1-9]\d{{0,2}}(?:{re.escape(other)}\d{{3}})+){re.escape(mark)}\d+{_POWER}"
        rf"|{re.escape(mark)}\d+{_POWER}|[1-9]\d{{0,2}}(?:{re.escape(other)}\d{{3}}){{2,}})"
    )
    for mark, other in _OTHER.items()
}
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}")
_ANY_NUMBER, _IS_SPACED, _SPACE = re.compile(_NUMBER), re.compile(_SPACED), re.compile(rf"[{_SPACES}]")
_WHOLE = re.compile(r"[+-]?\d+")
# Most numbers, which have no signs to remove.
_PLAIN = re.compile(r"-?\d+\.?\d*")
# With so many different whole numbers, all below 1,000, a mark before three digits separates thousands: it would be
# a strange accident that numbers with three decimals are so often whole.
_FEWEST_WHOLE = 3
# A column with a smaller share of numbers is no column of numbers.
_SMALLEST_SHARE = 1 / 3


def like_number(text: str) -> bool:
    """Whether a text is a number, in whatever way it is written.

    Examples
    --------
    >>> [like_number(text) for text in ("1,5", "36 %", "1.234.567", "1.2.2010", "<5")]
    [True, True, True, False, False]
    """
    plain = _without_signs(text.strip())
    return _ANY_NUMBER.fullmatch(plain) is not None and re.fullmatch(DATE, plain) is None


def _without_signs(text: str) -> str:
    """Return a number without a percent sign and spaces between thousands, its minus a hyphen."""
    plain = text.removesuffix("%").rstrip().replace("−", "-")
    return _SPACE.sub("", plain) if _IS_SPACED.fullmatch(plain) else plain


def decimal_mark(columns: Iterable[Sequence[str]], separator: str) -> str | None:
    r"""Return the decimal mark of a table from the texts of its columns; None if they do not show it.

    Where no number shows it, "1.234" is taken as a decimal number in files that do not separate fields by semicolons.

    Examples
    --------
    >>> decimal_mark([["1,5", "2"]], ";"), decimal_mark([["1,204", "365", "12", "45"]], "\t")
    (',', '.')
    >>> decimal_mark([["1,204", "2,531"]], "\t") is None
    True
    """
    found = [_mark_of(column) for column in columns]
    commas, points = found.count(","), found.count(".")
    if commas or points:
        return "," if commas > points else "."
    open_marks = {mark for mark in found if mark is not None and mark.startswith("either")}
    asked = "either ," in open_marks or ("either ." in open_marks and separator == ";")
    return None if asked else "."


def _mark_of(texts: Sequence[str]) -> str | None:
    """Return the decimal mark of a column, "either" and the mark if it may separate thousands, None if it has none."""
    counts = Counter(filter(None, texts))
    sure, either, whole, numbers, dated = dict.fromkeys(_SURE, 0), [], set(), 0, False
    for text, times in counts.items():
        plain = text if _PLAIN.fullmatch(text) else _without_signs(text)
        if _WHOLE.fullmatch(plain):
            whole.add(int(plain))
        elif match := _EITHER.fullmatch(plain):
            either.append(match[1])
        elif mark := next((mark for mark, form in _SURE.items() if form.fullmatch(plain)), None):
            sure[mark] += times
        else:
            dated = dated or re.fullmatch(DATE, plain) is not None
            continue
        numbers += times
    if dated or numbers < _SMALLEST_SHARE * counts.total():
        return None
    if any(sure.values()):
        return "," if sure[","] > sure["."] else "."
    if not either:
        return None
    mark = either[0]
    if len(whole) >= _FEWEST_WHOLE and max(map(abs, whole)) < 1000 and len(set(either)) == 1:
        return _OTHER[mark]
    return f"either {mark}"


def number_column(texts: pd.Series[str], decimal: str | None) -> pd.Series[float] | None:
    """Return the numbers of a column of texts, NaN where a text is missing; None if it is not one of numbers.

    With `decimal` None, a column whose numbers may have two meanings is an error that asks for it.
    """
    known = texts.dropna()
    # Most columns of texts are known by their first one; pandas' search in all of them takes milliseconds.
    if len(known) == 0 or not _ANY_NUMBER.fullmatch(_without_signs(known.iloc[0])):
        return None
    if known.str.match(CODE).any():
        return None
    percent = known.str.endswith("%")
    if percent.any() and not percent.all():
        # Such as 36 % beside 0.36.
        return None
    known = known.map(_without_signs)
    if not known.str.fullmatch(_NUMBER).all() or known.str.fullmatch(DATE).any():
        return None
    plain = _with_point(known, decimal or _own_mark(known))
    return None if plain is None else nearest_floats(plain.reindex(texts.index))


def _own_mark(known: pd.Series[str]) -> str:
    mark = _mark_of(known.tolist()) or "."
    if not mark.startswith("either"):
        return mark
    example = next(text for text in known if _EITHER.fullmatch(text))
    held = mark[-1]
    as_thousands, as_decimal = example.replace(held, ""), example.replace(held, ".")
    raise ArgumentError(
        "decimal",
        f"column {known.name!r} holds numbers such as {example!r}, which may be {as_thousands} or {as_decimal}: pass "
        f"{arg('decimal', _OTHER[held])} if it is {as_thousands}, {arg('decimal', held)} if it is {as_decimal}.",
    )


def _with_point(text: pd.Series[str], decimal: str) -> pd.Series[str] | None:
    """Return numbers with a decimal point and without separators of thousands; None if a comma is neither mark."""
    other = _OTHER.get(decimal, ".")
    mark, thousands = re.escape(decimal), re.escape(other)
    marked = text[text.str.contains(other, regex=False)]
    fits = marked.str.fullmatch(rf"[+-]?[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+(?:{mark}\d+)?")
    if not fits.all():
        if decimal == ".":
            return None
        raise ArgumentError(
            "decimal",
            f"column {text.name!r} holds {', '.join(map(repr, marked[~fits].unique()[:3].tolist()))}, with a point "
            f"that does not separate thousands, although {arg('decimal', decimal)}: write all numbers with the same "
            "decimal mark.",
        )
    return text.str.replace(other, "", regex=False).str.replace(decimal, ".", regex=False)


def nearest_floats(text: pd.Series[str]) -> pd.Series[float]:
    """Return the float nearest to each text, NaN where a text is no number."""
    numbers = pd.to_numeric(text, errors="coerce").astype(float)
    if not _TO_NUMERIC_IS_EXACT:
        exact = (text.str.len() <= 15) & numbers.abs().between(1e-9, 1e22)
        again = numbers.notna() & ~exact
        numbers[again] = text[again].astype(float)
    return numbers
