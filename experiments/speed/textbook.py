"""Plain implementations, written straight from the definitions: what the library is measured against."""

import math

import numpy as np
import torch
from scipy.optimize import fminbound, minimize_scalar


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
        objective = _robust(losses, constant)
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
    return network.weight.detach().numpy().reshape(-1).astype(np.float64)


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
            total = total + _robust(losses, constant)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    return network.weight.detach().numpy().reshape(-1).astype(np.float64)


def _robust(losses, constant):
    """The chi-square objective, its eta from a scalar minimiser."""
    values = losses.detach().numpy().astype(np.float64)
    eta = float(
        fminbound(
            lambda e: constant * np.sqrt(np.mean(np.maximum(values - e, 0) ** 2)) + e,
            values.min() - 1000,
            values.max(),
        )
    )
    return constant * torch.sqrt(torch.mean(torch.relu(losses - eta) ** 2)) + eta


def dro_cox_objective(theta, X, event, time, alpha):
    """The objective of DRO-COX at one theta, ties and all, from an n x n comparison of times."""
    scores = X @ theta
    at_risk = (time[None, :] >= time[:, None]) @ np.exp(scores)
    losses = event * (np.log(at_risk) - scores)
    constant = radius_constant(alpha)

    def value(eta):
        return constant * np.sqrt(np.mean(np.maximum(losses - eta, 0) ** 2)) + eta

    bounds = losses.min() - 1000, losses.max()
    return minimize_scalar(value, bounds=bounds, method="bounded", options={"xatol": 1e-12}).fun


def concordance_imparity(time, event, risk, groups):
    """Algorithm B.1 as a double loop over Python lists."""
    time, event, risk, groups = time.tolist(), event.tolist(), risk.tolist(), groups.tolist()
    gained, compared = dict.fromkeys(groups, 0.0), dict.fromkeys(groups, 0)
    n = len(time)
    for i in range(n):
        time_i, event_i, risk_i, group = time[i], event[i], risk[i], groups[i]
        for j in range(n):
            if i == j:
                continue
            time_j, risk_j = time[j], risk[j]
            if time_i < time_j:
                if not event_i:
                    continue
                gain = 1.0 if risk_i > risk_j else 0.5 if risk_i == risk_j else 0.0
            elif time_i > time_j:
                if not event[j]:
                    continue
                gain = 1.0 if risk_i < risk_j else 0.5 if risk_i == risk_j else 0.0
            elif event_i and event[j]:
                gain = 1.0 if risk_i == risk_j else 0.5
            elif event[j]:
                gain = 1.0 if risk_i < risk_j else 0.5
            elif event_i:
                gain = 1.0 if risk_i > risk_j else 0.5
            else:
                continue
            gained[group] += gain
            compared[group] += 1
    fractions = [gained[group] / compared[group] for group in gained]
    return max(fractions) - min(fractions)


def individual_disparity(risk, X, scale=0.01):
    """F_I under the tables' convention, as a double loop over Python lists, which is as fast as such a loop gets."""
    hazard, rows = np.exp(risk).tolist(), _unit_rows(X).tolist()
    n, total = len(hazard), 0.0
    for i in range(n):
        hazard_i, row = hazard[i], rows[i]
        for j in range(i + 1, n):
            excess = abs(hazard_i - hazard[j]) - scale * math.dist(row, rows[j])
            if excess > 0:
                total += excess
    return total / (n * (n - 1))


def _unit_rows(X):
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(length == 0, 1, length)
