"""Estimators: the scikit-learn surface over networks, losses, objectives and solvers."""
