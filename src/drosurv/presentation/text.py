"""Words that read differently in plain text, in Markdown and in LaTeX."""

from __future__ import annotations

import re
from typing import NamedTuple

# A closing angle bracket means nothing without an opening one, and rules are full of them.
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]<#|~$&])")
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
    "−": "$-$",
    "‡": r"\ddag{}",
}
_SPECIAL = re.compile(f"[{re.escape(''.join(_LATEX_SPECIAL))}]")


class Text(NamedTuple):
    """The same words for a reader of Markdown and for one of LaTeX."""

    plain: str
    latex: str

    def bold(self) -> Text:
        """Set in bold."""
        return Text(f"**{self.plain}**", rf"\textbf{{{self.latex}}}")

    def marked(self, mark: str) -> Text:
        """With a mark behind it that a note explains."""
        return Text(f"{self.plain} {mark}", rf"{self.latex}\textsuperscript{{{text(mark).latex}}}")

    def __str__(self) -> str:
        return self.plain


def text(plain: str) -> Text:
    r"""Plain words, with what LaTeX treats specially escaped.

    >>> print(text("R&P").latex)
    R\&P
    """
    return Text(plain, _SPECIAL.sub(lambda sign: _LATEX_SPECIAL[sign.group()], plain))


def literal(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(text.split()))
