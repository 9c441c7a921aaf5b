"""The page's model of a user's own loss: what it prints is what maximum likelihood says, under any worst case."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from drosurv import MLP, Surv, Trees

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
CODE = re.search(r"## A model of your own loss.*?```python\n(.*?)```", PAGE, re.DOTALL)[1]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
DIED, END = RNG.exponential(size=300) / np.exp(X @ [0.8, -0.4] - 1.0), RNG.uniform(0.5, 6.0, size=300)
Y = Surv.from_arrays(DIED <= END, np.minimum(DIED, END))


@pytest.fixture(scope="module")
def model():
    names = {"__name__": "page"}
    exec(compile(CODE, "docs/extending.md", "exec"), names)
    return names["RobustExponential"]


def losses(p):
    log_hazard = X @ p[:2] + p[2]
    return np.exp(log_hazard) * Y["time"] - Y["event"] * log_hazard


def test_the_page_keeps_its_promise_of_few_lines():
    loss_and_model = CODE[CODE.index("def exponential") :]
    assert len([line for line in loss_and_model.splitlines() if line.strip()]) <= 28


def test_the_average_loss_gives_the_maximum_of_the_likelihood(model):
    found = model(alpha=1.0, lr=0.1, max_iter=300, random_state=0).fit(X, Y)
    best = minimize(lambda p: losses(p).mean(), np.zeros(3), options={"gtol": 1e-9}).x
    np.testing.assert_allclose(found.coef_, best[:2], atol=1e-5)


def test_the_worst_case_is_that_of_the_same_loss(model):
    settings = {"lr": 0.03, "max_iter": 300, "recalibrate": False, "random_state": 0}
    found = model(alpha=0.5, ball="cvar", **settings).fit(X, Y)

    def worst_half(p):
        return np.sort(losses(p))[-150:].mean()

    best = minimize(
        worst_half, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10}
    ).fun
    assert best - 1e-9 <= found.objective_ <= best + 1e-6


@pytest.mark.parametrize("network", [MLP(max_iter=40), Trees(max_iter=12)], ids=["mlp", "trees"])
def test_other_networks_train_on_it(model, network):
    found = model(alpha=0.5, network=network, recalibrate=False, random_state=0).fit(X, Y)
    assert found.score(X, Y) > 0.65
    assert found.objective_ < found.history_[0]
