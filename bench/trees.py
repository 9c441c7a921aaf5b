"""Boosted trees: against LightGBM's own Poisson regression, and against other programs' Cox boosters."""

import lightgbm
import numpy as np

from bench import peers
from bench.clock import best
from bench.data import flc
from bench.rows import Row, faster, missing, within
from drosurv import CoxPH, SubgroupRobustCox
from drosurv.datasets import make_hidden_minority
from drosurv.metrics import concordance_index
from drosurv.solvers.boosting import DEFAULTS

PART = "trees"
ROUNDS = peers.ROUNDS
RATE = peers.SHRINKAGE
# Patients on whom a booster of quadratic time is timed.
TIMED_PATIENTS = 6_000, 12_000


def rows():
    """Every target of boosted trees."""
    yield from flc_rows()
    yield from peer_rows()


def flc_rows():
    """200 rounds on FLC's training patients."""
    X, y, _ = flc()[0]
    ours = best(
        lambda: CoxPH(network="trees", max_iter=ROUNDS, early_stopping=False, random_state=1).fit(X, y), 5
    )
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
    yield _at_most(f"{what}, against LightGBM's Poisson regression", ours.cpu, theirs.cpu)
    # A few hundred rounds of a robust model, for the record.
    robust = best(
        lambda: SubgroupRobustCox(network="trees", max_iter=ROUNDS, early_stopping=False, random_state=1).fit(
            X, y
        ),
        1,
    )
    what = f"SubgroupRobustCox, {ROUNDS} boosted rounds, the same patients"
    yield Row(PART, what, "", f"{robust.cpu:.2f} s", None, "its forest included", {"ours_s": robust.cpu})


def peer_rows():
    """Against XGBoost and scikit-survival on many patients."""
    n, d = 100_000, 20
    # Effects large enough that the order of new patients is more than chance.
    (X, y), (new_X, new_y) = (
        (made.X.to_numpy(), made.y)
        for made in (
            make_hidden_minority(n, n_features=d, random_state=0),
            make_hidden_minority(5_000, n_features=d, random_state=1),
        )
    )
    ours = best(
        lambda: CoxPH(network="trees", max_iter=ROUNDS, early_stopping=False, random_state=1).fit(X, y), 2
    )
    c_index = concordance_index(new_y, ours.result.predict(new_X))
    what = f"plain Cox, {ROUNDS} boosted rounds, n = {n:,}, d = {d}, against"
    try:
        scores, seconds = peers.fit("xgboost", X, y, new_X)
        note = f"c-index on new patients {c_index:.4f} against {concordance_index(new_y, scores):.4f}"
        yield _at_most(f"{what} XGBoost's survival:cox", ours.cpu, seconds, note)
    except peers.Missing as reason:
        yield missing(PART, f"{what} XGBoost's survival:cox", "at most 1.5x", str(reason))
    what = f"{what} scikit-survival's GradientBoostingSurvivalAnalysis"
    seconds, growth, timed = _scikit_survival(X, y)
    few = slice(2_000)
    mine = (
        CoxPH(network="trees", max_iter=ROUNDS, early_stopping=False, random_state=1)
        .fit(X[few], y[few])
        .predict(new_X)
    )
    # As many patients as it gets through in some ten times our time.
    scores, on_few = peers.fit("scikit-survival, all rounds", X[few], y[few], new_X)
    theirs = concordance_index(new_y, scores)
    on_equal = concordance_index(new_y, mine)
    note = (
        f"not run to the end: {timed} (growth n^{growth:.1f}), continued to {n:,} patients and {ROUNDS} rounds; "
        f"c-index on new patients {c_index:.4f} against {theirs:.4f} of its model of 2,000 patients, which took "
        f"{on_few:.1f} s (ours of the same 2,000: {on_equal:.4f})"
    )
    row = faster(PART, what, ours.cpu, seconds, 10, note)
    yield Row(**{**vars(row), "target": "10x faster, better c-index", "met": row.met and on_equal > theirs})


def _scikit_survival(X, y):
    """Seconds that all rounds would take on all patients, how they grow with n, and what was timed.

    The gradient compares all pairs of patients: on 100,000 a round takes a minute.
    """
    taken = [peers.fit("scikit-survival, some rounds", X[:n], y[:n], X[:1])[1] for n in TIMED_PATIENTS]
    (fewer, more), (less, longest) = TIMED_PATIENTS, taken
    growth = np.log(longest / less) / np.log(more / fewer)
    rounds = peers.TIMED_ROUNDS
    timed = f"{rounds} rounds took {less:.1f} s on {fewer:,} patients and {longest:.1f} s on {more:,}"
    return longest * ROUNDS / rounds * (len(X) / more) ** growth, growth, timed


def _at_most(what, ours, theirs, note="", most=1.5):
    ratio = ours / theirs
    said = f"{ours:.2f} s against {theirs:.2f} s" + (f"; {note}" if note else "")
    return Row(PART, what, f"at most {most:g}x", f"{ratio:.2f}x", ratio <= most, said, {"ratio": ratio})
