"""Sections of the report, found by :func:`drosurv.report.report.all_sections` in the files of this folder."""
