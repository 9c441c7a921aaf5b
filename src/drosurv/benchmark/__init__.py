"""Benchmark: every method that a user would pick, on many real datasets, judged overall and for the worst served."""

from drosurv.benchmark.contenders import CONTENDERS, Contender
from drosurv.benchmark.encoded_part import EncodedPart, split_in_two
from drosurv.benchmark.match import Match, evaluate_match
from drosurv.benchmark.measures import MEASURES, Measure, judge
from drosurv.benchmark.standings import Ranks, critical_difference, differences, over_datasets, rank
from drosurv.benchmark.tournament import Benchmark, run_benchmark

__all__ = [
    "CONTENDERS",
    "MEASURES",
    "Benchmark",
    "Contender",
    "EncodedPart",
    "Match",
    "Measure",
    "Ranks",
    "critical_difference",
    "differences",
    "evaluate_match",
    "judge",
    "over_datasets",
    "rank",
    "run_benchmark",
    "split_in_two",
]
