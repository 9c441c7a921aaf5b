"""
Robust training in your own torch loop
======================================

Losses and objectives are plain functions on tensors: one loss per patient, then a robust mean of them.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from drosurv import datasets
from drosurv.losses import cox_partial
from drosurv.objectives import chi_square, worst_case_weights

data = datasets.make_hidden_minority(n_samples=1000, random_state=0)
X = torch.tensor(data.X.to_numpy(), dtype=torch.float32)
event = torch.tensor(np.ascontiguousarray(data.y["event"]))
time = torch.tensor(np.ascontiguousarray(data.y["time"]))

torch.manual_seed(0)
network = torch.nn.Linear(X.shape[1], 1, bias=False)
optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
history = []
for _ in range(150):
    losses = cox_partial(network(X).squeeze(-1), event, time)
    objective = chi_square(losses, alpha=0.3)
    optimizer.zero_grad()
    objective.backward()
    optimizer.step()
    history.append(objective.item())

# %%
# The worst-case weights say how much each patient counts in the objective.

weights = worst_case_weights(losses.detach(), alpha=0.3)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.plot(history)
left.set(xlabel="step", ylabel="robust objective")
right.plot(losses.detach(), weights, ".")
right.set(xlabel="loss", ylabel="weight in the worst case")
plt.show()
