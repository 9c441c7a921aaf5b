"""Linear models, boosted trees, networks and rivals on patients held out: c-index and likelihood gain.

python -m experiments.studies.flexible_models          # writes its tables into docs/guide/flexible_models.md
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from drosurv import (
    MLP,
    AcceleratedFailureTime,
    CoxPH,
    DeepHit,
    DiscreteTimeHazard,
    DROCox,
    SubgroupRobustCox,
    Trees,
    datasets,
)
from drosurv.metrics import concordance_index
from drosurv.metrics.likelihood_gain import likelihood_gains
from experiments.rivals import AdversarialReweighting, DroppedOutlierDRO, JustTrainTwice
from experiments.studies import pages

WIDE = (64, 64)
STOPPED = Trees(early_stopping=True)
MODELS = {
    "`CoxPH`": CoxPH(),
    "`CoxPH`, trees, 500 rounds": CoxPH(network=Trees(early_stopping=False)),
    "`CoxPH`, trees, early stopping": CoxPH(network=STOPPED),
    "`CoxPH`, mlp of 24": CoxPH(network="mlp", solver="adam"),
    "`CoxPH`, mlp of 64, 64": CoxPH(network=MLP(WIDE), solver="adam"),
    "`CoxPH`, mlp of 64, 64, early stopping, dropout .2": CoxPH(
        network=MLP(WIDE, early_stopping=True, dropout=0.2)
    ),
    "the same in batches of 256": CoxPH(network=MLP(WIDE, early_stopping=True, dropout=0.2, batch_size=256)),
    "`DROCox`, alpha .5, trees, early stopping": DROCox(alpha=0.5, network=STOPPED, recalibrate=False),
    "the same, recalibrated": DROCox(alpha=0.5, network=STOPPED, recalibrate=True),
    "`SubgroupRobustCox`": SubgroupRobustCox(recalibrate=False),
    "`SubgroupRobustCox`, trees, early stopping": SubgroupRobustCox(network=STOPPED, recalibrate=False),
    "`SubgroupRobustCox`, alpha .3, trees, early stopping": SubgroupRobustCox(
        alpha=0.3, network=STOPPED, recalibrate=False
    ),
    "`AcceleratedFailureTime`, Weibull": AcceleratedFailureTime(),
    "`DiscreteTimeHazard`": DiscreteTimeHazard(),
    "`DiscreteTimeHazard`, trees, early stopping": DiscreteTimeHazard(network=STOPPED),
    "`DeepHit`, early stopping": DeepHit(network=MLP(early_stopping=True)),
    "`JustTrainTwice`": JustTrainTwice(),
    "`AdversarialReweighting`": AdversarialReweighting(),
    "`DroppedOutlierDRO`, alpha .5": DroppedOutlierDRO(alpha=0.5),
}


def flc(seed):
    """FLC's patients, a fifth held out; those who died on the first day count as half a day, for log times."""
    data = datasets.load_flc()
    data.y["time"] = np.maximum(data.y["time"], 0.5)
    train, _, test = datasets.split(data, seed, test_seed=seed, validation_size=0.05)
    return train, test, np.zeros(len(test), dtype=bool)


def hidden_minority(seed):
    """1,500 patients with a hidden minority, and 4,000 new ones."""
    train = datasets.make_hidden_minority(1500, random_state=seed)
    test = datasets.make_hidden_minority(4000, random_state=1000 + seed)
    return train, test, (test.sensitive_features["membership"] == "minority").to_numpy()


def measured(model, train, test, minority, seed):
    """C-index and gains of one model."""
    estimator = clone(MODELS[model]).set_params(random_state=seed)
    fitted = make_pipeline(StandardScaler(), estimator).fit(train.X, train.y)
    gains = likelihood_gains(train.y, test.y, fitted.predict_survival_function(test.X))
    found = {"c-index": concordance_index(test.y, fitted.predict(test.X)), "gain": gains.mean()}
    return {**found, "minority's gain": gains[minority].mean()} if minority.any() else found


def table(draw, seeds):
    """Means over the seeds, as Markdown."""
    found = {model: [] for model in MODELS}
    for seed in range(seeds):
        train, test, minority = draw(seed)
        for model in MODELS:
            found[model].append(measured(model, train, test, minority, seed))
    frames = {model: pd.DataFrame(rows) for model, rows in found.items()}
    columns = list(frames["`CoxPH`"].columns)
    rows = [[model, *(f"{value:.3f}" for value in frame.mean())] for model, frame in frames.items()]
    return "\n".join(pages.table(["model", *columns], rows))


def main():
    """Measure, and write the page's tables."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.studies.flexible_models", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=3, help="random divisions, or draws of patients")
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    parts = []
    for title, draw in (
        ("FLC, a fifth of the patients held out", flc),
        ("`make_hidden_minority`", hidden_minority),
    ):
        parts.append(f"{title} (means over {seeds} draws):\n\n{table(draw, seeds)}")
        print(parts[-1], flush=True)
    pages.write_part(
        "guide/flexible_models.md", "python -m experiments.studies.flexible_models", "\n\n".join(parts)
    )


if __name__ == "__main__":
    main()
