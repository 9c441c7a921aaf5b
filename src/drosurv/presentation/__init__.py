"""What readers see: one table, one number writer, one engine of sentences."""

from drosurv.presentation.markdown import literal, markdown_table
from drosurv.presentation.numbers import (
    NOTHING,
    Kind,
    interval_text,
    p_text,
    percent,
    plain,
    with_interval,
    written,
)
from drosurv.presentation.table import Column, Table, plain_rows
from drosurv.presentation.text import Text, text

__all__ = [
    "NOTHING",
    "Column",
    "Kind",
    "Table",
    "Text",
    "interval_text",
    "literal",
    "markdown_table",
    "p_text",
    "percent",
    "plain",
    "plain_rows",
    "text",
    "with_interval",
    "written",
]
