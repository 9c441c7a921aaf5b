"""Benchmark: every method that a user would pick, on many real datasets, judged overall and for the worst served."""

from experiments.benchmark.tournament import Benchmark, run_benchmark

__all__ = ["Benchmark", "run_benchmark"]
