"""Sections of the report, found by :func:`drosurv.audit.report.all_sections` in the files of this folder."""

from drosurv.audit.report import Part, Section

__all__ = ["Part", "Section"]
