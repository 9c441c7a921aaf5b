"""Evaluation: every metric of a fitted model, overall and by group, with intervals, in one call."""
