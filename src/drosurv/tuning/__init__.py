"""Tuning: grids, rules that choose among their points, and the search that applies them."""
