"""The paper's experiments: what was published, what we measure, and the comparison."""

from drosurv.paper.comparison import load_published
from drosurv.paper.reproduction import Reproduction, reproduce
from drosurv.paper.unit import Protocol

__all__ = ["Protocol", "Reproduction", "load_published", "reproduce"]
