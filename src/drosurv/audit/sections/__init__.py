"""Sections of the report, one file each; ``section.all_sections`` finds them."""
