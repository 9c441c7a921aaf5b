"""Boosted trees: against LightGBM's own Poisson regression, and against other programs' Cox boosters."""

import lightgbm
import numpy as np

from drosurv import CoxPH, SubgroupRobustCox, Trees
from drosurv.datasets import make_hidden_minority
from drosurv.metrics import concordance_index
from drosurv.solvers.boosting import DEFAULTS
from experiments.speed import peers
from experiments.speed.clock import best
from experiments.speed.data import flc
from experiments.speed.rows import Row, at_most, faster, missing, within

PART = "trees"
ROUNDS = peers.ROUNDS
RATE = peers.SHRINKAGE
D = 20
# Patients on whom a booster of quadratic time is timed.
TIMED_PATIENTS = 6_000, 12_000
# A fixed number of rounds, without early stopping.
AS_LONG = CoxPH(Trees(max_iter=ROUNDS, early_stopping=False), random_state=0)


def rows():
    """Every target of boosted trees."""
    yield from flc_rows()
    yield from peer_rows()


def flc_rows():
    """200 rounds on FLC's training patients."""
    X, y, _ = flc()[0]
    ours = best(lambda: AS_LONG.fit(X, y), 5)
    what = f"plain Cox, {ROUNDS} boosted rounds, FLC's {len(X):,} training patients"
    yield within(PART, what, ours.cpu, 1.0)
    # The cumulative hazard of everybody at each patient's time: what Poisson regression takes for granted.
    exposure = CoxPH(max_iter=1).fit(np.zeros((len(X), 1)), y).cum_baseline_hazard_(y["time"])
    seen = exposure > 0
    settings = {**DEFAULTS, "objective": "poisson", "boost_from_average": False, "learning_rate": RATE}

    def poisson():
        offset = np.log(exposure[seen])
        data = lightgbm.Dataset(X[seen], y["event"][seen].astype(float), init_score=offset, params=settings)
        return lightgbm.train(settings, data, ROUNDS)

    theirs = best(poisson, 5)
    yield at_most(PART, f"{what}, against LightGBM's Poisson regression", ours.cpu, theirs.cpu, 1.5)
    # A few hundred rounds of a robust model, for the record.
    robust = best(
        lambda: SubgroupRobustCox(network=AS_LONG.network, random_state=1, recalibrate=False).fit(X, y),
        1,
    )
    what = f"SubgroupRobustCox, {ROUNDS} boosted rounds, the same patients"
    yield Row(PART, what, "", f"{robust.cpu:.2f} s", None, "its forest included", {"ours_s": robust.cpu})


def peer_rows():
    """Against XGBoost and scikit-survival on many patients."""
    n = 100_000
    X, y = _patients(n, seed=0)
    new_X, new_y = _patients(20_000, seed=10_000)
    ours = best(lambda: AS_LONG.fit(X, y), 2)
    what = f"plain Cox, {ROUNDS} boosted rounds, n = {n:,}, d = {D}, against"
    try:
        scores, seconds = peers.fit("xgboost", X, y, new_X)
        c_index = concordance_index(new_y, ours.result.predict(new_X))
        note = f"c-index on new patients {c_index:.4f} against {concordance_index(new_y, scores):.4f}"
        yield at_most(PART, f"{what} XGBoost's survival:cox", ours.cpu, seconds, 1.5, note)
    except peers.Missing as reason:
        yield missing(PART, f"{what} XGBoost's survival:cox", "at most 1.5x", str(reason))
    seconds, growth, timed = _scikit_survival(X, y)
    note = f"theirs not run to the end: {timed}; continued to {n:,} patients (as n^{growth:.1f}) and {ROUNDS} rounds"
    yield faster(
        PART, f"{what} scikit-survival's GradientBoostingSurvivalAnalysis", ours.cpu, seconds, 10, note
    )


def _patients(n, seed):
    """Effects large enough that the order of new patients is more than chance."""
    made = make_hidden_minority(n, n_features=D, random_state=seed)
    return made.X.to_numpy(), made.y


def _scikit_survival(X, y):
    """Seconds that all rounds would take on all patients, how they grow with n, and what was timed.

    The gradient compares all pairs of patients: on 100,000 a round takes a minute.
    """
    taken = [peers.fit("scikit-survival's trees", X[:n], y[:n], X[:1])[1] for n in TIMED_PATIENTS]
    (fewer, more), (less, longest) = TIMED_PATIENTS, taken
    growth = np.log(longest / less) / np.log(more / fewer)
    rounds = peers.TIMED_ROUNDS
    timed = f"{rounds} rounds took {less:.1f} s on {fewer:,} patients and {longest:.1f} s on {more:,}"
    return longest * ROUNDS / rounds * (len(X) / more) ** growth, growth, timed
