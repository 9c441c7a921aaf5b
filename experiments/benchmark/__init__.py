"""Benchmark: every method that a user would pick, on many real datasets, judged for everybody and for the group predicted worst."""

from experiments.benchmark.tournament import Benchmark, run_benchmark

__all__ = ["Benchmark", "run_benchmark"]
