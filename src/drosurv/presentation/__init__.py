"""What readers see: one table, one number writer, one engine of sentences."""

from drosurv.presentation.figures import axes_or_new, write_figure
from drosurv.presentation.group_names import (
    AND,
    VERSUS,
    attribute_name,
    first_upper,
    group_name,
    headings,
    label_name,
    listing,
)
from drosurv.presentation.numbers import (
    NOTHING,
    Kind,
    counted,
    in_years,
    moment,
    p_text,
    plain,
    unit_in,
    with_interval,
    written,
)
from drosurv.presentation.sentences import GroupGap, GroupNumber, Statement
from drosurv.presentation.table import Column, Table, plain_rows
from drosurv.presentation.text import Text, literal, text

__all__ = [
    "AND",
    "NOTHING",
    "VERSUS",
    "Column",
    "GroupGap",
    "GroupNumber",
    "Kind",
    "Statement",
    "Table",
    "Text",
    "attribute_name",
    "axes_or_new",
    "counted",
    "first_upper",
    "group_name",
    "headings",
    "in_years",
    "label_name",
    "listing",
    "literal",
    "moment",
    "p_text",
    "plain",
    "plain_rows",
    "text",
    "unit_in",
    "with_interval",
    "write_figure",
    "written",
]
