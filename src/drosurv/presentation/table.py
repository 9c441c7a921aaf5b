"""Tables of results, written as text, Markdown, LaTeX or HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from drosurv.presentation.wording import Kind, interval_text, is_missing, plain, written

if TYPE_CHECKING:
    import pandas as pd


# Not ">", which has no meaning without "<" and is frequent in rules.
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]<#|~$&])")
_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    # LaTeX's default encoding prints other signs for these two.
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "∩": r"$\cap$",
    "–": "--",
    "−": "$-$",
    "‡": r"\ddag{}",
}
_SPECIAL = re.compile(f"[{re.escape(''.join(_LATEX_SPECIAL))}]")


class Text(NamedTuple):
    """A text in Markdown and in LaTeX."""

    plain: str
    latex: str

    def __str__(self) -> str:
        return self.plain


def text(plain: str) -> Text:
    r"""Return a text in Markdown and in LaTeX, where special characters are escaped.

    >>> print(text("R&P").latex)
    R\&P
    """
    return Text(plain, _SPECIAL.sub(lambda sign: _LATEX_SPECIAL[sign.group()], plain))


def literal(text: str) -> str:
    """Escape a text for Markdown, on one line."""
    return _MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(text.split()))


@dataclass(frozen=True)
class Column:
    """A column of a table: the key of its value in the rows, the heading, and how the value is written.

    `interval` are the keys of the ends of its interval, if it has one. Small values have the decimals that a number of
    the given `size` has. `right` is the value under right predictions, from which the interval's ends are told apart.
    """

    key: str
    label: str | Text
    kind: Kind = "text"
    interval: tuple[str, str] | None = None
    size: float = 0.0
    right: float = 0.0

    @classmethod
    def measured(cls, key: str, label: str, kind: Kind = "value", right: float = 0.0) -> Column:
        """Return a column whose interval is in the rows as ``key_low`` and ``key_high``."""
        return cls(key, label, kind, (f"{key}_low", f"{key}_high"), right=right)

    @property
    def numeric(self) -> bool:
        """Whether the cells hold numbers."""
        return self.kind != "text"

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of every value that the column shows."""
        return (self.key, *(self.interval or ()))

    def cell(self, row: Mapping[str, Any]) -> str:
        """Return the cell of a row: the value with its interval."""
        value, interval = self.value(row), self.interval_of(row)
        return f"{value} ({interval})" if interval else value

    def shown(self, row: Mapping[str, Any]) -> str | Text:
        """Return the cell of a row for a document; a :class:`Text` is returned unchanged."""
        value = row.get(self.key)
        return value if isinstance(value, Text) else self.cell(row)

    def value(self, row: Mapping[str, Any]) -> str:
        """Return the row's value without its interval, with as many decimals as that."""
        ends = map(row.get, self.interval or ())
        return written(row.get(self.key), self.kind, beside=(*ends, self.size))

    def interval_of(self, row: Mapping[str, Any]) -> str:
        """Return the interval of the row's value as text; empty without one."""
        if self.interval is None:
            return ""
        low, high = (row.get(key) for key in self.interval)
        value = row.get(self.key)
        return interval_text(low, high, self.kind, beside=value, size=self.size, right=self.right)


