"""Boosted Cox beside XGBoost's survival:cox, both stopped early by the same patients, where a minority is hidden.

export PYTHONPATH=.venv/bench-peers                               # where `make bench` puts XGBoost
python -m experiments.studies.boosters --jobs 16 --output results/boosters    # resumable: what is measured is kept
python -m experiments.studies.boosters --output results/boosters --write      # docs/guide/flexible_models.md
"""

from itertools import product

import numpy as np
from sklearn.model_selection import train_test_split

from drosurv import CoxPH, Trees
from drosurv.metrics import concordance_index
from experiments.studies.gains import patient_gains
from experiments.studies.pages import mean_se, table, write_part
from experiments.studies.rows import load, measure, parser
from experiments.studies.subgroup_robust import SETTINGS, setting_name, synthetic

ROUNDS = 500
NAMED = {setting_name(setting): setting for setting in SETTINGS}


def ours(train, seed):
    """Scores of patients by our trees."""
    model = CoxPH(Trees(max_iter=ROUNDS), random_state=seed)
    return model.fit(train.X.to_numpy(), train.y).predict


def xgboost(train, seed):
    """Scores of patients by XGBoost's trees, of the same depth and shrinkage."""
    import xgboost as library

    time = np.where(train.y["event"], train.y["time"], -train.y["time"])
    # As CoxPH does by default.
    parts = train_test_split(
        np.arange(len(time)),
        test_size=Trees.validation_fraction,
        stratify=train.y["event"],
        random_state=seed,
    )
    grown, validation = (library.DMatrix(train.X.to_numpy()[rows], time[rows], nthread=1) for rows in parts)
    settings = {"objective": "survival:cox", "max_depth": 3, "eta": 0.05, "nthread": 1, "seed": seed}
    booster = library.train(
        settings,
        grown,
        ROUNDS,
        evals=[(validation, "validation")],
        early_stopping_rounds=Trees.n_iter_no_change,
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
    """c-index and gains of both on new patients, in one row."""
    train, test, rows = synthetic(NAMED[setting], seed)
    found = {}
    for name, grow in (("ours", ours), ("xgboost", xgboost)):
        scores = grow(train, seed)
        gains = patient_gains(WithBaseline(scores, train), train.y, test.X, test.y)
        found |= {
            f"{name} c": concordance_index(test.y, scores(test.X.to_numpy())),
            f"{name} gain": gains.mean(),
            f"{name} minority": gains[rows["minority"]].mean(),
        }
    return [found]


def text(found):
    """The table: means of both, and the mean difference seed by seed."""
    lines = []
    for name in NAMED:
        seen = found[found["setting"] == name]
        cells = []
        for what in ("gain", "minority"):
            one, other = seen[f"ours {what}"], seen[f"xgboost {what}"]
            cells += [f"{one.mean():.3f}", f"{other.mean():.3f}", mean_se(one - other, 4)]
        lines.append([name, *cells, mean_se(seen["ours c"] - seen["xgboost c"], 4)])
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
    seeds = found.groupby("setting").size().min()
    return "\n".join(
        [f"{seeds} seeds, standard errors of the mean differences in parentheses:", "", *table(header, lines)]
    )


def main():
    """Measure what is missing, or write the page's table."""
    options = parser(__doc__, "boosters", seeds=50, first=0).parse_args()
    if options.write:
        said = text(load(options.output))
        write_part("guide/flexible_models.md", "python -m experiments.studies.boosters", said)
        return
    seeds = range(options.first, options.first + options.seeds)
    # Seed by seed, so that whatever is finished is balanced.
    units = [{"setting": name, "seed": seed} for seed, name in product(seeds, NAMED)]
    measure(options.output, units, measured, options.jobs, options.minutes)
    print(text(load(options.output)))


if __name__ == "__main__":
    main()
