"""What 500 evaluations of each penalty cost on FLC's training set: value and gradient, one model, one thread.

The references are the times the project asks for, of which a penalty is the larger part of a training run.
"""

import time
from functools import partial

import numpy as np
import torch

from bench.clock import best
from drosurv.datasets import load_flc, split
from drosurv.disparities import PENALTIES
from drosurv.target import parse_target

STEPS = 500
LIMITS = {
    "keya_individual": 25.0,
    "keya_group": 0.8,
    "keya_intersectional": 0.8,
    "rp_individual": 25.0,
    "rp_group": 0.8,
}
# Nearly every pair is then inside the hinge or near it: the costliest scores there are. The limits are for
# training at the paper's weights (.4 to 1), which stays far from them; a weight of 100 does not.
HARDEST = {"all scores equal", "scores as narrow as the hinge"}
GPU_LIMIT, GPU_BATCHED_LIMIT = 3.0, 0.3
GPU_MODELS = 32


def training_set():
    """Standardised features, target and age groups of FLC's training part."""
    train = split(load_flc(), 0)[0]
    X = train.X.to_numpy(dtype=np.float64)
    groups = train.sensitive_features.iloc[:, 0].to_numpy()
    codes = np.unique(groups, return_inverse=True)[1]
    return (X - X.mean(axis=0)) / X.std(axis=0), parse_target(train.y), codes


def score_situations(X, target):
    """Scores that training passes through, and the two that are hardest on a pairwise penalty."""
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    torch.manual_seed(1)
    initial = X @ torch.nn.Linear(X.shape[1], 1, bias=False).weight.detach().numpy()[0].astype(np.float64)
    fitted = X @ CoxPHSurvivalAnalysis(alpha=1e-4).fit(X, target.to_structured()).coef_
    return {
        "initial scores": initial,
        "half-fitted scores": 0.5 * fitted,
        "fitted scores": fitted,
        "all scores equal": np.zeros(len(X)),
        "scores as narrow as the hinge": 0.01 * initial / initial.std(),
    }


def on_gpu(penalty, scores):
    """One evaluation with its backward pass, waited for."""
    scores.grad = None
    penalty.torch(scores).sum().backward()
    torch.cuda.synchronize()


def measure():
    """Rows of name, seconds of 500 evaluations (for one model), and the reference in seconds."""
    X, target, codes = training_set()
    situations = score_situations(X, target)
    rows = []
    for name, kind in PENALTIES.items():
        begin = time.perf_counter()
        penalty = kind(X, target, codes, int(codes.max()) + 1, 0.01)
        penalty(situations["initial scores"][None])
        preparation = time.perf_counter() - begin
        rows.append({"name": f"{name}, preparation", "seconds": preparation, "reference": None})
        for situation, scores in situations.items():
            seconds = STEPS * best(partial(penalty, scores[None]), 7).wall
            limit = None if situation in HARDEST else LIMITS[name]
            rows.append({"name": f"{name}, {situation}", "seconds": seconds, "reference": limit})
        if torch.cuda.is_available():
            for models, limit in ((1, GPU_LIMIT), (GPU_MODELS, GPU_BATCHED_LIMIT)):
                many = np.linspace(0.1, 1.0, models)[:, None] * situations["fitted scores"]
                leaf = torch.tensor(many, dtype=torch.float32, device="cuda", requires_grad=True)
                seconds = STEPS * best(partial(on_gpu, penalty, leaf), 7).wall / models
                rows.append({"name": f"{name}, GPU, {models} models", "seconds": seconds, "reference": limit})
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
