"""The audit report: tables first, pages second."""
