"""The paper's experiments: what was published, what we measure, and the comparison."""

from experiments.paper.comparison import load_published
from experiments.paper.reproduction import Reproduction, reproduce
from experiments.paper.unit import Protocol

__all__ = ["Protocol", "Reproduction", "load_published", "reproduce"]
