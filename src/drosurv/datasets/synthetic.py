"""Simulated patients, among whom a minority that is defined by a covariate has other effects."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import ndtri

from drosurv.datasets.dataset import Dataset
from drosurv.errors import as_number, check_choice, check_count, require
from drosurv.patients.observation import generator
from drosurv.patients.target import Surv

MAJORITY_EFFECTS = np.array([0.8, 0.5, 0.3, 0.0])
MINORITY_EFFECTS = np.array([-0.6, 0.5, 0.3, 0.5])


def make_hidden_minority(
    n_samples: int = 4000,
    n_features: int = 10,
    minority: float = 0.15,
    membership: Literal["linear", "nonlinear"] = "linear",
    random_state: int | np.random.Generator | None = None,
) -> Dataset:
    r"""Simulate patients among whom a hidden minority has other effects.

    .. math:: x \sim N(0, I), \quad f(x) = \beta_{g(x)} \cdot (x_1, \dots, x_4), \quad
              T = E_1 / \exp f(x), \quad C = 1.5\, E_2, \quad E_1, E_2 \sim \mathrm{Exp}(1)

    The group g(x) is a fixed function of the covariates, the same in every sample; effects are (.8, .5, .3,
    0) for the majority and (-.6, .5, .3, .5) for the minority, so one linear model has the sign of x1 wrong
    for one of them.

    Parameters
    ----------
    n_samples : int
        Number of patients n.
    n_features : int
        Number of features, at least 5; those after x5 have no effect.
    minority : float
        Expected share of the minority, in [0, 1]; 0 gives data without any group.
    membership : {"linear", "nonlinear"}
        Definition of the minority: x5 above its 1 - `minority` quantile, or abs(x5) above its quantile, which is no
        threshold on a linear score of the features.
    random_state : int, Generator or None
        Seed or source of the random numbers.

    Returns
    -------
    Dataset
        ``sensitive_features["membership"]`` says "minority" or "majority"; ``truth`` holds log_risk (the f
        above), event_time and censoring_time.

    Examples
    --------
    >>> from drosurv.datasets import make_hidden_minority
    >>> make_hidden_minority(500, random_state=0).truth.columns.tolist()
    ['log_risk', 'event_time', 'censoring_time']
    """
    check_count("n_samples", n_samples)
    check_count("n_features", n_features, least=5)
    require(0 <= as_number(minority) <= 1, "minority", "be a share between 0 and 1", minority)
    check_choice("membership", membership, ("linear", "nonlinear"))

    rng = generator(random_state)
    x = rng.standard_normal((n_samples, n_features))
    # P(|x5| > q) is twice P(x5 > q).
    score, tail = (x[:, 4], minority) if membership == "linear" else (np.abs(x[:, 4]), minority / 2)
    in_minority = score > -ndtri(tail)
    effects = np.where(in_minority[:, None], MINORITY_EFFECTS, MAJORITY_EFFECTS)
    log_risk = (x[:, :4] * effects).sum(axis=1)
    event_time = rng.exponential(size=n_samples) / np.exp(log_risk)
    censoring_time = 1.5 * rng.exponential(size=n_samples)
    return Dataset(
        "hidden minority",
        pd.DataFrame(x, columns=[f"x{j + 1}" for j in range(n_features)]),
        Surv.from_arrays(event_time <= censoring_time, np.minimum(event_time, censoring_time)),
        pd.DataFrame({"membership": np.where(in_minority, "minority", "majority")}),
        pd.DataFrame({"log_risk": log_risk, "event_time": event_time, "censoring_time": censoring_time}),
    )
