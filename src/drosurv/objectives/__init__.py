"""Objectives: a vector of losses in, a scalar out. They know nothing of survival."""
