"""Solvers: find the parameters that minimise an objective."""
