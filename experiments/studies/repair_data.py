"""Patients for the study of find and repair, and the models it is compared with."""

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from drosurv import CoxPH, Surv
from drosurv.curves import step_functions
from drosurv.datasets import Dataset, make_hidden_minority
from drosurv.metrics import FollowUp
from drosurv.patients.target import parse_target
from experiments.paper.scoring import breslow

MAJORITY, MINORITY = np.array([0.8, 0.5, 0.3, 0.0]), np.array([-0.6, 0.5, 0.3, 0.5])
CUT = 1.0364  # the 85 % quantile of a standard normal


def oblique(k):
    return lambda x, rng: x[:, 4 : 4 + k].sum(axis=1) / np.sqrt(k) > CUT


# What differs from the default: n, d, who belongs to the minority, what differs there.
SETTINGS = {
    "default": {},
    "minority 5 %": {"minority": 0.05},
    "n = 500": {"n": 500},
    "n = 2,000": {"n": 2000},
    "nonlinear membership": {"membership": "nonlinear"},
    "d = 50": {"d": 50},
    "x5 > .5 and x6 > .5": {"member": lambda x, rng: (x[:, 4] > 0.5) & (x[:, 5] > 0.5)},
    "level shift only": {"effects": MAJORITY, "level": 1.0},
    "no group": {"minority": 0.0},
    "no group, n = 500": {"minority": 0.0, "n": 500},
    "oblique, two features": {"member": oblique(2)},
    "oblique, four features": {"member": oblique(4)},
    "no covariate marks it": {"member": lambda x, rng: rng.random(len(x)) < 0.15},
    "another hazard shape": {"effects": MAJORITY, "shape": 2.0},
    "smooth nonlinearity, no group": {"minority": 0.0, "smooth": 0.5},
}


def draw(setting, seed, n_test):
    """Training and test patients, and who of each belongs to the minority."""
    options = SETTINGS[setting]
    sets = [
        one_draw(options, n, 1000 * part + 10_000 + seed)
        for part, n in enumerate((options.get("n", 4000), n_test))
    ]
    return sets[0][0], sets[1][0], (sets[0][1], sets[1][1])


def one_draw(options, n, seed):
    d, minority = options.get("d", 10), options.get("minority", 0.15)
    if not {"member", "effects", "smooth"} & set(options):
        data = make_hidden_minority(n, d, minority, options.get("membership", "linear"), random_state=seed)
        return data, (data.sensitive_features["membership"] == "minority").to_numpy()
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    inside = options.get("member", lambda x, rng: x[:, 4] > CUT)(x, rng) if minority else np.zeros(n, bool)
    effects = np.where(inside[:, None], options.get("effects", MINORITY), MAJORITY)
    risk = (x[:, :4] * effects).sum(axis=1) + options.get("level", 0.0) * inside
    risk = risk + options.get("smooth", 0.0) * (x[:, 1] ** 2 - 1)
    shape = np.where(inside, options.get("shape", 1.0), 1.0)
    event = (rng.exponential(size=n) / np.exp(risk)) ** (1 / shape)
    end = 1.5 * rng.exponential(size=n)
    frame = pd.DataFrame(x, columns=[f"x{j + 1}" for j in range(d)])
    y = Surv.from_arrays(event <= end, np.minimum(event, end))
    group = pd.DataFrame({"membership": np.where(inside, "minority", "majority")})
    return Dataset("planted", frame, y, group, pd.DataFrame({"log_risk": risk})), inside


class GroupCox:
    """Cox with separate effects for the minority, whose members it knows: the most that a repair can reach."""

    def __init__(self, inside):
        self.inside = inside

    def _own(self, X, inside):
        own = X.mul(inside.astype(float), axis=0).add_suffix(" there")
        return pd.concat([X, own.assign(there=inside.astype(float))], axis=1)

    def fit(self, X, y):
        self.model = CoxPH(l2=1e-4).fit(self._own(X, self.inside[0]), y)
        self.follow_up_ = self.model.follow_up_
        return self

    def predict_survival_function(self, X, times):
        return self.model.predict_survival_function(self._own(X, self.inside[1][X.index]), times=times)


