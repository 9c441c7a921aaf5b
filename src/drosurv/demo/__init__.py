"""The demonstration: plain Cox beside robust models on real data, in seconds."""

from drosurv.demo.comparison import Comparison, compare, contenders

__all__ = ["Comparison", "compare", "contenders"]
