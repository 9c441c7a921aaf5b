"""Boosted trees: an ensemble that LightGBM grew, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drosurv.target import FloatArray

# LightGBM's histograms have 256 bins at most in one byte; few patients in a bin say little of where to cut.
_MOST_BINS = 255
_PATIENTS_PER_BIN = 8


@dataclass(eq=False)
class Trees:
    """Trees over binned features, kept as LightGBM's own text and the bins' edges: no pickle and no patients.

    Attributes
    ----------
    text : (m,) uint8
        LightGBM's text of the model.
    edges : (e,) float64
        Edges of all features' bins, one feature after the other.
    ends : (d,) int
        Where each feature's edges end.
    """

    text: NDArray[np.uint8]
    edges: FloatArray
    ends: NDArray[np.intp]

    def scores(self, X: FloatArray) -> FloatArray:
        """Scores (n,) of features (n, d)."""
        # LightGBM's object is made when it is first needed, and is no part of what is kept.
        booster = self.__dict__.get("_booster")
        if booster is None:
            booster = self.__dict__["_booster"] = lightgbm().Booster(model_str=bytes(self.text).decode())
        codes = binned(X, np.split(self.edges, self.ends[:-1]))
        scores: FloatArray = booster.predict(codes, raw_score=True, num_threads=1)
        return scores

    def __getstate__(self) -> dict[str, Any]:
        """Plain data only."""
        return {"text": self.text, "edges": self.edges, "ends": self.ends}


def lightgbm() -> Any:
    """The library, or what to install."""
    try:
        import lightgbm as library
    except ImportError as error:
        raise ImportError(
            "network='trees' grows trees with LightGBM, which is not installed: pip install 'drosurv[trees]'."
        ) from error
    return library


def bin_edges(
    X: FloatArray, weight: FloatArray | None = None
) -> tuple[list[FloatArray], NDArray[np.float32]]:
    """Edges of each feature's bins: between all its values where they are few, else at weighted quantiles.

    A patient of weight 2 counts as two, which LightGBM's own bins would not allow for. Returns the number of each
    value's bin too, as :func:`binned` gives it: the values are sorted here anyway.
    """
    w = np.ones(len(X)) if weight is None else weight
    most = int(np.clip(w.sum() / _PATIENTS_PER_BIN, 16, _MOST_BINS))
    edges, codes = [], np.empty(X.shape, dtype=np.float32, order="F")
    for j, column in enumerate(X.T):
        values, place = np.unique(column, return_inverse=True)
        if len(values) > most:
            reached = np.cumsum(np.bincount(place, w))
            wanted = np.arange(1, most) / most * reached[-1]
            first = np.unique(np.searchsorted(reached, wanted * (1 - 1e-12)))
            first = first[first + 1 < len(values)]
        else:
            first = np.arange(len(values) - 1)
        edges.append(0.5 * (values[first] + values[first + 1]))
        codes[:, j] = np.searchsorted(edges[j], values, side="left").astype(np.float32)[place]
    return edges, codes


def binned(X: FloatArray, edges: Sequence[FloatArray]) -> NDArray[np.float32]:
    """Number of each value's bin, (n, d)."""
    codes = np.empty(X.shape, dtype=np.float32)
    for j, own in enumerate(edges):
        codes[:, j] = np.searchsorted(own, X[:, j], side="left")
    return codes
