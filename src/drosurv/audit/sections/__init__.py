"""Sections of the report, one file each; ``contents.all_sections`` finds them."""
