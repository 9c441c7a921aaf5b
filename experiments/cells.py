"""Tables of documents whose cells are texts, in Markdown and in LaTeX."""

from collections.abc import Iterable, Sequence

from drosurv.errors import InputError
from drosurv.presentation import Column, Table, Text, text


def bold(shown: Text) -> Text:
    """The text in bold."""
    return Text(f"**{shown.plain}**", rf"\textbf{{{shown.latex}}}")


def marked(shown: Text, mark: str) -> Text:
    """The text with a mark after it, which a note explains; unchanged without a mark."""
    if not mark:
        return shown
    return Text(f"{shown.plain} {mark}", rf"{shown.latex}\textsuperscript{{{text(mark).latex}}}")


def table_of_markdown(
    caption: str,
    header: Sequence[str | Text],
    rows: Iterable[Sequence[str | Text]],
    notes: Sequence[str] = (),
) -> Table:
    """A table of cells in Markdown."""
    cells = [[cell if isinstance(cell, Text) else text(cell) for cell in row] for row in (header, *rows)]
    return table_of_cells(caption, cells[0], cells[1:], notes)


def table_of_cells(
    caption: str,
    header: Sequence[str | Text],
    rows: Sequence[Sequence[str | Text]],
    notes: Sequence[str] = (),
) -> Table:
    """A table of cells that are texts, one for every heading."""
    for row in rows:
        if len(row) != len(header):
            raise InputError(
                f"a row of {caption!r} has {len(row)} cells for {len(header)} columns: {list(map(str, row))}."
            )
    columns = tuple(Column(str(k), label) for k, label in enumerate(header))
    cells = tuple({str(k): cell for k, cell in enumerate(row)} for row in rows)
    return Table("table", caption, columns, cells, tuple(notes))
