"""What recalibration does to held-out patients: calibration slope and integrated Brier score, before and after.

python -m experiments.studies.recalibration            # six minutes; writes its table into docs/guide/shrinkage.md
"""

import argparse
from itertools import product

import pandas as pd
from sklearn.pipeline import make_pipeline

from drosurv import CoxPH, DROCox, SubgroupRobustCox, datasets
from drosurv.metrics import calibration_slope, concordance_index, integrated_brier_score
from drosurv.tables import TableEncoder
from experiments.datasets import load
from experiments.studies import pages

DATA = ("flc", "support2", "colon")
MODELS = {
    "CoxPH": CoxPH(),
    "DROCox, alpha .2": DROCox(alpha=0.2, recalibrate=False),
    "DROCox, alpha .5": DROCox(alpha=0.5, recalibrate=False),
    "SubgroupRobustCox": SubgroupRobustCox(recalibrate=False),
}


def measured(name, model, recalibrate, seed):
    """Slope, Brier score and c-index on the fifth of the patients that the seed keeps away from training."""
    train, _, test = datasets.split(load(name), seed, test_seed=seed, validation_size=0.05, impute=False)
    estimator = MODELS[model].set_params(recalibrate=recalibrate, random_state=seed)
    fitted = make_pipeline(TableEncoder(), estimator).fit(train.X, train.y)
    risk = fitted.predict(test.X)
    return {
        "data": name,
        "model": model,
        "recalibrate": recalibrate,
        "seed": seed,
        "slope": calibration_slope(test.y, risk),
        "IBS": integrated_brier_score(train.y, test.y, fitted.predict_survival_function(test.X)),
        "c-index": concordance_index(test.y, risk),
    }


def table(found):
    """Means over the seeds, before and after, as Markdown."""
    means = found.drop(columns="seed").groupby(["data", "model", "recalibrate"], sort=False).mean()
    rows = []
    for data, model in product(DATA, MODELS):
        before, after = means.loc[(data, model, False)], means.loc[(data, model, True)]
        slopes = f"{before['slope']:.2f}", f"{after['slope']:.2f}"
        rows.append(
            [data, model, f"{before['c-index']:.3f}", *slopes, f"{before['IBS']:.4f}", f"{after['IBS']:.4f}"]
        )
    header = ["data", "model", "c-index", "slope", "recalibrated", "IBS", "recalibrated"]
    return "\n".join(pages.table(header, rows))


def main():
    """Measure, and write the page's table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.studies.recalibration", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="random divisions into training and test part")
    seeds = parser.parse_args().seeds
    units = product(DATA, MODELS, (False, True), range(seeds))
    text = table(pd.DataFrame([measured(*unit) for unit in units]))
    print(text)
    said = f"{text}\nMeans over {seeds} random divisions, a fifth of the patients held out."
    pages.write_part("guide/shrinkage.md", "python -m experiments.studies.recalibration", said)


if __name__ == "__main__":
    main()
