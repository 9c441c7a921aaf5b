"""Boosted Cox beside XGBoost's survival:cox, both stopped early by the same patients, where a minority is hidden.

PYTHONPATH=.venv/bench-peers python -m studies.boosters    # writes its table into docs/guide/flexible_models.md
"""

import argparse

import numpy as np
import pandas as pd

from drosurv import CoxPH
from drosurv.metrics import concordance_index
from drosurv.solvers import Stopping
from studies.pages import mean_se, table, write_part
from studies.subgroup_robust import SETTINGS, patient_gains, setting_name, synthetic

STOPPING = Stopping(fraction=0.1, patience=CoxPH.n_iter_no_change)
ROUNDS = 500


def ours(train, seed):
    """Scores of patients by our trees."""
    model = CoxPH("trees", max_iter=ROUNDS, validation_fraction=STOPPING.fraction, random_state=seed)
    return model.fit(train.X.to_numpy(), train.y).predict


def xgboost(train, seed):
    """Scores of patients by XGBoost's trees, of the same depth and shrinkage."""
    import xgboost as library

    time = np.where(train.y["event"], train.y["time"], -train.y["time"])
    grown, held = (
        library.DMatrix(train.X.to_numpy()[rows], time[rows], nthread=1)
        for rows in STOPPING.divided(train.y["event"], seed)
    )
    settings = {"objective": "survival:cox", "max_depth": 3, "eta": 0.05, "nthread": 1, "seed": seed}
    booster = library.train(
        settings,
        grown,
        ROUNDS,
        evals=[(held, "held")],
        early_stopping_rounds=STOPPING.patience,
        verbose_eval=False,
    )
    best = (0, booster.best_iteration + 1)
    return lambda X: booster.predict(library.DMatrix(X), output_margin=True, iteration_range=best).astype(
        float
    )


class WithBaseline:
    """Curves of given scores from Breslow's baseline: XGBoost has none, so both get the same."""

    def __init__(self, scores, train):
        self.scores = scores
        nothing = np.zeros((len(train.y), 1))
        self.cox = CoxPH().fit(nothing, train.y, offset=scores(train.X.to_numpy()))

    def predict_survival_function(self, X, times):
        nothing = np.zeros((len(X), 1))
        return self.cox.predict_survival_function(nothing, times=times, offset=self.scores(X.to_numpy()))


def measured(setting, seed):
    """c-index and gains of both on new patients."""
    train, test, rows = synthetic(setting, seed)
    found = {}
    for name, grow in (("ours", ours), ("xgboost", xgboost)):
        scores = grow(train, seed)
        gains = patient_gains(WithBaseline(scores, train), train, test, test.X)
        found |= {
            f"{name} c": concordance_index(test.y, scores(test.X.to_numpy())),
            f"{name} gain": gains.mean(),
            f"{name} minority": gains[rows["minority"]].mean(),
        }
    return found


def text(found):
    """The table: means of both, and the mean difference seed by seed."""
    lines = []
    for name, rows in found.items():
        seen = pd.DataFrame(rows)
        cells = []
        for what in ("gain", "minority"):
            one, other = seen[f"ours {what}"], seen[f"xgboost {what}"]
            cells += [f"{one.mean():.3f}", f"{other.mean():.3f}", mean_se(one - other, 4)]
        lines.append([name, *cells, mean_se(seen["ours c"] - seen["xgboost c"], 4)])
    seeds = len(next(iter(found.values())))
    header = [
        "setting",
        "gain",
        "XGBoost",
        "difference",
        "minority's gain",
        "XGBoost",
        "difference",
        "of c-index",
    ]
    return "\n".join(
        [f"{seeds} seeds, standard errors of the mean differences in parentheses:", "", *table(header, lines)]
    )


def main():
    """Measure, and write the page's table after every seed, so that it can be stopped."""
    parser = argparse.ArgumentParser(prog="python -m studies.boosters", description=__doc__)
    parser.add_argument("--seeds", type=int, default=50, help="draws of patients")
    found = {setting_name(setting): [] for setting in SETTINGS}
    for seed in range(parser.parse_args().seeds):
        for rows, setting in zip(found.values(), SETTINGS, strict=True):
            rows.append(measured(setting, seed))
        write_part("guide/flexible_models.md", "python -m studies.boosters", text(found))
    print(text(found))


if __name__ == "__main__":
    main()
