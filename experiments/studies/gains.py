"""Each patient's likelihood gain over the null model."""

from inspect import signature

import numpy as np

from drosurv.metrics import FollowUp
from drosurv.metrics.likelihood_gain import likelihood_gains


def patient_gains(model, follow_up, X, y):
    """Gains (n,) of patients under a model; the follow-up is that of the training patients, or their target.

    Where a model gives curves at any times, they are asked for wherever the gain reads them: the null model is read
    exactly, so a coarser grid of the model's curves would pass for a gain.
    """
    follow_up, parts = FollowUp.parse(follow_up), []
    at_any_times = "times" in signature(model.predict_survival_function).parameters
    for rows in np.array_split(np.arange(len(X)), -(-len(X) // 250)):
        if not at_any_times:
            parts.append(likelihood_gains(follow_up, y[rows], model.predict_survival_function(X.iloc[rows])))
            continue
        times = np.unique(np.concatenate([y["time"][rows], follow_up.event_percentiles]))
        curves = model.predict_survival_function(X.iloc[rows], times=times)
        parts.append(likelihood_gains(follow_up, y[rows], curves, times))
    return np.concatenate(parts)
