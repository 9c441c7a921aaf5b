"""Numbers written as text: one grammar for each decimal mark, and the mark that the texts of a table show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache

from drosurv.errors import ArgumentError, arg

DATE = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}(?:[ T].*)?"
# Numbers with leading zeros, or with more digits than a float holds, such as ids of patients.
_CODE = re.compile(r"[+-]?(?:0\d|\d{16})")
_POWER = r"(?:[eE][+-]?\d+)?"
_OTHER = {",": ".", ".": ","}
_PERCENT = ("%", "％")
# Signs of other alphabets and typesetters. Thousands are also separated by spaces, and in Switzerland by apostrophes.
_SIGNS = str.maketrans("−－＋．，％／٫٬\u00a0\u202f\u2009’", "--+.,%/.,   '")
# Characters of plain numbers in lines, lines that are codes, and one whose point cannot separate thousands.
_PLAIN, _CODES = b"0123456789.+-eE\n", re.compile(r"\n[+-]?(?:0\d|\d{16})")
_SURE_POINT = re.compile(r"\n(?![+-]?[1-9]\d{0,2}\.\d{3}\n)[+-]?\d*\.\d")
# What a person may have meant as a number, with whatever marks.
_LIKE_NUMBER = re.compile(rf"[+-]?\d*[.,]?\d[\d.,]*{_POWER}|[+-]?[1-9]\d{{0,2}}(?:[ ']\d{{3}})+(?:[.,]\d+)?")
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}")
_WHOLE = re.compile(r"[+-]?\d+")
# With so many different whole numbers, all below 1,000, a mark before three digits separates thousands: it would be
# a strange accident that numbers with three decimals are so often whole.
_FEWEST_WHOLE = 3
# A column with a smaller share of numbers is no column of numbers.
_SMALLEST_SHARE = 1 / 3


@cache
def _grammar(mark: str) -> re.Pattern[str]:
    """Return the form of numbers with a decimal mark; thousands are separated by the other mark, or by spaces."""
    decimal, other = re.escape(mark), re.escape(_OTHER.get(mark, "."))
    return re.compile(
        rf"[+-]?(?:(?:\d+(?:{decimal}\d*)?|{decimal}\d+){_POWER}"
        rf"|[1-9]\d{{0,2}}(?:(?:{other}\d{{3}})+|(?:[ ']\d{{3}})+)(?:{decimal}\d+)?|(?i:inf(?:inity)?))"
    )


def in_ascii(text: str) -> str:
    """Return a number or a date with the digits 0 to 9 and plain signs, and without a percent sign."""
    if not text.isascii():
        text = re.sub(r"\d", lambda digit: str(int(digit[0])), text).translate(_SIGNS)
    return text[:-1].rstrip() if text.endswith("%") else text


def _value(plain: str, mark: str) -> float | None:
    """Return the number of a text in ASCII; None if it is none with this decimal mark."""
    if not _grammar(mark).fullmatch(plain):
        return None
    for sign in (" ", "'", _OTHER.get(mark, ".")):
        plain = plain.replace(sign, "")
    return float(plain.replace(mark, "."))


def number(text: str) -> float | None:
    """Return the number that a text shows in itself; None if it is none, or may be another with another decimal mark.

    Examples
    --------
    >>> [number(text) for text in ("-1.5", "１２", "٣٫٥", "1,234", "1,5", "36 %", "n/k")]
    [-1.5, 12.0, 3.5, None, None, None, None]
    """
    plain = in_ascii(text.strip())
    # A percent sign may stand beside numbers without one, such as 36 % beside 0.36.
    return None if "," in plain or text.rstrip().endswith(_PERCENT) else _value(plain, ".")


def like_number(text: str) -> bool:
    """Whether a text is a number, in whatever way it is written.

    Examples
    --------
    >>> [like_number(text) for text in ("1,5", "36 %", "1.234.567", "1.2.2010", "<5")]
    [True, True, True, False, False]
    """
    plain = in_ascii(text.strip())
    return _LIKE_NUMBER.fullmatch(plain) is not None and re.fullmatch(DATE, plain) is None


def numbers(texts: Sequence[str], decimal: str | None, name: str) -> list[float] | None:
    """Return the numbers of the different texts of a column; None if it is not one of numbers.

    With `decimal` None, a column whose numbers may have two meanings is an error that asks for it.
    """
    plain = list(map(in_ascii, texts))
    # Such as 36 % beside 0.36.
    some_percent = len({text.endswith(_PERCENT) for text in texts}) > 1
    if some_percent or any(map(_CODE.match, plain)):
        return None
    mark = decimal or mark_of((text, 1) for text in plain) or "."
    if mark.startswith("either"):
        raise _two_meanings(plain, name)
    values = [_value(text, mark) for text in plain]
    found = [value for value in values if value is not None]
    if len(found) == len(values):
        return found
    if mark != "." and all(map(like_number, texts)):
        wrong = [repr(text) for text, value in zip(texts, values, strict=True) if value is None]
        raise ArgumentError(
            "decimal",
            f"column {name!r} holds {', '.join(wrong[:3])}, with a point that does not separate thousands, although "
            f"{arg('decimal', mark)}: write all numbers with the same decimal mark.",
        )
    return None


def plain_numbers(texts: Sequence[str]) -> tuple[list[float], str | None] | None:
    """Return the numbers of texts that all are plain, as most are, and the decimal mark that they show; else None.

    The mark is None if all are whole. This is the common case of :func:`numbers`, without a search in every text.
    """
    lines = "\n".join(["", *texts, ""])
    for mark in (".", ","):
        if mark == ",":
            lines = lines.replace(".", "no number").replace(",", ".")
        # With decimal points, and no other characters than plain numbers have.
        if not lines.isascii() or lines.encode().translate(None, _PLAIN) or _CODES.search(lines):
            continue
        if "." not in lines or _SURE_POINT.search(lines):
            with suppress(ValueError):
                return [float(text.replace(mark, ".")) for text in texts], mark if "." in lines else None
    return None


def decimal_mark(found: Sequence[str | None], separator: str) -> str | None:
    """Return the decimal mark of a table from what its columns show, as :func:`mark_of` says it.

    None if they do not show it. Where no number does, "1.234" is taken as a decimal number in files that do not
    separate fields by semicolons.
    """
    commas, points = found.count(","), found.count(".")
    if commas or points:
        return "," if commas > points else "."
    asked = "either ," in found or ("either ." in found and separator == ";")
    return None if asked else "."


def mark_of(counts: Iterable[tuple[str, int]]) -> str | None:
    """Return the decimal mark of a column of texts, given with their numbers of cells; None if it has none.

    "either" and the mark if it may separate thousands.
    """
    sure, either, whole, known, total = {",": 0, ".": 0}, [], set(), 0, 0
    for text, cells in counts:
        total += cells
        plain = in_ascii(text)
        if re.fullmatch(DATE, plain):
            return None
        if not _LIKE_NUMBER.fullmatch(plain):
            continue
        marks = [mark for mark in sure if _value(plain, mark) is not None]
        if _WHOLE.fullmatch(plain):
            whole.add(int(plain))
        elif match := _EITHER.fullmatch(plain):
            either.append(match[1])
        elif len(marks) == 1:
            sure[marks[0]] += cells
        known += cells if marks else 0
    if known < _SMALLEST_SHARE * total:
        return None
    if any(sure.values()):
        return "," if sure[","] > sure["."] else "."
    if not either:
        return None
    mark = either[0]
    if len(whole) >= _FEWEST_WHOLE and max(map(abs, whole)) < 1000 and len(set(either)) == 1:
        return _OTHER[mark]
    return f"either {mark}"


def refuse_contradiction(texts: Sequence[str], mark: str | None, decimal: str | None, name: str) -> None:
    """Raise if the `mark` of a column of different texts is not that of its table, `decimal`, which would fit too."""
    if mark == _OTHER.get(decimal or "") and len(_either(texts)) > 1 and numbers(texts, decimal, name):
        raise _two_meanings(texts, name)


def _either(texts: Sequence[str]) -> list[str]:
    """Return the texts whose mark may separate thousands, or be the decimal mark."""
    return list(filter(_EITHER.fullmatch, map(in_ascii, texts)))


def _two_meanings(texts: Sequence[str], name: str) -> ArgumentError:
    """Return the error that asks for the decimal mark of a column whose texts can be read as two numbers."""
    example = _either(texts)[0]
    held = "," if "," in example else "."
    as_thousands, as_decimal = example.replace(held, ""), example.replace(held, ".")
    return ArgumentError(
        "decimal",
        f"column {name!r} holds numbers such as {example!r}, which may be {as_thousands} or {as_decimal}: pass "
        f"{arg('decimal', _OTHER[held])} if it is {as_thousands}, {arg('decimal', held)} if it is {as_decimal}.",
    )
