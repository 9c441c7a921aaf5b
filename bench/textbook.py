"""Plain implementations, written straight from the definitions: what the library is measured against."""

import numpy as np
import torch
from scipy.optimize import fminbound


def radius_constant(alpha):
    """The published constant C of the chi-square objective."""
    return np.sqrt(2 * (1 / alpha - 1) ** 2 + 1)


def dro_cox_adam(X, event, time, alpha, steps=500, lr=0.01, seed=1):
    """DRO-COX: autograd, a running sum over a time sort, a scalar minimiser for eta in every step."""
    torch.manual_seed(seed)
    order = np.argsort(-time, kind="stable")
    features = torch.tensor(X[order], dtype=torch.float32)
    died = torch.tensor(event[order], dtype=torch.float32)
    constant = float(radius_constant(alpha))
    network = torch.nn.Linear(features.shape[1], 1, bias=False)
    optimizer = torch.optim.Adam(network.parameters(), lr=lr)
    for _ in range(steps):
        scores = network(features).reshape(-1)
        losses = died * (torch.log(torch.cumsum(torch.exp(scores), 0)) - scores)
        values = losses.detach().numpy().astype(np.float64)
        eta = float(
            fminbound(
                lambda e, v=values: constant * np.sqrt(np.mean(np.maximum(v - e, 0) ** 2)) + e,
                values.min() - 1000,
                values.max(),
            )
        )
        objective = constant * torch.sqrt(torch.mean(torch.relu(losses - eta) ** 2)) + eta
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
    return network.weight.detach().numpy().reshape(-1).astype(np.float64), float(objective)


def dro_cox_split_masks(X, event, time, alpha, steps=500, lr=0.01, seed=1):
    """DRO-COX (SPLIT) with explicit n1 x n2 comparison masks."""
    torch.manual_seed(seed)
    half = len(time) // 2
    features = torch.tensor(X, dtype=torch.float32)
    died = torch.tensor(event, dtype=torch.float32)
    seen = torch.tensor(time, dtype=torch.float32)
    constant = float(radius_constant(alpha))
    network = torch.nn.Linear(features.shape[1], 1, bias=False)
    optimizer = torch.optim.Adam(network.parameters(), lr=lr)
    parts = (slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))
    for _ in range(steps):
        scores = network(features).reshape(-1)
        total = torch.zeros(())
        for own, other in parts:
            mask = (seen[other][None, :] >= seen[own][:, None]).float()
            at_risk = torch.exp(scores[own]) + (mask * torch.exp(scores[other])[None, :]).sum(1)
            losses = died[own] * (torch.log(at_risk) - scores[own])
            values = losses.detach().numpy().astype(np.float64)
            eta = float(
                fminbound(
                    lambda e, v=values: constant * np.sqrt(np.mean(np.maximum(v - e, 0) ** 2)) + e,
                    values.min() - 1000,
                    values.max(),
                )
            )
            total = total + constant * torch.sqrt(torch.mean(torch.relu(losses - eta) ** 2)) + eta
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    return network.weight.detach().numpy().reshape(-1).astype(np.float64), float(total)
