"""The methods of the benchmark: one record each. A new method is one more record."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from drosurv.errors import ArgumentError, did_you_mean
from drosurv.estimators import (
    MLP,
    CoxPH,
    CoxPHCV,
    DROCox,
    GroupDROCox,
    NullModel,
    SubgroupRobustCox,
    Trees,
)
from drosurv.metrics import log_partial_likelihood
from drosurv.paper import RegularizedCox
from drosurv.patients.target import FloatArray, IntArray, Surv
from drosurv.repairs import RepairedCox
from experiments.benchmark.encoded_part import EncodedPart
from experiments.benchmark.measures import event_times
from experiments.rivals import AdversarialReweighting, DroppedOutlierDRO, JustTrainTwice

FOLDS = 3
# Ridge that every linear model has, in the mean loss: it keeps coefficients finite where groups have no events.
RIDGE = 1e-4
# XGBoost is no dependency: `make benchmark` installs it in a folder of its own.
sys.path.append(str(Path(sys.prefix, "bench-peers")))


def folds_of(train: EncodedPart, seed: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Rows to train on and rows to score, in folds with events spread evenly."""
    return StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(train.y, train.target.event)


class InteractionsCox:
    """Cox with all products of two features, and a ridge chosen by three-fold cross-validation."""

    ridges = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    # Products of more features than this would outnumber the events of most datasets.
    most = 15

    def __init__(self, train: EncodedPart, seed: int) -> None:
        plain = CoxPH(l2=0.01).fit(train.X, train.y)
        self.columns = np.argsort(-np.abs(plain.coef_), kind="stable")[: self.most]
        X = self._wide(train.X)
        # A product that is the same for everybody becomes a column of zeros.
        self.scaler = StandardScaler().fit(X)
        X = self.scaler.transform(X)
        scores = np.zeros(len(self.ridges))
        for fit, left_out in folds_of(train, seed):
            for k, ridge in enumerate(self.ridges):
                model = CoxPH(l2=ridge).fit(X[fit], train.y[fit])
                scores[k] += log_partial_likelihood(train.y[left_out], model.predict(X[left_out]))
        self.model = CoxPH(l2=self.ridges[int(np.argmax(scores))]).fit(X, train.y)

    def predict(self, X: pd.DataFrame) -> FloatArray:
        """Log risks (n,)."""
        return self.model.predict(self.scaler.transform(self._wide(X)))

    def predict_survival_function(self, X: pd.DataFrame, times: Any) -> FloatArray:
        """Survival (n, k) at k times."""
        features = self.scaler.transform(self._wide(X))
        return np.asarray(self.model.predict_survival_function(features, times=times))

    def _wide(self, X: pd.DataFrame) -> FloatArray:
        """The features and their products."""
        values = X.to_numpy(dtype=np.float64)
        first, second = np.triu_indices(len(self.columns), k=1)
        chosen = values[:, self.columns]
        return np.hstack([values, chosen[:, first] * chosen[:, second]])


class SurvivalForest:
    """scikit-survival's random survival forest of 100 trees, on times coarsened to 100 event times."""

    trees = 100

    def __init__(self, train: EncodedPart, seed: int, out_of_bag: bool = False) -> None:
        from sksurv.ensemble import RandomSurvivalForest

        grid = event_times(train, 100)
        time = grid[np.minimum(np.searchsorted(grid, train.target.time), len(grid) - 1)]
        y = Surv.from_arrays(train.target.event, time)
        self.forest = RandomSurvivalForest(
            self.trees,
            min_samples_leaf=15,
            random_state=seed,
            n_jobs=1,
            oob_score=out_of_bag,
            low_memory=out_of_bag,
        )
        self.forest.fit(train.X.to_numpy(), y)

    @property
    def out_of_bag_risk(self) -> FloatArray:
        """Of each training patient, by the trees that were not grown on it, as from ``predict``."""
        return _log_risk(self.forest.oob_prediction_)

    def predict(self, X: pd.DataFrame) -> FloatArray:
        """Log of the expected number of events (n,)."""
        return _log_risk(self.forest.predict(X.to_numpy()))

    def predict_survival_function(self, X: pd.DataFrame, times: Any) -> FloatArray:
        """Survival (n, k) at k times."""
        curves = self.forest.predict_survival_function(X.to_numpy(), return_array=True)
        curves = np.hstack([np.ones((len(X), 1)), curves])
        return curves[:, np.searchsorted(self.forest.unique_times_, times, side="right")]