def aligned(columns: Iterable[Column], rows: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Return columns in which all values have as many decimals as the largest value; from 1,000 on, none.

    >>> rows = [{"gain": 0.00099}, {"gain": 0.0123}]
    >>> [column.cell(row) for column in aligned([Column("gain", "Gain", "value")], rows) for row in rows]
    ['0.001', '0.012']
    """

    def size(column: Column) -> float:
        values: list[Any] = [row.get(key) for row in rows for key in column.keys]
        return min(max((abs(value) for value in values if not is_missing(value)), default=0.0), 1.0)

    return tuple(
        replace(column, size=size(column)) if column.kind == "value" else column for column in columns
    )


@dataclass(frozen=True)
class Table:
    """A table: rows, columns, a caption and notes.

    The key is its name in files and in JSON. Columns are what is shown, in order; the first names the row. Rows hold
    plain Python values (strings, numbers, None if not known), and may hold more than is shown; a :class:`Text` is
    Markdown already. Notes explain the cells.

    >>> from drosurv.presentation import Column, Table
    >>> columns = (Column("group", "group"), Column("c", "c-index", "value", ("low", "high")))
    >>> table = Table("by_group", "Groups", columns, ({"group": "a", "c": 0.7, "low": 0.6, "high": 0.8},))
    >>> print(table)
    Groups
    group                 c-index
    a      0.700 (0.600 to 0.800)
    """

    key: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, key: str, caption: str, columns: Sequence[Column], frame: pd.DataFrame, notes: Sequence[str] = ()
    ) -> Table:
        """Make a table of some columns of a DataFrame."""
        wanted = list(dict.fromkeys(name for column in columns for name in column.keys))
        return cls(key, caption, tuple(columns), tuple(plain_rows(frame[wanted])), tuple(notes))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of all values of the rows, in the order of the columns."""
        shown = [name for column in self.columns for name in column.keys]
        return tuple(dict.fromkeys([*shown, *(name for row in self.rows for name in row)]))

    @property
    def header(self) -> list[str]:
        """The headings."""
        return [str(column.label) for column in self.columns]

    def cells(self) -> list[list[str]]:
        """Return the cells as text, row by row."""
        return [[column.cell(row) for column in self.columns] for row in self.rows]

    def to_frame(self) -> pd.DataFrame:
        """Return all values as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=list(self.keys))

    def to_dict(self) -> dict[str, Any]:
        """Caption, names of the values, and the values row by row, for JSON."""
        keys = self.keys
        return {
            "caption": self.caption,
            "columns": list(keys),
            "rows": [[plain(row.get(key), digits=None) for key in keys] for row in self.rows],
        }

    def to_markdown(self, *, heading: bool = False) -> str:
        """Return GitHub-flavoured Markdown, with the caption above; `heading` makes the caption a heading."""

        def line(cells: Iterable[str]) -> str:
            return f"| {' | '.join(cells)} |"

        header = line(_markdown(column.label) for column in self.columns)
        rule = line("---:" if column.numeric else "---" for column in self.columns)
        rows = [line(_markdown(column.shown(row)) for column in self.columns) for row in self.rows]
        shown = "\n".join([header, rule, *rows])
        above = [f"### {self.caption}" if heading else literal(self.caption)] if self.caption else []
        notes = ["\n".join(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n\n".join([*above, shown, *notes]) + "\n"

    def to_latex(self) -> str:
        """Return a LaTeX table; the document needs the package booktabs."""
        body = [
            " & ".join(_latex(column.shown(row)) for column in self.columns) + r" \\" for row in self.rows
        ]
        rest = "".join("r" if column.numeric else "c" for column in self.columns[2:])
        lines = [
            r"\begin{table}",
            rf"\caption{{{text(self.caption).latex}}}",
            r"\centering\scriptsize",
            rf"\begin{{tabular}}{{{'ll'[: len(self.columns)]}{rest}}}",
            r"\toprule",
            " & ".join(_latex(column.label) for column in self.columns) + r" \\ \midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            *(rf"\par\smallskip {text(note).latex}" for note in self.notes),
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def to_html(self) -> str:
        """Return an HTML table for notebooks, with everything escaped."""
        side = ["right" if column.numeric else "left" for column in self.columns]

        def line(tag: str, cells: Sequence[str]) -> str:
            made = (
                f'<{tag} style="text-align:{where}">{html.escape(cell)}</{tag}>'
                for where, cell in zip(side, cells, strict=True)
            )
            return f"<tr>{''.join(made)}</tr>"

        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        body = "".join(line("td", row) for row in self.cells())
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<table>{caption}<thead>{line('th', self.header)}</thead><tbody>{body}</tbody></table>{notes}"

    def to_text(self) -> str:
        """Return plain text for a terminal, with numbers aligned to the right."""
        cells = [self.header, *([" ".join(cell.split()) for cell in row] for row in self.cells())]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(width) if column.numeric else cell.ljust(width)
                for cell, width, column in zip(row, widths, self.columns, strict=True)
            ).rstrip()
            for row in cells
        ]
        return "\n".join([*([self.caption] if self.caption else []), *lines, *self.notes])

    __str__ = to_text
    _repr_html_ = to_html


def plain_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a DataFrame as dicts of plain Python values."""
    names = [str(name) for name in frame.columns]
    columns = [[plain(value) for value in column.tolist()] for _, column in frame.items()]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _markdown(cell: str | Text) -> str:
    # A Text is Markdown already, but "|" would end the cell.
    return cell.plain.replace("|", r"\|") if isinstance(cell, Text) else literal(cell)


def _latex(cell: str | Text) -> str:
    return cell.latex if isinstance(cell, Text) else text(cell).latex
