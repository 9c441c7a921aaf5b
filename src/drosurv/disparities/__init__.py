"""Definitions of unfairness, one per file: penalties in training, metrics in evaluation."""