def _log_risk(events: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(events, 1e-6)))


class ForestRanks:
    """The same forest's risks through a Cox baseline: its ranks, and likelihoods that are not read off its steps.

    A Cox model of one column is fitted to the risks that trees give to patients they were not grown on.
    """

    def __init__(self, train: EncodedPart, seed: int) -> None:
        self.forest = SurvivalForest(train, seed, out_of_bag=True)
        self.model = CoxPH(l2=0.0).fit(_column(self.forest.out_of_bag_risk), train.y)

    def predict(self, X: pd.DataFrame) -> FloatArray:
        """Log risks (n,)."""
        return self.model.predict(_column(self.forest.predict(X)))

    def predict_survival_function(self, X: pd.DataFrame, times: Any) -> FloatArray:
        """Survival (n, k) at k times."""
        return np.asarray(self.model.predict_survival_function(_column(self.forest.predict(X)), times=times))


class TunedTrees:
    """Boosted trees whose depth, step and number of rounds are chosen in folds, then grown on all training patients.

    A Cox model of one column, the scores of held-out folds, makes the curves, so that trees are not too sure.
    """

    # Leaves of a tree, and the learning rate.
    grid = tuple((leaves, lr) for leaves in (4, 8) for lr in (0.03, 0.1))
    rounds = (10, 20, 40, 80, 160)

    def __init__(self, train: EncodedPart, seed: int) -> None:
        scores = {(*at, rounds): np.zeros(len(train.y)) for at in self.grid for rounds in self.rounds}
        total = dict.fromkeys(scores, 0.0)
        for fit, left_out in folds_of(train, seed):
            for at in self.grid:
                grown = self._grown(train.X.iloc[fit], train.y[fit], seed, *at, max(self.rounds))
                for rounds in self.rounds:
                    found = self._scores(grown, train.X.iloc[left_out], rounds)
                    scores[*at, rounds][left_out] = found
                    likelihood = log_partial_likelihood(train.y[left_out], found)
                    total[*at, rounds] += likelihood * train.y["event"][left_out].sum()
        self.chosen = max(total, key=lambda key: total[key])
        self.grown = self._grown(train.X, train.y, seed, *self.chosen)
        self.model = CoxPH(l2=0.0).fit(_column(scores[self.chosen]), train.y)

    def _grown(self, X: pd.DataFrame, y: Any, seed: int, leaves: int, lr: float, rounds: int) -> Any:
        trees = Trees(lr, rounds, early_stopping=False, params={"num_leaves": leaves})
        return CoxPH(trees, random_state=seed).fit(X, y)

    def _scores(self, grown: Any, X: pd.DataFrame, rounds: int) -> FloatArray:
        """Log risks after so many rounds."""
        return np.asarray(grown.network_.scores(X.to_numpy(), rounds))

    def predict(self, X: pd.DataFrame) -> FloatArray:
        """Log risks (n,)."""
        return self.model.predict(_column(self._scores(self.grown, X, self.chosen[-1])))

    def predict_survival_function(self, X: pd.DataFrame, times: Any) -> FloatArray:
        """Survival (n, k) at k times."""
        scores = _column(self._scores(self.grown, X, self.chosen[-1]))
        return np.asarray(self.model.predict_survival_function(scores, times=times))


class TunedXGBoost(TunedTrees):
    """XGBoost's survival:cox, tuned and refitted in the same way; the grid has depths in place of leaves."""

    grid = tuple((depth, lr) for depth in (2, 3) for lr in (0.03, 0.1))

    def _grown(self, X: pd.DataFrame, y: Any, seed: int, leaves: int, lr: float, rounds: int) -> Any:
        import xgboost

        # XGBoost takes the sign of a time for censoring.
        time = np.maximum(y["time"], 1e-8) * np.where(y["event"], 1.0, -1.0)
        settings = {
            "objective": "survival:cox",
            "max_depth": leaves,
            "eta": lr,
            "min_child_weight": 5,
            "nthread": 1,
            "seed": seed,
        }
        return xgboost.train(settings, xgboost.DMatrix(X.to_numpy(), time, nthread=1), rounds)

    def _scores(self, grown: Any, X: pd.DataFrame, rounds: int) -> FloatArray:
        import xgboost

        matrix = xgboost.DMatrix(X.to_numpy(), nthread=1)
        margin = grown.predict(matrix, output_margin=True, iteration_range=(0, rounds))
        return np.asarray(margin, dtype=float)


