"""Experiments behind the documents: the paper, the benchmark, studies and speed comparisons."""
