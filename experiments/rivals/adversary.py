"""ARL: an adversary that weighs patients by a function of their features, and learns where losses are high."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from drosurv.objectives.objective import Evaluation, Objective
from drosurv.patients.target import FloatArray


class Adversary(Objective):
    """Weights q_i = p_i (1 + a_i / mean a) / 2 with a_i = sigmoid(w . x_i), w learnt by ascent on the weighted loss.

    Every evaluation is one round of the game: weights from the current w, then one step of Adam on w. Because a
    function of features decides, patients are weighed up in regions and not one by one. X (n, d) is standardised.
    """

    by_patient = True

    def __init__(self, X: FloatArray, lr: float) -> None:
        self.X: FloatArray = np.column_stack([X, np.ones(len(X))])
        self.lr, self.step = lr, 0
        self.w: FloatArray = np.zeros((1, self.X.shape[1]))
        self._first = self._second = np.zeros_like(self.w)

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Value and weights, after which the adversary learns."""
        if len(self.w) != len(losses):
            self.w = np.zeros((len(losses), self.X.shape[1]))
            self._first = self._second = np.zeros_like(self.w)
        a = expit(self.w @ self.X.T)
        mean = (a @ mass)[:, None]
        weights = 0.5 * mass * (1.0 + a / mean)
        value = (weights * losses).sum(axis=1)
        # d value / d a_i = p_i (l_i - sum_j p_j a_j l_j / mean) / (2 mean).
        weighted = ((a * losses) @ mass)[:, None] / mean
        self._learn((0.5 * mass * (losses - weighted) / mean * a * (1.0 - a)) @ self.X)
        return Evaluation(value, weights, value)

    def _learn(self, slope: FloatArray) -> None:
        self.step += 1
        self._first = 0.9 * self._first + 0.1 * slope
        self._second = 0.999 * self._second + 0.001 * slope**2
        first, second = self._first / (1 - 0.9**self.step), self._second / (1 - 0.999**self.step)
        self.w = self.w + self.lr * first / (np.sqrt(second) + 1e-8)
