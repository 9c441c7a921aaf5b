"""Datasets: the paper's three, synthetic ones with a known truth, and their splits."""
