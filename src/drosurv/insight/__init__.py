"""Insight: who is worst off under a model, and how badly off anyone can be."""
