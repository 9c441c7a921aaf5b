"""Losses: risk scores and target in, one number per patient out. Averaging is the objective's job."""
