"""Cumulative incidence: the probability of each cause in the presence of the others."""

from __future__ import annotations

import numpy as np

from drosurv.target import FloatArray


def cumulative_incidence(hazards: FloatArray) -> FloatArray:
    """Probabilities (causes, n, T) of an event of each cause by each time, from cumulative hazards (causes, n, T).

    .. math:: F_k(t_j) = F_k(t_{j-1}) + S(t_{j-1}) (1 - e^{-dH_j}) dH_kj / dH_j,  S(t) = e^{-sum_k H_k(t)}

    with the jumps dH_kj of the causes' hazards and dH_j of their sum: who leaves in an interval is shared among the
    causes by their hazards. Incidences and survival then sum to one at all times. The hazards must be given at all
    their jumps, so that no interval holds jumps at different times.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.estimators.competing.cumulative_incidence import cumulative_incidence
    >>> hazards = np.array([[[0.1, 0.3]], [[0.2, 0.2]]])
    >>> incidence = cumulative_incidence(hazards)
    >>> incidence.sum(axis=0) + np.exp(-hazards.sum(axis=0))
    array([[1., 1.]])
    """
    jumps = np.diff(hazards, axis=-1, prepend=0.0)
    total = hazards.sum(axis=0)
    survival = np.exp(-total)
    before = np.concatenate([np.ones_like(survival[:, :1]), survival[:, :-1]], axis=1)
    leaving, jump = before - survival, jumps.sum(axis=0)
    # Where no hazard jumps, no patient has an event.
    share = np.divide(leaving, jump, out=np.zeros_like(leaving), where=jump > 0)
    return np.cumsum(jumps * share, axis=-1)
