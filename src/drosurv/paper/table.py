"""A table as data, with its views in Markdown and LaTeX."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    # In LaTeX's default encoding these two print other signs.
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "∩": r"$\cap$",
    "–": "--",
    "‡": r"\ddag{}",
}


class Text(NamedTuple):
    """The same words for a plain-text and for a LaTeX reader."""

    plain: str
    latex: str

    def bold(self) -> Text:
        """Set in bold."""
        return Text(f"**{self.plain}**", rf"\textbf{{{self.latex}}}")

    def marked(self, mark: str) -> Text:
        """With a mark behind it that a note explains."""
        return Text(f"{self.plain} {mark}", rf"{self.latex}\textsuperscript{{{text(mark).latex}}}")


def text(plain: str) -> Text:
    r"""Plain words, with what LaTeX treats specially escaped.

    Examples
    --------
    >>> print(text("R&P").latex)
    R\&P
    """
    return Text(plain, re.sub(r"[\\~^&%$#_{}<>∩–‡]", lambda sign: _LATEX_SPECIAL[sign.group()], plain))


@dataclass(frozen=True)
class Table:
    """A title, columns, rows of cells, and notes under them.

    Parameters
    ----------
    title : str
        What stands above it.
    header : tuple of Text
        One per column.
    rows : tuple of tuples of Text
        One cell per column.
    notes : tuple of str
        What a reader must know to read the cells.
    """

    title: str
    header: tuple[Text, ...]
    rows: tuple[tuple[Text, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(
                    f"a row of {self.title!r} has {len(row)} cells for {len(self.header)} columns: "
                    f"{[cell.plain for cell in row]}."
                )

    def markdown(self) -> str:
        """As GitHub-flavoured Markdown, with a heading."""
        lines = [
            _markdown_row([cell.plain for cell in self.header]),
            "|" + "---|" * len(self.header),
            *(_markdown_row([cell.plain for cell in row]) for row in self.rows),
        ]
        notes = ["\n".join(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n\n".join([f"### {self.title}", "\n".join(lines), *notes]) + "\n"

    def latex(self) -> str:
        """As a LaTeX table; the document needs the package booktabs."""
        body = [" & ".join(cell.latex for cell in row) + r" \\" for row in self.rows]
        notes = [rf"\par\smallskip {text(note).latex}" for note in self.notes]
        lines = [
            r"\begin{table}",
            rf"\caption{{{text(self.title).latex}}}",
            r"\centering\scriptsize",
            rf"\begin{{tabular}}{{ll{'c' * (len(self.header) - 2)}}}",
            r"\toprule",
            " & ".join(cell.latex for cell in self.header) + r" \\ \midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            *notes,
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"


def _markdown_row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
