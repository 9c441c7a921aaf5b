"""The patients: y parsed and checked once, what is known about their rows, groups, and names of outcomes."""
