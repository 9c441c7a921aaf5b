"""The path of 0.2 to a section; now ``drosurv.audit.sections``."""

from drosurv.audit.report import Part, Section, all_sections

__all__ = ["Part", "Section", "all_sections"]
