"""The perceptron as the paper trains it and as practitioners do, on real data.

python -m experiments.studies.networks                 # writes its table into docs/guide/flexible_models.md
"""

import argparse
import warnings

import pandas as pd
from sklearn.base import clone

from drosurv import MLP, CoxPH
from drosurv.metrics import concordance_index
from drosurv.metrics.likelihood_gain import likelihood_gains
from experiments.benchmark.contenders import CONTENDERS
from experiments.benchmark.encoded_part import split_in_two
from experiments.benchmark.measures import time_grid
from experiments.datasets import load
from experiments.studies import pages

DATA = ("flc", "support", "colon", "uis", "mgus2", "actg")
PAPER = '24, all patients at once, 500 steps: the paper\'s, `solver="adam"`'
DEEPSURV = "the benchmark's DeepSurv"
NETWORKS = {
    "no network: linear": CoxPH(),
    PAPER: CoxPH("mlp", solver="adam"),
    "64, 64, trained the same way": CoxPH(MLP((64, 64)), solver="adam"),
    "24, stopped early: the default": CoxPH("mlp"),
    "64, 64, stopped early, dropout .2": CoxPH(MLP((64, 64), dropout=0.2)),
    DEEPSURV: None,
}


def measured(name, seed):
    """Gain and c-index of every network on the test patients of one split."""
    train, test = split_in_two(load(name), seed)
    times = time_grid(train)
    for label, network in NETWORKS.items():
        if label == DEEPSURV:
            model = CONTENDERS["deepsurv"].fit(train, seed)
        else:
            model = clone(network).set_params(random_state=seed).fit(train.X, train.y)
        curves = model.predict_survival_function(test.X, times=times)
        yield {
            "data": name,
            "seed": seed,
            "network": label,
            "gain": likelihood_gains(train.y, test.y, curves, times).mean(),
            "c-index": concordance_index(test.y, model.predict(test.X)),
        }


def text(found, seeds):
    """Gains by dataset, and the c-index over all."""
    names = list(found.data.unique())
    gains = found.pivot_table(index="network", columns="data", values="gain")
    c_index = found.groupby("network")["c-index"].mean()
    rows = []
    for network in NETWORKS:
        own = gains.loc[network]
        cells = [*(own[name] for name in names), own.mean(), c_index[network]]
        rows.append([network, *(f"{cell:.3f}" for cell in cells)])
    header = ["gain", *names, "mean", "mean c-index"]
    return "\n".join([f"Means over {seeds} splits of 60 to 40:", "", *pages.table(header, rows)])


def main():
    """Measure, and write the page's table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.studies.networks", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="random splits")
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    found = pd.DataFrame([row for seed in range(seeds) for name in DATA for row in measured(name, seed)])
    said = text(found, seeds)
    print(said)
    pages.write_part("guide/flexible_models.md", "python -m experiments.studies.networks", said)


if __name__ == "__main__":
    main()
