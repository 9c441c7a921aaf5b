"""Mini-batches: a network and its criterion restricted to the next few patients at every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from drosurv.target import IntArray


class MiniBatches:
    """Plays both network and criterion for Adam, on one random batch of patients per step.

    The network is of all n patients; `make_criterion` takes rows (b,) to the criterion among those. Every epoch visits
    the patients in another random order, in `n_batches` batches of about `size`.
    """

    # Every step has patients of its own.
    recordable = False

    def __init__(
        self, network: Any, make_criterion: Callable[[IntArray], Any], n: int, size: int, seed: int
    ) -> None:
        self.network, self.make_criterion = network, make_criterion
        self.parameters = network.parameters
        # The remainder is shared out: a last batch of few patients, or one, would have few to compare.
        self.n_batches = max(n // size, 1)
        self._batches = self._forever(n, self.n_batches, seed)
        self._part: Any = network
        self._criterion: Any = None

    @staticmethod
    def _forever(n: int, n_batches: int, seed: int) -> Iterator[IntArray]:
        rng = np.random.default_rng(seed)
        while True:
            yield from np.array_split(rng.permutation(n), n_batches)

    def scores(self) -> Any:
        """Scores (B, b) of the next batch."""
        rows = next(self._batches)
        self._part, self._criterion = self.network.take(rows), self.make_criterion(rows)
        return self._part.scores()

    def pullback(self, gradient: Any) -> list[Any]:
        """Gradients in the parameters from the current batch."""
        out: list[Any] = self._part.pullback(gradient)
        return out

    def __call__(self, scores: Any, extra: Any = None) -> tuple[Any, Any, Any]:
        """The criterion of the current batch."""
        assert self._criterion is not None, "scores come before the criterion"
        found: tuple[Any, Any, Any] = self._criterion(scores, extra)
        return found
