"""The hinge sum over pairs of patients, computed in tiles of the matrix of pairs, for accelerators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch

from drosurv.patients.target import FloatArray

# Pairs times models in a tile; three arrays of this size exist at a time. Large enough to use the whole device.
TILE_ELEMENTS = 2**24

# Largest number of rows of a tile. All pairs are in the upper triangle of the matrix, and tall tiles would contain
# much of the rest.
TILE_ROWS = 1024

# Distances do not change in training. They are stored on the device if they need at most this much memory; otherwise
# each evaluation computes them again, tile by tile, once for all models.
CACHE_BYTES = 2**29

# The rounding error of ||u||^2 + ||v||^2 - 2 u.v is below this many epsilons: smaller distances count as 0.
_EQUAL = 64


class Side(NamedTuple):
    """The first, or the second, patients of the pairs, as NumPy or torch arrays (m,).

    Patients are sorted by ascending key; their feature rows (m, d) have length 1 or 0. A first and a second patient are
    a pair if the key of the first is at most that of the second and their codes are equal.
    """

    patient: Any
    features: Any
    key: Any
    code: Any

    def to(self, device: torch.device) -> Side:
        """Return a copy on a device."""
        # Float32 would lose half the digits of small distances; Apple's devices do not support float64.
        wide = torch.float32 if device.type == "mps" else torch.float64
        features = torch.tensor(self.features, dtype=wide, device=device)
        patient, key, code = (
            torch.tensor(part, device=device) for part in (self.patient, self.key, self.code)
        )
        return Side(patient, features, key, code)


class PairTiles:
    """The hinge sum over pairs, for any number of models.

    sum over pairs of [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+
    """

    def __init__(self, first: Side, second: Side, scale: float) -> None:
        self.first = first
        self.second = second
        self.scale = scale
        self._sides: dict[torch.device, tuple[Side, Side]] = {}
        self._kept: dict[tuple[torch.device, torch.dtype], list[torch.Tensor]] = {}

    @classmethod
    def of_all_pairs(cls, U: FloatArray, scale: float) -> PairTiles:
        """Prepare all pairs of patients with unit (or zero) feature rows U (n, d)."""
        patients = np.arange(len(U))
        no_code = np.zeros_like(patients)
        # A pair if i <= j - 1, so that each pair counts once.
        return cls(Side(patients, U, patients, no_code), Side(patients, U, patients - 1, no_code), scale)

    def value_and_gradient(self, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return sums (B,) and their gradients in h (B, n) at hazards h (B, n)."""
        if h.device not in self._sides:
            self._sides[h.device] = self.first.to(h.device), self.second.to(h.device)
        of_i, of_j = (side.patient for side in self._sides[h.device])
        h_i, h_j = h[:, of_i], h[:, of_j]
        sums, net_i, net_j = torch.zeros_like(h_i), torch.zeros_like(h_i), torch.zeros_like(h_j)
        for (begin, end, start), reach in zip(self.spans, self._reaches(h.device, h.dtype), strict=True):
            lower = -reach
            models = max(1, TILE_ELEMENTS // reach.numel())
            parts = (
                h_i[:, begin:end, None],
                h_j[:, None, start:],
                sums[:, begin:end],
                net_i[:, begin:end],
                net_j[:, start:],
            )
            # Launching an operation takes longer than computing it for one model, so there are few large tiles.
            for first, second, row_sums, net_rows, net_columns in zip(
                *(torch.split(part, models) for part in parts), strict=True
            ):
                excess = first - second
                excess -= torch.clamp(excess, min=lower, max=reach)
                torch.linalg.vector_norm(excess, 1, dim=-1, out=row_sums)
                excess.sign_()
                torch.sum(excess, -1, out=net_rows)
                net_columns.sub_(excess.sum(-2))
        gradient = torch.zeros_like(h).index_add_(-1, of_i, net_i).index_add_(-1, of_j, net_j)
        # Summed by rows first: a single sum of millions of float32 terms can lose three digits.
        return sums.sum(-1), gradient

    @cached_property
    def spans(self) -> list[tuple[int, int, int]]:
        """Tiles as (first row, end row, first column); these rows have no pairs with earlier columns."""
        n_rows, n_cols = len(self.first.key), len(self.second.key)
        spans: list[tuple[int, int, int]] = []
        begin = 0
        while begin < n_rows:
            start = int(np.searchsorted(self.second.key, self.first.key[begin]))
            if start == n_cols:
                break
            height = max(1, min(TILE_ROWS, TILE_ELEMENTS // (n_cols - start)))
            end = min(begin + height, n_rows)
            spans.append((begin, end, start))
            begin = end
        return spans

    def _reaches(self, device: torch.device, dtype: torch.dtype) -> Iterable[torch.Tensor]:
        if (device, dtype) in self._kept:
            return self._kept[device, dtype]
        reaches = self._computed_reaches(device, dtype)
        n_cols = len(self.second.key)
        pairs = sum((end - begin) * (n_cols - start) for begin, end, start in self.spans)
        if pairs * dtype.itemsize > CACHE_BYTES:
            return reaches
        self._kept[device, dtype] = list(reaches)
        return self._kept[device, dtype]

    def _computed_reaches(self, device: torch.device, dtype: torch.dtype) -> Iterator[torch.Tensor]:
        """Yield scale * distance of each tile, (rows, columns); infinite where there is no pair."""
        first, second = self._sides[device]
        for begin, end, start in self.spans:
            u, v = first.features[begin:end], second.features[start:]
            squared = torch.addmm(v.square().sum(-1), u, v.T, alpha=-2.0)
            squared += u.square().sum(-1, keepdim=True)
            equal = _EQUAL * torch.finfo(squared.dtype).eps
            reach = torch.nn.functional.threshold(squared, equal, 0.0).sqrt_().mul_(self.scale)
            paired = first.key[begin:end, None] <= second.key[start:]
            paired &= first.code[begin:end, None] == second.code[start:]
            # With an infinite reach the term of a pair is 0, so that the loop over models needs no mask.
            yield reach.masked_fill_(~paired, torch.inf).to(dtype)


class ValueWithGradient(torch.autograd.Function):
    """Values that were computed together with their gradient, as a differentiable function of the scores."""

    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, values: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        """Return ``values`` (*batch,) and store ``gradient`` (*batch, n)."""
        ctx.save_for_backward(gradient)
        return values

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Scale the stored gradient."""
        (gradient,) = ctx.saved_tensors
        return upstream[..., None] * gradient, None, None
