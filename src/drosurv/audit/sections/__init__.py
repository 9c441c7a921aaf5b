"""Sections of the report; ``section.all_sections`` finds them in the files of this folder."""