def _column(scores: FloatArray) -> pd.DataFrame:
    return pd.DataFrame({"score": scores})


REFERENCE = "cox"


@dataclass(frozen=True)
class Contender:
    """A method as the benchmark runs it: its name on the command line and in the results, and what is fitted.

    `settings` are every setting and every choice that is made in training, in words. They are part of what a stored
    result depends on: change the text when the settings change. The `model` is an estimator of the library, or makes
    a fitted model of a part and a seed: one with log risks from ``predict`` and survival at times. It `needs` a package
    that the project does not install by itself; without it the method is run only if it is asked for.
    """

    name: str
    settings: str
    model: Any
    needs: str = ""

    @property
    def installed(self) -> bool:
        """Whether the package that it needs is there."""
        return not self.needs or importlib.util.find_spec(self.needs) is not None

    def fit(self, train: EncodedPart, seed: int) -> Any:
        """A fitted model; the seed is also that of a model inside it."""
        if not isinstance(self.model, BaseEstimator):
            return self.model(train, seed)
        fresh = clone(self.model)
        seeds = {name: seed for name in fresh.get_params() if name.split("__")[-1] == "random_state"}
        return fresh.set_params(**seeds).fit(train.X, train.y)


# Trees and networks stop by patients that are kept away from them.
STOPPED: dict[str, Any] = {"early_stopping": True, "validation_fraction": 0.2}
_STOPPED = "stopped early by a fifth of the training patients"
_PERCEPTRON = MLP((32, 32), lr=0.003, batch_size=256, max_iter=300, dropout=0.1, **STOPPED)
_RIDGE = f"ridge {RIDGE:g}"
_CLEAR = "the library's defaults (everyone alone is recalibrated only if the gain is clear)"
CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender("null", "the training patients' hazard for everybody", NullModel()),
        Contender(REFERENCE, f"{_RIDGE}, no tuning", CoxPH(l2=RIDGE)),
        Contender(
            "cox-ridge",
            "CoxPHCV(splines=False): 13 ridges from 1e-4 to 1 by the cross-validated partial likelihood in five folds",
            CoxPHCV(splines=False),
        ),
        Contender(
            "cox-cv",
            "the library's defaults: linear effects or restricted cubic splines, their penalty 3 or 10 times that of "
            "the linear ones, and 13 ridges from 1e-4 to 1 by the cross-validated partial likelihood in five folds",
            CoxPHCV(),
        ),
        Contender(
            "cox-recalibrated",
            f"{_RIDGE}, scores then stretched by one number found on five folds, no tuning",
            CoxPH(l2=RIDGE, recalibrate=True),
        ),
        Contender(
            "cox-interactions",
            f"products of two among at most {InteractionsCox.most} features, those of largest effect; ridge of "
            f"{', '.join(f'{ridge:g}' for ridge in InteractionsCox.ridges)} by the partial likelihood in three folds",
            InteractionsCox,
        ),
        Contender(
            "dro-paper",
            f"alpha 0.2, the published ball, {_RIDGE}, no tuning",
            DROCox(ball="paper", l2=RIDGE, recalibrate=False, alpha=0.2),
        ),
        Contender(
            "dro",
            f"alpha 0.2, the tight chi-square ball, {_RIDGE}, no tuning",
            DROCox(l2=RIDGE, recalibrate=False, alpha=0.2),
        ),
        Contender(
            "dro-recalibrated",
            f"as above, scores then stretched by one number found on five folds; {_RIDGE}, no tuning",
            DROCox(l2=RIDGE, recalibrate=True, alpha=0.2),
        ),
        Contender(
            "dro-half",
            f"as above with alpha 0.5; {_RIDGE}, no tuning",
            DROCox(alpha=0.5, l2=RIDGE, recalibrate=True),
        ),
        Contender(
            "dro-cvar",
            f"alpha 0.2, {_RIDGE}, no tuning",
            DROCox(ball="cvar", l2=RIDGE, recalibrate=False, alpha=0.2),
        ),
        Contender(
            "subgroup-robust",
            f"the library's defaults (alpha 0.1, least group by size), {_RIDGE}, no tuning",
            SubgroupRobustCox(l2=RIDGE, recalibrate=False),
        ),
        Contender(
            "group-dro",
            f"knows the combinations of the sensitive attributes, {_RIDGE}, no tuning",
            lambda train, seed: GroupDROCox(l2=RIDGE, random_state=seed, recalibrate=False).fit(
                train.X, train.y, sensitive_features=train.cells
            ),
        ),
        Contender(
            "regularized",
            "penalty of Keya et al. on individuals, weight 1, the library's defaults, no tuning",
            RegularizedCox(),
        ),
        Contender(
            "repair",
            f"RepairedCox on Cox with {_RIDGE}, {_CLEAR}, no tuning",
            RepairedCox(CoxPH(l2=RIDGE)),
        ),
        Contender(
            "repair-cv",
            f"RepairedCox on cross-validated Cox, its default, {_CLEAR}, no tuning",
            RepairedCox(CoxPHCV()),
        ),
        Contender(
            "repair-trees",
            f"RepairedCox on the boosted trees below, with their seed, {_CLEAR}; {_STOPPED}",
            RepairedCox(CoxPH(Trees(**STOPPED))),
        ),
        Contender("trees", f"CoxPH on trees; {_STOPPED}", CoxPH(Trees(**STOPPED))),
        Contender(
            "trees-dro",
            f"alpha 0.2, the tight chi-square ball, on trees; {_STOPPED}",
            DROCox(network=Trees(**STOPPED), recalibrate=False, alpha=0.2),
        ),
        Contender(
            "trees-subgroup-robust",
            f"as SubgroupRobustCox, on trees; {_STOPPED}",
            SubgroupRobustCox(network=Trees(**STOPPED), recalibrate=False),
        ),
        Contender(
            "deepsurv",
            "layers of 32 and 32, dropout 0.1, weight decay 0.001, Adam at 0.003 on batches of 256, up to 300 passes; "
            + _STOPPED,
            CoxPH(_PERCEPTRON, l2=1e-3, device="cpu"),
        ),
        Contender(
            "arl",
            f"adversarially reweighted learning, {_RIDGE}, the library's defaults (500 steps of Adam), no tuning",
            AdversarialReweighting(l2=RIDGE),
        ),
        Contender(
            "jtt",
            f"just train twice: the worst fifth counts five times, {_RIDGE}, no tuning",
            JustTrainTwice(l2=RIDGE),
        ),
        Contender(
            "doro",
            f"CVaR at alpha 0.2 without the 5 % largest losses, {_RIDGE}, 500 steps of Adam, no tuning",
            DroppedOutlierDRO(l2=RIDGE),
        ),
        Contender(
            "forest",
            "scikit-survival, 100 trees, at least 15 patients a leaf, times coarsened to 100 event times, no tuning",
            SurvivalForest,
        ),
        Contender(
            "forest-ranks",
            "the same forest; a Cox model of its out-of-bag log risks gives the curves",
            ForestRanks,
        ),
        Contender(
            "trees-tuned",
            "4 or 8 leaves, learning rate 0.03 or 0.1, 10 to 160 rounds by the partial likelihood in three folds, then "
            "grown on all training patients; a Cox model of the folds' scores gives the curves",
            TunedTrees,
        ),
        Contender(
            "xgboost-tuned",
            "survival:cox, depth 2 or 3, learning rate 0.03 or 0.1, 10 to 160 rounds by the partial likelihood in "
            "three folds, then grown on all training patients; a Cox model of the folds' scores gives the curves",
            TunedXGBoost,
            needs="xgboost",
        ),
    )
}


def find_contenders(names: list[str] | None) -> list[Contender]:
    """The methods by name, all by default; the null model and Cox are always among them."""
    if names is None:
        return [contender for contender in CONTENDERS.values() if contender.installed]
    for name in names:
        if name not in CONTENDERS:
            raise ArgumentError(
                "methods",
                f"methods={name!r} is not one of {', '.join(CONTENDERS)}.{did_you_mean(name, CONTENDERS)}",
            )
    return [contender for contender in CONTENDERS.values() if contender.name in {"null", REFERENCE, *names}]
