"""The loss of DeepHit for a single risk: the likelihood of event probabilities on intervals, and a ranking loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from drosurv.errors import require_extra
from drosurv.losses.full_likelihood import Intervals
from drosurv.losses.torch_loss import TorchLoss
from drosurv.patients.target import BoolArray, FloatArray, Target

if TYPE_CHECKING:
    from torch import Tensor


class DeepHitLoss(TorchLoss):
    """The loss of DeepHit for each patient, on intervals between quantiles of the event times; see :func:`deep_hit`.

    With ties or few events there are fewer intervals. The weights (n,) apply in the quantiles, and to the patients that
    others are ranked against. If each half of the patients is ranked against the other half, `in_first` (n,) marks the
    first half; None ranks all patients against all.
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

        ranked = np.ones((1, self.n), dtype=np.bool_)
        if self.in_first is not None:
            ranked = np.stack([self.in_first, ~self.in_first])
        return deep_hit(
            scores if scores.ndim == 3 else scores[..., None],
            index=torch.as_tensor(self._index),
            event=torch.as_tensor(self.target.event),
            time=torch.as_tensor(self.target.time),
            own=torch.as_tensor(ranked),
            reference=torch.as_tensor(
                ranked[::-1] * (np.ones(self.n) if self.weight is None else self.weight)
            ),
        )

    @classmethod
    def stacked(cls, losses: Sequence[Self], device: str) -> None:
        """Return None: networks with several outputs per patient are not trained on devices."""
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
    """The loss of DeepHit for each patient: likelihood of K intervals and the time beyond them, and a ranking loss.

        l_i = (1 - r) nll_i + r mean_{j in R_i} d_i 1{Y_i < Y_j} exp(-(F_i(Y_i) - F_j(Y_i)) / sigma)

    with nll_i the negative log probability of patient i's interval (of all later intervals if censored), F the
    cumulative probability of the event, and R_i the patients that i is compared with.

    Parameters
    ----------
    logits : (B, n, K)
        Logits of the probabilities; the time beyond the last interval has logit zero.
    index : (n,) int
        Interval of each time.
    event : (n,) bool
        Whether the event was observed.
    time : (n,)
        Time of event or censoring.
    own : (G, n) bool
        Which patients are ranked in each of G comparisons; every patient is in one.
    reference : (G, n)
        Weights of the patients with whom they are compared; 0 for others.
    ranking : float
        Weight r of the ranking loss, in [0, 1].
    sigma : float
        Scale of the ranking loss; smaller values penalise wrong orders more.

    Returns
    -------
    (B, n)
        One loss per patient.
    """
    require_extra("torch", "deep")
    import torch

    beyond = torch.zeros_like(logits[..., :1])
    log_mass = torch.log_softmax(torch.cat([logits, beyond], -1), -1)
    interval = index.expand(logits.shape[:-1]).unsqueeze(-1)
    log_event = log_mass.gather(-1, interval).squeeze(-1)
    # Log survival after each interval, summed from the last interval so that small probabilities are not lost.
    log_survival = torch.logcumsumexp(log_mass.flip(-1), -1).flip(-1)[..., 1:]
    likelihood = -torch.where(event, log_event, log_survival.gather(-1, interval).squeeze(-1))
    incidence = log_mass[..., :-1].exp().cumsum(-1)
    at_patient_times = incidence.gather(-1, interval).squeeze(-1)
    order = time.argsort(stable=True)
    # Position of the first patient with a longer time.
    later = torch.searchsorted(time[order].contiguous(), time.contiguous(), right=True)
    rank_loss = torch.zeros_like(at_patient_times)
    for ranked, weight in zip(own, reference, strict=True):
        terms = (incidence / sigma).exp() * weight.to(incidence.dtype).unsqueeze(-1)
        sums = terms[:, order].flip(1).cumsum(1).flip(1)
        sums = torch.cat([sums, torch.zeros_like(sums[:, :1])], 1)
        of_later = sums[:, later].gather(-1, interval).squeeze(-1)
        # A batch may contain only patients of one half.
        total = weight.sum()
        total = torch.where(total > 0, total, torch.ones_like(total))
        loss = torch.where(ranked & event, of_later * (-at_patient_times / sigma).exp(), 0.0)
        rank_loss = rank_loss + loss / total
    return (1.0 - ranking) * likelihood + ranking * rank_loss
