"""Drawings of the report: tables to places on the page."""