class BoostedTrees(BaseEstimator):
    """Boosted trees of the Cox kind: Poisson boosting of events against a cumulative hazard, which is then refitted."""

    def __init__(self, n_trees=150, learning_rate=0.05, leaves=8, rounds=2, random_state=0):
        self.n_trees, self.learning_rate, self.leaves = n_trees, learning_rate, leaves
        self.rounds, self.random_state = rounds, random_state

    def fit(self, X, y):
        from sklearn.ensemble import HistGradientBoostingRegressor

        target = parse_target(y)
        scores = np.zeros(len(target))
        for _ in range(self.rounds):
            base = breslow(target, scores)
            place = np.searchsorted(base.times, target.time, side="right") - 1
            hazard = np.maximum(np.exp(base.log_cumulative[np.maximum(place, 0)]), 1e-4)
            self.trees_ = HistGradientBoostingRegressor(
                loss="poisson",
                # Fewer trees for fewer patients, or they learn them by heart.
                max_iter=min(self.n_trees, len(target) // 10),
                learning_rate=self.learning_rate,
                max_leaf_nodes=self.leaves,
                max_bins=64,
                min_samples_leaf=30,
                early_stopping=False,
                random_state=self.random_state,
            ).fit(np.asarray(X), target.event / hazard, sample_weight=hazard)
            scores = self.predict(X)
        self._baseline = breslow(target, scores)
        self.follow_up_ = FollowUp.of(target)
        return self

    def predict(self, X):
        return np.log(self.trees_.predict(np.asarray(X)))

    def predict_survival_function(self, X, times=None):
        hazard = self._baseline.cumulative_hazard(
            self.predict(X), None if times is None else np.asarray(times, float)
        )
        return np.exp(-hazard) if times is not None else step_functions(self._baseline.times, np.exp(-hazard))


def skewed(rng, n=2000):
    return pd.DataFrame(np.exp(rng.normal(size=(n, 8))), columns=[f"x{j}" for j in range(8)])


def normal(rng, n, d=8):
    return pd.DataFrame(rng.normal(size=(n, d)), columns=[f"x{j}" for j in range(d)])


def _correlated(rng):
    z = 0.8 * rng.normal(size=(2000, 1)) + 0.6 * rng.normal(size=(2000, 8))
    return pd.DataFrame(z, columns=[f"x{j}" for j in range(8)])


def _categorical(rng):
    table = normal(rng, 2000, 3)
    for j, k in enumerate((2, 3, 5, 12)):
        table[f"c{j}"] = pd.Series(rng.choice(k, 2000, p=rng.dirichlet(np.full(k, 3.0))).astype(str)).map(
            lambda text: f"level {text}"
        )
    return table


def _missing(rng):
    table = _categorical(rng)
    for name in table.columns:
        table[name] = table[name].where(rng.random(2000) > 0.15)
    return table


# Tables, and how long patients are followed; hazards are those of a Cox model that is right.
NULLS = {
    "normal covariates": (lambda rng: normal(rng, 2000), 1.5),
    "skewed covariates": (skewed, 1.5),
    "small n": (lambda rng: normal(rng, 300), 1.5),
    "heavy censoring": (lambda rng: normal(rng, 4000), 0.08),
    "categorical columns": (_categorical, 1.5),
    "correlated features": (_correlated, 1.5),
    "missing values": (_missing, 1.5),
}


def draw_null(family, seed):
    """Patients of whom a Cox model is right, and that model, unfitted."""
    from sklearn.pipeline import make_pipeline

    from drosurv.tables import TableEncoder

    rng = np.random.default_rng(50_000 + seed)
    make, followed = NULLS[family]
    table = make(rng)
    # What the model sees is what the hazard depends on, so that no filled-in value makes it wrong.
    plain = family not in ("categorical columns", "missing values")
    seen = table if plain else TableEncoder().fit(table).transform(table)
    x = seen.to_numpy(dtype=float)
    risk = ((x - x.mean(axis=0)) / x.std(axis=0)) @ rng.normal(scale=0.4, size=x.shape[1])
    event, end = rng.exponential(size=len(x)) / np.exp(risk), followed * rng.exponential(size=len(x))
    y = Surv.from_arrays(event <= end, np.minimum(event, end))
    return table, y, None if plain else make_pipeline(TableEncoder(), CoxPH())


def draw_level(n, rho, seed):
    """Patients of whom a tenth, by x5, have rho times the hazard that was predicted for them."""
    rng = np.random.default_rng(130_000 + seed)
    X = normal(rng, n, 10)
    inside = (X["x5"] > 1.2816).to_numpy()
    hazard = np.exp(0.5 * X["x0"] + 0.5 * X["x1"]).to_numpy()
    event = rng.exponential(size=n) / hazard / np.where(inside, rho, 1.0)
    end = 1.5 * rng.exponential(size=n)
    times = np.linspace(0.05, 6, 120)
    predicted = (times, np.exp(-np.outer(hazard, times)))
    return X, Surv.from_arrays(event <= end, np.minimum(event, end)), inside, predicted
