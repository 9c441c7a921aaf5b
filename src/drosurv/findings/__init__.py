"""Findings about a model: tests of residuals, their adjustment for multiple tests, the verdict, and its sentences."""
