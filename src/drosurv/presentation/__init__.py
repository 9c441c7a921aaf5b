"""What readers see: one table, one number writer, one engine of sentences."""

from drosurv.presentation.figures import axes_or_new, write_figure
from drosurv.presentation.group_names import (
    AND,
    VERSUS,
    attribute_name,
    first_upper,
    group_name,
    label_name,
    listing,
)
from drosurv.presentation.markdown import literal, markdown_table
from drosurv.presentation.numbers import (
    NOTHING,
    Kind,
    counted,
    interval_text,
    p_text,
    plain,
    with_interval,
    written,
)
from drosurv.presentation.records import GroupGap, GroupNumber, Statement
from drosurv.presentation.sentences import (
    against_nothing,
    calibration_statements,
    comparison_statement,
    gap_statements,
    harm_statements,
    imparity_statements,
    is_lower,
    overall_statement,
    shrinkage_statements,
    slope_statement,
    small_group_statements,
)
from drosurv.presentation.table import Column, Table, plain_rows
from drosurv.presentation.text import Text, text
from drosurv.presentation.times import in_years, moment, unit_in

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
    "against_nothing",
    "attribute_name",
    "axes_or_new",
    "calibration_statements",
    "comparison_statement",
    "counted",
    "first_upper",
    "gap_statements",
    "group_name",
    "harm_statements",
    "imparity_statements",
    "in_years",
    "interval_text",
    "is_lower",
    "label_name",
    "listing",
    "literal",
    "markdown_table",
    "moment",
    "overall_statement",
    "p_text",
    "plain",
    "plain_rows",
    "shrinkage_statements",
    "slope_statement",
    "small_group_statements",
    "text",
    "unit_in",
    "with_interval",
    "write_figure",
    "written",
]
