"""DeepHit's loss for a single risk: the likelihood of event masses on intervals, and a ranking of who comes first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from drosurv.errors import require_extra
from drosurv.losses.full_likelihood import Intervals
from drosurv.losses.torch_loss import TorchLoss
from drosurv.target import BoolArray, FloatArray, Target

if TYPE_CHECKING:
    from torch import Tensor


class DeepHitLoss(TorchLoss):
    """DeepHit's loss of each patient on quantile intervals of the event times; see :func:`deep_hit`.

    Ties or few events give fewer intervals; `weight` (n,) are weights in the quantiles and of the patients that others
    are ranked against. `in_first` (n,) marks the patients of the first half if each half is ranked against the other;
    None ranks all patients against all.
    """

    _by_patient = ("target", "in_first", "weight", "_index")

    def __init__(
        self,
        target: Target,
        n_intervals: int = 20,
        in_first: BoolArray | None = None,
        weight: FloatArray | None = None,
    ) -> None:
        super().__init__(deep_hit, target)
        self.in_first, self.intervals = in_first, Intervals.from_target(target, n_intervals, weight)
        self.n_outputs, self.weight = self.intervals.n_intervals, weight
        self._index = self.intervals.exposure(target.time).index

    def _of(self, scores: Tensor, extra: Tensor, device: str) -> Tensor:
        """Return the losses (B, n) at logits (B, n, K), or (B, n) with a single interval."""
        import torch

        own = np.ones((1, self.n), dtype=np.bool_)
        if self.in_first is not None:
            own = np.stack([self.in_first, ~self.in_first])
        return deep_hit(
            scores if scores.ndim == 3 else scores[..., None],
            index=torch.as_tensor(self._index),
            event=torch.as_tensor(self.target.event),
            time=torch.as_tensor(self.target.time),
            own=torch.as_tensor(own),
            reference=torch.as_tensor(own[::-1] * (np.ones(self.n) if self.weight is None else self.weight)),
        )

    @classmethod
    def stacked(cls, losses: Sequence[Self], device: str) -> None:
        """Return None: on a device, networks have one output for each patient."""
        return


def deep_hit(
    logits: Tensor,
    *,
    index: Tensor,
    event: Tensor,
    time: Tensor,
    own: Tensor,
    reference: Tensor,
    ranking: float = 0.8,
    sigma: float = 0.1,
) -> Tensor:
    """DeepHit's loss of each patient: probabilities of K intervals and of the time beyond them, and a ranking.

        l_i = (1 - r) nll_i + r mean_{j in R_i} d_i 1{Y_i < Y_j} exp(-(F_i(Y_i) - F_j(Y_i)) / sigma)

    with nll_i the negative log probability of patient i's interval (of all later ones, if censored), F the cumulative
    probability, and R_i the patients that i is compared with.

    Parameters
    ----------
    logits : (B, n, K)
        Logits of the probabilities; the time beyond the last interval has logit zero.
    index : (n,) int
        Interval of each time.
    event : (n,) bool
    time : (n,)
    own : (G, n) bool
        Patients of G comparisons; every patient is in one of them.
    reference : (G, n)
        Weights of the patients that they are compared with; 0 for others.
    ranking : float
        Weight r of the ranking, in [0, 1].
    sigma : float
        How sharply a rank counts.

    Returns
    -------
    (B, n)
    """
    require_extra("torch", "deep")
    import torch

    beyond = torch.zeros_like(logits[..., :1])
    log_mass = torch.log_softmax(torch.cat([logits, beyond], -1), -1)
    place = index.expand(logits.shape[:-1]).unsqueeze(-1)
    died = log_mass.gather(-1, place).squeeze(-1)
    # Log probabilities beyond each interval, summed from the end so that small ones are not lost.
    behind = torch.logcumsumexp(log_mass.flip(-1), -1).flip(-1)[..., 1:]
    likelihood = -torch.where(event, died, behind.gather(-1, place).squeeze(-1))
    gone = log_mass[..., :-1].exp().cumsum(-1)
    at_patient_times = gone.gather(-1, place).squeeze(-1)
    order = time.argsort(stable=True)
    # Patients with a strictly longer time follow the last equal time.
    later = torch.searchsorted(time[order].contiguous(), time.contiguous(), right=True)
    rank = torch.zeros_like(at_patient_times)
    for mine, others in zip(own, reference, strict=True):
        risk = (gone / sigma).exp() * others.to(gone.dtype).unsqueeze(-1)
        sums = risk[:, order].flip(1).cumsum(1).flip(1)
        sums = torch.cat([sums, torch.zeros_like(sums[:, :1])], 1)
        reached = sums[:, later].gather(-1, place).squeeze(-1)
        # A batch may contain patients of one half alone.
        total = others.sum()
        total = torch.where(total > 0, total, torch.ones_like(total))
        rank = rank + torch.where(mine & event, reached * (-at_patient_times / sigma).exp(), 0.0) / total
    return (1.0 - ranking) * likelihood + ranking * rank
