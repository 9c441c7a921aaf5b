"""Neighbourhoods: averages of losses over patients whose covariates are alike."""
