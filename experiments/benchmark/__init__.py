"""Benchmark: methods on many real datasets, judged for everybody and for the group that each predicts worst."""

from experiments.benchmark.tournament import Benchmark, run_benchmark

__all__ = ["Benchmark", "run_benchmark"]
